"""What the operators with versioned state share: ports, keys, states and an order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Self

from weir.plan.durations import duration_text
from weir.plan.operators.abstract import Operator, schema
from weir.plan.operators.facts import HorizonStep, Meeting, Names, endless, last_instant, meeting_by
from weir.plan.operators.spans import NONE, Span
from weir.plan.states import Cell, StateMerge

if TYPE_CHECKING:
    from weir.plan.operators import Node


class Scanning(Operator):
    """Handles the requests of all its ports in order and keeps cells by key.

    `keys` has one tuple of column names for each port; `depth` is the number of origin columns that
    identify an event. A column after these is the element of a loop.
    """

    streams: tuple[Node, ...]
    keys: tuple[tuple[str, ...], ...]
    depth: int

    stateless = False
    by_position = False

    @property
    def inputs(self) -> tuple[Node, ...]:
        return self.streams

    def over(self, inputs: Sequence[Node]) -> Self:
        return replace(self, streams=tuple(inputs))

    def meeting(self) -> Meeting:
        return meeting_by(*self.keys)

    def reached(self, states: Sequence[Cell]) -> HorizonStep:
        """Return how far back these states reach."""
        forever = [cell for cell in states if cell.last is None]
        if not forever:
            # A read at r includes the merges after r − last.
            return HorizonStep(max((last_instant(c.last or 0) for c in states), default=0))
        return endless(
            f"state {forever[0].state}: a cell keeps what was ever merged into it",
            'a state with last="…", which looks back only so far',
        )


class Answering(Scanning):
    """A scan that adds columns to its reader's rows, those of port 0.

    The rows pass on unchanged otherwise, with their origins. `restored[i]` is the port with saved
    cells of state i."""

    restored: tuple[int, ...]

    def passed_columns(self, port: int) -> Mapping[str, str]:
        return {n: n for n in schema(self.streams[0]).names} if port == 0 else {}

    def sees_order(self, port: int) -> bool:
        return port not in self.restored

    def origin_depth(self, below: Sequence[int]) -> int:
        return below[0]

    def longest_lifetime(self, lives: Sequence[Span]) -> Span:
        return lives[0]

    def longest_hold(self, lives: Sequence[Span]) -> Span:
        return NONE

    def with_restored(self, read: Sequence[Names]) -> tuple[Names, ...]:
        """Return the columns that are read of each port: all columns of ports with saved cells."""
        saved = {port for port in self.restored if port >= 0}
        return tuple(
            frozenset(schema(self.streams[port]).names) if port in saved else names
            for port, names in enumerate(read)
        )


def merge_columns(keys: Sequence[str], merges: Sequence[StateMerge]) -> Names:
    """Return the columns that a port's requests read."""
    args = {arg for merge in merges for arg in merge.args if isinstance(arg, str)}
    conditions = {merge.condition for merge in merges if merge.condition is not None}
    return frozenset({*keys, *args, *conditions})


def cell_text(cell: Cell) -> str:
    """Return a state's name, followed by what ends its cells."""
    if cell.last is not None:
        return f"{cell.state} (last {duration_text(cell.last)})"
    if cell.expires is not None:
        return f"{cell.state} (expires {duration_text(cell.expires)})"
    return cell.state


def kept_cells(states: Sequence[Cell], keys: Sequence[str]) -> str:
    """Return a text with what is kept of these states."""
    each = f"each {', '.join(keys)}" if keys else "all"
    return f"cells of {', '.join(map(cell_text, states)) or 'no state'} by {each}"
