"""A role states related facts for several operators.

An operator lists its roles as its base classes and so has their facts; it must state all other
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
    """An operator with one input, its field `input`."""

    input: Node

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.input,)

    def over(self, inputs: Sequence[Node]) -> Self:
        return replace(self, input=inputs[0])


class SameColumns(OneInput):
    """An operator whose rows have the payload of the input rows that they are made of."""

    by_position = False

    def schema_over(self, below: Sequence[Schema]) -> Schema:
        return below[0]

    def passed_columns(self, port: int) -> Mapping[str, str]:
        return {name: name for name in schema(self.input).names}

    def slimmed(self, wanted: Names) -> Self:
        return self


class Stateful(Operator):
    """An operator that keeps rows, or something computed from them; its own rows have no origin."""

    stateless = False

    def origin_depth(self, below: Sequence[int]) -> int:
        return 0


class RowByRow(OneInput):
    """An operator that treats each row alone.

    It does not depend on where its rows are or in which order they come, and it neither keeps nor
    holds any.
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
    """An operator that passes every row on unchanged and only affects how stages run."""

    def longest_lifetime(self, lives: Sequence[Span]) -> Span:
        return lives[0]

    def horizon_step(self, lives: Sequence[Span]) -> HorizonStep:
        return NO_STEP


class EqualRows(Stateful, SameColumns):
    """An operator that combines rows of equal payload that follow each other into one row.

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
