"""CHOP cuts lifetimes at the points of a grid."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from weir.plan.durations import duration_text
from weir.plan.operators.facts import (
    HorizonStep,
    Meet,
    Meeting,
    Names,
    Predicates,
    Pushed,
    bounded,
    last_instant,
    reads_lifetime,
    sinking,
)
from weir.plan.operators.node_class import node_class
from weir.plan.operators.roles import SameColumns, Stateful
from weir.plan.operators.spans import NONE, Span
from weir.plan.windows import offset_text

if TYPE_CHECKING:
    from weir.plan.operators import Node


@node_class
class Chop(Stateful, SameColumns):
    """Makes a row for each piece of a lifetime between two points `offset + k·period`."""

    input: Node
    period: int
    offset: int = 0

    def meeting(self) -> Meeting:
        return Meet.NEVER

    def sees_order(self, port: int) -> bool:
        return False

    def longest_lifetime(self, lives: Sequence[Span]) -> Span:
        return min(lives[0], Span(0, self.period))

    def longest_hold(self, lives: Sequence[Span]) -> Span:
        return NONE

    def horizon_step(self, lives: Sequence[Span]) -> HorizonStep:
        # Pieces may come from rows that began earlier.
        return bounded("CHOP", lives[0], lambda life: HorizonStep(last_instant(life)))

    def columns_read(self, wanted: Names) -> tuple[Names, ...]:
        return (wanted,)

    def pushed(self, arriving: Predicates, lives: Sequence[Span]) -> Pushed:
        ends = lives[0].known  # an open event is an error here, which no filter may hide
        return sinking(self, arriving, lambda p: ends and not reads_lifetime(p))

    def kept(self) -> str:
        return "rows until their last piece is out"

    def detail(self) -> str:
        return f"every {duration_text(self.period)}{offset_text(self.offset)}"
