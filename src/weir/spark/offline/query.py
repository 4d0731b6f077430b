"""Makes one Spark query of a job: waves of tasks with exchanges between them.

It uses public DataFrame operations only, those that Spark Connect has too.

The query runs in a thread of its own. So Ctrl-C, or the news that a task has failed permanently,
finds the calling thread between two looks and never inside a call to Spark: such a call cannot be
interrupted without losing the connection that it uses.
"""

from __future__ import annotations

import heapq
import re
import secrets
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import reduce
from typing import TypeVar

from py4j.protocol import Py4JError, Py4JNetworkError
from pyspark import InheritableThread
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from weir.errors import RunError
from weir.spark.offline.blocks import COLLECTED, ROWS, BlockRow
from weir.spark.offline.progress import Watch
from weir.spark.offline.tasks import FrameTask, SourceTask, WaveTask, frame_path, partition_of
from weir.spark.offline.waves import Job
from weir.spark.session import ARROW_BATCHES, PLANNED_ONCE, first_lines

LOOK_SECONDS = 0.5
END_SECONDS = 10.0
"""How long an action may take to end after it was cancelled."""
TASK_BYTES = 128 << 20
"""A task of a source reads files of about this size, if it has several."""
_OWN_ERROR = re.compile(r"weir\.errors\.\w+: (.+)")
WORKER_DIED = "Python worker exited unexpectedly"
"""Spark's message when that happens."""

T = TypeVar("T")


def job_frame(
    spark: SparkSession,
    job: Job,
    cores: int,
    tasks: int | None = None,
    frames: Mapping[str, DataFrame] | None = None,
) -> DataFrame:
    """Make the query of a job: its rows are reports, and rows of outputs asked for in memory.

    `cores` are those that Spark has. `tasks` is the most tasks that a wave may have; else each
    vertex is one. `frames` are the DataFrames that it reads, by their sources' paths.
    """
    flow: DataFrame | None = None
    for wave in range(len(job.waves) + 1):
        if wave:
            assert flow is not None
            count = _tasks(len(job.waves[wave - 1]), tasks)
            arrived = flow.repartitionById(count, f.col("partition"))
            arrived = arrived.sortWithinPartitions("partition", "first_vs")
            flow = arrived.mapInArrow(WaveTask(job, wave), ROWS)
        parts = [] if flow is None else [flow]
        if job.sources[wave]:
            shares = source_shares(
                [partition_of(job, group).size for group in job.sources[wave]], cores, tasks
            )
            numbers = spark.range(0, len(shares), 1, len(shares))
            parts.append(numbers.mapInArrow(SourceTask(job, wave, shares), ROWS))
        for group in job.frames[wave]:
            frame = (frames or {})[frame_path(job, group)]
            parts.append(frame.mapInArrow(FrameTask(job, wave, group), ROWS))
        flow = reduce(DataFrame.unionAll, parts)
    assert flow is not None
    return flow


def source_shares(
    sizes: Sequence[int], cores: int, most: int | None = None
) -> tuple[tuple[int, ...], ...]:
    """Return, for each of at most so many tasks that read sources, the numbers of its partitions:
    about as many bytes for each. Small files share a task, since to begin one takes longer than to
    read them.

    >>> source_shares([5, 5, 90, 70], 2)
    ((2,), (3, 0, 1))
    """
    tasks = cores * max(1, -(-sum(sizes) // (cores * TASK_BYTES)))
    count = _tasks(min(len(sizes), tasks), most)
    shares: list[tuple[int, int, list[int]]] = [(0, task, []) for task in range(count)]
    # The largest first, each to the task that has least.
    for number in sorted(range(len(sizes)), key=lambda n: -sizes[n]):
        held, task, mine = heapq.heappop(shares)
        heapq.heappush(shares, (held + sizes[number], task, [*mine, number]))
    return tuple(tuple(mine) for _, _, mine in sorted(shares, key=lambda share: share[1]))


def _tasks(vertices: int, most: int | None) -> int:
    return max(1, vertices if most is None else min(vertices, most))


@contextmanager
def job_settings(spark: SparkSession, job: Job) -> Iterator[None]:
    """Set Spark up for the job meanwhile: it hands batches of the right size to tasks, and does not
    plan again after each wave, unless the job reads DataFrames, whose own plans may gain."""
    settings = ARROW_BATCHES if any(job.frames) else ARROW_BATCHES | PLANNED_ONCE
    before = {key: spark.conf.get(key) for key in settings}  # Spark has a default for each
    for key, value in settings.items():
        spark.conf.set(key, value)
    try:
        yield
    finally:
        for key, old in before.items():
            spark.conf.set(key, old or "")


@contextmanager
def clean_failures(watch: Watch) -> Iterator[None]:
    """Turn failures of Spark into errors of one line."""
    try:
        yield
    except (Py4JNetworkError, ConnectionError) as error:
        raise RunError(f"Spark's own process is gone: {error}") from error
    except (Py4JError, PySparkException) as error:
        if WORKER_DIED in str(error):
            raise RunError(
                f"a Python worker died while it ran {watch.running()}: does a function leave its "
                "process, or take too much memory?"
            ) from error
        if isinstance(error, Py4JError):
            raise RunError(f"Spark failed: {first_lines(error)}") from error
        lines = [line for line in str(error).splitlines() if line.strip()]
        last = lines[-1].strip('" ') if lines else repr(error)
        own = _OWN_ERROR.match(last)  # a program's file that cannot be run in a worker
        raise RunError(own[1] if own else f"Spark failed: {last}") from error


def collected(spark: SparkSession, query: Callable[[], DataFrame], watch: Watch) -> list[BlockRow]:
    """Run the query of a job, watched, and return its rows, which are few."""
    with clean_failures(watch):
        rows = run_action(spark, lambda: query().collect(), watch.look)
    return [BlockRow(r.partition, r.input, r.first_vs, bytes(r.block)) for r in rows]


def is_output(row: BlockRow) -> bool:
    """Say whether a row carries rows of an output that were asked for in memory."""
    return row.partition == COLLECTED


def run_action(spark: SparkSession, action: Callable[[], T], look: Callable[[], None]) -> T:
    """Run the action and return its result. `look` is called now and then meanwhile, and at the
    end; what it raises, or Ctrl-C, ends the action's jobs and is raised here."""
    tag = f"weir-{secrets.token_hex(8)}"
    over = threading.Event()
    results: list[T] = []
    errors: list[BaseException] = []

    def act() -> None:
        try:
            spark.addTag(tag)
            results.append(action())
        except BaseException as error:
            errors.append(error)  # raised below, where the caller is
        finally:
            over.set()

    InheritableThread(act, session=spark, daemon=True).start()
    try:
        while not over.wait(LOOK_SECONDS):
            look()
    except BaseException:
        spark.interruptTag(tag)
        over.wait(END_SECONDS)
        raise
    if errors:
        raise errors[0]
    look()  # what a short action did, too
    return results[0]
