"""The total order of values and rows, as int64 codes.

Contract
1. `order_codes(column)` gives codes that compare as the values of *that array* compare: NULL first,
   −0 = 0, NaN last and equal to itself, strings and binaries by their bytes, lists element by
   element (a prefix first), structs field by field. Codes of two arrays cannot be compared:
   concatenate the arrays first.
2. `sort_rows(keys)` is a stable lexicographic sort. A later key is read only where all earlier ones
   tie, so it costs nothing when the first key decides.
3. `sort_batch` sorts events by (vs, [origin,] ve, payload left to right). With `exact`, rows that
   are equal but not identical (−0 and 0, two NaNs) get a fixed order too. That makes sorted files
   byte-identical, whatever order their rows came in.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from weir.events.batch import START, Batch, Int64s
from weir.events.hashing import decimal_words
from weir.events.order_bytes import as_binary, is_plain, order_bytes, plain_codes
from weir.events.order_loops import sort_within, still_tied, tell_apart

RowIndices = npt.NDArray[np.intp]
KeyOf = Callable[[RowIndices | None], Int64s]
"""Returns the sort key of the rows at these positions, or of all rows for None."""


def order_codes(column: pa.Array, *, exact: bool = False) -> Int64s:
    """Return codes that compare as the values of the array do.

    With `exact`, −0 comes before 0.

    >>> order_codes(pa.array(["b", None, "a", "b"])).tolist()
    [2, 0, 1, 2]
    """
    dtype = column.type
    if pa.types.is_null(dtype):
        return np.zeros(len(column), dtype=np.int64)
    if pa.types.is_nested(dtype):
        return _bytes_codes(as_binary(order_bytes(column, exact=exact)))
    if is_plain(dtype):
        return _nulls_first(column, plain_codes(column, exact=exact))
    if pa.types.is_decimal(dtype):
        return _wide_decimal_codes(column)
    return _bytes_codes(column)


def sort_rows(keys: Sequence[Int64s]) -> RowIndices:
    """Return the positions of the rows, sorted by the keys from left to right.

    Rows that are equal by all keys keep their order.

    >>> sort_rows([np.array([2, 1, 1]), np.array([0, 5, 4])]).tolist()
    [2, 1, 0]
    """
    return _sort(len(keys[0]), [_key(key) for key in keys])


def sort_batch(batch: Batch, by_origin: bool, *, exact: bool = False) -> RowIndices:
    """Return the positions of the rows in the order of events.

    The origin counts only with `by_origin`."""
    if by_origin and _strictly_ordered((batch.vs, *batch.origin)):
        return np.arange(len(batch), dtype=np.intp)
    keys = [_key(batch.vs)]
    if by_origin:
        keys += [_key(origin) for origin in batch.origin]
    keys.append(_key(batch.ve))
    keys += [_payload_key(column, exact=False) for column in batch.columns]
    if exact:
        keys += [_payload_key(c, exact=True) for c in batch.columns if has_floats(c.type)]
    return _sort(len(batch), keys)


def in_order(rows: Batch) -> Batch:
    """Sort the rows as files have them: by (vs, ve, payload).

    Rows that are equal but not identical get a fixed order too."""
    return taken(rows, sort_batch(rows, False, exact=True))


def taken(rows: Batch, order: RowIndices) -> Batch:
    """Return all rows in this order, without a copy if they already are in it."""
    return rows if _is_identity(order) else rows.take(order)


def dense_codes(keys: Sequence[Int64s]) -> Int64s:
    """Return the ranks of the rows by these keys, from 0; equal rows have equal ranks."""
    rows = sort_rows(keys)
    fresh = np.zeros(len(rows), dtype=bool)
    for key in keys:
        ordered = key[rows]
        fresh[1:] |= ordered[1:] != ordered[:-1]
    ranks = np.empty(len(rows), dtype=np.int64)
    ranks[rows] = np.cumsum(fresh)
    return ranks


def has_floats(dtype: pa.DataType) -> bool:
    """Tell whether a value of this type is or contains a float."""
    if pa.types.is_list(dtype):
        return has_floats(dtype.value_type)
    if pa.types.is_struct(dtype):
        return any(has_floats(field.type) for field in dtype)
    return bool(pa.types.is_floating(dtype))


# --- sorting -------------------------------------------------------------------------------


def _key(values: Int64s) -> KeyOf:
    return lambda rows: values if rows is None else values[rows]


def _payload_key(column: pa.Array, *, exact: bool) -> KeyOf:
    def key(rows: RowIndices | None) -> Int64s:
        return order_codes(column if rows is None else column.take(pa.array(rows)), exact=exact)

    return key


def _sort(count: int, keys: Sequence[KeyOf]) -> RowIndices:
    order: RowIndices = np.arange(count, dtype=np.intp)
    if count < 2:
        return order
    first = keys[0](None)
    if (first[1:] < first[:-1]).any():
        order = np.argsort(first, kind="stable")
        first = first[order]
    # `positions` are those in `order` that still tie with a neighbour; `groups` are their ties.
    everything = np.zeros(count, dtype=np.int64)
    positions, groups = still_tied(everything, first, np.arange(count, dtype=np.intp))
    for key in keys[1:]:
        if not len(positions):
            break
        rows = order[positions]
        values = key(None if len(positions) == count and _is_identity(rows) else rows)
        inner = sort_within(groups, values)
        order[positions] = rows[inner]
        positions, groups = still_tied(groups, values[inner], positions)
    return order


def _strictly_ordered(keys: Sequence[Int64s]) -> bool:
    """Tell whether each row comes before the next by these keys alone."""
    tied = np.ones(max(len(keys[0]) - 1, 0), dtype=bool)
    for key in keys:
        left = tell_apart(key, tied)
        if left <= 0:
            return bool(left == 0)
    return False


def _is_identity(rows: RowIndices) -> bool:
    return bool((rows[1:] > rows[:-1]).all())


# --- codes by type -------------------------------------------------------------------------


def _nulls_first(column: pa.Array, codes: Int64s) -> Int64s:
    if not column.null_count:
        return codes
    nulls = np.asarray(column.is_null())
    smallest = codes.min(where=~nulls, initial=0)
    if smallest == START:  # no code is free below START; ranks leave room
        return dense_codes([np.where(nulls, 0, 1), np.where(nulls, 0, codes)])
    return np.where(nulls, START, codes)


def _bytes_codes(column: pa.Array) -> Int64s:
    encoded = column.dictionary_encode()
    # Arrow compares strings by their bytes, which is what UTF-8 order means.
    by_value = np.asarray(pc.sort_indices(encoded.dictionary))
    ranks = np.empty(len(by_value) + 1, dtype=np.int64)
    ranks[by_value] = np.arange(1, len(by_value) + 1)
    ranks[-1] = 0  # NULL
    indices = encoded.indices
    if indices.null_count:
        indices = pc.fill_null(indices, len(by_value))
    codes: Int64s = ranks[np.asarray(indices)]
    return codes


def _wide_decimal_codes(column: pa.Array) -> Int64s:
    words = decimal_words(column)
    high = np.ascontiguousarray(words[:, 1])
    unsigned_low = words[:, 0] ^ START  # flips the sign bit: signed codes that order as unsigned
    return dense_codes([np.asarray(column.is_valid()).astype(np.int64), high, unsigned_low])
