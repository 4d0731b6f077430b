"""A state scan answers reads of versioned state, in the order of events."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Self

from weir.plan.expressions import columns_of
from weir.plan.operators.abstract import schema
from weir.plan.operators.facts import (
    LIFETIME,
    HorizonStep,
    Names,
    Predicates,
    Pushed,
)
from weir.plan.operators.node_class import node_class
from weir.plan.operators.scanning import Answering, cell_text, kept_cells, merge_columns
from weir.plan.operators.spans import Span
from weir.plan.schema import Schema
from weir.plan.states import Cell, StateMerge, StateRead

if TYPE_CHECKING:
    from weir.plan.operators import Node


@node_class
class StateScan(Answering):
    """Keeps cells of states by key, and adds to its reader's rows what they read.

    Port 0 is the reader: its rows come out with a new column for each read, and keep their origins.
    Rows of other ports only merge. `restored[i]` is the port with saved cells of state i
    (`saved_states.py`), −1 or missing if there is none.
    """

    streams: tuple[Node, ...]
    keys: tuple[tuple[str, ...], ...]
    states: tuple[Cell, ...]
    merges: tuple[tuple[StateMerge, ...], ...]
    reads: tuple[StateRead, ...]
    depth: int
    restored: tuple[int, ...] = ()

    def schema_over(self, below: Sequence[Schema]) -> Schema:
        answers = ((read.column, self.states[read.state].type) for read in self.reads)
        return Schema((*below[0].columns, *answers), below[0].time)

    def horizon_step(self, lives: Sequence[Span]) -> HorizonStep:
        return self.reached(self.states)

    def columns_read(self, wanted: Names) -> tuple[Names, ...]:
        answers = {read.column for read in self.reads}
        requests = [merge_columns(k, m) for k, m in zip(self.keys, self.merges, strict=True)]
        requests[0] |= wanted - answers
        return self.with_restored(requests)

    def slimmed(self, wanted: Names) -> Self:
        reads = tuple(read for read in self.reads if read.column in wanted)
        if reads == self.reads:
            return self
        # A state that nothing reads here needs no merges.
        used = sorted({read.state for read in reads})
        new = {old: number for number, old in enumerate(used)}
        merges = tuple(
            tuple(replace(m, state=new[m.state]) for m in of_port if m.state in new)
            for of_port in self.merges
        )
        return replace(
            self,
            states=tuple(self.states[state] for state in used),
            merges=merges,
            reads=tuple(replace(read, state=new[read.state]) for read in reads),
            restored=tuple(self.restored[state] for state in used) if self.restored else (),
        )

    def pushed(self, arriving: Predicates, lives: Sequence[Span]) -> Pushed:
        # A row that merges is needed even if it is dropped later; folding a window can fail.
        free = not self.merges[0] and all(self.states[r.state].last is None for r in self.reads)
        passed = LIFETIME.union(schema(self.streams[0]).names)
        down = tuple(p for p in arriving if free and columns_of(p) <= passed)
        above = tuple(p for p in arriving if p not in down)
        return Pushed(self, above, (down, *((),) * (len(self.streams) - 1)))

    def kept(self) -> str:
        return kept_cells(self.states, self.keys[0])

    def detail(self) -> str:
        cells = [cell_text(cell) for cell in self.states]
        reads = ", ".join(f"{cells[read.state]} AS {read.column}" for read in self.reads)
        merges = dict.fromkeys(f"{m.kind} {cells[m.state]}" for ms in self.merges for m in ms)
        by = f"BY {', '.join(self.keys[0])}" if self.keys[0] else ""
        parts = (f"READ {reads}" if reads else "", f"MERGE {', '.join(merges)}" if merges else "")
        return " ".join(part for part in (*parts, by) if part)
