"""Compiles all loops that a run lacks at once, when the run first misses one.

Skipped when no loop is missing: then there is not even a rehearsal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from weir.loops.code_cache import is_kept, on_miss
from weir.loops.dry_runs import compile_together
from weir.plan.program import Program

OnCompile = Callable[[int], None]
"""Called with the number of loops that are being compiled; 0: they are done."""


@contextmanager
def compiled_ahead(program: Program, parallelism: int, tell: OnCompile) -> Iterator[None]:
    """Let a run in the block compile what it lacks at once: at first what few rows need, and should
    it lack more, what many do."""

    def compile_for(*, many: bool) -> None:
        from weir.local.rehearsal import guessed_needs  # not imported when no loop is missing

        lacking = [n for n in guessed_needs(program, parallelism, many=many) if not is_kept(n)]
        if lacking:
            tell(len(lacking))
            compile_together(lacking)
            tell(0)

    with on_miss(lambda: compile_for(many=False), lambda: compile_for(many=True)):
        yield
