"""Conformance cases on Spark: many small programs in one job, a job for each cut."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import SparkSession

from weir.events.batch import Batch
from weir.io.writers import OutputForm
from weir.local.conform import Outcome, Trial
from weir.local.runner import output_schema
from weir.spark.blocks import decode
from weir.spark.query import collected, is_output, job_frame, job_settings
from weir.spark.reports import (
    ChecksumReport,
    ErrorReport,
    Report,
    output_digest,
    read_report,
    unpacked,
)
from weir.spark.session import default_parallelism
from weir.spark.targets import Target
from weir.spark.waves import Piece, make_job, make_piece

TASKS_A_CORE = 4


def run_trials(spark: SparkSession, trials: Sequence[Trial]) -> list[Outcome]:
    """The outcomes of trials, in their order."""
    outcomes: dict[int, Outcome] = {}
    for cut in dict.fromkeys(trial.cut for trial in trials):
        numbers = [n for n, trial in enumerate(trials) if trial.cut == cut]
        came = _run(spark, [trials[n] for n in numbers], cut)
        outcomes.update(zip(numbers, came, strict=True))
    return [outcomes[n] for n in range(len(trials))]


def _run(spark: SparkSession, trials: Sequence[Trial], cut: int | None) -> list[Outcome]:
    pieces = [_piece(number, trial) for number, trial in enumerate(trials)]
    job = make_job(pieces, cut=cut, check=True, errors="report")
    cores = default_parallelism(spark)
    reports: dict[int, list[Report]] = {}
    batches: dict[int, list[Batch]] = {}
    with job_settings(spark, job):
        rows = collected(job_frame(spark, job, cores, TASKS_A_CORE * cores), job)
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
    errors = [r for r in reports if isinstance(r, ErrorReport)]
    if errors:
        return Outcome(error=str(unpacked(errors[0].error)))
    checksums = {r.stream: r.checksum for r in reports if isinstance(r, ChecksumReport)}
    return Outcome(batches, str(output_digest(reports, number, 0)), checksums)
