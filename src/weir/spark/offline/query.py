"""Turns a job into one Spark query: waves of tasks with exchanges between them.

It uses only public DataFrame operations that Spark Connect has too.

The query runs in its own thread. So Ctrl-C, or the news of a permanently failed task, never
interrupts a call to Spark, which would lose the connection of that call: the calling thread only
looks at the news from time to time.
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
"""How long an action may take to end after it was cancelled, in seconds."""
TASK_BYTES = 128 << 20
"""If a source has several files, each of its tasks reads about this many bytes."""
_OWN_ERROR = re.compile(r"weir\.errors\.\w+: (.+)")
WORKER_DIED = "Python worker exited unexpectedly"
"""Spark's message when a Python worker dies."""

T = TypeVar("T")


def job_frame(
    spark: SparkSession,
    job: Job,
    cores: int,
    tasks: int | None = None,
    frames: Mapping[str, DataFrame] | None = None,
) -> DataFrame:
    """Make the query of a job. Its rows are reports, and rows of outputs that are collected in
    memory.

    `cores` is the number of Spark's cores. `tasks` is the largest number of tasks in a wave;
    without it, each vertex is a task. `frames` are the DataFrames that the job reads, by their
    sources' paths.
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
    """Return the partitions that each task reads, with about as many bytes for each, in at most
    `most` tasks. Small files share a task, because starting a task takes longer than reading them.

    >>> source_shares([5, 5, 90, 70], 2)
    ((2,), (3, 0, 1))
    """
    tasks = cores * max(1, -(-sum(sizes) // (cores * TASK_BYTES)))
    count = _tasks(min(len(sizes), tasks), most)
    shares: list[tuple[int, int, list[int]]] = [(0, task, []) for task in range(count)]
    # The largest first, each to the task with the fewest bytes.
    for number in sorted(range(len(sizes)), key=lambda n: -sizes[n]):
        held, task, mine = heapq.heappop(shares)
        heapq.heappush(shares, (held + sizes[number], task, [*mine, number]))
    return tuple(tuple(mine) for _, _, mine in sorted(shares, key=lambda share: share[1]))


def _tasks(vertices: int, most: int | None) -> int:
    return max(1, vertices if most is None else min(vertices, most))


@contextmanager
def job_settings(spark: SparkSession, job: Job) -> Iterator[None]:
    """Set Spark's options for the job while the block runs: batches of the right size, and no new
    plan after each wave, except for jobs with DataFrames, whose own plans may gain."""
    settings = ARROW_BATCHES if any(job.frames) else ARROW_BATCHES | PLANNED_ONCE
    before = {key: spark.conf.get(key) for key in settings}  # each has a default in Spark
    for key, value in settings.items():
        spark.conf.set(key, value)
    try:
        yield
    finally:
        for key, old in before.items():
            spark.conf.set(key, old or "")


@contextmanager
def clean_failures(watch: Watch) -> Iterator[None]:
    """Turn Spark's failures into errors of one line."""
    try:
        yield
    except (Py4JNetworkError, ConnectionError) as error:
        raise RunError(f"Spark's own process is gone: {error}") from error
    except (Py4JError, PySparkException) as error:
        if WORKER_DIED in str(error):
            raise RunError(
                f"a Python worker died while it ran {watch.running()}: does a function end its "
                "process, or use too much memory?"
            ) from error
        if isinstance(error, Py4JError):
            raise RunError(f"Spark failed: {first_lines(error)}") from error
        lines = [line for line in str(error).splitlines() if line.strip()]
        last = lines[-1].strip('" ') if lines else repr(error)
        own = _OWN_ERROR.match(last)  # a program's file that does not run in a worker
        raise RunError(own[1] if own else f"Spark failed: {last}") from error


def collected(spark: SparkSession, query: Callable[[], DataFrame], watch: Watch) -> list[BlockRow]:
    """Run the query of a job, watch it, and return its few rows."""
    with clean_failures(watch):
        rows = run_action(spark, lambda: query().collect(), watch.look)
    return [BlockRow(r.partition, r.input, r.first_vs, bytes(r.block)) for r in rows]


def is_output(row: BlockRow) -> bool:
    """Tell whether a row carries rows of an output that is collected in memory."""
    return row.partition == COLLECTED


def run_action(spark: SparkSession, action: Callable[[], T], look: Callable[[], None]) -> T:
    """Run the action and return its result. Meanwhile and at the end, `look` is called repeatedly.
    If it raises an error, or on Ctrl-C, the action's jobs are cancelled, and the error is raised
    here."""
    tag = f"weir-{secrets.token_hex(8)}"
    over = threading.Event()
    results: list[T] = []
    errors: list[BaseException] = []

    def act() -> None:
        try:
            spark.addTag(tag)
            results.append(action())
        except BaseException as error:
            errors.append(error)  # raised below, in the caller's thread
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
    look()  # see also the news of a short action
    return results[0]
