"""Settings of processes that are Weir's own: workers of Spark, the command line.

A program that merely imports Weir keeps its own settings.
"""

from __future__ import annotations

import ctypes
import sys
from functools import cache

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # of mallopt(3)
_KEPT_BYTES = 128 << 20
_LARGEST_KEPT = 32 << 20  # the C library takes no larger one


@cache
def keep_freed_memory() -> None:
    """Let the process keep freed memory for the next batch, up to 128 MiB.

    Every batch needs arrays of some MiB for a moment. If they were given back to the system each
    time, it would map them anew page by page: a quarter of the time of a job that counts words.
    """
    if not sys.platform.startswith("linux"):
        return
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)  # not every C library has it
    if mallopt is not None:
        mallopt(_TRIM_THRESHOLD, _KEPT_BYTES)
        mallopt(_MMAP_THRESHOLD, _LARGEST_KEPT)
