"""Runs an app over its logs, batch by batch, and resumes where an earlier attempt stopped.

Rules
1. Small logs are one batch, which writes directly to the outputs. Larger ones are cut
   (`batch_cuts.py`): a finished batch leaves its emitted rows and its final states in `DIR/.replay`
   (`run_folder.py`), and the next batch starts with those states.
2. At the end the emitted rows of all batches are joined. Outputs are renamed to their paths when
   all of them are complete.
3. Batches, the runner and its settings do not change the outputs. So a replay may resume with
   another runner, but not with other logs, code, parameters or times.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

import msgspec

from weir.errors import PlanError
from weir.events.batch import OPEN, START
from weir.files.chunks import SourcePartition
from weir.handlers.api.app import App
from weir.plan.limits import check_numbers
from weir.plan.operators import FinalState
from weir.replay.app_logs import (
    log_marks,
    log_paths,
    logs_size,
    open_logs,
    open_sources,
    parse_time,
    warn_of_logs,
)
from weir.replay.assembled_outputs import assemble, finished_batch
from weir.replay.batch_cuts import BATCH_BYTES, LogBatch, LogCuts, RankedLog, cut_logs
from weir.replay.batch_programs import (
    BatchProgram,
    ReplayTask,
    batch_program,
    first_program,
    key_of,
)
from weir.replay.batch_runs import ReplayRunner, RunBatch, RunChoice, batch_progress, batch_runner
from weir.replay.finished_replay import FinishedReplay, what_differs
from weir.replay.loop_check import LoopCheck, WrittenBatch
from weir.replay.replay_identity import replay_parts
from weir.replay.replay_paths import check_places
from weir.replay.reports import (
    ReplayInput,
    ReplayReport,
    cut_inputs,
    run_inputs,
    variant_reports,
)
from weir.replay.run_folder import FinishedBatch, MadeFile, RunFolder, opened_folder
from weir.replay.saved_state import StateManifest, load_state, save_state, state_mark
from weir.replay.shadow_runs import ComparedEvents, Shadowing, can_be_read
from weir.replay.slices import BatchReading, batch_partitions, slices_of
from weir.replay.variants import Variant, variants_of
from weir.replay.what_if import compare_variants
from weir.runtime.reports import OnProgress

if TYPE_CHECKING:
    from weir.spark.session import RunningSession

FormatName: TypeAlias = Literal["parquet", "jsonl"]


def replay_app(
    app: App,
    *,
    logs: Mapping[str, str | os.PathLike[str]] | None = None,
    out: str | os.PathLike[str],
    format: FormatName = "parquet",
    runner: ReplayRunner = "local",
    start: int | str | None = None,
    end: int | str | None = None,
    batch: int | None = None,
    state_in: str | os.PathLike[str] | None = None,
    state_out: str | os.PathLike[str] | None = None,
    params: Mapping[str, object] | None = None,
    parallelism: int | None = None,
    cut: int | None = None,
    check: bool = False,
    shadow: int | None = None,
    fresh: bool = False,
    anew: bool = False,
    vectorise: bool = True,
    progress: OnProgress | None = None,
    spark: RunningSession | None = None,
    master: str | None = None,
    settings: Mapping[str, str] | None = None,
) -> ReplayReport:
    """Run an app over its logs, and write what it emits to `out`; see the module's rules.

    `logs` has paths by event type. Only events with start ≤ vs < end count (ticks, or ISO 8601).
    `batch` is the number of events in a batch, counted over all logs. `state_in` is a saved state
    to start from, `state_out` the folder where the final state is saved. A parameter with a list of
    values makes variants, each in a folder of its own. `shadow` is the number of first events that
    are compared with the serial loop (0: none). `fresh` discards the work of an earlier attempt
    (`anew` is its deprecated name). The runner `offline` is a Spark job, in the session `spark`, or
    in a new one with `master` and `settings`.
    """
    if anew:
        warnings.warn("`anew` is deprecated; use `fresh`", FutureWarning, stacklevel=4)
    check_numbers(cut=cut, parallelism=parallelism)
    if format not in ("parquet", "jsonl"):
        raise PlanError(f"invalid format '{format}'", hint="expected parquet or jsonl")
    if batch is not None and batch < 1:
        raise PlanError(f"invalid batch {batch}; expected at least 1 event")
    if shadow is not None and shadow < 0:
        raise PlanError(f"invalid shadow {shadow}; expected a number of events, or 0 for none")
    choice = RunChoice(runner, parallelism, cut, check, master, settings, spark)
    options = _Options(
        Path(out),
        format,
        batch,
        None if state_in is None else Path(state_in),
        None if state_out is None else Path(state_out),
    )
    task = ReplayTask(
        app,
        log_paths(app, {name: os.fspath(path) for name, path in (logs or {}).items()}),
        variants_of(app, params or {}),
        None if start is None else parse_time(start, "--from"),
        None if end is None else parse_time(end, "--to"),
        vectorise,
    )
    return _Replay(task, options, choice, progress, fresh or anew, shadow).run()


@dataclass(frozen=True, slots=True)
class _Options:
    """The options of a replay: where it reads and writes, and the size of batches."""

    out: Path
    format: str
    batch: int | None
    state_in: Path | None
    state_out: Path | None


@dataclass(slots=True)
class _Replay:
    """The state of a replay while it runs."""

    task: ReplayTask
    options: _Options
    choice: RunChoice
    progress: OnProgress | None
    fresh: bool
    shadow: int | None
    first: BatchProgram = field(init=False)
    """The program of the first batch, including the states after it."""
    begun: dict[str, str] = field(default_factory=dict)
    """The tables that the first batch starts with, by the keys of states."""
    manifest: StateManifest | None = None
    compared: ComparedEvents = field(default_factory=ComparedEvents)
    """How many events of the first batch that was run agree with the serial loop."""
    loops: LoopCheck | None = None
    """The serial loop over all events, if the outputs are compared with it."""

    def run(self) -> ReplayReport:
        folder_options = (self.options.batch, self.options.state_in, self.options.state_out)
        self.first = first_program(
            self.task, saved=any(option is not None for option in folder_options)
        )
        if not self.first.emitted and self.options.state_out is None:
            hint = "app.emit('name', field=…), or save its state with --state-out"
            raise PlanError(f"the app `{self.task.app.name}` emits nothing", hint=hint)
        if self.options.state_in is not None:
            self._begin_with(self.options.state_in)
        task = self.task
        if task.start is not None and task.end is not None and task.start >= task.end:
            raise PlanError(f"--from {task.start} is not before --to {task.end}")
        self._check_streams()
        times = open_logs(self.first.program, task.paths, only_times=True)
        warn_of_logs(times)
        own_sources = {*task.paths, *self.first.restored}
        others = [s for s in self.first.program.sources if s.name not in own_sources]
        # There is no way to know whether a DataFrame has changed.
        fresh = self.fresh or not all(source.has_origins for source in others)
        logs = [*times, *open_sources(others)]
        paths = {key: self._output_path(key) for key in self.first.emitted}
        options, saved = self.options, list(self._saved.values())
        check_places(
            self.first, paths, logs, out=options.out, state_in=options.state_in, saved=saved
        )
        with opened_folder(options.out, fresh=fresh) as folder:
            folder.begin(self._parts(logs))
            done = folder.report
            redone = None if done is None else what_differs(done, self.options.state_out)
            if done is not None and redone is None:
                return msgspec.structs.replace(done.report, again=True)
            if redone is not None:
                folder.forget_end()
            return msgspec.structs.replace(self._replay(folder, times), redone=redone or "")

    @property
    def _saved(self) -> dict[Variant, Path]:
        """The folder of each variant's saved state, if states are saved."""
        saved = self.options.state_out
        return {} if saved is None else {v: saved / v.folder for v in self.task.variants}

    @property
    def _streams(self) -> list[str]:
        """The event types whose events come from streams, not from logs."""
        return [e.name for e in self.task.app.event_types.values() if not e.is_log]

    def _check_streams(self) -> None:
        """Raise PlanError for options that need logs if events come from a stream."""
        for name in self._streams:
            if self.options.batch is not None:
                raise PlanError(
                    f"the events of `{name}` are the rows of a stream: they cannot be cut into "
                    "batches",
                    hint="leave out --batch, or write the stream to a file and give that as a log",
                )
            if self.options.state_out is not None and self.task.end is None:
                raise PlanError(f"--state-out needs --to: `{name}` is a stream, not a log")

    def _begin_with(self, saved: Path) -> None:
        """Start with a saved state: with its tables, at its time."""
        states = map(self._states_of, self.task.variants)
        self.manifest, tables = load_state(saved, self.task.app, states)
        upto, start = self.manifest.upto, self.task.start
        if upto is not None and start is not None and start < upto:
            raise PlanError(
                f"the saved state in '{saved}' has all events before {upto} already: "
                f"--from {start} would process some of them twice",
                hint=f"leave out --from, or pass {upto} or later",
            )
        self.task = replace(self.task, start=upto if start is None else start)
        self.begun = {key_of(v, n): path for v in self.task.variants for n, path in tables.items()}
        self.first = batch_program(self.task, final=True, restored=self.begun, first=self.first)

    def _parts(self, logs: Sequence[RankedLog]) -> dict[str, str]:
        task, options = self.task, self.options
        marked = {
            "--from": task.start,
            "--to": task.end,
            "--batch": options.batch,
            "--format": options.format,
            "--state-out": options.state_out,
        }
        return replay_parts(task, self.first, log_marks(logs), marked, options.state_in)

    # --- batches ---------------------------------------------------------------------------

    def _replay(self, folder: RunFolder, times: Sequence[RankedLog]) -> ReplayReport:
        cuts = self._cuts(folder, times)
        if folder.finished(0) is None:
            batch = None if cuts is None else cuts.batches[0]
            self.compared = self._shadowing.compare(self.first, self.begun, batch)
        is_one = cuts is None or len(cuts.batches) == 1
        is_checked = self.choice.check and can_be_read(self.first)
        if is_checked or (is_one and self.compared.are_all):
            self.loops = LoopCheck(self.task, self.progress)
        with batch_runner(self.choice) as run:
            if cuts is None or len(cuts.batches) == 1:
                report = self._at_once(folder, run, cuts)
            else:
                report = self._in_batches(folder, run, cuts)
        if len(self.task.variants) > 1:
            report = compare_variants(report, self.options.out)
        saved, folders = self.options.state_out, [v.folder for v in self.task.variants]
        states = {} if saved is None else {name: state_mark(saved / name) for name in folders}
        folder.finish(FinishedReplay(report, states))
        return report

    @property
    def _shadowing(self) -> Shadowing:
        return Shadowing(self.task, self.shadow)

    def _cuts(self, folder: RunFolder, times: Sequence[RankedLog]) -> LogCuts | None:
        """Return where the logs are cut; None if they are one batch and no option needs cuts."""
        options, task = self.options, self.task
        if self._streams:
            return None
        spans = (options.batch, options.state_in, options.state_out, task.start, task.end)
        small = not self.first.hands_on or logs_size(times) <= BATCH_BYTES
        if all(span is None for span in spans) and small:
            return None
        cuts = folder.cuts
        if cuts is None:
            cuts = cut_logs(
                times,
                events=options.batch if self.first.hands_on else OPEN,
                progress=self.progress,
                start=START if task.start is None else task.start,
                end=OPEN if task.end is None else task.end,
            )
            folder.keep_cuts(cuts)
        return cuts

    def _at_once(self, folder: RunFolder, run: RunBatch, cuts: LogCuts | None) -> ReplayReport:
        """Run everything as one batch that writes directly to the outputs.

        If the outputs are compared with the serial loop, write them to a folder first.
        """
        paths = {key: self._output_path(key) for key in self.first.emitted}
        is_compared = self.loops is not None
        planned = batch_program(
            self.task,
            emitted=None if is_compared else paths,
            final=self.options.state_out is not None,
            as_of=self._as_of(cuts),
            restored=self.begun,
            first=self.first,
        )
        made_in = folder.new_batch(0).absolute()
        own = (*planned.states.values(), *(planned.emitted.values() if is_compared else ()))
        in_batch = {o: replace(o, path=str(made_in / o.path)) for o in own}
        program = replace(
            planned.program, outputs=tuple(in_batch.get(o, o) for o in planned.program.outputs)
        )
        logs = open_logs(self.first.program, self.task.paths)
        parts: Sequence[SourcePartition] = [log.partition for log in logs]
        if cuts is not None:
            parts = slices_of(cuts.batches[0], logs)
        whole: dict[str, list[SourcePartition]] = {}
        for log, part in zip(logs, parts, strict=True):
            whole.setdefault(log.source.name, []).append(part)
        report = run(program, batch_partitions(planned, self.begun, whole), Path(), self.progress)
        events = report.events if cuts is None else cuts.batches[0].events
        if is_compared:
            finished = finished_batch(planned, report, made_in, events)
            batch = None if cuts is None else cuts.batches[0]
            self._check(self.first, self.begun, batch, made_in, finished, self._as_of(cuts))
            written = assemble(planned, [(made_in, finished)], self._output_path)
        else:
            outputs = {o.path: MadeFile(o.path, o.rows, o.digest) for o in report.outputs}
            written = {key: outputs[path] for key, path in paths.items()}
        self._save_states({key: made_in / o.path for key, o in planned.states.items()}, cuts)
        inputs = run_inputs(report, self.task.paths) if cuts is None else cut_inputs(logs, cuts)
        return self._report(events, 1, cuts, written, inputs)

    def _in_batches(self, folder: RunFolder, run: RunBatch, cuts: LogCuts) -> ReplayReport:
        labels = {key: output.path for key, output in self.first.states.items()}
        later = batch_program(self.task, final=True, restored=labels, first=self.first)
        states = self.task.app.states.values()
        ends = any(s.last is not None or s.expires is not None for s in states)
        logs = open_logs(self.first.program, self.task.paths)
        before, batches, is_compared = self.begun, [], False
        waiting = [b.events for n, b in enumerate(cuts.batches) if folder.finished(n) is None]
        done, size = 0, sum(waiting)
        with BatchReading(logs, cuts, self.choice) as reading:
            for number, batch in enumerate(cuts.batches):
                finished = folder.finished(number)
                if finished is not None:
                    folder.check(number, finished)
                else:
                    program = later if number else self.first
                    is_last = number == len(cuts.batches) - 1
                    as_of = self._as_of(cuts) if is_last else batch.reached
                    if ends:
                        program = batch_program(
                            self.task,
                            final=True,
                            restored=labels if number else self.begun,
                            as_of=as_of,
                            first=self.first,
                        )
                    if number and not is_compared:
                        self._shadowing.compare(later, before, batch)
                        is_compared = True
                    part = folder.new_batch(number)
                    partitions = batch_partitions(program, before, reading.partitions(number))
                    progress = batch_progress(self.progress, cuts, number, before=done, size=size)
                    report = run(program.program, partitions, part, progress)
                    finished = finished_batch(program, report, part, batch.events)
                    self._check(program, before, batch, part, finished, as_of)
                    folder.finish_batch(number, finished)
                    done += batch.events
                here = folder.batch(number).absolute()
                batches.append((here, finished))
                before = {key: str(here / file.path) for key, file in finished.states.items()}
        self._save_states({key: Path(path) for key, path in before.items()}, cuts)
        written = assemble(self.first, batches, self._output_path)
        events = sum(batch.events for batch in cuts.batches)
        return self._report(events, len(batches), cuts, written, cut_inputs(logs, cuts))

    def _check(
        self,
        program: BatchProgram,
        tables: Mapping[str, str],
        batch: LogBatch | None,
        folder: Path,
        finished: FinishedBatch,
        as_of: int | None,
    ) -> None:
        """Compare what a batch wrote to a folder with the serial loop, if that is enabled."""
        if self.loops is not None:
            emitted = {key: str(folder / file.path) for key, file in finished.emitted.items()}
            states = {key: str(folder / file.path) for key, file in finished.states.items()}
            self.loops.check(WrittenBatch(program, tables, batch, emitted, states, as_of))

    # --- the end ---------------------------------------------------------------------------

    def _output_path(self, key: str) -> str:
        return str(self.options.out / f"{key}.{self.options.format}")

    def _save_states(self, tables: Mapping[str, Path], cuts: LogCuts | None) -> None:
        upto = self._upto(cuts)
        for variant, folder in self._saved.items():
            states = self._states_of(variant)
            own = {name: tables[key_of(variant, name)] for name in states}
            save_state(folder, own, self.task.app, states, upto)

    def _states_of(self, variant: Variant) -> dict[str, FinalState]:
        """Return the states that a variant merges into, by name.

        A state whose merges are all turned off by a parameter is missing, as in a run of this
        variant alone.
        """
        keys = {name: key_of(variant, name) for name in self.task.app.states}
        return {n: self.first.saved[key] for n, key in keys.items() if key in self.first.saved}

    def _upto(self, cuts: LogCuts | None) -> int | None:
        """Return the time before which the last state has all events.

        None if there are no events, or if the time is not known.
        """
        if self.task.end is not None:
            return self.task.end
        if cuts is not None and cuts.first is not None:
            return max(batch.reached for batch in cuts.batches) + 1
        return None if self.manifest is None else self.manifest.upto  # no events since then

    def _as_of(self, cuts: LogCuts | None) -> int | None:
        """Return the time of the last state, if it is known."""
        upto = self._upto(cuts)
        return upto if upto is None or self.task.end is not None else upto - 1

    def _report(
        self,
        events: int,
        batches: int,
        cuts: LogCuts | None,
        written: Mapping[str, MadeFile],
        inputs: tuple[ReplayInput, ...],
    ) -> ReplayReport:
        first = None if cuts is None else cuts.first
        last = None if cuts is None or not events else max(b.reached for b in cuts.batches)
        return ReplayReport(
            app=self.task.app.name,
            events=events,
            batches=batches,
            first=first,
            last=last,
            inputs=inputs,
            variants=variant_reports(self.task.variants, written),
            shadow=self.compared.count if self.loops is None else self.loops.events,
            in_rows=self.first.in_rows,
        )
