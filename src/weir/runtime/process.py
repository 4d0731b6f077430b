"""Settings of processes that are Weir's own: workers of Spark, the command line.

A program that merely imports Weir keeps its own settings.
"""

from __future__ import annotations

import ctypes
import sys
from functools import cache
from importlib.abc import MetaPathFinder

import pyarrow as pa

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # of mallopt(3)
_KEPT_BYTES = 128 << 20
_LARGEST_KEPT = 32 << 20  # the C library takes no larger one


@cache
def keep_freed_memory() -> None:
    """Let the process keep freed memory for the next batch, up to 128 MiB.

    Every batch needs arrays of some MiB for a moment. If they were given back to the system each
    time, it would map them again page by page: a quarter of the time of a job that counts words.
    """
    if not sys.platform.startswith("linux"):
        return
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)  # not every C library has it
    if mallopt is not None:
        mallopt(_TRIM_THRESHOLD, _KEPT_BYTES)
        mallopt(_MMAP_THRESHOLD, _LARGEST_KEPT)


@cache
def leave_pandas_out() -> None:
    """Keep Arrow from importing pandas, in a process that runs nobody's code but Weir's.

    Arrow imports it with the first array, where it is installed, to know its values when it sees
    them. That takes longer than a small run.
    """
    if "pandas" in sys.modules:
        return
    hiding = _NoPandas()
    sys.meta_path.insert(0, hiding)
    try:
        pa.array([None])  # Arrow looks for it, and does not look again
    finally:
        sys.meta_path.remove(hiding)


class _NoPandas(MetaPathFinder):
    def find_spec(self, name: str, path: object, target: object = None) -> None:
        if name == "pandas":
            raise ModuleNotFoundError(name=name)
