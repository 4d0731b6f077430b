"""Enter adds a number to rows' origins: that of their event type, or of their place in an event."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from typing import TYPE_CHECKING

from weir.plan.operators.facts import NO_STEP, HorizonStep, Names, Predicates, Pushed, sinking
from weir.plan.operators.node_class import node_class
from weir.plan.operators.roles import RowByRow, SameColumns
from weir.plan.operators.source import LATER
from weir.plan.operators.spans import Span

if TYPE_CHECKING:
    from weir.plan.operators import Node


@node_class
class Enter(RowByRow, SameColumns):
    """Inserts a number after the first `behind` columns of each row's origin.

    It pads the origin with −1 at the end, to `depth` columns in all. Its input's rows have origins
    of at least `behind` columns and fewer than `depth` (`origins.py` checks that). If `behind` is
    None, the number comes first.
    """

    input: Node
    number: int
    depth: int
    behind: int | None = field(default=None, metadata=LATER)

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
        what = "event type" if self.behind is None else "place"
        return f"as {what} {self.number}"
