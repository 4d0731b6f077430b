"""The one place where loops are compiled.

A compiled loop takes int64 (and bool, uint8) arrays and plain integers only: payload never
enters one, so each compiles once for all types. The machine code is cached on disk beside
the source (or in the user's cache folder), so only the first run on a machine pays for it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, TypeVar, cast

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
    return _jit(loop, inline="never")


def inlined(loop: Loop) -> Loop:
    """Compile a loop into each that calls it: for some lines that run for every row, where a call
    would cost more than they do. A caller's machine code on disk does not follow their changes:
    touch its file, too."""
    return _jit(loop, inline="always")


def _jit(loop: Loop, inline: Literal["never", "always"]) -> Loop:
    # A function typed at a prompt or in a doctest has no file to cache beside.
    has_file = loop.__code__.co_filename.endswith(".py")
    made = numba.njit(cache=has_file, nogil=True, error_model="numpy", inline=inline)(loop)
    return cast(Loop, made)
