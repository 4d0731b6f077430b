"""PARTITION BY determines how the stage that reads a stream is split."""

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
class Partition(SameRows):
    """Fixes how the stage that reads this node is split: PARTITION BY key INTO n AS 'uid'."""

    input: Node
    keys: tuple[str, ...]
    count: int
    uid: str

    def columns_read(self, wanted: Names) -> tuple[Names, ...]:
        return (wanted | frozenset(self.keys),)

    def pushed(self, arriving: Predicates, lives: Sequence[Span]) -> Pushed:
        return sinking(self, arriving, lambda _: True)

    def detail(self) -> str:
        return f"BY {', '.join(self.keys)} INTO {self.count} AS '{self.uid}'"
