"""STITCH combines rows that continue each other into one."""

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
class Stitch(EqualRows):
    """Combines rows of equal payload into one if each begins where the one before ends."""

    input: Node

    def sees_order(self, port: int) -> bool:
        return True

    def horizon_step(self, lives: Sequence[Span]) -> HorizonStep:
        return endless(
            "STITCH: a row goes on for as long as others continue it",
            "the pieces as they are, without STITCH",
        )

    def pushed(self, arriving: Predicates, lives: Sequence[Span]) -> Pushed:
        return sinking(self, arriving, lambda p: not reads_lifetime(p) and sees_equals_alike(p))

    def kept(self) -> str:
        return "chains that may go on, one row each"

    def detail(self) -> str:
        return ""
