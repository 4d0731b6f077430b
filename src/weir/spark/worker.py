"""Sets up Spark's Python workers for the tasks of every runner."""

from __future__ import annotations

import gc
from functools import lru_cache

import pyarrow as pa

from weir.runtime.process import keep_freed_memory


@lru_cache(maxsize=1)
def settle_worker(*once_for: object) -> None:
    """Set a worker up, once for all of its tasks in a row that share `once_for`: a wave or a host.

    Kernels have one thread: parallelism is vertices. What is loaded by now is not garbage: Spark
    looks for garbage after every task, while the next one waits, and would go through all of it.
    """
    pa.set_cpu_count(1)
    keep_freed_memory()
    gc.freeze()
