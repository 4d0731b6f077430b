"""Rows in memory: explicit CTIs are read as those of files are."""

from __future__ import annotations

import numpy as np
import pytest

from weir.errors import InputError
from weir.events.types import BIGINT
from weir.ingress.memory_partitions import MemoryPartition

COLUMNS = (("vs", BIGINT),)


@pytest.mark.parametrize("time", [2**70, None, "x", 1.5, float("inf"), [1]])
def test_a_cti_that_is_no_time_is_refused(time: object) -> None:
    with pytest.raises(InputError, match="row 1: wanted ticks or an ISO 8601 time"):
        MemoryPartition("A", [{"vs": 1}, {"$cti": time}], COLUMNS)


@pytest.mark.parametrize("time", [3, 3.0, np.int64(3), "1970-01-01T00:00:00.000003Z"])
def test_a_cti_is_ticks_or_a_text(time: object) -> None:
    (chunk,) = MemoryPartition("A", [{"vs": 1}, {"$cti": time}], COLUMNS).chunks()
    assert chunk.cti_times.tolist() == [3]
