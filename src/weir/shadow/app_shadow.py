"""Compares the program of an app (`weir run app.py`, on any runner) with the serial loop."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

from weir.errors import PlanError
from weir.files.chunks import SourcePartition
from weir.handlers.api.app import App
from weir.handlers.planning.app_compiler import Compiled, compile_app
from weir.handlers.planning.handler_order import event_rows, serial_order
from weir.plan.operators import FinalState, Node, Source, schema
from weir.plan.program import Program
from weir.plan.traversal import ordered_nodes
from weir.runtime.partitions import Partitions
from weir.shadow.comparison import difference_error
from weir.shadow.engine_run import EnginePlan
from weir.shadow.log_events import UnknownToPython, first_events, ordered_events
from weir.shadow.serial_loop import LogEvent, SerialApp, SerialLoop
from weir.shadow.shadow_run import SECONDS, ShadowEvents, ShadowRun
from weir.shadow.stream_events import PartitionHead, stream_events
from weir.shadow.whole_loop import LocatedDifference, WholeLoop

DEFAULT_EVENTS = 1_000
"""How many events are compared by default, if that takes at most `SECONDS`."""


@dataclass(frozen=True, slots=True)
class OpenLog:
    """One partition of a log; `number` is its number within the source."""

    source: Source
    number: int
    partition: SourcePartition


@dataclass(frozen=True, slots=True)
class AppShadow:
    """Both sides of a program: what the loop needs of its app, and what the engine runs.

    `events` is how many are compared; None is the default.
    """

    program: Program
    serial: SerialApp
    plan: EnginePlan
    events: int | None = None

    @property
    def most(self) -> int:
        return DEFAULT_EVENTS if self.events is None else self.events

    def compare(self, partitions: Partitions) -> int:
        """Compare the first events of these finite partitions; return how many there were.

        ReplayDiffers if the engine has a different result.
        """
        seconds = SECONDS if self.events is None else None
        try:
            first = self._first(partitions)
        except UnknownToPython:
            return 0
        return ShadowRun(self.serial, self.plan, first, seconds=seconds).compare()

    def check(self, partitions: Partitions, written: Mapping[str, str]) -> None:
        """Run the loop over all events of these finite partitions, and compare the written files.

        `written` has the files by stream. ReplayDiffers if they are not what the loop emits.
        """
        shapes = {name: schema(node) for name, node in self.plan.emitted.items()}
        with tempfile.TemporaryDirectory(prefix="weir-check-") as folder:
            loop = WholeLoop(SerialLoop(self.serial), shapes, Path(folder))
            for event in self._all(partitions):
                self._raise(partitions, loop.take(event))
            self._raise(partitions, loop.difference(written))

    def _raise(self, partitions: Partitions, located: LocatedDifference | None) -> None:
        if located is None:
            return
        difference, number = located
        event = None if number is None else next(islice(self._all(partitions), number, None))
        raise difference_error(
            self.serial.app,
            difference,
            number=0 if number is None else number + 1,
            event=event,
            at=difference.at,
        )

    def _all(self, partitions: Partitions) -> Iterator[LogEvent]:
        app = self.serial.app
        if self._has_streams:
            rows = event_rows(app, _paths(app, self.program))
            return iter(stream_events(rows, partitions).events)
        return (placed.event for placed in ordered_events(self._logs(partitions)))

    @property
    def _has_streams(self) -> bool:
        return not all(event.is_log for event in self.serial.app.event_types.values())

    def _logs(self, partitions: Partitions) -> list[OpenLog]:
        return [
            OpenLog(source, number, partition)
            for source in self.program.sources
            for number, partition in enumerate(partitions[source.name])
        ]

    def _first(self, partitions: Partitions) -> ShadowEvents:
        app = self.serial.app
        if not self._has_streams:
            return first_events(self._logs(partitions), self.most)
        heads = {n: [PartitionHead(p, self.most) for p in parts] for n, parts in partitions.items()}
        return stream_events(event_rows(app, _paths(app, self.program)), heads)


def app_shadow(program: Program, events: int | None = None) -> AppShadow | None:
    """Return the comparison for a program, or None if there is none.

    That is so if the program is not an app's, or reads inputs that only Spark can read, or if
    `events` is 0.
    """
    if program.app is None or events == 0:
        return None
    if not all(source.has_origins for source in program.sources):
        return None
    app, params = program.app.app, dict(program.app.params)
    assert isinstance(app, App)
    emitted = {output.name: output.node for output in program.outputs}
    columns = {name: schema(node).columns for name, node in emitted.items()}
    states = _final_states(app, program, params)
    keys = {name: node.state.keys for name, node in (states or {}).items()}
    declared = {
        name: replace(state, keys=keys.get(name, state.keys)) for name, state in app.states.items()
    }
    serial = SerialApp(app, serial_order(app), declared, columns, params)
    read = {source for node in emitted.values() for source in _sources(node)}
    seen = {n: node for n, node in (states or {}).items() if _sources(node) <= read}
    unseen = frozenset((states or {}).keys() - seen.keys())
    plan = EnginePlan(emitted, None if states is None else seen, unseen)
    return AppShadow(program, serial, plan, events)


def _sources(node: Node) -> set[Source]:
    return {below for below in ordered_nodes([node]) if isinstance(below, Source)}


def _final_states(
    app: App, program: Program, params: Mapping[str, object]
) -> dict[str, FinalState] | None:
    """Compile the final states of an app; None if no table can hold them."""
    try:
        compiled: Compiled = compile_app(app, paths=_paths(app, program), params=params, final=True)
    except PlanError:
        return None
    nodes = {name: stream.node for name, stream in compiled.final.items()}
    return {name: node for name, node in nodes.items() if isinstance(node, FinalState)}


def _paths(app: App, program: Program) -> dict[str, str]:
    logs = {name for name, event in app.event_types.items() if event.is_log}
    return {source.name: source.path for source in program.sources if source.name in logs}
