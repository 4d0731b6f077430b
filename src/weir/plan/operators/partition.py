"""PARTITION BY: how the stage that reads a stream is split."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Self

from weir.plan.operators.facts import (
    NO_STEP,
    HorizonStep,
    Names,
    Predicates,
    Pushed,
    same_names,
    sinking,
)
from weir.plan.operators.node_class import node_class
from weir.plan.operators.operator import RowByRow, schema
from weir.plan.schema import Schema
from weir.plan.spans import Span

if TYPE_CHECKING:
    from weir.plan.operators import Node


@node_class
class Partition(RowByRow):
    """PARTITION BY key INTO n AS 'uid': fixes how the stage that reads this is split."""

    input: Node
    keys: tuple[str, ...]
    count: int
    uid: str

    def schema_over(self, below: Sequence[Schema]) -> Schema:
        return below[0]

    def passed_columns(self, port: int) -> Mapping[str, str]:
        return same_names(schema(self.input))

    def longest_lifetime(self, lives: Sequence[Span]) -> Span:
        return lives[0]

    def horizon_step(self, lives: Sequence[Span]) -> HorizonStep:
        return NO_STEP

    def columns_read(self, wanted: Names) -> tuple[Names, ...]:
        return (wanted | frozenset(self.keys),)

    def slimmed(self, wanted: Names) -> Self:
        return self

    def pushed(self, arriving: Predicates, lives: Sequence[Span]) -> Pushed:
        return sinking(self, arriving, lambda _: True)

    def detail(self) -> str:
        return f"BY {', '.join(self.keys)} INTO {self.count} AS '{self.uid}'"
