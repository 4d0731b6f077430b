"""Compiles all loops of the package.

A loop that Python calls declares the types of its arguments (`argument_types.py`): a few kinds of
arrays and plain numbers, so that each loop is compiled once. A loop that only other loops call
declares none: Numba compiles it into them, with the types of their calls. The machine code is kept
on disk (`code_cache.py`), so only the first run on a machine pays for it.

The machine code of a loop contains the code of the loops that it calls and the values of constants,
also those of other files. So loops lie in modules of their own, `*_loops.py`, which import nothing
from the package except each other and the files of `FROZEN`. Machine code on disk is used only if
the text of all these files is unchanged since it was compiled.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ParamSpec, cast

from weir.loops.loop import InnerLoop, Loop

Arguments = ParamSpec("Arguments")


def compiled(loop: Callable[Arguments, Any]) -> Callable[Arguments, Any]:
    """Compile a loop with Numba, which finds the types of its results.

    >>> from weir.loops.argument_types import I64s
    >>> @compiled
    ... def total(values: I64s):
    ...     result = 0
    ...     for value in values:
    ...         result += value
    ...     return result
    """
    return _loop(loop)


def in_place(loop: Callable[Arguments, Any]) -> Callable[Arguments, Any]:
    """Compile a loop that neither makes nor returns an array.

    Such a loop keeps no reference counts. Any other loop counts the references of each array that
    it passes to a loop, by operations that all cores see. In a join, that took five times as long
    as the work on the rows.
    """
    return _loop(loop, _nrt=False)


def inlined(loop: Callable[Arguments, Any]) -> Callable[Arguments, Any]:
    """Compile an `in_place` loop into each loop that calls it.

    This is for a few lines that run for every row, where a call would cost more than they do. It
    only helps if the caller is `in_place` too.
    """
    return _loop(loop, _nrt=False, inline="always")


def _loop(function: Callable[Arguments, Any], **options: Any) -> Callable[Arguments, Any]:
    options |= {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True}
    kind = Loop if function.__annotations__ else InnerLoop
    return cast("Callable[Arguments, Any]", kind(function, options))
