"""Every loop of the package is compiled here.

A compiled loop takes int64 (and bool, uint8) arrays and plain integers only: payload never
enters one, so each compiles once for all types. The machine code is cached on disk beside
the source (or in the user's cache folder), so only the first run on a machine pays for it.

The machine code of a loop contains the code of the loops that it calls and the values of constants,
also those of other files, but Numba only looks at the time of the loop's own file. So loops lie in
modules of their own, `*_loops.py`, which import nothing of the package but each other and the files
of `FROZEN`; and machine code on disk is used only if the text of none of these files has changed
since it was made.
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
    # A function typed at a prompt or in a doctest has no file to cache beside.
    has_file = loop.__code__.co_filename.endswith(".py")
    made = numba.njit(cache=has_file, nogil=True, error_model="numpy", **options)(loop)
    if has_file:
        # Private to Numba, which has no public way to say what code on disk depends on.
        made._cache._cache_file._source_stamp = stamp(Path(__file__).parents[1])
    return cast("Callable[Arguments, Any]", made)


@cache
def stamp(package: Path) -> str:
    """Return a hash of the text of every file that machine code of this package depends on."""
    files = sorted({*package.rglob("*_loops.py"), *(package / name for name in FROZEN)})
    texts = [(str(path.relative_to(package)), path.read_bytes()) for path in files]
    return hashlib.sha256(repr(texts).encode()).hexdigest()
