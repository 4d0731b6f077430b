"""The built-in aggregates, one record each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import pyarrow as pa

from weir.events.types import BIGINT, DOUBLE
from weir.plan.functions.coercion import MAX_PRECISION


@dataclass(frozen=True, slots=True)
class BuiltInAggregate:
    """A built-in aggregate of the language.

    `name` is the one in `AggregateCall.function` and `Aggregation.function`. `signature` and
    `meaning` are its line in `docs/reference/language.md`. `result` returns its type for the type
    of its argument. `of_numbers`: it takes only numbers, and INT as BIGINT. `has_share`: it has a
    constant share p, as quantiles do. `sees_order`: the order of rows within an instant can change
    it. `keeps_values`: it needs the values themselves, in addition to a row of sums.
    """

    name: str
    signature: str
    meaning: str
    result: Callable[[pa.DataType], pa.DataType]
    of_numbers: bool = False
    has_share: bool = False
    sees_order: bool = False
    keeps_values: bool = True

    @property
    def is_called(self) -> bool:
        """Tell whether scripts call it by its name; COUNT has three forms."""
        return self.signature.startswith(f"{self.name.upper()}(")


def _same(dtype: pa.DataType) -> pa.DataType:
    return dtype


def _bigint(dtype: pa.DataType) -> pa.DataType:
    return BIGINT


def _double(dtype: pa.DataType) -> pa.DataType:
    return DOUBLE


def _sum(dtype: pa.DataType) -> pa.DataType:
    return pa.decimal128(MAX_PRECISION, dtype.scale) if pa.types.is_decimal(dtype) else dtype


def _mean(dtype: pa.DataType) -> pa.DataType:
    if pa.types.is_decimal(dtype):
        return pa.decimal128(MAX_PRECISION, min(dtype.scale + 4, MAX_PRECISION))
    return DOUBLE


_RECORDS = (
    BuiltInAggregate("count_star", "COUNT(*)", "BIGINT: the rows", _bigint, keeps_values=False),
    BuiltInAggregate(
        "count", "COUNT(x T)", "BIGINT: the values that are not NULL", _bigint, keeps_values=False
    ),
    BuiltInAggregate(
        "count_distinct", "COUNT(DISTINCT x T)", "BIGINT: the different values", _bigint
    ),
    BuiltInAggregate(
        "sum",
        "SUM(x NUMBER)",
        "BIGINT of integers, DOUBLE of DOUBLE, DECIMAL(38, s) of DECIMAL(p, s)",
        _sum,
        of_numbers=True,
        keeps_values=False,
    ),
    BuiltInAggregate(
        "avg",
        "AVG(x NUMBER)",
        "DOUBLE; DECIMAL(38, s + 4) of DECIMAL(p, s)",
        _mean,
        of_numbers=True,
        keeps_values=False,
    ),
    BuiltInAggregate("min", "MIN(x T)", "T", _same),
    BuiltInAggregate("max", "MAX(x T)", "T", _same),
    BuiltInAggregate(
        "stddev", "STDDEV(x NUMBER)", "DOUBLE", _double, of_numbers=True, keeps_values=False
    ),
    BuiltInAggregate(
        "variance", "VARIANCE(x NUMBER)", "DOUBLE", _double, of_numbers=True, keeps_values=False
    ),
    BuiltInAggregate("first", "FIRST(x T)", "T, of the first row", _same, sees_order=True),
    BuiltInAggregate("last", "LAST(x T)", "T, of the last row", _same, sees_order=True),
    BuiltInAggregate(
        "median", "MEDIAN(x NUMBER)", "DOUBLE, as QUANTILE_CONT(x, 0.5)", _double, of_numbers=True
    ),
    BuiltInAggregate(
        "quantile_disc",
        "QUANTILE_DISC(x T, 'p' DOUBLE)",
        "T: the least value that has a share p of all at or below it",
        _same,
        has_share=True,
    ),
    BuiltInAggregate(
        "quantile_cont",
        "QUANTILE_CONT(x NUMBER, 'p' DOUBLE)",
        "DOUBLE, between two values in proportion",
        _double,
        of_numbers=True,
        has_share=True,
    ),
    BuiltInAggregate(
        "collect", "COLLECT(x T)", "LIST(T): the values in order", pa.list_, sees_order=True
    ),
)

AGGREGATES: Mapping[str, BuiltInAggregate] = {a.name: a for a in _RECORDS}
"""The built-in aggregates by name.

`count` without an argument is `count_star`, and with DISTINCT `count_distinct`; `median` is
`quantile_cont` at 0.5."""
