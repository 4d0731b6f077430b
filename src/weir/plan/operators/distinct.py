"""SELECT DISTINCT combines rows that are equal at the same instant into one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from weir.plan.functions.failures import sees_equals_alike
from weir.plan.operators.facts import (
    HorizonStep,
    Predicates,
    Pushed,
    endless,
    reads_lifetime,
    sinking,
)
from weir.plan.operators.node_class import node_class
from weir.plan.operators.roles import EqualRows
from weir.plan.operators.spans import Span

if TYPE_CHECKING:
    from weir.plan.operators import Node


@node_class
class Distinct(EqualRows):
    """Has each payload once at every instant at which some row has it."""

    input: Node

    def sees_order(self, port: int) -> bool:
        return False

    def horizon_step(self, lives: Sequence[Span]) -> HorizonStep:
        return endless(
            "DISTINCT: a row goes on for as long as equal ones follow",
            "GROUP BY all columns WITH TUMBLING(…), which gives each of them once a window",
        )

    def pushed(self, arriving: Predicates, lives: Sequence[Span]) -> Pushed:
        return sinking(self, arriving, lambda p: not reads_lifetime(p) and sees_equals_alike(p))

    def kept(self) -> str:
        return "one row for each live payload"

    def detail(self) -> str:
        return ""
