"""The one place where loops are compiled.

A compiled loop takes int64 (and bool, uint8) arrays and plain integers only: payload never
enters one, so each compiles once for all types. The machine code is cached on disk beside
the source (or in the user's cache folder), so only the first run on a machine pays for it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar, cast

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
    # A function typed at a prompt or in a doctest has no file to cache beside.
    has_file = loop.__code__.co_filename.endswith(".py")
    return cast(Loop, numba.njit(cache=has_file, nogil=True, error_model="numpy")(loop))
