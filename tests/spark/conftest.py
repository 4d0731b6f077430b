"""One Spark session for the tests of a process; each starts in about five seconds."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from weir.spark.session import make_session


@pytest.fixture
def spark(no_session_stays: None) -> SparkSession:
    """The session; made anew behind a test that had to stop it to make its own."""
    active = SparkSession.getActiveSession()
    return active if active is not None else make_session("local[2,4]")


@pytest.fixture(scope="session")
def no_session_stays() -> Iterator[None]:
    yield
    active = SparkSession.getActiveSession()
    if active is not None:
        active.stop()
