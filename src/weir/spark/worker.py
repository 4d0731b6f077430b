"""Prepares Spark's Python workers for the tasks of every runner."""

from __future__ import annotations

import gc
from functools import lru_cache

import pyarrow as pa

from weir.runtime.process import keep_freed_memory


@lru_cache(maxsize=1)
def settle_worker(*once_for: object) -> None:
    """Prepare a worker, once for all consecutive tasks with the same `once_for` (a wave or a host).

    Kernels use one thread, because parallelism comes from vertices. Objects loaded so far are
    excluded from garbage collection: Spark collects garbage after every task, while the next one
    waits, and would scan all of them.
    """
    pa.set_cpu_count(1)
    keep_freed_memory()
    gc.freeze()
