"""Compiles the loops that a program lacks before it runs, all at once."""

from __future__ import annotations

from collections.abc import Callable

from weir.loops.parallel_compilation import compile_together, missing_loops
from weir.plan.program import Program
from weir.runtime.loop_needs import needed_loops

OnCompile = Callable[[int], None]
"""Called with the number of loops that are being compiled; 0: they are done."""


def compile_ahead(program: Program, tell: OnCompile) -> None:
    """Compile the loops that a small run of a program needs and that are not on disk; others are
    compiled when they are called."""
    missing = missing_loops(needed_loops(program, complete=False))
    if missing:
        tell(len(missing))
        compile_together(missing)
        tell(0)
