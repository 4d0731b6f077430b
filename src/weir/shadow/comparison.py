"""Compares the results of the serial loop and the engine on the same events.

Rules
1. Emitted rows are compared stream by stream, in order: lifetimes and values. Values are equal as
   in keys (−0 = 0, NaN = NaN).
2. States are compared cell by cell, as of the time of the last event: the value that a read would
   return, the exact sum, and the times of merges. In windows the merges are compared too, except
   functions, which may have another form in the engine.
3. One difference is reported: emits come before states, and the earliest row first.
"""

from __future__ import annotations

import linecache
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest

import pyarrow as pa

from weir.errors import ProgramPlace, ReplayDiffers
from weir.events.batch import OPEN
from weir.handlers.api.app import App
from weir.handlers.runs.running_event import running_with
from weir.kernels.expressions.evaluation import shown_time, shown_value
from weir.plan.operators import schema
from weir.shadow.engine_run import EnginePlan, EngineResult, EngineRow
from weir.shadow.restored_states import CellContent, SavedCells, contents, restore
from weir.shadow.serial_cells import CellKey, SerialCells, same_as_key
from weir.shadow.serial_loop import HandlerLine, LogEvent, LoopResult, LoopRow, SerialLoop

NOTHING = "nothing"


@dataclass(frozen=True, slots=True)
class SerialDifference:
    """Where the loop and the engine differ, and what each of them has there."""

    what: str
    loop: str
    engine: str
    at: HandlerLine | None = None
    """The line that emitted the loop's row."""
    cell: tuple[str, CellKey] | None = None
    """The state and the key, if the difference is in a cell."""


def first_difference(
    loop: LoopResult, plan: EnginePlan, engine: EngineResult, time: int
) -> SerialDifference | None:
    """Return how the engine differs from the loop, or None; `time` is that of the last event."""
    if engine.failed is not None:
        return SerialDifference("", "goes on", f"fails: {engine.failed}")
    differences = []
    for name in {**loop.rows, **engine.rows}:
        ours, theirs = loop.rows.get(name, []), engine.rows.get(name, [])
        if (different := _first_row(ours, theirs)) is not None:
            vs = min(different.vs, default=time)
            differences.append((vs, name, different))
    if differences:
        _, name, different = min(differences, key=lambda one: one[0])
        node = plan.emitted.get(name)
        return different.described(name, () if node is None else schema(node).names)
    if engine.states is None:
        return None
    return cell_difference(loop.loop, engine.states, time, plan.unseen)


# --- emitted rows ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _DifferentRows:
    """The first rows of a stream that differ; None if a side has no such row."""

    loop: LoopRow | None
    engine: EngineRow | None
    is_order: bool
    """Whether each row comes elsewhere on the other side, so that only the order differs."""

    @property
    def vs(self) -> list[int]:
        loop = [] if self.loop is None else [self.loop.vs]
        return loop if self.engine is None else [*loop, self.engine[0]]

    def described(self, name: str, columns: Sequence[str]) -> SerialDifference:
        what = f"the order of `{name}`" if self.is_order else f"`{name}`"
        row = self.loop
        loop = NOTHING if row is None else _shown((row.vs, row.ve, row.values), columns)
        engine = NOTHING if self.engine is None else _shown(self.engine, columns)
        return SerialDifference(what, loop, engine, None if row is None else row.at)


def _first_row(loop: Sequence[LoopRow], engine: Sequence[EngineRow]) -> _DifferentRows | None:
    ours = [_comparable((row.vs, row.ve, row.values)) for row in loop]
    theirs = [_comparable(row) for row in engine]
    for at, (one, other) in enumerate(zip_longest(ours, theirs)):
        if one != other:
            return _DifferentRows(
                loop[at] if at < len(loop) else None,
                engine[at] if at < len(engine) else None,
                one in theirs[at:] and other in ours[at:],
            )
    return None


def _comparable(row: EngineRow) -> tuple[object, ...]:
    vs, ve, values = row
    return vs, ve, same_as_key(values)


def _shown(row: EngineRow, columns: Sequence[str]) -> str:
    vs, ve, values = row
    names = columns or [f"column {n + 1}" for n in range(len(values))]
    return str({"vs": vs, "ve": ve, **dict(zip(names, values, strict=True))})


# --- states ----------------------------------------------------------------------------------


def cell_difference(
    loop: SerialLoop,
    states: Mapping[str, SavedCells],
    time: int,
    unseen: Collection[str] = (),
) -> SerialDifference | None:
    """Return how the engine's saved cells differ from the loop's, as of a time, or None.

    States in `unseen` are not compared.
    """
    theirs = SerialCells(loop.cells.states)
    with running_with(loop):  # functions in windows may read
        for name in (name for name in theirs.states if name not in unseen):
            if name in states:
                restore(theirs, name, *states[name])
            one, other = contents(loop.cells, name, time), contents(theirs, name, time)
            for key in {**one, **other}:
                if not _is_same(one.get(key), other.get(key)):
                    what = f"the state `{name}` of {_shown_key(key)}"
                    both = _shown_cell(one.get(key)), _shown_cell(other.get(key))
                    return SerialDifference(what, *both, cell=(name, key))
    return None


def _is_same(one: CellContent | None, other: CellContent | None) -> bool:
    if one is None or other is None:
        return one is other
    if same_as_key(one.value) != same_as_key(other.value) or len(one.steps) != len(other.steps):
        return False
    return all(
        time == t and (kind != k or kind == "call" or args == a)
        for (time, kind, args), (t, k, a) in zip(one.steps, other.steps, strict=True)
    )


def _shown_key(key: CellKey) -> str:
    return repr(key[0]) if len(key) == 1 else repr(key)


def _shown_cell(cell: CellContent | None) -> str:
    if cell is None:
        return "no merge into it"
    times = [time for time, _, _ in cell.steps]
    last = f"merged into last at {times[-1]}"
    return f"{cell.value!r}, {last}" if len(times) == 1 else f"{cell.value!r}, of merges at {times}"


def difference_error(
    app: App,
    difference: SerialDifference,
    *,
    number: int = 0,
    event: LogEvent | None = None,
    input: str = "",
    at: HandlerLine | None = None,
    variant: str = "",
) -> ReplayDiffers:
    """Make the error for a difference at an event, whose place is `input`.

    Events are numbered from 1; 0 means unknown. `at` is a line of the user's code. `variant` names
    the variant if there are several.
    """
    what = f"{difference.what} with {variant}".strip() if variant else difference.what
    return ReplayDiffers(
        what,
        loop=difference.loop,
        engine=difference.engine,
        number=number,
        event=None if event is None else shown_event(app, event),
        input=input,
        handler="" if at is None else at.handler,
        place=None if at is None else _place(at),
    )


def shown_event(app: App, event: LogEvent) -> dict[str, object]:
    """Return an event as messages show it."""
    declared = app.event_types[event.type]
    ends = {"vs": event.vs, "ve": OPEN if event.ve is None else event.ve}
    shown = {name: shown_time(ticks, declared.schema.time) for name, ticks in ends.items()}
    for (name, dtype), value in zip(declared.columns, event.values, strict=True):
        shown[name] = shown_value(pa.scalar(value, dtype))
    return shown


def _place(at: HandlerLine) -> ProgramPlace:
    linecache.checkcache(at.file)
    return ProgramPlace(at.line, 1, at.file, linecache.getline(at.file, at.line).strip())
