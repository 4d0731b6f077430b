"""`Number` gives rows an order of their own when they enter an app."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from weir.plan.operators.abstract import schema
from weir.plan.operators.facts import (
    NO_STEP,
    HorizonStep,
    Meet,
    Meeting,
    Names,
    Predicates,
    Pushed,
    none_sinks,
)
from weir.plan.operators.node_class import node_class
from weir.plan.operators.roles import SameColumns
from weir.plan.operators.spans import NONE, Span

if TYPE_CHECKING:
    from weir.plan.operators import Node


@node_class
class Number(SameColumns):
    """Replaces the origin of each row by its position within its instant.

    Rows are numbered in order of (vs, origin, ve, payload). So the whole payload counts, even
    columns that nothing reads.
    """

    input: Node

    stateless = False

    def meeting(self) -> Meeting:
        return Meet.ALL

    def sees_order(self, port: int) -> bool:
        return True

    def origin_depth(self, below: Sequence[int]) -> int:
        return 1

    def longest_lifetime(self, lives: Sequence[Span]) -> Span:
        return lives[0]

    def longest_hold(self, lives: Sequence[Span]) -> Span:
        return NONE

    def horizon_step(self, lives: Sequence[Span]) -> HorizonStep:
        return NO_STEP  # all rows of an instant come together

    def columns_read(self, wanted: Names) -> tuple[Names, ...]:
        return (frozenset(schema(self.input).names),)

    def pushed(self, arriving: Predicates, lives: Sequence[Span]) -> Pushed:
        return none_sinks(self, arriving)

    def kept(self) -> str:
        return "nothing but rows that wait for others of their instant"

    def detail(self) -> str:
        return "rows within their instant"
