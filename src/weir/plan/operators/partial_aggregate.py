"""The first of an aggregate's two phases (`rewrites/two_phase.py`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Self

from weir.plan.aggregations import Aggregations
from weir.plan.operators.facts import (
    HorizonStep,
    Meet,
    Meeting,
    Names,
    Predicates,
    Pushed,
    none_sinks,
)
from weir.plan.operators.grouping import Grouping
from weir.plan.operators.node_class import node_class
from weir.plan.operators.spans import Span
from weir.plan.windows import Hopping

if TYPE_CHECKING:
    from weir.plan.operators import Node


@node_class
class PartialAggregate(Grouping):
    """Makes one row for each pane: rows of a group, in one vertex, that are in the same windows.

    The lifetime of that row is in exactly these windows too. A rewrite puts it below an
    `Aggregate`.
    """

    input: Node
    keys: tuple[str, ...]
    aggregates: Aggregations
    window: Hopping

    def meeting(self) -> Meeting:
        return Meet.NEVER  # any rows of a group may come together: the second phase adds them up

    def sees_order(self, port: int) -> bool:
        return False

    def longest_lifetime(self, lives: Sequence[Span]) -> Span:
        # Both ends move outwards, each by less than a hop.
        return lives[0] + 2 * (self.window.hop - 1)

    def longest_hold(self, lives: Sequence[Span]) -> Span:
        return Span(0, self.window.hop)  # until the first of a row's windows ends

    def horizon_step(self, lives: Sequence[Span]) -> HorizonStep:
        return HorizonStep(0, self.window.hop)

    def slimmed(self, wanted: Names) -> Self:
        return self

    def pushed(self, arriving: Predicates, lives: Sequence[Span]) -> Pushed:
        return none_sinks(self, arriving)  # filters have gone down before this node is made

    def kept(self) -> str:
        return self.kept_panes()
