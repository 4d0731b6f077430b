"""Turns the text of a script into a plan, with sqlglot.

A program goes through `dialect` (tokens) → `grammar_*` (syntax trees) → `*_translation` (queries
and expressions) → `program` (statements checked in order, queries built).
"""

from weir.script.program import parse_program

__all__ = ["parse_program"]
