"""Comparison and choice: eq ne lt le gt ge, in, not, is_null, nullif, greatest, least.

Values compare in the total order of the engine: −0 = 0, NaN equals itself and is larger than every
number, strings compare by UTF-8 bytes. A comparison with NULL is NULL. AND, OR, COALESCE and CASE
are in `branches.py`, because they evaluate their arguments themselves.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from weir.events.order import order_codes
from weir.events.types import BIGINT, BOOLEAN, DATE, INT, STRING, TIMESTAMP
from weir.kernels.expressions.evaluation import (
    ArrayFunction,
    Builder,
    Datum,
    Site,
    as_array,
    length_of,
    plain,
)

_IEEE: Mapping[str, ArrayFunction] = {
    "eq": pc.equal,
    "ne": pc.not_equal,
    "lt": pc.less,
    "le": pc.less_equal,
    "gt": pc.greater,
    "ge": pc.greater_equal,
}
_HASHABLE = (BIGINT, INT, STRING, TIMESTAMP, DATE, pa.binary())


def comparison(name: str, dtype: pa.DataType) -> ArrayFunction:
    """Build the comparison of two operands of one type."""
    if pa.types.is_floating(dtype):
        return _FLOATS[name]
    if pa.types.is_nested(dtype):
        return _by_codes(_IEEE[name])
    return _IEEE[name]


def _comparison(name: str) -> Builder:
    return lambda site: comparison(name, site.arg_types[0])


# --- floats --------------------------------------------------------------------------------


def _has_nan(datum: Datum) -> bool:
    if isinstance(datum, pa.Scalar):
        return datum.is_valid and math.isnan(datum.as_py())
    if not len(datum):
        return False
    # In the raw buffer, a value under a NULL may be a NaN; that only means the slow way is taken.
    values = np.frombuffer(datum.buffers()[1], np.float64, len(datum), 8 * datum.offset)
    return bool(np.isnan(values.min()))


def _equal(left: Datum, right: Datum) -> pa.Array:
    same = pc.equal(left, right)
    if not (_has_nan(left) and _has_nan(right)):
        return same
    return pc.or_(same, pc.and_(pc.is_nan(left), pc.is_nan(right)))


def _less(left: Datum, right: Datum) -> pa.Array:
    # By IEEE, a NaN on the left gives false, which is right, since NaN is the largest.
    smaller = pc.less(left, right)
    if not _has_nan(right):
        return smaller
    return pc.or_(smaller, pc.and_(pc.is_nan(right), pc.invert(pc.is_nan(left))))


_FLOATS: Mapping[str, ArrayFunction] = {
    "eq": _equal,
    "ne": lambda left, right: pc.invert(_equal(left, right)),
    "lt": _less,
    "gt": lambda left, right: _less(right, left),
    "le": lambda left, right: pc.invert(_less(right, left)),
    "ge": lambda left, right: pc.invert(_less(left, right)),
}


def _by_codes(compare: ArrayFunction) -> ArrayFunction:
    def run(left: Datum, right: Datum) -> pa.Array:
        length = length_of((left, right))
        a, b = as_array(left, length), as_array(right, length)
        codes = order_codes(pa.concat_arrays([a, b]))
        both_valid = pc.and_(a.is_valid(), b.is_valid())
        result = compare(pa.array(codes[:length]), pa.array(codes[length:]))
        return pc.if_else(both_valid, result, pa.scalar(None, BOOLEAN))

    return run


# --- choice --------------------------------------------------------------------------------


def _in(site: Site) -> ArrayFunction:
    options = site.constants[1:]
    if site.arg_types[0] in _HASHABLE and all(o is not None for o in options):
        return _in_constants([o for o in options if o is not None], site.arg_types[0])
    equal = comparison("eq", site.arg_types[0])

    def run(value: Datum, *choices: Datum) -> pa.Array:
        length = length_of((value, *choices))
        column = as_array(value, length)
        result = equal(column, choices[0])
        for choice in choices[1:]:
            result = pc.or_kleene(result, equal(column, choice))
        return result

    return run


def _in_constants(options: list[pa.Scalar], dtype: pa.DataType) -> ArrayFunction:
    # Not through Python values: Python has none for times after the year 9999.
    constants = pa.array([o for o in options if o.is_valid], dtype)
    has_null = len(constants) < len(options)
    lookup = pc.SetLookupOptions(value_set=constants)
    nothing = pa.scalar(None, BOOLEAN)

    def run(value: pa.Array, *_: Datum) -> pa.Array:
        is_member = pc.call_function("is_in", [value], lookup)
        if has_null:
            return pc.if_else(is_member, True, nothing)
        return pc.if_else(value.is_valid(), is_member, nothing) if value.null_count else is_member

    return run


def _nullif(site: Site) -> ArrayFunction:
    equal = comparison("eq", site.arg_types[0])
    nothing = pa.scalar(None, site.type)

    def run(value: Datum, other: Datum) -> pa.Array:
        same = equal(value, other)
        return pc.if_else(pc.fill_null(same, False), nothing, as_array(value, len(same)))

    return run


def _extreme(name: str) -> Builder:
    def build(site: Site) -> ArrayFunction:
        beats = comparison(name, site.type)

        def run(*args: Datum) -> pa.Array:
            best = as_array(args[0], length_of(args))
            for other in args[1:]:
                # On a tie, the first value stays; NULL loses to every value.
                wins = pc.fill_null(beats(other, best), False)
                if best.null_count:
                    wins = pc.or_(wins, best.is_null())
                best = pc.if_else(wins, other, best)
            return best

        return run

    return build


FUNCTIONS: Mapping[str, Builder] = {
    **{name: _comparison(name) for name in _IEEE},
    "in": _in,
    "not": plain(pc.invert),
    "is_null": plain(lambda column: column.is_null()),
    "is_not_null": plain(lambda column: column.is_valid()),
    "nullif": _nullif,
    "greatest": _extreme("gt"),
    "least": _extreme("lt"),
}
