"""Runs the program of a batch on the chosen runner."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias

from weir.errors import PlanError
from weir.local.file_run import run_files
from weir.plan.program import Program
from weir.replay.batch_cuts import LogCuts
from weir.runtime.partitions import Partitions
from weir.runtime.reports import OnProgress, Progress, RunReport

if TYPE_CHECKING:
    from weir.spark.session import RunningSession

ReplayRunner: TypeAlias = Literal["local", "offline"]
RUNNERS = ("local", "offline")


@dataclass(frozen=True, slots=True)
class RunChoice:
    """How batches are run; it does not affect results."""

    runner: ReplayRunner = "local"
    parallelism: int | None = None
    cut: int | None = None
    check: bool = False
    master: str | None = None
    settings: Mapping[str, str] | None = None
    spark: RunningSession | None = None


class RunBatch(Protocol):
    """Runs a program over partitions; relative paths of outputs start at `directory`."""

    def __call__(
        self,
        program: Program,
        partitions: Partitions,
        directory: Path,
        progress: OnProgress | None,
    ) -> RunReport: ...


@contextmanager
def batch_runner(choice: RunChoice) -> Iterator[RunBatch]:
    """Yield a function that runs batches; all of them share one Spark session."""
    if choice.runner not in RUNNERS:
        hint = "expected local or offline; weir run … --runner live follows logs"
        raise PlanError(f"invalid runner '{choice.runner}'", hint=hint)
    if choice.runner == "local":
        yield _local(choice)
        return
    from weir.spark.session import session  # loads Spark only when it is used

    if choice.spark is not None:
        yield _offline(choice, choice.spark)
        return
    with session(choice.master, choice.settings or {}) as spark:
        yield _offline(choice, spark)


def _local(choice: RunChoice) -> RunBatch:
    def run(
        program: Program, partitions: Partitions, directory: Path, progress: OnProgress | None
    ) -> RunReport:
        return run_files(
            program,
            directory=directory,
            cut=choice.cut,
            parallelism=choice.parallelism or 1,
            check=choice.check,
            progress=progress,
            partitions=partitions,
        )

    return run


def _offline(choice: RunChoice, spark: RunningSession) -> RunBatch:
    from weir.spark.offline.run_offline import run_programs

    def run(
        program: Program, partitions: Partitions, directory: Path, progress: OnProgress | None
    ) -> RunReport:
        return run_programs(
            [program],
            spark,
            directory=directory,
            cut=choice.cut,
            parallelism=choice.parallelism,
            check=choice.check,
            progress=progress,
            partitions=[partitions],
        )[0]

    return run


def batch_progress(
    progress: OnProgress | None, cuts: LogCuts, number: int, *, before: int, size: int
) -> OnProgress | None:
    """Return a function that reports a batch's progress.

    `before` of the `size` events were processed in earlier batches.
    """
    if progress is None:
        return None
    where = f"batch {number + 1} of {len(cuts.batches)}"

    def report(inner: Progress) -> None:
        stage = f"{where}, {inner.stage}" if inner.stage else where
        # The rows of restored states are not events.
        events = before + min(inner.events, cuts.batches[number].events)
        reached = min(inner.reached, cuts.batches[number].reached)
        progress(Progress(events, reached, events, size, stage))

    return report
