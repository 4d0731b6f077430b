"""Runs conformance cases on Spark: many small programs in one job, one job for each cut."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from functools import partial

from pyspark.sql import SparkSession

from weir.conform.cases import Outcome, Trial
from weir.events.batch import Batch
from weir.files.writers import OutputForm
from weir.runtime.outputs import output_schema
from weir.runtime.reports import OnProgress
from weir.spark.offline.blocks import decode
from weir.spark.offline.progress import JobsProgress, Watch
from weir.spark.offline.query import collected, is_output, job_frame, job_settings
from weir.spark.offline.reports import (
    TaskReport,
    checksums,
    first_error,
    output_digest,
    read_task_report,
)
from weir.spark.offline.targets import Target
from weir.spark.offline.waves import Layout, make_job, make_layout
from weir.spark.session import default_parallelism

TASKS_A_CORE = 4


def run_trials(
    spark: SparkSession, trials: Sequence[Trial], progress: OnProgress | None = None
) -> list[Outcome]:
    """Run trials; return their outcomes in the same order."""
    outcomes: dict[int, Outcome] = {}
    cuts = list(dict.fromkeys(trial.cut for trial in trials))
    jobs = JobsProgress(progress, len(cuts), in_time=False)
    for cut in cuts:
        numbers = [n for n, trial in enumerate(trials) if trial.cut == cut]
        tell_of_job = jobs.begin(f"cut {cut or 'none'}")
        answers = _run(spark, [trials[n] for n in numbers], cut, tell_of_job)
        outcomes.update(zip(numbers, answers, strict=True))
    return [outcomes[n] for n in range(len(trials))]


def _run(
    spark: SparkSession, trials: Sequence[Trial], cut: int | None, progress: OnProgress | None
) -> list[Outcome]:
    layouts = [_layout(number, trial) for number, trial in enumerate(trials)]
    cores = default_parallelism(spark)
    reports: dict[int, list[TaskReport]] = {}
    batches: dict[int, list[Batch]] = {}
    with tempfile.TemporaryDirectory(prefix="weir-conform-") as news:
        job = make_job(layouts, cut=cut, check=True, errors="report", progress=news)
        query = partial(job_frame, spark, job, cores, TASKS_A_CORE * cores)
        with job_settings(spark, job):
            rows = collected(spark, query, Watch(job, news, progress))
    for row in rows:
        if is_output(row):
            width = len(layouts[row.input].targets[0].form.schema.columns)
            batches.setdefault(row.input, []).append(decode(row.block, width))
        else:
            report = read_task_report(row.block)
            reports.setdefault(report.layout, []).append(report)
    return [
        _outcome(number, reports.get(number, []), batches.get(number, []))
        for number in range(len(layouts))
    ]


def _layout(number: int, trial: Trial) -> Layout:
    form = OutputForm("", output_schema(trial.program.outputs[0]))
    target = Target("rows", number, form)
    return make_layout(trial.program, trial.partitions, [target], trial.parallelism)


def _outcome(number: int, reports: Sequence[TaskReport], batches: Sequence[Batch]) -> Outcome:
    error = first_error(reports)
    if error is not None:
        return Outcome(error=str(error))
    return Outcome(batches, str(output_digest(reports, number, 0)), checksums(reports))
