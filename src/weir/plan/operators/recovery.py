"""`with_strategy` sets how the stage that makes a stream recovers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from weir.plan.operators.facts import Names, Predicates, Pushed, sinking
from weir.plan.operators.node_class import node_class
from weir.plan.operators.roles import SameRows
from weir.plan.operators.spans import Span

if TYPE_CHECKING:
    from weir.plan.operators import Node


@node_class
class Recovery(SameRows):
    """Passes rows on; the stage that contains it recovers by its strategy (`plan/strategy.py`)."""

    input: Node
    strategy: str

    def columns_read(self, wanted: Names) -> tuple[Names, ...]:
        return (wanted,)

    def pushed(self, arriving: Predicates, lives: Sequence[Span]) -> Pushed:
        return sinking(self, arriving, lambda _: True)

    def detail(self) -> str:
        return f"by {self.strategy}"
