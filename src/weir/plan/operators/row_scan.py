"""A row scan runs handlers row by row, and gives them the cells of their states."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Self

from weir.plan.operators.abstract import schema
from weir.plan.operators.facts import (
    HorizonStep,
    Meet,
    Meeting,
    Names,
    Predicates,
    Pushed,
    endless,
    meeting_by,
    none_sinks,
)
from weir.plan.operators.node_class import node_class
from weir.plan.operators.scanning import Answering, kept_cells, merge_columns
from weir.plan.operators.spans import Span
from weir.plan.schema import Schema, common_time
from weir.plan.states import Cell, RowCode, RowEffect, StateMerge, WindowCall

if TYPE_CHECKING:
    from weir.plan.operators import Node


@node_class
class RowScan(Answering):
    """Runs code on the rows of its first ports; the code reads and merges cells.

    `columns` has, for each such port, the columns that the code gets. `places` has the orders at
    which the code runs on the port's rows, one for each handler; rows are visited as for requests
    of a `StateScan`. The rows of the first `out_ports` ports come out in order, with their origins
    and a column for each effect. If it `passes`, only those of port 0 come out, and keep their
    columns. Rows of ports without columns only merge. `restored` is as in a `StateScan`. A scan
    with one port and no states keeps nothing: it runs wherever its rows are.

    `calls` are the functions that the code merges into windows, for snapshots.
    """

    streams: tuple[Node, ...]
    keys: tuple[tuple[str, ...], ...]
    states: tuple[Cell, ...]
    code: RowCode
    columns: tuple[tuple[str, ...], ...]
    places: tuple[tuple[int, ...], ...]
    merges: tuple[tuple[StateMerge, ...], ...]
    effects: tuple[RowEffect, ...]
    depth: int
    out_ports: int = 1
    restored: tuple[int, ...] = ()
    passes: bool = False
    calls: tuple[WindowCall, ...] = ()

    def schema_over(self, below: Sequence[Schema]) -> Schema:
        passed = below[0].columns if self.passes else ()
        columns = ((effect.column, effect.type) for effect in self.effects)
        return Schema((*passed, *columns), common_time(below[: self.out_ports]))

    def passed_columns(self, port: int) -> Mapping[str, str]:
        passed = self.passes and port == 0
        return {name: name for name in schema(self.streams[0]).names} if passed else {}

    def meeting(self) -> Meeting:
        if not self.states and len(self.streams) == 1:
            return Meet.NEVER
        return meeting_by(*self.keys)

    def origin_depth(self, below: Sequence[int]) -> int:
        return max(below[: self.out_ports])

    def longest_lifetime(self, lives: Sequence[Span]) -> Span:
        return max(lives[: self.out_ports])

    def horizon_step(self, lives: Sequence[Span]) -> HorizonStep:
        if self.states and all(cell.last is not None for cell in self.states):
            # Merged values may depend on earlier reads, and so on all of history.
            return endless(
                f"{self.code.name}: what it merges may depend on what it read",
                "handlers that do not read what they merge",
            )
        return self.reached(self.states)

    def columns_read(self, wanted: Names) -> tuple[Names, ...]:
        read = [merge_columns(k, m) for k, m in zip(self.keys, self.merges, strict=True)]
        for port, columns in enumerate(self.columns):
            read[port] |= frozenset(columns)
        if self.passes:
            read[0] |= wanted - {effect.column for effect in self.effects}
        return self.with_restored(read)

    def slimmed(self, wanted: Names) -> Self:
        return self  # the code computes all its effects, by position

    def pushed(self, arriving: Predicates, lives: Sequence[Span]) -> Pushed:
        return none_sinks(self, arriving)

    def kept(self) -> str:
        return kept_cells(self.states, self.keys[0]) if self.states else ""

    def detail(self) -> str:
        by = f" BY {', '.join(self.keys[0])}" if self.keys[0] else ""
        names = ", ".join(effect.column for effect in self.effects)
        gives = f" GIVES {names}" if names else ""
        return f"{self.code.name}{gives}{by}"
