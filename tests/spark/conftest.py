"""One Spark session for the tests of a process; each starts in about five seconds."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from weir.spark.session import make_session


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    made = make_session("local[2,4]")
    yield made
    made.stop()
