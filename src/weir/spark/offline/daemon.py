"""Forks the Python workers of a session on this machine, with their modules imported.

Spark starts `python -m pyspark.daemon`, whose forks each import Arrow, Numba and Weir when their
first task comes: more than a second of each core, for a job of seconds. Here it is done once.
"""

from __future__ import annotations

from pyspark import daemon, worker

from weir.spark.offline import tasks

PRELOADED = (worker, tasks)

if __name__ == "__main__":
    daemon.manager()
