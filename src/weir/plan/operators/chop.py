"""CHOP: lifetimes cut at the points of a grid."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Self

from weir.plan.durations import duration_text
from weir.plan.expressions import columns_of
from weir.plan.operators.facts import (
    LIFETIME,
    HorizonStep,
    Meet,
    Meeting,
    Names,
    Predicates,
    Pushed,
    bounded,
    last_instant,
    same_names,
    sinking,
)
from weir.plan.operators.node_class import node_class
from weir.plan.operators.operator import OneInput, schema
from weir.plan.schema import Schema
from weir.plan.spans import NONE, Span
from weir.plan.windows import offset_text

if TYPE_CHECKING:
    from weir.plan.operators import Node


@node_class
class Chop(OneInput):
    """A row for each piece of its lifetime between two points `offset + k·period`."""

    input: Node
    period: int
    offset: int = 0

    stateless = False

    def schema_over(self, below: Sequence[Schema]) -> Schema:
        return below[0]

    def passed_columns(self, port: int) -> Mapping[str, str]:
        return same_names(schema(self.input))

    def meeting(self) -> Meeting:
        return Meet.NEVER

    def sees_order(self, port: int) -> bool:
        return False

    def origin_depth(self, below: Sequence[int]) -> int:
        return 0

    def longest_lifetime(self, lives: Sequence[Span]) -> Span:
        return min(lives[0], Span(0, self.period))

    def longest_hold(self, lives: Sequence[Span]) -> Span:
        return NONE

    def horizon_step(self, lives: Sequence[Span]) -> HorizonStep:
        return bounded("CHOP", lives[0], lambda life: HorizonStep(last_instant(life)))

    def columns_read(self, wanted: Names) -> tuple[Names, ...]:
        return (wanted,)

    def slimmed(self, wanted: Names) -> Self:
        return self

    def pushed(self, arriving: Predicates, lives: Sequence[Span]) -> Pushed:
        ends = lives[0].known  # an open event is an error here, which no filter may hide
        return sinking(self, arriving, lambda p: ends and not columns_of(p) & LIFETIME)

    def kept(self) -> str:
        return "rows until their last piece is out"

    def detail(self) -> str:
        return f"every {duration_text(self.period)}{offset_text(self.offset)}"
