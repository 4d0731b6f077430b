"""Tells Spark of `format("weir")`.

Spark looks for packages whose names begin with `pyspark_` when a format is first asked for, and
registers their `DefaultSource`: nothing needs to be registered by hand.
"""

from weir.spark.data_source import CommittedSource as DefaultSource

__all__ = ["DefaultSource"]
