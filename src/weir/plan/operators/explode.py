"""EXPLODE makes a row for each element of a list."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Self

from weir.plan.expressions import columns_of
from weir.plan.operators.abstract import schema
from weir.plan.operators.facts import NO_STEP, HorizonStep, Names, Predicates, Pushed, sinking
from weir.plan.operators.node_class import node_class
from weir.plan.operators.roles import RowByRow
from weir.plan.operators.spans import Span
from weir.plan.schema import Schema

if TYPE_CHECKING:
    from weir.plan.operators import Node


@node_class
class Explode(RowByRow):
    """Makes one event for each element of the LIST column, which keeps its name and position.

    The number of the element becomes part of the row's origin.
    """

    input: Node
    column: str
    by_position = False

    def schema_over(self, below: Sequence[Schema]) -> Schema:
        (rows,) = below
        columns = tuple((n, t.value_type if n == self.column else t) for n, t in rows.columns)
        return Schema(columns, rows.time)

    def passed_columns(self, port: int) -> Mapping[str, str]:
        return {name: name for name in schema(self.input).names if name != self.column}

    def origin_depth(self, below: Sequence[int]) -> int:
        return below[0] + 1 if below[0] else 0

    def longest_lifetime(self, lives: Sequence[Span]) -> Span:
        return lives[0]

    def horizon_step(self, lives: Sequence[Span]) -> HorizonStep:
        return NO_STEP

    def columns_read(self, wanted: Names) -> tuple[Names, ...]:
        return (wanted | {self.column},)

    def slimmed(self, wanted: Names) -> Self:
        return self

    def pushed(self, arriving: Predicates, lives: Sequence[Span]) -> Pushed:
        return sinking(self, arriving, lambda p: self.column not in columns_of(p))

    def detail(self) -> str:
        return self.column
