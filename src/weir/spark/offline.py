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
from weir.reliable.digest import Digest
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
    check_outputs(program)
    # Workers have other working directories.
    start = os.path.abspath(directory)
    partitions = open_partitions(program, start)
    with ExitStack() as undo:
        made = [_staged(n, output, start, undo) for n, output in enumerate(program.outputs)]
        vertices = parallelism or default_parallelism(spark)
        piece = make_piece(program, partitions, [m.target for m in made], vertices)
        news = tempfile.mkdtemp(prefix="weir-progress-")
        undo.callback(shutil.rmtree, news)
        job = make_job([piece], cut=cut, progress=news)
        with arrow_batches(spark), _telling(job, news, tell):
            rows = collected(job_frame(spark, job))
        reports = [read_report(row.block) for row in rows]
        finished = [_finished(number, m, piece, reports) for number, m in enumerate(made)]
        digests = [output_digest(reports, 0, number) for number in range(len(made))]
        for m, path, digest in zip(made, finished, digests, strict=True):
            m.staging.put_in_place(path, m.target.form.sidecar(digest))
    return _run_report(program, directory, piece, reports, digests)


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
    files = {r.part: r.path for r in reports if isinstance(r, FileReport) and r.sink == number}
    if made.target.kind == "file":
        return files[0] if 0 in files else _empty(made.target)
    folder = os.path.join(made.staging.folder, "output")
    os.mkdir(folder)
    writers = stages_of_sink(piece.plan, piece.plan.sinks[number])
    for part in range(sum(piece.counts[s] for s in writers)):
        path = files[part] if part in files else _empty(made.target)
        os.replace(path, os.path.join(folder, part_name(part)))
    return folder


def _empty(target: Target) -> str:
    path = target.new_path()
    target.form.write(path, iter(()))
    return path


def _run_report(
    program: Program,
    directory: str | Path,
    piece: Piece,
    reports: Sequence[Report],
    digests: Sequence[Digest],
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
    outputs = tuple(
        OutputReport(o.name, o.kind, str(Path(directory) / o.path), digest.count, str(digest))
        for o, digest in zip(program.outputs, digests, strict=True)
    )
    return RunReport(sum(r.events for r in read), inputs, outputs)


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
