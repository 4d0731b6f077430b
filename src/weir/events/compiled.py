"""The one place where loops are compiled.

A compiled loop takes int64 (and bool, uint8) arrays and plain integers only: payload never
enters one, so each compiles once for all types. The machine code is cached on disk beside
the source (or in the user's cache folder), so only the first run on a machine pays for it.

Machine code holds that of the loops it calls and the values of constants, in other files too, but
Numba looks at the time of its own file alone. So loops lie in modules of their own, `*_loops.py`,
which import nothing of the package but each other and the files of `FROZEN`; and code on disk
counts only if the text of none of these files has changed since.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, ParamSpec, cast

import numba

Arguments = ParamSpec("Arguments")

FROZEN = ("events/batch.py", "events/compiled.py")
"""The other files whose text machine code depends on: constants of time, how loops are compiled."""


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

    Nothing then counts who holds an array. Else each call inside a loop does so, for each array
    that it hands over, in a way that all cores see: that took five times as long as a join's rows.
    """
    return _jit(loop, _nrt=False)


def inlined(loop: Callable[Arguments, Any]) -> Callable[Arguments, Any]:
    """Compile such a loop into each that calls it: for some lines that run for every row, where a
    call would cost more than they do. The caller must be `in_place` too to gain by it."""
    return _jit(loop, _nrt=False, inline="always")


def _jit(loop: Callable[Arguments, Any], **options: Any) -> Callable[Arguments, Any]:
    # A function typed at a prompt or in a doctest has no file to cache beside.
    has_file = loop.__code__.co_filename.endswith(".py")
    made = numba.njit(cache=has_file, nogil=True, error_model="numpy", **options)(loop)
    if has_file:
        # Private to Numba, which has no public way to say what code on disk depends on.
        made._cache._cache_file._source_stamp = stamp(Path(__file__).parents[1])
    return cast("Callable[Arguments, Any]", made)


@cache
def stamp(package: Path) -> str:
    """Changes with the text of every file that machine code of this package depends on."""
    files = sorted({*package.rglob("*_loops.py"), *(package / name for name in FROZEN)})
    texts = [(str(path.relative_to(package)), path.read_bytes()) for path in files]
    return hashlib.sha256(repr(texts).encode()).hexdigest()
