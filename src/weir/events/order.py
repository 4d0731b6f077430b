"""The total order of values and rows, as int64 codes.

Contract
1. `order_codes(column)` gives codes that compare as the values of *that array* compare: NULL
   first, −0 = 0, NaN last and equal to itself, strings and binaries by their bytes, lists
   element by element (a prefix first), structs field by field. Codes of two arrays mean
   nothing to each other: concatenate first.
2. `sort_rows(keys)` is a stable lexicographic sort; a later key is read only where all earlier
   ones tie, so it costs nothing when the first key decides.
3. `sort_batch` is the order of events: (vs, [origin,] ve, payload left to right). With `exact`
   rows that are equal but not identical (−0 and 0, two NaNs) get a fixed order too, which
   makes sorted files byte-identical whatever order their rows came in.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from weir.events.batch import START, Batch, Int64s
from weir.events.compiled import compiled
from weir.events.hashing import decimal_words
from weir.events.order_bytes import as_binary, is_plain, order_bytes, plain_codes

Rows = npt.NDArray[np.intp]
KeyOf = Callable[[Rows | None], Int64s]
"""A sort key of the rows at these positions; of all rows for None."""


def order_codes(column: pa.Array, *, exact: bool = False) -> Int64s:
    """Codes that compare as the values of the array do; `exact` tells −0 from 0.

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


def sort_rows(keys: Sequence[Int64s]) -> Rows:
    """Positions in order of the keys, left to right; equal rows keep their order.

    >>> sort_rows([np.array([2, 1, 1]), np.array([0, 5, 4])]).tolist()
    [2, 1, 0]
    """
    return _sort(len(keys[0]), [_key(key) for key in keys])


def sort_batch(batch: Batch, by_origin: bool, *, exact: bool = False) -> Rows:
    """Positions in the order of events, the origin left out unless `by_origin`."""
    keys = [_key(batch.vs)]
    if by_origin:
        keys += [_key(origin) for origin in batch.origin]
    keys.append(_key(batch.ve))
    keys += [_payload_key(column, exact=False) for column in batch.columns]
    if exact:
        keys += [_payload_key(c, exact=True) for c in batch.columns if has_floats(c.type)]
    return _sort(len(batch), keys)


def in_order(rows: Batch) -> Batch:
    """The rows as a file has them: by (vs, ve, payload), equal but not identical ones in a fixed
    order too."""
    return taken(rows, sort_batch(rows, False, exact=True))


def taken(rows: Batch, order: Rows) -> Batch:
    """All rows in this order; not copied if it is theirs."""
    return rows if _is_identity(order) else rows.take(order)


def dense_codes(keys: Sequence[Int64s]) -> Int64s:
    """Ranks from 0 of the rows by these keys: equal rows have equal ranks."""
    rows = sort_rows(keys)
    fresh = np.zeros(len(rows), dtype=bool)
    for key in keys:
        ordered = key[rows]
        fresh[1:] |= ordered[1:] != ordered[:-1]
    ranks = np.empty(len(rows), dtype=np.int64)
    ranks[rows] = np.cumsum(fresh)
    return ranks


def has_floats(dtype: pa.DataType) -> bool:
    """Whether a float stands anywhere in values of this type."""
    if pa.types.is_list(dtype):
        return has_floats(dtype.value_type)
    if pa.types.is_struct(dtype):
        return any(has_floats(field.type) for field in dtype)
    return bool(pa.types.is_floating(dtype))


# --- sorting -------------------------------------------------------------------------------


def _key(values: Int64s) -> KeyOf:
    return lambda rows: values if rows is None else values[rows]


def _payload_key(column: pa.Array, *, exact: bool) -> KeyOf:
    def key(rows: Rows | None) -> Int64s:
        return order_codes(column if rows is None else column.take(pa.array(rows)), exact=exact)

    return key


