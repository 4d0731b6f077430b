"""Forks a session's Python workers on this machine with their modules already imported.

Spark starts `python -m pyspark.daemon`. Each fork of it imports Arrow, Numba and Weir for its first
task, which takes each core more than a second, in a job of seconds. Here this is done once.
"""

from __future__ import annotations

from pyspark import daemon, worker

from weir.spark.offline import tasks

PRELOADED = (worker, tasks)

if __name__ == "__main__":
    daemon.manager()
