"""Enter puts the number of the event type in front of the origins of an app's events."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from weir.plan.operators.facts import NO_STEP, HorizonStep, Names, Predicates, Pushed, sinking
from weir.plan.operators.node_class import node_class
from weir.plan.operators.roles import RowByRow, SameColumns
from weir.plan.spans import Span

if TYPE_CHECKING:
    from weir.plan.operators import Node


@node_class
class Enter(RowByRow, SameColumns):
    """An `Enter` makes of each row's origin (number, origin, −1 …), `depth` columns in all.

    Its input's rows have origins, of fewer than `depth` columns (`origins.py` checks that).
    """

    input: Node
    number: int
    depth: int

    def origin_depth(self, below: Sequence[int]) -> int:
        return self.depth if below[0] else 0

    def longest_lifetime(self, lives: Sequence[Span]) -> Span:
        return lives[0]

    def horizon_step(self, lives: Sequence[Span]) -> HorizonStep:
        return NO_STEP

    def columns_read(self, wanted: Names) -> tuple[Names, ...]:
        return (wanted,)

    def pushed(self, arriving: Predicates, lives: Sequence[Span]) -> Pushed:
        return sinking(self, arriving, lambda _: True)

    def detail(self) -> str:
        return f"as event type {self.number}"
