"""Compares a whole replay with the serial loop over all its events, for `--check`.

Rules
1. The loop keeps its own cells from batch to batch. In a process that resumes after finished
   batches, it starts with the states that those saved.
2. A batch is compared when it is complete, but before it counts as finished. The comparison covers
   all rows that it emitted, in any order (files are sorted), and the states after it, if they are
   saved.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from weir.events.batch import START
from weir.files.saved_outputs import open_outputs
from weir.handlers.planning.handler_order import event_rows, serial_order
from weir.ingress.connectors.registry import open_any
from weir.plan.operators import schema
from weir.replay.batch_cuts import LogBatch
from weir.replay.batch_programs import BatchProgram, ReplayTask, key_of
from weir.replay.shadow_runs import begun_tables, log_slices, of_variant, serial_app
from weir.replay.variants import Variant
from weir.runtime.failed_rows import row_place
from weir.runtime.reports import OnProgress, Progress
from weir.shadow.comparison import cell_difference, difference_error
from weir.shadow.engine_run import saved_cells
from weir.shadow.log_events import ordered_events
from weir.shadow.restored_states import restore, saved_functions, saved_rows
from weir.shadow.serial_loop import LogEvent, SerialLoop
from weir.shadow.stream_events import stream_events
from weir.shadow.whole_loop import LocatedDifference, WholeLoop

TELL_EVERY = 10_000


@dataclass(frozen=True, slots=True)
class WrittenBatch:
    """The files of a batch's emitted rows and states, by key, and what the batch ran on.

    These are its program, the tables that it started with, and its part of the logs (None: all).
    The states are as of a time, by default that of the last event.
    """

    compiled: BatchProgram
    tables: Mapping[str, str]
    batch: LogBatch | None
    emitted: Mapping[str, str]
    states: Mapping[str, str]
    as_of: int | None


@dataclass(slots=True)
class LoopCheck:
    """Runs the loops of all variants; see the module's rules."""

    task: ReplayTask
    progress: OnProgress | None = None
    events: int = 0
    """How many events the loops have processed."""
    _loops: dict[Variant, SerialLoop] = field(default_factory=dict)
    _before: int = 0
    """How many events they had processed before the current batch."""

    def check(self, written: WrittenBatch) -> None:
        """Run the loops over a batch; ReplayDiffers if its results differ from theirs."""
        if not self._loops:
            self._begin(written)
        self._before, last = self.events, START
        with tempfile.TemporaryDirectory(prefix="weir-check-") as folder:
            loops = {v: self._whole(written, v, Path(folder) / v.folder) for v in self._loops}
            for event in self._events(written):
                for variant, loop in loops.items():
                    self._raise(written, loop.take(event), variant)
                self.events, last = self.events + 1, event.vs
                if self.progress is not None and self.events % TELL_EVERY == 0:
                    self.progress(Progress(self.events, last, stage="the serial loop"))
            for variant, loop in loops.items():
                files = of_variant(variant, written.emitted)
                self._raise(written, loop.difference(files), variant)
        self._compare_states(written, last if written.as_of is None else written.as_of)

    def _whole(self, written: WrittenBatch, variant: Variant, folder: Path) -> WholeLoop:
        emitted = of_variant(variant, written.compiled.emitted)
        folder.mkdir(parents=True, exist_ok=True)
        shapes = {name: schema(output.node) for name, output in emitted.items()}
        return WholeLoop(self._loops[variant], shapes, folder)

    def _begin(self, written: WrittenBatch) -> None:
        order = serial_order(self.task.app)
        for variant in self.task.variants:
            loop = SerialLoop(serial_app(self.task.app, variant, written.compiled, order))
            begun = begun_tables(self.task.app, variant, written.compiled, written.tables)
            for name, table in begun.items():
                functions = saved_functions(table.saved)
                restore(loop.cells, name, saved_rows(table.rows), functions)
            self._loops[variant] = loop

    # --- events ------------------------------------------------------------------------------

    @property
    def _has_streams(self) -> bool:
        return not all(event.is_log for event in self.task.app.event_types.values())

    def _events(self, written: WrittenBatch) -> Iterator[LogEvent]:
        task, compiled = self.task, written.compiled
        if not self._has_streams:
            logs = log_slices(task, compiled, written.batch)
            return (placed.event for placed in ordered_events(logs))
        sources = (s for s in compiled.program.sources if s.name not in compiled.restored)
        rows = event_rows(task.app, task.paths, task.start, task.end)
        return iter(stream_events(rows, {s.name: open_any(s, "") for s in sources}).events)

    # --- what differs ------------------------------------------------------------------------

    def _compare_states(self, written: WrittenBatch, time: int) -> None:
        """Compare the states that a batch saved, as of a time."""
        if not written.states:
            return
        for variant, loop in self._loops.items():
            states = {}
            for name in self.task.app.states:
                key = key_of(variant, name)
                if key in written.states:
                    (saved,) = open_outputs([written.states[key]])
                    batches = (batch for file in saved.files for batch in saved.batches(file))
                    states[name] = saved_cells(written.compiled.saved[key], batches)
            difference = cell_difference(loop, states, time)
            if difference is not None:
                raise difference_error(self.task.app, difference, variant=variant.label)

    def _raise(
        self, written: WrittenBatch, located: LocatedDifference | None, variant: Variant
    ) -> None:
        """Raise the error of a difference, if there is one."""
        if located is None:
            return
        difference, number = located
        event, input = (None, "") if number is None else self._event_of(written, number)
        raise difference_error(
            self.task.app,
            difference,
            number=0 if number is None else number + 1,
            event=event,
            input=input,
            at=difference.at,
            variant=variant.label,
        )

    def _event_of(self, written: WrittenBatch, number: int) -> tuple[LogEvent, str]:
        """Read an event again, and return it with its place."""
        at = number - self._before
        if self._has_streams:
            return next(islice(self._events(written), at, None)), ""
        logs = log_slices(self.task, written.compiled, written.batch)
        placed = next(islice(ordered_events(logs), at, None))
        return placed.event, row_place(logs[placed.rank].partition, placed.offset)
