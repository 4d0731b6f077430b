"""Every loop of the package is compiled here.

A compiled loop takes int64 (and bool, uint8) arrays and plain integers only: payload never
enters one, so each compiles once for all types. The machine code is kept on disk
(`code_cache.py`), so only the first run on a machine pays for it.

The machine code of a loop contains the code of the loops that it calls and the values of constants,
also those of other files. So loops lie in modules of their own, `*_loops.py`, which import nothing
of the package but each other and the files of `FROZEN`; and machine code on disk is used only if
the text of none of these files has changed since it was made.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ParamSpec, cast

import numba

from weir.loops.code_cache import every_loop, is_inner, keep_code

Arguments = ParamSpec("Arguments")


def compiled(loop: Callable[Arguments, Any]) -> Callable[Arguments, Any]:
    """Compile a loop with Numba, which finds the types of its arguments and results.

    >>> import numpy as np
    >>> @compiled
    ... def total(values):
    ...     result = 0
    ...     for value in values:
    ...         result += value
    ...     return result
    """
    return _jit(loop)


def in_place(loop: Callable[Arguments, Any]) -> Callable[Arguments, Any]:
    """Compile a loop that makes no array and returns none.

    Such a loop keeps no reference counts. Other loops, whenever they call a loop, count the
    references of each array that they hand over, with operations that all cores see: in a join that
    took five times as long as the work on the rows.
    """
    return _jit(loop, _nrt=False)


def inlined(loop: Callable[Arguments, Any]) -> Callable[Arguments, Any]:
    """Compile an `in_place` loop into each loop that calls it.

    This is for a few lines that run for every row, where a call would cost more than they do. It
    gains something only if the caller is `in_place` too.
    """
    return _jit(loop, _nrt=False, inline="always")


def _jit(loop: Callable[Arguments, Any], **options: Any) -> Callable[Arguments, Any]:
    """Compile a loop. The code of an inner one has no entry for Python and is not kept, which are
    half of the work."""
    inner = is_inner(loop)
    options |= {"no_cfunc_wrapper": True, "no_cpython_wrapper": inner}
    made = numba.njit(nogil=True, error_model="numpy", **options)(loop)
    # A function typed at a prompt or in a doctest has no file that its code depends on.
    every_loop.append(made)
    if not inner and loop.__code__.co_filename.endswith(".py"):
        keep_code(made)
    return cast("Callable[Arguments, Any]", made)
