"""The offline runner: a program from files to files as one Spark job.

The contract is that of `weir.local.files`: outputs are checked before anything runs, all of them
are put in their places when all are whole, and a run that fails leaves what stood there before.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pyspark.sql import SparkSession

from weir.io.sinks import sink_format
from weir.io.writers import OutputForm, Staging, part_name
from weir.local.files import (
    InputReport,
    OutputReport,
    RunReport,
    check_outputs,
    open_partitions,
    output_path,
)
from weir.local.runner import output_schema
from weir.plan.nodes import Output, Program
from weir.spark.frames import frame_partitions, frames_of
from weir.spark.progress import News, read_news
from weir.spark.query import arrow_batches, collected, job_frame
from weir.spark.reports import FileReport, Report, SourceReport, output_digest, read_report
from weir.spark.session import default_parallelism
from weir.spark.targets import Target
from weir.spark.waves import Job, Piece, make_job, make_piece, stages_of_sink

POLL_SECONDS = 0.5

Tell = Callable[[Job, Sequence[News]], None]


@dataclass(frozen=True, slots=True)
class _Made:
    """An output being made: its target and its staging folder."""

    output: Output
    target: Target
    staging: Staging


def run_offline(
    program: Program,
    spark: SparkSession,
    *,
    directory: str | Path = ".",
    cut: int | None = None,
    parallelism: int | None = None,
    tell: Tell | None = None,
) -> RunReport:
    """Run a program on Spark; relative paths start at `directory`, which all workers must see."""
    return run_programs(
        [program], spark, directory=directory, cut=cut, parallelism=parallelism, tell=tell
    )[0]


def run_programs(
    programs: Sequence[Program],
    spark: SparkSession,
    *,
    directory: str | Path = ".",
    cut: int | None = None,
    parallelism: int | None = None,
    tasks: int | None = None,
    tell: Tell | None = None,
) -> list[RunReport]:
    """Several programs in one job of at most `tasks` tasks a wave; all succeed, or none does."""
    for program in programs:
        check_outputs(program, directory)
    # Workers have other working directories.
    start = os.path.abspath(directory)
    vertices = parallelism or default_parallelism(spark)
    with ExitStack() as undo:
        pieces, made = [], []
        for program in programs:
            outputs = [_staged(n, output, start, undo) for n, output in enumerate(program.outputs)]
            partitions = dict(open_partitions(program, start)) | frame_partitions(program)
            pieces.append(make_piece(program, partitions, [m.target for m in outputs], vertices))
            made.append(outputs)
        news = tempfile.mkdtemp(prefix="weir-progress-")
        undo.callback(shutil.rmtree, news)
        job = make_job(pieces, cut=cut, progress=news)
        with arrow_batches(spark), _telling(job, news, tell):
            frames = {name: frame for p in programs for name, frame in frames_of(p).items()}
            rows = collected(job_frame(spark, job, tasks, frames))
        reports: list[list[Report]] = [[] for _ in pieces]
        for report in (read_report(row.block) for row in rows):
            reports[report.piece].append(report)
        finished = [
            (one.staging, _finished(number, one, piece, told))
            for outputs, piece, told in zip(made, pieces, reports, strict=True)
            for number, one in enumerate(outputs)
        ]
        for staging, path in finished:
            staging.put_in_place(path)
    return [
        _run_report(number, program, directory, piece, told)
        for number, (program, piece, told) in enumerate(zip(programs, pieces, reports, strict=True))
    ]


def _staged(number: int, output: Output, start: str, undo: ExitStack) -> _Made:
    path = output_path(output, start)
    form = OutputForm(sink_format(path), output_schema(output), output.kind != "bad")
    staging = Staging(path)
    undo.callback(staging.remove)
    os.mkdir(folder := os.path.join(staging.folder, "files"))
    kind: Literal["file", "folder"] = "folder" if path.endswith("/") else "file"
    return _Made(output, Target(kind, number, form, folder), staging)


def _finished(number: int, made: _Made, piece: Piece, reports: Sequence[Report]) -> str:
    """The output's file, or its folder of parts, whole; what no task wrote is empty."""
    found = [r for r in reports if isinstance(r, FileReport) and r.sink == number]
    if made.target.kind == "file":
        return found[0].path if found else _empty(made.target)
    files = {(r.stage, r.vertex): r.path for r in found}
    folder = os.path.join(made.staging.folder, "output")
    os.mkdir(folder)
    parts = []
    for stage in stages_of_sink(piece.plan, piece.plan.sinks[number]):
        wrote = sorted(vertex for writer, vertex in files if writer == stage)
        parts += [(stage, vertex) for vertex in range(piece.counts[stage]) or wrote]
    for part, writer in enumerate(parts):
        path = files[writer] if writer in files else _empty(made.target)
        os.replace(path, os.path.join(folder, part_name(part)))
    return folder


def _empty(target: Target) -> str:
    path = target.new_path()
    target.form.write(path, iter(()))
    return path


def _run_report(
    at: int, program: Program, directory: str | Path, piece: Piece, reports: Sequence[Report]
) -> RunReport:
    read = [r for r in reports if isinstance(r, SourceReport)]
    inputs = tuple(
        InputReport(
            name,
            len(partitions),
            sum(r.late for r in read if r.source == name),
            sum(r.bad for r in read if r.source == name),
        )
        for name, partitions in piece.partitions.items()
    )
    outputs = []
    for number, output in enumerate(program.outputs):
        digest = output_digest(reports, at, number)
        path = str(Path(directory) / output.path)
        outputs.append(OutputReport(output.name, output.kind, path, digest.count, str(digest)))
    return RunReport(sum(r.events for r in read), inputs, tuple(outputs))


@contextmanager
def _telling(job: Job, folder: str, tell: Tell | None) -> Iterator[None]:
    """Hand on the news of tasks meanwhile."""
    if tell is None:
        yield
        return
    over = threading.Event()

    def poll() -> None:
        while not over.wait(POLL_SECONDS):
            tell(job, list(read_news(folder)))

    thread = threading.Thread(target=poll, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
