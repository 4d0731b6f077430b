"""Functions of LIST and STRUCT: array_length, array_contains, element_at, field."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from weir.events.batch import Int64s
from weir.events.types import BIGINT, BOOLEAN
from weir.kernels.expressions.evaluation import (
    ArrayFunction,
    Builder,
    Site,
    numbers,
    plain,
    spread,
    valid_rows,
)
from weir.kernels.expressions.functions_logic import comparison


def _lengths(lists: pa.Array) -> Int64s:
    return np.asarray(numbers(pc.list_value_length(lists)), dtype=np.int64)


def _starts(lengths: Int64s) -> Int64s:
    """Return where each list's elements begin in `flatten()`, which skips those of NULL lists."""
    return np.cumsum(lengths) - lengths


def _array_contains(site: Site) -> ArrayFunction:
    """Build the search for a value: TRUE on a match, else NULL if an element or the value is NULL.

    Otherwise it is FALSE."""
    equal = comparison("eq", site.arg_types[1])

    def run(lists: pa.Array, elements: pa.Array) -> pa.Array:
        lengths = _lengths(lists)
        owners = np.repeat(np.arange(len(lists)), lengths)
        same = equal(lists.flatten(), elements.take(pa.array(owners)))
        contains = _any(owners, pc.fill_null(same, False), len(lists))
        unknown = _any(owners, same.is_null(), len(lists)) & ~contains
        nulls = unknown | np.asarray(lists.is_null()) | np.asarray(elements.is_null())
        return pa.array(contains, BOOLEAN, mask=nulls)

    return spread(run)


def _any(owners: Int64s, hits: pa.Array, count: int) -> npt.NDArray[np.bool_]:
    result = np.zeros(count, dtype=np.bool_)
    result[owners[np.asarray(hits)]] = True
    return result


def _element_at(lists: pa.Array, ordinals: pa.Array) -> pa.Array:
    lengths, index = _lengths(lists), numbers(ordinals).astype(np.int64)
    inside = (index != 0) & (index <= lengths) & (index >= -lengths)
    valid = valid_rows(lists, ordinals)
    if valid is not None:
        inside &= valid
    at = _starts(lengths) + np.where(index > 0, index - 1, lengths + index)
    return lists.flatten().take(pa.array(np.where(inside, at, 0), mask=~inside))


def _field(site: Site) -> ArrayFunction:
    struct = site.arg_types[0]
    index = struct.get_field_index(str(site.constant(1)))
    return lambda column, _: pc.struct_field(column, [index])


FUNCTIONS: Mapping[str, Builder] = {
    "array_length": plain(lambda lists: pc.list_value_length(lists).cast(BIGINT)),
    "array_contains": _array_contains,
    "element_at": plain(spread(_element_at)),
    "field": _field,
}
