"""SELECT DISTINCT: equal rows at an instant are one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Self

from weir.plan.expressions import columns_of
from weir.plan.failures import sees_equals_alike
from weir.plan.operators.facts import (
    LIFETIME,
    HorizonStep,
    Meeting,
    Names,
    Predicates,
    Pushed,
    endless,
    meeting_by,
    same_names,
    sinking,
)
from weir.plan.operators.node_class import node_class
from weir.plan.operators.operator import OneInput, schema
from weir.plan.schema import Schema
from weir.plan.spans import LONGEST_LIFETIME, UNBOUNDED, Span

if TYPE_CHECKING:
    from weir.plan.operators import Node


@node_class
class Distinct(OneInput):
    """Each payload once at every instant at which a row has it."""

    input: Node

    stateless = False

    def schema_over(self, below: Sequence[Schema]) -> Schema:
        return below[0]

    def passed_columns(self, port: int) -> Mapping[str, str]:
        return same_names(schema(self.input))

    def meeting(self) -> Meeting:
        return meeting_by(schema(self).names)

    def sees_order(self, port: int) -> bool:
        return False

    def origin_depth(self, below: Sequence[int]) -> int:
        return 0

    def longest_lifetime(self, lives: Sequence[Span]) -> Span:
        return max(lives[0], LONGEST_LIFETIME)

    def longest_hold(self, lives: Sequence[Span]) -> Span:
        return UNBOUNDED

    def horizon_step(self, lives: Sequence[Span]) -> HorizonStep:
        return endless(
            "DISTINCT: a row goes on for as long as equal ones follow",
            "GROUP BY all columns WITH TUMBLING(…), which gives each of them once a window",
        )

    def columns_read(self, wanted: Names) -> tuple[Names, ...]:
        return (frozenset(schema(self.input).names),)

    def slimmed(self, wanted: Names) -> Self:
        return self

    def pushed(self, arriving: Predicates, lives: Sequence[Span]) -> Pushed:
        return sinking(
            self, arriving, lambda p: not columns_of(p) & LIFETIME and sees_equals_alike(p)
        )

    def kept(self) -> str:
        return "one row for each live payload"

    def detail(self) -> str:
        return ""
