"""The final state is the content of a state's cells after all input."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Self

from weir.plan.operators.abstract import schema
from weir.plan.operators.facts import (
    HorizonStep,
    Names,
    Predicates,
    Pushed,
    endless,
    none_sinks,
)
from weir.plan.operators.node_class import node_class
from weir.plan.operators.scanning import Scanning, cell_text, kept_cells, merge_columns
from weir.plan.operators.spans import TICK, UNBOUNDED, Span
from weir.plan.saved_states import key_names, saved_calls, state_schema
from weir.plan.schema import Schema, common_time
from weir.plan.states import Cell, StateMerge

if TYPE_CHECKING:
    from weir.plan.operators import Node


@node_class
class FinalState(Scanning):
    """Returns the cells of a state as rows, when its input has ended.

    All ports merge. `saved_states.py` defines the rows; `restored` is the port with the rows that
    an earlier run has saved, if there is one. If `as_of` is set, no merge is later than it, and
    cells (or merges in windows) that have ended by then are neither kept nor returned.
    """

    streams: tuple[Node, ...]
    keys: tuple[tuple[str, ...], ...]
    state: Cell
    merges: tuple[tuple[StateMerge, ...], ...]
    depth: int
    restored: int | None = None
    as_of: int | None = None

    def schema_over(self, below: Sequence[Schema]) -> Schema:
        calls = saved_calls(self.merges, below)
        return Schema(state_schema(self.state, calls), common_time(below))

    def passed_columns(self, port: int) -> Mapping[str, str]:
        return dict(zip(key_names(self.state), self.keys[port], strict=True))

    def sees_order(self, port: int) -> bool:
        return port != self.restored

    def origin_depth(self, below: Sequence[int]) -> int:
        return 0

    def longest_lifetime(self, lives: Sequence[Span]) -> Span:
        return TICK

    def longest_hold(self, lives: Sequence[Span]) -> Span:
        return UNBOUNDED

    def horizon_step(self, lives: Sequence[Span]) -> HorizonStep:
        return endless(
            f"the final state of {self.state.state} is made of all that was ever merged",
            "an output of what the handlers emit, which needs no final state",
        )

    def columns_read(self, wanted: Names) -> tuple[Names, ...]:
        requests = [merge_columns(k, m) for k, m in zip(self.keys, self.merges, strict=True)]
        if self.restored is not None:
            requests[self.restored] = frozenset(schema(self.streams[self.restored]).names)
        return tuple(requests)

    def slimmed(self, wanted: Names) -> Self:
        return self

    def pushed(self, arriving: Predicates, lives: Sequence[Span]) -> Pushed:
        return none_sinks(self, arriving)

    def kept(self) -> str:
        return kept_cells((self.state,), self.keys[0])

    def detail(self) -> str:
        merges = dict.fromkeys(merge.kind for of_port in self.merges for merge in of_port)
        by = f" BY {', '.join(self.keys[0])}" if self.keys[0] else ""
        return f"{cell_text(self.state)} MERGE {', '.join(merges)}{by}"
