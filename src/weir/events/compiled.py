"""The one place where loops are compiled.

A compiled loop takes int64 (and bool, uint8) arrays and plain integers only: payload never
enters one, so each compiles once for all types. The machine code is cached on disk beside
the source (or in the user's cache folder), so only the first run on a machine pays for it.

Machine code holds that of the loops it calls, in other files too, but Numba looks at the time of
its own file alone. So code on disk counts only if none of the package's files has changed since.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, cast

import numba

Loop = TypeVar("Loop", bound=Callable[..., object])


def compiled(loop: Loop) -> Loop:
    """Compile a loop with Numba; it keeps its signature.

    >>> import numpy as np
    >>> @compiled
    ... def total(values):
    ...     result = 0
    ...     for value in values:
    ...         result += value
    ...     return result
    """
    return _jit(loop)


def in_place(loop: Loop) -> Loop:
    """Compile a loop that makes no array and returns none.

    Nothing then counts who holds an array. Else each call inside a loop does so, for each array
    that it hands over, in a way that all cores see: that took five times as long as a join's rows.
    """
    return _jit(loop, _nrt=False)


def inlined(loop: Loop) -> Loop:
    """Compile such a loop into each that calls it: for some lines that run for every row, where a
    call would cost more than they do. The caller must be `in_place` too to gain by it."""
    return _jit(loop, _nrt=False, inline="always")


def _jit(loop: Loop, **options: Any) -> Loop:
    # A function typed at a prompt or in a doctest has no file to cache beside.
    has_file = loop.__code__.co_filename.endswith(".py")
    made = numba.njit(cache=has_file, nogil=True, error_model="numpy", **options)(loop)
    if has_file:
        # Private to Numba, which has no public way to say what code on disk depends on.
        made._cache._cache_file._source_stamp = _package_stamp()
    return cast(Loop, made)


@cache
def _package_stamp() -> str:
    """Changes with every file that may hold a loop."""
    package = Path(__file__).parents[1]
    homes = [
        path for home in ("events", "kernels", "files") for path in (package / home).rglob("*.py")
    ]
    files = sorted({*homes, *package.rglob("*_loops.py")})
    stats = [
        (str(path.relative_to(package)), (stat := path.stat()).st_mtime_ns, stat.st_size)
        for path in files
    ]
    return hashlib.sha256(repr(stats).encode()).hexdigest()
