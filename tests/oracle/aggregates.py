"""§4: aggregates over the rows of one window and group, given in the total order.

Sums, means, variances and interpolated quantiles are computed as Fractions and rounded once.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import ROUND_HALF_EVEN, Context, Decimal
from fractions import Fraction

import pyarrow as pa

from oracle.rows import OracleError, Row, value_key
from weir.plan.aggregations import Aggregation

Number = int | float | Decimal


def aggregate(aggregation: Aggregation, rows: Sequence[Row]) -> object:
    if aggregation.filter is not None:
        rows = [r for r in rows if r.payload[aggregation.filter] is True]
    tuples = [tuple(r.payload[a] for a in aggregation.args) for r in rows]
    if aggregation.function == "count_star":
        return len(tuples)
    present = [t for t in tuples if None not in t]
    if aggregation.function == "user":
        return _user(aggregation, present)
    if aggregation.function == "count":
        return len(present)
    if aggregation.function == "count_distinct":
        return len({tuple(value_key(v) for v in t) for t in present})
    if not present:
        return None
    return _of_values(aggregation, [t[0] for t in present])


def _user(aggregation: Aggregation, tuples: Sequence[tuple[object, ...]]) -> object:
    assert aggregation.user is not None
    function = aggregation.user.implementation()
    state = function.zero()
    for values in tuples:
        state = function.add(state, *values)
    return function.result(state)


def _of_values(aggregation: Aggregation, values: list) -> object:
    match aggregation.function:
        case "sum":
            return total(values, aggregation.type)
        case "avg":
            return mean(values, aggregation.type)
        case "variance":
            return variance(values, aggregation.type)
        case "stddev":
            return stddev(values)
        case "min":
            return min(values, key=value_key)
        case "max":
            return max(values, key=value_key)
        case "first":
            return values[0]
        case "last":
            return values[-1]
        case "collect":
            return values
        case "quantile_disc":
            return quantile_disc(values, Fraction(aggregation.params[0]))
        case "quantile_cont":
            return quantile_cont(values, Fraction(aggregation.params[0]))
    raise NotImplementedError(aggregation.function)


def total(values: Sequence[Number], dtype: pa.DataType) -> Number:
    special = _special(values)
    if special is not None:
        return special
    return rounded(sum(map(Fraction, values)), dtype)


def mean(values: Sequence[Number], dtype: pa.DataType) -> Number:
    special = _special(values)
    if special is not None:
        return special
    return rounded(sum(map(Fraction, values)) / len(values), dtype)


def variance(values: Sequence[Number], dtype: pa.DataType) -> Number | None:
    exact = _exact_variance(values)
    return rounded(exact, dtype) if isinstance(exact, Fraction) else exact


def stddev(values: Sequence[Number]) -> float | None:
    exact = _exact_variance(values)
    return square_root(exact) if isinstance(exact, Fraction) else exact


def _exact_variance(values: Sequence[Number]) -> Fraction | float | None:
    if len(values) < 2:
        return None
    if _special(values) is not None:
        return math.nan
    exact = [Fraction(v) for v in values]
    middle = sum(exact) / len(exact)
    return sum((v - middle) ** 2 for v in exact) / (len(exact) - 1)


def quantile_disc(values: Sequence, p: Fraction) -> object:
    return sorted(values, key=value_key)[max(math.ceil(p * len(values)), 1) - 1]


def quantile_cont(values: Sequence[Number], p: Fraction) -> float:
    ranked = sorted(values, key=value_key)
    place = p * (len(ranked) - 1)
    below = ranked[math.floor(place)]
    share = place - math.floor(place)
    if share == 0:
        return float(below)
    above = ranked[math.floor(place) + 1]
    special = _special([below, above])
    if special is not None:
        return special
    return to_double(Fraction(below) * (1 - share) + Fraction(above) * share)


def _special(values: Sequence[Number]) -> float | None:
    """The sum where a NaN or an infinity decides it."""
    endless = {v for v in values if isinstance(v, float) and math.isinf(v)}
    if len(endless) == 2 or any(isinstance(v, float) and math.isnan(v) for v in values):
        return math.nan
    return endless.pop() if endless else None


def rounded(exact: Fraction, dtype: pa.DataType) -> Number:
    """The nearest value of the type: ties to even; beyond the doubles an infinity."""
    if pa.types.is_floating(dtype):
        return to_double(exact)
    if pa.types.is_decimal(dtype):
        return _to_decimal(exact, dtype)
    assert exact.denominator == 1
    if not -(2**63) <= exact < 2**63:
        raise OracleError("overflow")
    return int(exact)


def _to_decimal(exact: Fraction, dtype: pa.DataType) -> Decimal:
    units = round(exact * 10**dtype.scale)
    if abs(units) >= 10**dtype.precision:
        raise OracleError("overflow")
    return Decimal(units).scaleb(-dtype.scale, Context(prec=100, rounding=ROUND_HALF_EVEN))


def to_double(exact: Fraction) -> float:
    try:
        return exact.numerator / exact.denominator
    except OverflowError:
        return math.inf if exact > 0 else -math.inf


def square_root(exact: Fraction) -> float:
    """The double nearest to the root: 2·⌊√⌋ with a sticky bit, far finer than a double."""
    if exact == 0:
        return 0.0
    # As many bits as make the integer root at least 128 bits long.
    shift = max(0, 128 - (exact.numerator.bit_length() - exact.denominator.bit_length()) // 2)
    scaled = (exact.numerator << 2 * shift) // exact.denominator
    root = math.isqrt(scaled)
    sticky = Fraction(root * root, 1 << 2 * shift) != exact
    return to_double(Fraction(2 * root + sticky, 2 << shift))
