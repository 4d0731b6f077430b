"""The first of two phases of an aggregate; `rewrites/two_phase.py` makes it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Self

from weir.plan.aggregations import (
    Aggregations,
    aggregated_schema,
    aggregates_text,
    columns_aggregated,
    kept_values,
)
from weir.plan.operators.facts import (
    HorizonStep,
    Meet,
    Meeting,
    Names,
    Predicates,
    Pushed,
    none_sinks,
)
from weir.plan.operators.node_class import node_class
from weir.plan.operators.operator import OneInput
from weir.plan.schema import Schema
from weir.plan.spans import Span
from weir.plan.windows import Hopping, window_text

if TYPE_CHECKING:
    from weir.plan.operators import Node


@node_class
class PartialAggregate(OneInput):
    """One row for each pane: the rows of a group, in one vertex, that are in the same windows.
    Its lifetime is in just these windows too. A rewrite makes it, below an `Aggregate`."""

    input: Node
    keys: tuple[str, ...]
    aggregates: Aggregations
    window: Hopping

    stateless = False

    def schema_over(self, below: Sequence[Schema]) -> Schema:
        return aggregated_schema(self.keys, self.aggregates, below[0])

    def passed_columns(self, port: int) -> Mapping[str, str]:
        return {key: key for key in self.keys}

    def meeting(self) -> Meeting:
        return Meet.NEVER  # whichever rows of a group come together: they are added up again

    def sees_order(self, port: int) -> bool:
        return False

    def origin_depth(self, below: Sequence[int]) -> int:
        return 0

    def longest_lifetime(self, lives: Sequence[Span]) -> Span:
        # Both ends move outwards, each by less than a hop.
        return lives[0] + 2 * (self.window.hop - 1)

    def longest_hold(self, lives: Sequence[Span]) -> Span:
        return Span(0, self.window.hop)  # until the first of a row's windows ends

    def horizon_step(self, lives: Sequence[Span]) -> HorizonStep:
        return HorizonStep(0, self.window.hop)

    def columns_read(self, wanted: Names) -> tuple[Names, ...]:
        return (columns_aggregated(self.keys, self.aggregates),)

    def slimmed(self, wanted: Names) -> Self:
        return self

    def pushed(self, arriving: Predicates, lives: Sequence[Span]) -> Pushed:
        return none_sinks(self, arriving)  # filters have gone down before it is made

    def kept(self) -> str:
        each = "each key and" if self.keys else "each"
        values = kept_values(self.aggregates)
        return f"panes of open windows: one row of sums for {each} pane{values}"

    def detail(self) -> str:
        return aggregates_text(self.keys, self.aggregates, window_text(self.window))
