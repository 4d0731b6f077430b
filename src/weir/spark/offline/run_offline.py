"""The offline runner runs a program from files to files as one Spark job.

The contract is that of `weir.local.file_run`: outputs are checked before anything runs; they are
renamed to their paths when all of them are whole; and a failed run changes nothing at those paths.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Literal

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.utils import is_remote

from weir.files.bucket_staging import BucketStaging
from weir.files.sinks import sink_format
from weir.files.writers import OutputForm, OutputStaging, make_staging, part_name, put_all_in_place
from weir.local.second_run import other_cut, other_environment
from weir.plan.limits import MOST_VERTICES, check_numbers
from weir.plan.program import Output, Program
from weir.runtime.outputs import check_outputs, output_path, output_schema
from weir.runtime.partitions import Partitions
from weir.runtime.programs import Runnable, as_program
from weir.runtime.reports import OnProgress, RunReport, SinkTotal, run_report
from weir.runtime.topology import VertexSpec
from weir.runtime.vertices import check_same
from weir.spark.frames import all_partitions, with_frames
from weir.spark.offline.frames import frames_of
from weir.spark.offline.progress import JobsProgress, Watch
from weir.spark.offline.query import collected, job_frame, job_settings
from weir.spark.offline.reports import (
    FileReport,
    TaskReport,
    differences,
    first_error,
    output_digest,
    read_task_report,
    source_totals,
)
from weir.spark.offline.targets import Target
from weir.spark.offline.waves import Job, Layout, make_job, make_layout
from weir.spark.row_sample import rows_share_keys
from weir.spark.session import check_pandas, default_parallelism, session


@dataclass(frozen=True, slots=True)
class _Made:
    """An unfinished output: its target and its staging folder."""

    target: Target
    staging: OutputStaging


def run_offline(
    program: Runnable,
    spark: SparkSession | None = None,
    *,
    params: Mapping[str, str] | None = None,
    directory: str | Path = ".",
    cut: int | None = None,
    parallelism: int | None = None,
    check: bool = False,
    progress: OnProgress | None = None,
) -> RunReport:
    """Run a program as a Spark job: a text, a `Path` to one, a checked program, or streams with
    their targets (`stream.to("path")`).

    Without `spark`, the active session runs it, or one made for it on all cores of this machine.
    `params` override DECLAREs; relative paths start at `directory`, which all workers must see. It
    writes the same files as `weir.run`. With `check`, a second job with other cuts and other
    workers runs before outputs are renamed to their paths. If a stream then has other rows, a
    DeterminismViolation names it.
    """
    check_numbers(cut=cut, parallelism=parallelism)
    checked = as_program(program, params=params, directory=directory)
    with nullcontext(spark) if spark is not None else session() as running:
        return run_programs(
            [checked],
            running,
            directory=directory,
            cut=cut,
            parallelism=parallelism,
            check=check,
            progress=progress,
        )[0]


def run_programs(
    programs: Sequence[Program],
    spark: SparkSession,
    *,
    directory: str | Path = ".",
    cut: int | None = None,
    parallelism: int | None = None,
    tasks: int | None = None,
    check: bool = False,
    progress: OnProgress | None = None,
    partitions: Sequence[Partitions] | None = None,
) -> list[RunReport]:
    """Run several programs in one job with at most `tasks` tasks in a wave; either all succeed or
    none. `partitions`, if passed, replace the files that the programs name."""
    check_pandas()
    for program in programs:
        check_outputs(program, directory)
    start = os.path.abspath(directory)  # workers have other working directories
    cores = default_parallelism(spark)
    split = parallelism or min(cores, MOST_VERTICES)
    with ExitStack() as undo:
        layouts, staged_outputs = [], []
        for at, program in enumerate(programs):
            outputs = [_staged(n, output, start, undo) for n, output in enumerate(program.outputs)]
            if partitions is None:
                opened = all_partitions(program, directory)
            else:
                opened = with_frames(program, partitions[at])
            targets = [m.target for m in outputs]
            pays = partial(rows_share_keys, partitions=opened)
            layouts.append(
                make_layout(
                    program=program,
                    partitions=opened,
                    targets=targets,
                    parallelism=split,
                    pays=pays,
                )
            )
            staged_outputs.append(outputs)
        frames = {
            path: frame
            for program, layout in zip(programs, layouts, strict=True)
            for path, frame in frames_of(program, layout.partitions).items()
        }

        staged = [one.staging for outputs in staged_outputs for one in outputs]
        shared = next((s for s in staged if not isinstance(s, BucketStaging)), None)
        new_folder = partial(tempfile.mkdtemp, dir=(shared or staged[0]).folder)
        traces = None
        if check and shared is None and not is_local(spark):
            beside = next(s.beside for s in staged if isinstance(s, BucketStaging))
            traces = f"{beside}traces"
        elif check:
            traces = new_folder()

        def reports_of(
            cut: int | None, progress: OnProgress | None, *, compare: bool = False
        ) -> list[list[TaskReport]]:
            with _block_folder(spark) as blocks:
                job = make_job(
                    layouts,
                    cut=cut,
                    errors="end",
                    progress=new_folder(),
                    traces=traces,
                    compare=compare,
                    blocks=blocks,
                )
                query = partial(job_frame, spark, job, cores, tasks=tasks, frames=frames)
                return _run_job(spark, job, query, progress)

        if check:
            jobs = JobsProgress(progress, 2, in_time=True)
            reports = reports_of(cut, jobs.begin("run"))
            with _other_workers(spark):
                again = reports_of(other_cut(cut), jobs.begin("run"), compare=True)
            for layout, reports_of_layout in zip(layouts, again, strict=True):
                check_same(layout.plan, layout.topology, differences(reports_of_layout))
        else:
            reports = reports_of(cut, progress)
        digests = [
            [
                output_digest(reports_of_layout, at, number)
                for number in range(len(staged_outputs[at]))
            ]
            for at, reports_of_layout in enumerate(reports)
        ]
        for at, outputs in enumerate(staged_outputs):
            for number, one in enumerate(outputs):
                path = _finished(layouts[at].topology.sinks[number], one, layouts[at], reports[at])
                one.staging.finish(path, one.target.form.sidecar(digests[at][number]))
        put_all_in_place(staged)
    return [
        run_report(
            directory,
            source_totals(layouts[at], reports[at]),
            map(SinkTotal, program.outputs, digests[at]),
        )
        for at, program in enumerate(programs)
    ]


def is_local(spark: SparkSession) -> bool:
    """Tell whether all tasks run on this machine."""
    return not is_remote() and str(spark.sparkContext.master).startswith("local")


@contextmanager
def _block_folder(spark: SparkSession) -> Iterator[str | None]:
    """Create a folder for the blocks of a job, beside Spark's own files; yield None if tasks run,
    or may run, on other machines (`local-cluster`)."""
    if not is_local(spark) or str(spark.sparkContext.master).startswith("local-cluster"):
        yield None
        return
    settings = spark.sparkContext.getConf()
    folders = os.environ.get("SPARK_LOCAL_DIRS") or settings.get("spark.local.dir") or ""
    beside = folders.split(",")[0] or None
    with tempfile.TemporaryDirectory(prefix="weir-blocks-", dir=beside) as folder:
        yield folder


@contextmanager
def _other_workers(spark: SparkSession) -> Iterator[None]:
    """Let Spark start new Python workers, with another environment, while the block runs. A Spark
    Connect server may not follow this."""
    if is_remote():
        yield
        return
    environment = spark.sparkContext.environment
    before = dict(environment)
    environment.update(other_environment(before))
    try:
        yield
    finally:
        environment.clear()
        environment.update(before)


def _run_job(
    spark: SparkSession, job: Job, query: Callable[[], DataFrame], progress: OnProgress | None
) -> list[list[TaskReport]]:
    """Run a job; return the reports of each of its programs."""
    assert job.progress is not None
    with job_settings(spark, job):
        rows = collected(spark, query, Watch(job, job.progress, progress))
    reports: list[list[TaskReport]] = [[] for _ in job.layouts]
    for report in (read_task_report(row.block) for row in rows):
        reports[report.layout].append(report)
    error = first_error(chain.from_iterable(reports))
    if error is not None:
        raise error
    return reports


def _staged(number: int, output: Output, start: str, undo: ExitStack) -> _Made:
    path = output_path(output, start)
    form = OutputForm(sink_format(path), output_schema(output), output.kind != "bad")
    staging = make_staging(path)
    undo.callback(staging.remove)
    if isinstance(staging, BucketStaging):
        return _Made(Target("file", number, form, staging.use_beside()), staging)
    os.mkdir(folder := os.path.join(staging.folder, "files"))
    kind: Literal["file", "folder"] = "folder" if path.endswith("/") else "file"
    return _Made(Target(kind, number, form, folder), staging)


def _finished(
    sink: VertexSpec, output: _Made, layout: Layout, reports: Sequence[TaskReport]
) -> str:
    """Return the path of the finished output, a file or a folder of parts. What no task wrote is
    empty."""
    written = [r for r in reports if isinstance(r, FileReport) and r.sink == sink.stage]
    if output.target.kind == "file":
        return written[0].path if written else _empty(output.target)
    files = {(r.part, r.task): r.path for r in written}
    for part, stream in enumerate(sink.inputs):
        is_open = layout.topology.writer_of(stream).stage in layout.open_stages
        if not is_open and (part, 0) not in files:
            files[part, 0] = _empty(output.target)
    folder = os.path.join(output.staging.folder, "output")
    os.mkdir(folder)
    for number, (_, path) in enumerate(sorted(files.items())):
        os.replace(path, os.path.join(folder, part_name(number)))
    return folder


def _empty(target: Target) -> str:
    return target.write(iter(()))
