"""WHERE and HAVING keep the rows for which a predicate holds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from weir.plan.expressions import Expr, columns_of, conjuncts
from weir.plan.functions.failures import can_fail
from weir.plan.operators.facts import (
    LIFETIME,
    NO_STEP,
    HorizonStep,
    Names,
    Predicates,
    Pushed,
    none_sinks,
)
from weir.plan.operators.node_class import node_class
from weir.plan.operators.roles import RowByRow, SameColumns
from weir.plan.operators.spans import Span
from weir.plan.render import render

if TYPE_CHECKING:
    from weir.plan.operators import Node


@node_class
class Filter(RowByRow, SameColumns):
    """Keeps the rows for which the predicate holds."""

    input: Node
    predicate: Expr

    def longest_lifetime(self, lives: Sequence[Span]) -> Span:
        return lives[0]

    def horizon_step(self, lives: Sequence[Span]) -> HorizonStep:
        return NO_STEP

    def columns_read(self, wanted: Names) -> tuple[Names, ...]:
        return (wanted | columns_of(self.predicate) - LIFETIME,)

    def pushed(self, arriving: Predicates, lives: Sequence[Span]) -> Pushed:
        if can_fail(self.predicate):
            return none_sinks(self, arriving)
        return Pushed(None, (), ((*conjuncts(self.predicate), *arriving),))

    def detail(self) -> str:
        return render(self.predicate)
