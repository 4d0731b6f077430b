"""Compares a replay with the serial loop over the first events of a batch (`weir.shadow`).

Variants are compared one by one. The events of all comparisons together are as many as for a single
variant.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from weir.events.batch import OPEN
from weir.files.readers import open_partition
from weir.handlers.api.app import App
from weir.handlers.api.declarations import State
from weir.handlers.planning.handler_order import event_rows, serial_order
from weir.ingress.connectors.registry import open_any
from weir.plan.operators import FinalState, Source, schema
from weir.replay.batch_cuts import BatchPart, LogBatch, LogMark, LogPosition, RankedLog
from weir.replay.batch_programs import BatchProgram, ReplayTask, key_of
from weir.replay.slices import slices_of
from weir.replay.variants import Variant
from weir.shadow.app_shadow import DEFAULT_EVENTS
from weir.shadow.engine_run import EnginePlan
from weir.shadow.log_events import FirstEvents, UnknownToPython, first_events
from weir.shadow.restored_states import SavedTable, saved_table
from weir.shadow.serial_loop import SerialApp
from weir.shadow.shadow_run import SECONDS, ShadowRun
from weir.shadow.stream_events import PartitionHead, StreamEvents, stream_events

OfVariant = TypeVar("OfVariant")


@dataclass(frozen=True, slots=True)
class Shadowing:
    """Compares a replay with the serial loop over `events` events; None if no number was set."""

    task: ReplayTask
    events: int | None = None

    def compare(
        self, compiled: BatchProgram, tables: Mapping[str, str], batch: LogBatch | None
    ) -> ComparedEvents:
        """Compare the first events of a batch (None: of all logs), which starts with these tables.

        ReplayDiffers if the engine has a different result.
        """
        if self.events == 0 or not can_be_read(compiled):
            return ComparedEvents()
        most = DEFAULT_EVENTS if self.events is None else self.events
        try:
            first = self._first(compiled, batch, max(1, most // len(self.task.variants)))
        except UnknownToPython:
            return ComparedEvents()
        order = serial_order(self.task.app)
        counts = []
        for variant in self.task.variants:
            run = ShadowRun(
                serial_app(self.task.app, variant, compiled, order),
                _plan(variant, compiled),
                first,
                begun_tables(self.task.app, variant, compiled, tables),
                None if self.events is not None else SECONDS / len(self.task.variants),
                variant.label,
            )
            counts.append(run.compare())
        return ComparedEvents(min(counts), first.are_all and min(counts) == len(first.events))

    def _first(
        self, compiled: BatchProgram, batch: LogBatch | None, most: int
    ) -> FirstEvents | StreamEvents:
        task = self.task
        if all(event.is_log for event in task.app.event_types.values()):
            return first_events(log_slices(task, compiled, batch), most)
        sources = [s for s in compiled.program.sources if s.name not in compiled.restored]
        rows = event_rows(task.app, task.paths, task.start, task.end)
        opened = {s.name: [PartitionHead(p, most) for p in open_any(s, "")] for s in sources}
        return stream_events(rows, opened)


def can_be_read(compiled: BatchProgram) -> bool:
    """Tell whether this process can read all events; only Spark can read those of a DataFrame."""
    return all(source.has_origins for source in compiled.program.sources)


@dataclass(frozen=True, slots=True)
class ComparedEvents:
    """How many events agree, and whether these are all events."""

    count: int = 0
    are_all: bool = False


def log_slices(task: ReplayTask, compiled: BatchProgram, batch: LogBatch | None) -> list[RankedLog]:
    """Open a batch's part of the logs (None: all) with all columns, by rank."""
    logs = [
        RankedLog(source, number, partition)
        for source in compiled.program.sources
        if source.name in task.paths
        for number, partition in enumerate(open_any(source, ""))
    ]
    slices = slices_of(batch or _whole(task, len(logs)), logs)
    return [RankedLog(log.source, log.number, s) for log, s in zip(logs, slices, strict=True)]


def _whole(task: ReplayTask, count: int) -> LogBatch:
    after = None if task.start is None else LogPosition(task.start, -1, -1)
    upto = None if task.end is None else LogPosition(task.end, -1, -1)
    parts = (BatchPart(LogMark(), OPEN),) * count
    return LogBatch(after, upto, 0, 0, parts)


def serial_app(
    app: App, variant: Variant, compiled: BatchProgram, order: Mapping[str, Sequence[str]]
) -> SerialApp:
    """Return what the loop needs of a variant, with the types that the engine inferred.

    These are the types of keys and of emitted rows.
    """
    saved = of_variant(variant, compiled.saved)
    emitted = {n: schema(o.node).columns for n, o in of_variant(variant, compiled.emitted).items()}
    states = {name: _with_keys(state, saved.get(name)) for name, state in app.states.items()}
    return SerialApp(app, order, states, emitted, variant.values)


def _with_keys(state: State, saved: FinalState | None) -> State:
    return state if saved is None else replace(state, keys=saved.state.keys)


def _plan(variant: Variant, compiled: BatchProgram) -> EnginePlan:
    emitted = {n: output.node for n, output in of_variant(variant, compiled.emitted).items()}
    return EnginePlan(emitted, of_variant(variant, compiled.saved) if compiled.hands_on else None)


def of_variant(variant: Variant, by_key: Mapping[str, OfVariant]) -> dict[str, OfVariant]:
    """Return the values of a variant, by name."""
    before = key_of(variant, "")
    return {k.removeprefix(before): f for k, f in by_key.items() if k.startswith(before)}


def begun_tables(
    app: App, variant: Variant, compiled: BatchProgram, tables: Mapping[str, str]
) -> dict[str, SavedTable]:
    """Read the tables that a variant starts with, by state; variants may share a table."""
    sources: dict[str, Source] = {tables[key]: s for s, key in compiled.restored.values()}
    saved_by_name = {}
    for name in app.states:
        key = key_of(variant, name)
        if compiled.restored and key in tables:
            source = sources[tables[key]]
            opened = open_partition(source, tables[key])
            saved_by_name[name] = saved_table(name, source, compiled.saved[key], opened)
    return saved_by_name
