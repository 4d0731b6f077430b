"""The Spark job whose tasks are the hosts, and what Spark must offer for it.

Rules
1. A lost host is a failed task. Spark starts it again while the others go on, as often as
   `spark.task.maxFailures` says (in `local[N,F]`: F); sessions made for live runs say `FAILURES`.
   When Spark gives up on the job of all hosts, the job is submitted again, so that all hosts start
   again; but not after `ABORTS` times in a row in which it lasted less than `LASTING` seconds.
2. A host holds its slot for as long as the job lives. If the master says how many slots there are,
   too few are refused at once. Otherwise (executors come and go, others use the cluster) the
   manager waits, and gives up when no host comes at all (`ManagerSettings.host_limit`).
3. Speculation is refused: it starts tasks that take long a second time, and hosts always do.
4. On a cluster the machines are asked first whether they have what a host needs
   (`machine_check.py`). While no host has come, the driver says after `QUIET` seconds why, as far
   as Spark knows: no task was started, or what the last task failed with.
"""

from __future__ import annotations

import os
import re
import secrets
import threading
import time
from collections.abc import Callable, Iterator, Mapping

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.utils import is_remote

from weir.errors import PlanError, RunError
from weir.spark.live.host_driver import run_host
from weir.spark.live.job_description import JobDescription
from weir.spark.live.machine_check import check_machines, code_of, needs_of
from weir.spark.session import JVM_GONE, jvm_is_gone

FAILURES = 1000
"""How often Spark may start a host again."""
ABORTS = 5
QUIET = 10.0
"""Seconds; see rule 4."""
MOST_TASKS = 10_000
LASTING = 60.0
"""See rule 1."""
Setting = Callable[[str, str], str]
"""Returns a setting of Spark, or the given default."""


def live_master(hosts: int) -> str:
    """Name the default master: it has a slot for every host and one more, and tries tasks again."""
    return f"local[{hosts + 1},{FAILURES}]"


def live_settings(master: str | None, settings: Mapping[str, str]) -> dict[str, str]:
    """Give the settings of a session that is made for a live run. A server of Spark Connect has
    its own settings, which no client can change.

    >>> live_settings("yarn", {"spark.executor.cores": "2"})
    {'spark.task.maxFailures': '1000', 'spark.executor.cores': '2'}
    """
    if (master or "").startswith("sc://"):
        return dict(settings)
    return {"spark.task.maxFailures": str(FAILURES), **settings}


# --- what Spark must offer -----------------------------------------------------------------------


def slots_of(master: str, cores: int | None) -> int | None:
    """Read from a master's URL how many cores it has for tasks; `cores` are those of its machine.

    >>> [slots_of(m, 8) for m in ("local", "local[*]", "local[3,9]", "local-cluster[2,3,1024]")]
    [1, 8, 3, 6]
    >>> slots_of("spark://head:7077", 8) is None
    True
    """
    if master == "local":
        return 1
    if match := re.fullmatch(r"local\[\s*(\d+|\*)\s*(?:,\s*\d+\s*)?\]", master):
        return cores if match[1] == "*" else int(match[1])
    if match := re.fullmatch(r"local-cluster\[\s*(\d+)\s*,\s*(\d+)\s*,\s*\d+\s*\]", master):
        return int(match[1]) * int(match[2])
    return None


def tries_of(master: str, failures: int) -> int:
    """Say how often Spark starts a task before it gives up on the whole job.

    >>> [tries_of(m, 4) for m in ("local", "local[8]", "local[8,20]", "yarn")]
    [1, 1, 20, 4]
    """
    if match := re.fullmatch(r"local\[[^,]*,\s*(\d+)\s*\]", master):
        return int(match[1])
    return 1 if master == "local" or master.startswith("local[") else failures


def check_spark(setting: Setting, hosts: int) -> str | None:
    """Refuse a Spark that cannot run so many hosts; return a warning if it runs them badly."""
    master = setting("spark.master", "")
    if setting("spark.speculation", "false").lower() == "true":
        raise PlanError(
            "spark.speculation is on: Spark would start hosts a second time, because they take "
            "long; turn it off (--conf spark.speculation=false)"
        )
    slots = slots_of(master, None if is_remote() else os.cpu_count())
    cores = int(setting("spark.task.cpus", "1"))
    if slots is not None and slots // cores < hosts:
        raise PlanError(
            f"{hosts} hosts need {hosts} task slots for as long as the job lives, and {master} "
            f"has {slots // cores}; ask for fewer (--hosts), or for more cores (--master)"
        )
    if tries_of(master, int(setting("spark.task.maxFailures", "4"))) > 1:
        return None
    is_local = master == "local" or master.startswith("local[")
    option = f"--master local[{slots},{FAILURES}]" if is_local else "spark.task.maxFailures"
    return (
        "this Spark tries no task again, so with one lost host it gives up on all of them, and all "
        f"begin again; with {option} it would start the lost one alone"
    )


