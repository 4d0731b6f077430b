"""A row scan runs handlers row by row, with the cells of their states at hand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Self

import pyarrow as pa

from weir.plan.operators.facts import HorizonStep, Names, Predicates, Pushed, endless, none_sinks
from weir.plan.operators.node_class import node_class
from weir.plan.operators.scanning import Answering, kept_cells
from weir.plan.schema import Schema
from weir.plan.spans import Span
from weir.plan.states import Cell, RowCode, WindowCall

if TYPE_CHECKING:
    from weir.plan.operators import Node


@node_class
class RowScan(Answering):
    """A `RowScan` runs code on the rows of all ports; the code reads and merges cells as it goes.

    Port 0 is the reader: its rows come out with a new column for each effect, and keep their
    origins. `columns` are those that the code gets of each port's rows, `places` the block and the
    order of each port: rows are taken as the requests of a `StateScan` are. `restored` is as a
    `StateScan` has it; such ports have no columns and their places mean nothing. `calls` are the
    functions in windows that snapshots and saved cells may name.
    """

    streams: tuple[Node, ...]
    keys: tuple[tuple[str, ...], ...]
    states: tuple[Cell, ...]
    code: RowCode
    columns: tuple[tuple[str, ...], ...]
    places: tuple[tuple[int, int], ...]
    effects: tuple[tuple[str, pa.DataType], ...]
    depth: int
    restored: tuple[int, ...] = ()
    calls: tuple[WindowCall, ...] = ()

    def schema_over(self, below: Sequence[Schema]) -> Schema:
        return Schema((*below[0].columns, *self.effects), below[0].time)

    def horizon_step(self, lives: Sequence[Span]) -> HorizonStep:
        if self.states and all(cell.last is not None for cell in self.states):
            # What is merged may depend on what was read, and so on all of history.
            return endless(
                f"{self.code.name}: what it merges may depend on what it read",
                "handlers that do not read what they merge",
            )
        return self.reached(self.states)

    def columns_read(self, wanted: Names) -> tuple[Names, ...]:
        read = [frozenset((*k, *c)) for k, c in zip(self.keys, self.columns, strict=True)]
        read[0] |= wanted - {name for name, _ in self.effects}
        return self.with_restored(read)

    def slimmed(self, wanted: Names) -> Self:
        return self  # the code gives all its effects, by position

    def pushed(self, arriving: Predicates, lives: Sequence[Span]) -> Pushed:
        return none_sinks(self, arriving)

    def kept(self) -> str:
        return kept_cells(self.states, self.keys[0])

    def detail(self) -> str:
        by = f" BY {', '.join(self.keys[0])}" if self.keys[0] else ""
        return f"{self.code.name} GIVES {', '.join(name for name, _ in self.effects)}{by}"
