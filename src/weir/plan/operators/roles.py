"""A role states facts that follow from one another, for several operators.

An operator names its roles as its base classes and so takes their facts; it must state all other
facts itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Self

from weir.plan.operators.abstract import Operator, schema
from weir.plan.operators.facts import NO_STEP, HorizonStep, Meet, Meeting, Names, meeting_by
from weir.plan.operators.spans import LONGEST_LIFETIME, NONE, UNBOUNDED, Span
from weir.plan.schema import Schema

if TYPE_CHECKING:
    from weir.plan.operators import Node


class OneInput(Operator):
    """A `OneInput` operator has one input, its field `input`."""

    input: Node

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.input,)

    def over(self, inputs: Sequence[Node]) -> Self:
        return replace(self, input=inputs[0])


class SameColumns(OneInput):
    """The rows of a `SameColumns` operator have the payload of the input rows that they are made
    of."""

    by_position = False

    def schema_over(self, below: Sequence[Schema]) -> Schema:
        return below[0]

    def passed_columns(self, port: int) -> Mapping[str, str]:
        return {name: name for name in schema(self.input).names}

    def slimmed(self, wanted: Names) -> Self:
        return self


class Stateful(Operator):
    """A `Stateful` operator keeps rows, or something made of them. Its own rows have no origin."""

    stateless = False

    def origin_depth(self, below: Sequence[int]) -> int:
        return 0


class RowByRow(OneInput):
    """A `RowByRow` operator treats each row alone.

    It makes no difference to it where its rows are and in which order they come, and it neither
    keeps nor holds any.
    """

    stateless = True

    def meeting(self) -> Meeting:
        return Meet.NEVER

    def sees_order(self, port: int) -> bool:
        return False

    def origin_depth(self, below: Sequence[int]) -> int:
        return below[0]

    def longest_hold(self, lives: Sequence[Span]) -> Span:
        return NONE

    def kept(self) -> str:
        return ""


class SameRows(RowByRow, SameColumns):
    """A `SameRows` operator passes every row on as it is; it only says how the stages around it
    run."""

    def longest_lifetime(self, lives: Sequence[Span]) -> Span:
        return lives[0]

    def horizon_step(self, lives: Sequence[Span]) -> HorizonStep:
        return NO_STEP


class EqualRows(Stateful, SameColumns):
    """An `EqualRows` operator makes one row of rows of equal payload that follow on one another.

    It cannot know when such a run ends.
    """

    def meeting(self) -> Meeting:
        return meeting_by(schema(self.input).names)

    def longest_lifetime(self, lives: Sequence[Span]) -> Span:
        return max(lives[0], LONGEST_LIFETIME)

    def longest_hold(self, lives: Sequence[Span]) -> Span:
        return UNBOUNDED

    def columns_read(self, wanted: Names) -> tuple[Names, ...]:
        return (frozenset(schema(self.input).names),)