def _tasks(spark: SparkSession, group: str) -> tuple[int, int, str]:
    """Count the running and the failed tasks of a job group; return the error of the last one."""
    context = spark.sparkContext
    tracker, store = context.statusTracker(), context._jsc.sc().statusStore()
    running, failures = 0, []
    for job in tracker.getJobIdsForGroup(group):
        info = tracker.getJobInfo(job)
        for number in info.stageIds if info is not None else ():
            stage = tracker.getStageInfo(number)
            if stage is None:
                continue
            running += stage.numActiveTasks
            tasks = store.taskList(number, stage.currentAttemptId, MOST_TASKS)
            for index in range(tasks.size()):
                task = tasks.apply(index)
                if task.errorMessage().isDefined():
                    failures.append((task.taskId(), task.host(), task.errorMessage().get()))
    if not failures:
        return running, 0, ""
    _, machine, text = max(failures)
    return running, len(failures), f"{machine}: {last_line(text)}"


def last_line(error: str) -> str:
    """Find what a task failed with in the text that Spark makes of it: the last line of Python's
    traceback, or the first one.

    >>> last_line("[X] An exception was thrown: Traceback (most recent call last):\\n  File …\\n"
    ...     "weir.errors.RunError: w1: 'a.csv' is not there\\n\\n\\tat org.apache.spark…")
    "w1: 'a.csv' is not there"
    """
    lines = [line for line in error.splitlines() if line.strip()]
    python = [line for line in lines if re.match(r"[\w.]+: ", line)]
    line = (python or lines or [""])[-1 if python else 0].strip()
    return re.sub(r"^weir\.errors\.\w+: ", "", line)


# --- the job -------------------------------------------------------------------------------------


class Hosts:
    """Runs the Spark job whose tasks are the hosts; see rule 1. `prepare` makes the description of
    the job that hosts get, in a thread, since it may take long."""

    def __init__(
        self, spark: SparkSession, prepare: Callable[[], JobDescription], count: int
    ) -> None:
        self._spark, self._prepare, self._count = spark, prepare, count
        self._thread: threading.Thread | None = None
        self._stopping = False
        self._aborted = 0
        """How often in a row the Spark job ended before it had lasted."""
        self._began = 0.0
        """When the Spark job was submitted last."""
        self._error: BaseException | None = None
        """What the Spark job ended with last."""
        self._unready: RunError | None = None
        """What the machines lack."""
        self._tag = f"weir-{secrets.token_hex(4)}"

    def start(self) -> None:
        self._began = time.monotonic()
        self._thread = threading.Thread(target=self._run, daemon=True, name="hosts")
        self._thread.start()

    def _run(self) -> None:
        def host(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for batch in batches:
                for slot in batch.column(0).to_pylist():
                    run_host(job, slot)
                    yield pa.RecordBatch.from_arrays([pa.array([slot])], names=["slot"])

        try:
            self._spark.addTag(self._tag)
            if not is_remote():  # so that its tasks can be found
                self._spark.sparkContext.setLocalProperty("spark.jobGroup.id", self._tag)
            job = self._prepare()
            self._began = time.monotonic()
            if job.host_at is None:
                check_machines(self._spark, needs_of(job, code_of(job)), self._count)
            slots = self._spark.range(0, self._count, 1, self._count)
            slots.mapInArrow(host, "slot long").collect()
        except RunError as error:
            self._unready = error
        except Exception as error:  # Spark's own, of many kinds; `check` says what it means
            self._error = error

    @property
    def gone(self) -> bool:
        """Whether the Spark job has ended."""
        return self._thread is None or not self._thread.is_alive()

    def check(self) -> None:
        """Submit the Spark job again if it was aborted, but not for ever."""
        if not self.gone or self._stopping:
            return
        if jvm_is_gone():
            raise RunError(f"{JVM_GONE}; everything is kept, so run again with --resume")
        if self._unready is not None:
            raise self._unready
        lasted = time.monotonic() - self._began >= LASTING
        self._aborted = 1 if lasted else self._aborted + 1
        if self._aborted > ABORTS:
            raise RunError(
                f"Spark cannot run the hosts, tried {ABORTS} times; everything is kept, so fix "
                f"it and run again with --resume: {self._error}"
            )
        self.start()

    def why_absent(self) -> str | None:
        """Say why no host has come, as far as Spark knows; None before that is strange."""
        waited = time.monotonic() - self._began
        if waited < QUIET or self.gone:
            return None
        if is_remote():
            return f"no host has come for {waited:.0f} s"
        running, failed, error = _tasks(self._spark, self._tag)
        if error:
            return f"no host has come, {failed} tasks failed, the last: {error}"
        if running:
            return f"no host has come, but Spark runs {running} tasks for them"
        return "Spark has started no task: no executor has a free core"

    def stop(self) -> None:
        self._stopping = True
        if not self.gone and not jvm_is_gone():
            self._spark.interruptTag(self._tag)
            assert self._thread is not None
            self._thread.join(5.0)
