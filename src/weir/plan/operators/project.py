"""SELECT without aggregates computes columns of each row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Self

import pyarrow as pa

from weir.plan.expressions import Column, Expr, columns_of, size_of, substituted
from weir.plan.functions.failures import can_fail
from weir.plan.operators.facts import (
    LIFETIME,
    NO_STEP,
    HorizonStep,
    Names,
    Predicates,
    Pushed,
    none_sinks,
)
from weir.plan.operators.node_class import node_class
from weir.plan.operators.roles import RowByRow
from weir.plan.operators.spans import Span
from weir.plan.render import render
from weir.plan.schema import Schema

if TYPE_CHECKING:
    from weir.plan.operators import Node

_MOST_PARTS = 32
"""The largest predicate that may repeat what a SELECT computes when it moves below the SELECT."""


@node_class
class Project(RowByRow):
    """Replaces the columns of each row by these."""

    input: Node
    columns: tuple[tuple[str, Expr], ...]
    by_position = False

    def schema_over(self, below: Sequence[Schema]) -> Schema:
        return Schema(tuple((name, _typed(e)) for name, e in self.columns), below[0].time)

    def passed_columns(self, port: int) -> Mapping[str, str]:
        return {name: e.name for name, e in self.columns if isinstance(e, Column)}

    def longest_lifetime(self, lives: Sequence[Span]) -> Span:
        return lives[0]

    def horizon_step(self, lives: Sequence[Span]) -> HorizonStep:
        return NO_STEP

    def columns_read(self, wanted: Names) -> tuple[Names, ...]:
        reads: Names = frozenset().union(*(columns_of(e) for _, e in self.columns))
        return (reads - LIFETIME,)

    def slimmed(self, wanted: Names) -> Self:
        columns = tuple((n, e) for n, e in self.columns if n in wanted or can_fail(e))
        return self if columns == self.columns else replace(self, columns=columns)

    def pushed(self, arriving: Predicates, lives: Sequence[Span]) -> Pushed:
        if not arriving or any(can_fail(e) for _, e in self.columns):
            return none_sinks(self, arriving)
        columns = dict(self.columns)
        above: list[Expr] = []
        below: list[Expr] = []
        for predicate in arriving:
            spelled_out = substituted(predicate, columns)
            renames = all(isinstance(columns.get(c), Column | None) for c in columns_of(predicate))
            if renames or size_of(spelled_out) <= _MOST_PARTS:
                below.append(spelled_out)
            else:
                above.append(predicate)
        return Pushed(self, tuple(above), (tuple(below),))

    def detail(self) -> str:
        return ", ".join(_item(n, e) for n, e in self.columns) or "no columns"


def _typed(expr: Expr) -> pa.DataType:
    assert expr.type is not None, f"unbound expression in a plan: {expr}"
    return expr.type


def _item(name: str, expr: Expr) -> str:
    text = render(expr)
    return name if text == name else f"{text} AS {name}"