def _sort(count: int, keys: Sequence[KeyOf]) -> Rows:
    order: Rows = np.arange(count, dtype=np.intp)
    if count < 2:
        return order
    first = keys[0](None)
    if (first[1:] < first[:-1]).any():
        order = np.argsort(first, kind="stable")
        first = first[order]
    # `places` are the positions in `order` still tied with a neighbour; `groups` their tie.
    everything = np.zeros(count, dtype=np.int64)
    places, groups = _ties(everything, first, np.arange(count, dtype=np.intp))
    for key in keys[1:]:
        if not len(places):
            break
        rows = order[places]
        values = key(None if len(places) == count and _is_identity(rows) else rows)
        inner = _sort_within(groups, values)
        order[places] = rows[inner]
        places, groups = _ties(groups, values[inner], places)
    return order


@compiled
def _sort_within(groups, values):  # type: ignore[no-untyped-def]
    """Positions that sort each run of equal groups by value, stable. Runs are mostly a few
    rows long, where inserting one by one beats any general sort."""
    order = np.arange(len(groups))
    start = np.int64(0)
    while start < len(groups):
        stop = start + 1
        in_order = True
        while stop < len(groups) and groups[stop] == groups[start]:
            in_order &= values[stop - 1] <= values[stop]
            stop += 1
        if in_order:
            pass
        elif stop - start > 32:
            _sort_run(values, start, stop, order)
        else:
            for i in range(start + 1, stop):
                at = i
                while at > start and values[order[at - 1]] > values[i]:
                    order[at] = order[at - 1]
                    at -= 1
                order[at] = i
        start = stop
    return order


_DIGIT = 11  # bits: the counts of a digit stay in the nearest cache
_FEW_DIGITS = 3


@compiled
def _sort_run(values, start, stop, order):  # type: ignore[no-untyped-def]
    """Sort `order[start:stop]`, which is those positions, by value, stable: digit by digit where
    the values lie so close together that they have few."""
    lowest, highest = values[start], values[start]
    for i in range(start, stop):
        lowest, highest = min(lowest, values[i]), max(highest, values[i])
    span = np.uint64(highest) - np.uint64(lowest)  # modulo 2⁶⁴, so it is right for any two
    digits = 0
    while digits <= _FEW_DIGITS and span >> np.uint64(_DIGIT * digits):
        digits += 1
    if digits > _FEW_DIGITS or stop - start < 1 << (_DIGIT - 3):
        order[start:stop] = start + np.argsort(values[start:stop], kind="mergesort")
        return
    other = np.empty(stop - start, dtype=np.int64)
    mask = np.uint64((1 << _DIGIT) - 1)
    for digit in range(digits):
        shift = np.uint64(_DIGIT * digit)
        ends = np.zeros((1 << _DIGIT) + 1, dtype=np.int64)
        for i in range(start, stop):
            ends[((np.uint64(values[i]) - np.uint64(lowest)) >> shift & mask) + np.uint64(1)] += 1
        for i in range(1, len(ends)):
            ends[i] += ends[i - 1]
        for i in range(start, stop):
            at = (np.uint64(values[order[i]]) - np.uint64(lowest)) >> shift & mask
            other[ends[at]] = order[i]
            ends[at] += 1
        order[start:stop] = other


def _is_identity(rows: Rows) -> bool:
    return bool((rows[1:] > rows[:-1]).all())


@compiled
def _ties(groups, ordered, places):  # type: ignore[no-untyped-def]
    """Of places in order, with the tie each was in: those still tied, and their new ties."""
    kept = np.empty_like(places)
    ties = np.empty(len(places), dtype=np.int64)
    count = start = 0
    for at in range(1, len(places) + 1):
        if at < len(places) and groups[at] == groups[start] and ordered[at] == ordered[start]:
            continue
        if at - start > 1:
            for i in range(start, at):
                kept[count] = places[i]
                ties[count] = start
                count += 1
        start = at
    return kept[:count], ties[:count]


# --- codes by type -------------------------------------------------------------------------


def _nulls_first(column: pa.Array, codes: Int64s) -> Int64s:
    if not column.null_count:
        return codes
    nulls = np.asarray(column.is_null())
    smallest = codes.min(where=~nulls, initial=0)
    if smallest == START:  # no code is left below it: ranks have room
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
    unsigned_low = words[:, 0] ^ START  # flips the sign bit: signed codes that order as unsigned
    return dense_codes([np.asarray(column.is_valid()).astype(np.int64), words[:, 1], unsigned_low])
