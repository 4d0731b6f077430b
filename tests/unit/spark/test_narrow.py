"""Narrow columns: exactly the column that was sent comes back, in fewer bytes."""

from __future__ import annotations

from datetime import date

import numpy as np
import pyarrow as pa
import pytest

from weir.events.batch import OPEN, START, Batch
from weir.events.types import BIGINT, DATE, INT, TIMESTAMP
from weir.spark.narrow import narrowed, widened
from weir.spark.offline.blocks import decode, encode

HIGH, LOW = np.iinfo(np.int64).max, np.iinfo(np.int64).min

COLUMNS = {
    "equal": (pa.array([7, 7, 7]), 0),
    "extreme and equal": (pa.array([LOW, LOW]), 0),
    "bytes": (pa.array([-200, 55]), 1),
    "beyond a byte": (pa.array([-201, 55]), 2),
    "words": (pa.array([HIGH - 65_535, HIGH]), 2),
    "half": (pa.array([LOW, LOW + 2**32 - 1]), 4),
    "too far apart": (pa.array([0, 2**32]), 8),
    "as far as can be": (pa.array([LOW, HIGH]), 8),
    "times": (pa.array([10**15, 10**15 + 300], BIGINT).cast(TIMESTAMP), 2),
    "ints": (pa.array([-(2**31), -(2**31) + 65_535], INT), 2),
    "ints too far apart": (pa.array([-(2**31), 2**31 - 1], INT), 4),
    "small steps": (pa.array([-5, 250, 250, 505]), 1),
    "larger steps": (pa.array([LOW, LOW + 65_535, LOW + 131_070]), 2),
    "steps as wide as the whole": (pa.array([0, 70_000, 70_001]), 4),
    "a step back at the end": (pa.array([*range(0, 30_000, 100), 29_000]), 2),
    "times in order": (pa.array([10**15, 10**15 + 200, 10**15 + 400]).cast(TIMESTAMP), 1),
    "dates": (pa.array([date(2024, 1, 1), date(2024, 3, 1)], DATE), 1),
}


@pytest.mark.parametrize("name", COLUMNS)
def test_numbers_come_back_out_of_few_bytes(name: str) -> None:
    column, width = COLUMNS[name]
    stored, field = narrowed(column, "c")
    came = widened(stored, field)
    assert came.type == column.type and came.equals(column)
    assert stored.nbytes == width * len(column)


@pytest.mark.parametrize(
    "column",
    [
        pa.array([1, None, 3]),
        pa.array([], BIGINT),
        pa.array([0.5, -0.0]),
        pa.array([True, False]),
        pa.array(["a", None]),
        pa.nulls(3),
    ],
)
def test_other_columns_stay_as_they_are(column: pa.Array) -> None:
    stored, field = narrowed(column, "c")
    assert stored is column and widened(stored, field).equals(column)


def test_a_slice_is_narrowed_alone() -> None:
    stored, field = narrowed(pa.array([10**9, 5, 6, 10**9]).slice(1, 2), "c")
    assert stored.type == pa.uint8() and widened(stored, field).to_pylist() == [5, 6]


def test_lifetimes_of_all_kinds_go_through_a_block() -> None:
    vs = np.array([START + 1, -(2**62), -1, 0, 2**62], dtype=np.int64)
    ve = np.array([OPEN, OPEN, 0, OPEN, 2**62 + 1], dtype=np.int64)
    came = decode(encode(Batch(vs, ve, ())), 0)
    assert came.vs.tolist() == vs.tolist() and came.ve.tolist() == ve.tolist()


def test_sources_with_one_lifetime_send_starts_and_payload_only() -> None:
    vs = np.arange(100_000, dtype=np.int64) * 1_000 + 10**15
    keys = pa.array(np.arange(100_000) % 60_000)
    origin = (np.full(100_000, 3 << 40), np.arange(100_000))
    plain, traced = Batch(vs, vs + 60, (keys,)), Batch(vs, vs + 60, (keys,), origin)
    assert encode(plain).size < 100_000 * 6 + 4_096
    assert encode(traced).size < 100_000 * 10 + 4_096
