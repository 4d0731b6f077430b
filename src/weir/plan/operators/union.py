"""UNION ALL combines the rows of several inputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Self

from weir.plan.expressions import Column, substituted
from weir.plan.operators.abstract import Operator, schema
from weir.plan.operators.facts import (
    NO_STEP,
    HorizonStep,
    Meet,
    Meeting,
    Names,
    Predicates,
    Pushed,
    reads_lifetime,
)
from weir.plan.operators.node_class import node_class
from weir.plan.operators.spans import NONE, Span
from weir.plan.schema import Schema, common_time

if TYPE_CHECKING:
    from weir.plan.operators import Node


@node_class
class Union(Operator):
    """Has the rows of two or more branches with equal column types, and the first one's names.

    The number of the branch becomes part of a row's origin.
    """

    branches: tuple[Node, ...]

    stateless = True
    by_position = True

    @property
    def inputs(self) -> tuple[Node, ...]:
        return self.branches

    def over(self, inputs: Sequence[Node]) -> Self:
        return replace(self, branches=tuple(inputs))

    def schema_over(self, below: Sequence[Schema]) -> Schema:
        return Schema(below[0].columns, common_time(below))

    def passed_columns(self, port: int) -> Mapping[str, str]:
        return dict(zip(schema(self).names, schema(self.branches[port]).names, strict=True))

    def meeting(self) -> Meeting:
        return Meet.NEVER

    def sees_order(self, port: int) -> bool:
        return False

    def origin_depth(self, below: Sequence[int]) -> int:
        return max(below) + 1 if max(below) else 0

    def longest_lifetime(self, lives: Sequence[Span]) -> Span:
        return max(lives)

    def longest_hold(self, lives: Sequence[Span]) -> Span:
        return NONE

    def horizon_step(self, lives: Sequence[Span]) -> HorizonStep:
        return NO_STEP

    def columns_read(self, wanted: Names) -> tuple[Names, ...]:
        passed = (self.passed_columns(port) for port in range(len(self.branches)))
        return tuple(frozenset(names[n] for n in names if n in wanted) for names in passed)

    def slimmed(self, wanted: Names) -> Self:
        return self

    def pushed(self, arriving: Predicates, lives: Sequence[Span]) -> Pushed:
        own = schema(self)
        # Ticks of one branch may be timestamps in another, and are plain numbers above both.
        same_time = all(schema(b).time == own.time for b in self.branches)
        down = tuple(p for p in arriving if same_time or not reads_lifetime(p))
        above = tuple(p for p in arriving if p not in down)
        below = []
        for branch in self.branches:
            names = {
                name: Column(other, type=dtype)
                for name, (other, dtype) in zip(own.names, schema(branch).columns, strict=True)
            }
            below.append(tuple(substituted(p, names) for p in down))
        return Pushed(self, above, tuple(below))

    def kept(self) -> str:
        return ""

    def detail(self) -> str:
        return ""
