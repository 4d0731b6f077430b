"""Converts times of inputs to ticks.

Numbers are in the unit that their source declares. Times finer than a microsecond are rounded
down."""

from __future__ import annotations

import re

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from weir.events.batch import LATEST, OPEN, Int64s, ticks
from weir.events.types import BIGINT, TIMESTAMP
from weir.events.value_text import parse_timestamps

_TICKS = {"s": 1_000_000, "ms": 1_000}
_NANOSECONDS = 1_000
FINER = re.compile(rb":[0-9]{2}\.[0-9]{6}[0-9]{1,3}(?![0-9])")
"""A time in a text with seven to nine decimals of a second."""
WANTED_CTI = "wanted ticks or an ISO 8601 time"
"""The reason given for a value that `cti_ticks` refuses."""


def in_ticks(values: Int64s, unit: str | None) -> Int64s:
    """Convert times to ticks. Nanoseconds are rounded down; times out of range stay out of range;
    `OPEN` stays open.

    >>> in_ticks(np.array([5, -5, OPEN]), "ms").tolist() == [5000, -5000, OPEN]
    True
    """
    if unit == "ns":
        return np.where(values == OPEN, OPEN, values // _NANOSECONDS)
    size = _TICKS.get(unit or "")
    if size is None:
        return values
    most = LATEST // size
    beyond = (values > most) | (values < -most)
    moved = np.where(beyond, 0, values) * size
    return np.where(beyond, np.where(values == OPEN, OPEN, np.sign(values) * (LATEST + 1)), moved)


def cti_ticks(value: object, unit: str | None) -> int | None:
    """Return the ticks of an explicit CTI, a whole number or an ISO 8601 text; None for any other
    value.

    >>> cti_ticks(5, "ms"), cti_ticks("1970-01-01T00:00:01Z", None), cti_ticks(1.5, None)
    (5000, 1000000, None)
    """
    if isinstance(value, str):
        try:
            return int(ticks(parse_timestamps(pa.array([value])))[0])
        except pa.ArrowInvalid:
            return None
    if not isinstance(value, int | float | np.integer) or not -(2**63) <= value < 2**63:
        return None
    return int(in_ticks(np.array([int(value)]), unit)[0]) if value == int(value) else None


def from_nanoseconds(column: pa.Array) -> pa.Array:
    """Convert times in nanoseconds to TIMESTAMP.

    >>> from_nanoseconds(pa.array([1999, -1], pa.timestamp("ns"))).cast(BIGINT).to_pylist()
    [1, -1]
    """
    plain = column.cast(BIGINT)
    ticks = np.asarray(pc.fill_null(plain, 0)) // _NANOSECONDS
    return pa.array(ticks, mask=np.asarray(plain.is_null())).cast(TIMESTAMP)


def without_nanoseconds(texts: pa.Array) -> pa.Array:
    """Cut ISO 8601 texts with up to nine decimals of a second after the sixth.

    >>> without_nanoseconds(pa.array(["2024-01-01T00:00:00.123456789Z"])).to_pylist()
    ['2024-01-01T00:00:00.123456Z']
    """
    return pc.replace_substring_regex(
        texts, r"(:[0-9]{2}\.[0-9]{6})[0-9]{1,3}(Z|[+-][0-9:]+)?$", r"\1\2"
    )
