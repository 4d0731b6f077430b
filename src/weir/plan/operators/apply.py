"""PROCESS, REDUCE and COMBINE run the user's own operators."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Self

from weir.plan.operators.abstract import schema
from weir.plan.operators.facts import (
    HorizonStep,
    Meeting,
    Names,
    Predicates,
    Pushed,
    endless,
    meeting_by,
    none_sinks,
)
from weir.plan.operators.node_class import node_class
from weir.plan.operators.roles import Stateful
from weir.plan.operators.spans import LONGEST_LIFETIME, NONE, Span
from weir.plan.render import render_value
from weir.plan.schema import Schema, common_time

if TYPE_CHECKING:
    from weir.plan.operators import Node
    from weir.plan.usercode.functions import OperatorCall


@node_class
class Apply(Stateful):
    """Runs the user's own operator: PROCESS (no keys), REDUCE (keys), COMBINE (two streams).

    `keys` has one tuple of column names for each stream.
    """

    streams: tuple[Node, ...]
    keys: tuple[tuple[str, ...], ...]
    call: OperatorCall

    by_position = False

    @property
    def inputs(self) -> tuple[Node, ...]:
        return self.streams

    def over(self, inputs: Sequence[Node]) -> Self:
        return replace(self, streams=tuple(inputs))

    def schema_over(self, below: Sequence[Schema]) -> Schema:
        return Schema(self.call.columns, common_time(below))

    def passed_columns(self, port: int) -> Mapping[str, str]:
        return {}  # a column that it emits may be called like a key, and hold anything

    def meeting(self) -> Meeting:
        return meeting_by(*self.keys)

    def sees_order(self, port: int) -> bool:
        return True

    def longest_lifetime(self, lives: Sequence[Span]) -> Span:
        return LONGEST_LIFETIME

    def longest_hold(self, lives: Sequence[Span]) -> Span:
        return NONE

    def horizon_step(self, lives: Sequence[Span]) -> HorizonStep:
        return endless(
            f"{self.call.operator.name}: its state may hold anything it ever saw",
            "operators of Weir's own, whose horizon is known",
        )

    def columns_read(self, wanted: Names) -> tuple[Names, ...]:
        return tuple(frozenset(schema(s).names) for s in self.streams)

    def slimmed(self, wanted: Names) -> Self:
        return self

    def pushed(self, arriving: Predicates, lives: Sequence[Span]) -> Pushed:
        return none_sinks(self, arriving)

    def kept(self) -> str:
        each = "every key" if self.keys[0] else "the whole stream"
        return f"an instance of {self.call.operator.name} for {each}, permanently, and its timers"

    def detail(self) -> str:
        keys = [", ".join(k) for k in self.keys if k]
        on = f" ON {' = '.join(dict.fromkeys(keys))}" if keys else ""
        return f"{self.call.operator.name}({', '.join(map(render_value, self.call.args))}){on}"
