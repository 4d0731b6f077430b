"""ORDER BY … LIMIT k keeps the first rows of an order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, assert_never

from weir.plan.operators.facts import (
    NO_STEP,
    HorizonStep,
    Meet,
    Meeting,
    Names,
    Predicates,
    Pushed,
    bounded,
    none_sinks,
)
from weir.plan.operators.node_class import node_class
from weir.plan.operators.roles import SameColumns, Stateful
from weir.plan.operators.spans import NONE, Span

if TYPE_CHECKING:
    from weir.plan.operators import Node


@node_class
class Top(Stateful, SameColumns):
    """Keeps the first rows of each window (rows of equal lifetime) or of each instant."""

    input: Node
    order: tuple[tuple[str, bool], ...]  # column, descending
    limit: int
    ties: bool
    scope: Literal["window", "instant"]

    def meeting(self) -> Meeting:
        return Meet.ALL

    def sees_order(self, port: int) -> bool:
        return True

    def longest_lifetime(self, lives: Sequence[Span]) -> Span:
        return lives[0]

    def longest_hold(self, lives: Sequence[Span]) -> Span:
        match self.scope:
            case "window":
                return NONE
            case "instant":
                return lives[0]
        assert_never(self.scope)

    def horizon_step(self, lives: Sequence[Span]) -> HorizonStep:
        match self.scope:
            case "window":
                return NO_STEP
            case "instant":
                # A cell may begin where a row that is gone ended.
                return bounded("LIMIT", lives[0], lambda life: HorizonStep(life, life))
        assert_never(self.scope)

    def columns_read(self, wanted: Names) -> tuple[Names, ...]:
        return (wanted | {name for name, _ in self.order},)

    def pushed(self, arriving: Predicates, lives: Sequence[Span]) -> Pushed:
        return none_sinks(self, arriving)  # dropping a row below would make room for others

    def kept(self) -> str:
        match self.scope:
            case "window":
                return ""
            case "instant":
                return "all live rows, in order"
        assert_never(self.scope)

    def detail(self) -> str:
        order = ", ".join(f"{name} DESC" if down else name for name, down in self.order)
        by = f"ORDER BY {order} " if order else ""
        ties = " WITH TIES" if self.ties else ""
        return f"{by}LIMIT {self.limit}{ties} of each {self.scope}"
