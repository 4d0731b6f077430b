"""Conformance cases on Spark: many small programs in one job, a job for each cut."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from functools import partial

from pyspark.sql import SparkSession

from weir.events.batch import OPEN, Batch
from weir.io.writers import OutputForm
from weir.local.conform import Outcome, Trial
from weir.local.runner import Progress, output_schema
from weir.spark.blocks import decode
from weir.spark.progress import Tell, Watch
from weir.spark.query import arrow_batches, collected, is_output, job_frame
from weir.spark.reports import (
    ChecksumReport,
    Report,
    first_error,
    output_digest,
    read_report,
)
from weir.spark.session import default_parallelism
from weir.spark.targets import Target
from weir.spark.waves import Piece, make_job, make_piece

TASKS_A_CORE = 4


def run_trials(
    spark: SparkSession, trials: Sequence[Trial], tell: Tell | None = None
) -> list[Outcome]:
    """The outcomes of trials, in their order."""
    outcomes: dict[int, Outcome] = {}
    cuts = list(dict.fromkeys(trial.cut for trial in trials))
    jobs = None if tell is None else _Jobs(tell, len(cuts))
    with arrow_batches(spark):
        for over, cut in enumerate(cuts):
            numbers = [n for n, trial in enumerate(trials) if trial.cut == cut]
            of_job = None if jobs is None else jobs.begin(f"cut {cut or 'none'}", over)
            came = _run(spark, [trials[n] for n in numbers], cut, of_job)
            outcomes.update(zip(numbers, came, strict=True))
    return [outcomes[n] for n in range(len(trials))]


class _Jobs:
    """One progress of several jobs, one after the other. Event times of many programs together
    mean nothing."""

    def __init__(self, tell: Tell, count: int) -> None:
        self._tell, self._count = tell, count
        self._events_before = self._events = 0

    def begin(self, name: str, over: int) -> Tell:
        """The progress of the next job, when so many are over."""
        self._events_before = self._events

        def tell(progress: Progress) -> None:
            size = progress.size
            self._events = self._events_before + progress.events
            stage = f"{name} ({over + 1} of {self._count})"
            stage += f", {progress.stage}" if progress.stage else ""
            read = over * size + progress.read
            self._tell(Progress(self._events, OPEN, read, self._count * size, stage))

        return tell


def _run(
    spark: SparkSession, trials: Sequence[Trial], cut: int | None, tell: Tell | None
) -> list[Outcome]:
    pieces = [_piece(number, trial) for number, trial in enumerate(trials)]
    cores = default_parallelism(spark)
    reports: dict[int, list[Report]] = {}
    batches: dict[int, list[Batch]] = {}
    with tempfile.TemporaryDirectory(prefix="weir-conform-") as news:
        job = make_job(pieces, cut=cut, check=True, errors="report", progress=news)
        query = partial(job_frame, spark, job, cores, TASKS_A_CORE * cores)
        rows = collected(spark, query, Watch(job, news, tell).look)
    for row in rows:
        if is_output(row):
            width = len(pieces[row.input].targets[0].form.schema.columns)
            batches.setdefault(row.input, []).append(decode(row.block, width))
        else:
            report = read_report(row.block)
            reports.setdefault(report.piece, []).append(report)
    return [
        _outcome(number, reports.get(number, []), batches.get(number, []))
        for number in range(len(pieces))
    ]


def _piece(number: int, trial: Trial) -> Piece:
    form = OutputForm("", output_schema(trial.program.outputs[0]))
    target = Target("rows", number, form)
    return make_piece(trial.program, trial.partitions, [target], trial.parallelism)


def _outcome(number: int, reports: Sequence[Report], batches: Sequence[Batch]) -> Outcome:
    error = first_error(reports)
    if error is not None:
        return Outcome(error=str(error))
    checksums = {r.stream: r.checksum for r in reports if isinstance(r, ChecksumReport)}
    return Outcome(batches, str(output_digest(reports, number, 0)), checksums)
