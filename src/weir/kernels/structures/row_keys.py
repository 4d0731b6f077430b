"""Encodes rows of several order columns as bytes that compare as the rows do.

Each column gives the bytes of `events/order_bytes.py`, inverted where the order is descending. The
row's number in the order of arrival ends the key, so no two are equal.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from weir.events.batch import Int64s
from weir.events.order_bytes import as_binary, equally_long, number_bytes, order_bytes
from weir.events.order_bytes_loops import side_by_side


def row_keys(columns: Sequence[tuple[pa.Array, bool]], arrivals: Int64s) -> pa.Array:
    """Return one BINARY key for each row of (column, descending) pairs."""
    key = equally_long(number_bytes(arrivals))
    for column, descending in reversed(columns):
        offsets, data = order_bytes(column)
        key = side_by_side(offsets, ~data if descending else data, *key)
    return as_binary(key).cast(pa.binary())
