"""`weir.run_live`: a program run continuously on Spark, from Python."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession

from weir.errors import PlanError
from weir.events.batch import START, Batch
from weir.files.writers import OutputForm
from weir.job.settings import ManagerSettings
from weir.job.status import JobStatus
from weir.plan.limits import check_numbers
from weir.plan.program import Output, Program
from weir.plan.settings import with_settings
from weir.runtime.instance_factory import EmitRows
from weir.runtime.outputs import output_schema
from weir.runtime.programs import Runnable, as_program
from weir.runtime.reports import OnProgress, Progress, RunReport
from weir.spark.live.host_tasks import live_master, live_settings
from weir.spark.live.job_setup import ResumeChoice, prepare_live
from weir.spark.live.live_run import check_callbacks
from weir.spark.live.live_settings import GRACE, LiveSettings, grace_seconds
from weir.spark.live.tls import read_tls
from weir.spark.session import is_submitted, session

NOTICED = 2.0
"""Seconds: a longer step of a vertex is part of the progress that is shown."""
Callback = Callable[[int, int, pa.RecordBatch], None]
"""Is called with (partition, number of the first row, rows) of an output."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveProgress(Progress):
    """Says how far a live job is, with its whole status."""

    status: JobStatus


def run_live(
    program: Runnable,
    store: str | Path,
    spark: SparkSession | None = None,
    *,
    params: Mapping[str, str] | None = None,
    directory: str | Path = ".",
    cut: int | None = None,
    parallelism: int | None = None,
    resume: ResumeChoice = False,
    accept_code_changes: bool = False,
    hosts: int = 2,
    callbacks: Mapping[str, Callback] | None = None,
    progress: OnProgress | None = None,
    stop: Callable[[], bool] | None = None,
    tls: tuple[str | Path, str | Path] | tuple[str | Path, str | Path, str | Path] | None = None,
    grace: str = GRACE,
    check: bool = False,
    shadow: int | None = None,
    settings: Mapping[str, str] | None = None,
) -> RunReport | None:
    """Run a program continuously until its inputs end: a text, a `Path` to one, a checked program,
    or streams with their targets (`stream.to("path")`).

    Returns None if the job was stopped (by Ctrl-C, by SIGTERM, or because `stop` returned True).
    With `resume`, a later call continues from the `store`, which is a folder or a bucket's URL;
    "auto" resumes a job if there is one, and otherwise starts it. If functions that the program
    calls have changed since, that is a PlanError unless `accept_code_changes`. The last checkpoint
    may take as long as `grace`; a second signal does not wait for it. The report of a job that had
    finished before has outputs, but no inputs or events.

    Without `spark`, the job runs on the active session, or on a new one with a task slot for each
    of the `hosts` and one more. `callbacks` has a function for each OUTPUT … TO 'callback:', by the
    stream's name. The hosts call it as rows come, with (partition, number of the first row, rows as
    a record batch), at least once for all rows. `progress` is called in this process from time to
    time, with a `LiveProgress`. `tls` has the files of a certificate and its key, and of the
    authority unless the certificate is self-signed. `settings` overrides the program's SETs:
    `{"flush_interval": "100ms"}`. `params`, `directory`, `cut` and `parallelism` are as in
    `weir.run`. The default of `parallelism` is the number of hosts; a resumed job keeps its own.

    With `check`, the program runs twice more over the same inputs, which must end by themselves,
    before the outputs are renamed to their paths; other rows are a DeterminismViolation. Before
    anything is committed, an app is compared with the serial loop over its first `shadow` events
    (0: not at all).
    """
    check_numbers(cut=cut, parallelism=parallelism, hosts=hosts)
    checked = as_program(program, params=params, directory=directory)
    checked = with_settings(checked, settings or {})
    emits = _emits(checked, callbacks or {})
    check_callbacks(checked, emits)
    how = LiveSettings(
        hosts=hosts,
        manager=ManagerSettings(stop_limit=grace_seconds(grace)),
        check=check,
        tls=None if tls is None else read_tls(*tls),
        shadow=shadow,
    )
    live = prepare_live(
        checked,
        str(store),
        directory=directory,
        parallelism=parallelism,
        cut=cut,
        resume=resume,
        accept_code_changes=accept_code_changes,
        how=how,
    )
    if live.ledger.finished:
        return live.finish(watching(progress))
    master = None if is_submitted() else live_master(hosts)
    own = nullcontext(spark) if spark is not None else session(master, live_settings(master, {}))
    with own as running:
        return live.run(running, callbacks=emits, watch=watching(progress), stop=stop)


def watching(progress: OnProgress | None) -> Callable[[JobStatus], None] | None:
    """Make a function that passes a live job's status on as progress, as every runner does; its
    stage says which vertex keeps its host busy for `NOTICED` seconds or longer."""
    if progress is None:
        return None

    def watch(status: JobStatus) -> None:
        stage = status.trouble or "; ".join(status.preparing) or status.state
        if status.recoveries:
            stage += f", {status.recoveries} recovered"
        busy = max(status.vertices, key=lambda v: v.step_seconds or 0.0, default=None)
        if busy is not None and (busy.step_seconds or 0.0) >= NOTICED:
            stage += f", {busy.id} at one step for {busy.step_seconds:.0f} s"
        reached = START if status.reached is None else status.reached
        progress(LiveProgress(status.events, reached, stage=stage, status=status))

    return watch


def _emits(program: Program, callbacks: Mapping[str, Callback]) -> dict[str, EmitRows]:
    outputs = {o.name: o for o in program.outputs if o.path == "callback:"}
    for name in callbacks:
        if name not in outputs:
            hint = f"add OUTPUT {name} TO 'callback:';"
            raise PlanError(f"there is no output for the callback of {name}", hint=hint)
    return {name: _emit(outputs[name], callback) for name, callback in callbacks.items()}


def _emit(output: Output, callback: Callback) -> EmitRows:
    form = OutputForm("", output_schema(output), output.kind != "bad")

    def emit(partition: int, seq: int, rows: Batch) -> None:
        callback(partition, seq, form.record(rows))

    return emit
