"""Text to plan: the script language on sqlglot.

The way of a program: `dialect` (tokens) → `grammar_*` (syntax trees) → `translate*` (queries
and expressions) → `program` (statements checked in order, queries built).
"""

from weir.script.program import parse_program

__all__ = ["parse_program"]
