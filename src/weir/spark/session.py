"""Uses the active SparkSession or creates one, for all of Weir.

Rules
1. An active session (a notebook's, spark-submit's) is used unchanged.
2. Otherwise one is created for `master`. The default is all cores of this machine, with retries of
   failed tasks, which plain `local[*]` lacks. Workers use the Python of this process, unless
   `spark.pyspark.python` or PYSPARK_PYTHON names the one on the machines of a cluster.
3. `session` stops a session that it created, also after Ctrl-C, but never an active one that it
   used.
4. The JVM of a created session has its own process group, so a signal to the command's whole group
   does not end it while a job shuts down. It ends with this process, however that ends, because its
   stdin is closed.
5. Creating a session does not change the handler of Ctrl-C. Spark's own handler would call Spark in
   the middle of another call, and fail. Py4J logs a traceback for every interrupted call; `session`
   keeps these out of the log while it is open.
"""

from __future__ import annotations

import logging
import os
import re
import sys
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.resources import files
from typing import TypeAlias

from py4j.protocol import Py4JError
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkException
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession
from pyspark.sql import functions as f
from pyspark.sql.utils import is_remote

from weir.errors import RunError
from weir.runtime.extras import need_extra
from weir.spark.class_archive import archive_option
from weir.spark.java import java_home
from weir.spark.process_signals import handlers_kept, signals_wait
from weir.wording import printable

if sys.platform != "win32":
    import resource

RunningSession: TypeAlias = SparkSession
"""A Spark session, for packages that do not import Spark."""
DEFAULT_MASTER = "local[*,4]"
LEAST_FILES = 512
"""Spark's own libraries are about 300 files, and each host and each file needs more."""
JVM_GONE = "Spark's JVM is gone (was it killed, or short of memory?)"

BLOCK_BYTES = 4 << 20
"""The approximate size of the batches in which rows go through Spark."""
ARROW_BATCHES = {
    # By default, Spark passes a whole partition of blocks as one batch.
    "spark.sql.execution.arrow.maxBytesPerBatch": str(BLOCK_BYTES),
    "spark.sql.execution.arrow.maxRecordsPerBatch": "65536",
}
# Adaptive planning would run one more job for each wave, and find nothing to improve.
PLANNED_ONCE = {"spark.sql.adaptive.enabled": "false"}

_SETTINGS = {
    "spark.app.name": "weir",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.log.level": "ERROR",
    # Over TCP, every task would wait about 40 ms for an acknowledgement before its worker begins.
    "spark.python.unix.domain.socket.enabled": "true",
}
# The JVM of a created session only carries blocks between workers. In runs of minutes, compiling
# its code a second time, for more speed, took more processor time than the code itself.
_JVM_OPTION = "-XX:TieredStopAtLevel=1"
_LOCAL_SETTINGS = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.memory": "2g",
    "spark.python.daemon.module": "weir.spark.offline.daemon",
    # On one machine compression saves no network, and numbers in blocks are narrowed already.
    "spark.shuffle.compress": "false",
    "spark.shuffle.spill.compress": "false",
}
# Lines that a JVM and Spark print at every start, whatever the log level.
_NOISE = re.compile(
    r"^WARNING: |^Using Spark's default|^Setting \w+ ?\w* log level|^To adjust logging"
    r"|^PySpark daemon failed to flush|^\s*$"
)
_TRACEBACK = b"Traceback (most recent call last)"
_HEADS = (_TRACEBACK, b"During handling of the above exception")
"""The first lines of a traceback, and of one that follows another."""

_JAVA_TRACE = b'Exception in thread "main" '
_DEATH = re.compile(r'Exception in thread "main" (?:[\w.$]+: )?(.*)')
LAST_WORDS = 5.0
"""How long to wait for a JVM that does not start to report why, in seconds."""


@contextmanager
def session(
    master: str | None = None, settings: Mapping[str, str] | None = None
) -> Iterator[SparkSession]:
    """Use the active session, or create one for the block and stop it at the end, by the module's
    rules."""
    active = SparkSession.getActiveSession()
    if active is not None:
        yield active
        return
    own: SparkSession | None = None
    logging.getLogger().addFilter(_is_no_interrupt)
    logging.getLogger("py4j.clientserver").addFilter(_is_no_farewell)
    try:
        with signals_wait():
            own = make_session(master, settings)
        yield own
    except (Py4JError, OSError) as error:
        if jvm_is_gone():
            raise RunError(JVM_GONE) from error
        if isinstance(error, Py4JError):
            raise RunError(f"Spark failed: {first_lines(error)}") from error
        raise
    finally:
        if own is not None:
            with signals_wait():
                _stop(own)
        logging.getLogger().removeFilter(_is_no_interrupt)


def _is_no_interrupt(record: logging.LogRecord) -> bool:
    """Tell whether the record is not Py4J's report of an interrupted call."""
    return record.msg != "KeyboardInterrupt while sending command."


def _is_no_farewell(record: logging.LogRecord) -> bool:
    """Tell whether the record is not Py4J's report of a connection that broke before it was closed.
    Such a report can come as late as the end of the process, so this filter stays installed."""
    return record.msg != "Exception occurred while shutting down connection"


def _stop(spark: SparkSession) -> None:
    try:
        spark.stop()
    except (Py4JError, OSError):
        if not jvm_is_gone():
            raise


def jvm_is_gone() -> bool:
    """Tell whether the JVM that was started here has ended; then nothing of Spark works any
    more."""
    process = getattr(SparkContext._gateway, "proc", None)
    return process is not None and process.poll() is not None


def make_session(
    master: str | None = None, settings: Mapping[str, str] | None = None
) -> SparkSession:
    """Create a session. `sc://…` (or SPARK_REMOTE) is a server of Spark Connect. Under
    spark-submit, its master and settings apply unless others are passed."""
    remote = master if (master or "").startswith("sc://") else os.environ.get("SPARK_REMOTE")
    chosen = dict(settings or {})
    builder = SparkSession.builder
    start = _Start()
    with _clear_start(start), _quiet_start(start):
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        if remote is not None and (master is None or master == remote):
            builder = builder.remote(remote)
        elif is_submitted():
            builder = builder if master is None else builder.master(master)
        else:
            check_files()
            url = master or DEFAULT_MASTER
            builder = builder.master(url)
            chosen = _own_settings(url, chosen) | chosen
            _start_jvm({"spark.master": url, **chosen})
            _start_context({"spark.master": url, **chosen})
        for key, value in chosen.items():
            builder = builder.config(key, value)
        return builder.getOrCreate()


def is_submitted() -> bool:
    """Tell whether spark-submit has started this process, and so has chosen master and settings."""
    return "PYSPARK_GATEWAY_PORT" in os.environ


def check_pandas() -> None:
    """Raise an error if pandas is missing. Spark's driver requires it for functions over Arrow
    batches, although no row goes through it."""
    need_extra("spark", "pandas", "the offline and the live runner, and DataFrames, need")


def check_files() -> None:
    """Raise an error if the limit of open files is too low for a JVM to open its own libraries."""
    if sys.platform == "win32":
        return
    allowed = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    if allowed != resource.RLIM_INFINITY and allowed < LEAST_FILES:
        raise RunError(
            f"Spark needs {LEAST_FILES} open files at a time, but this process is limited to "
            f"{allowed}: raise the limit with ulimit -n"
        )


def _start_jvm(settings: Mapping[str, str]) -> None:
    """Start a JVM like Spark, but by rule 4, or use one that is running."""
    with SparkContext._lock:
        if SparkContext._gateway is None:
            conf = SparkConf(loadDefaults=False)
            for key, value in settings.items():
                conf.set(key, value)
            # This function of PySpark has no types.
            gateway = launch_gateway(conf, {"process_group": 0})  # type: ignore[no-untyped-call]
            SparkContext._gateway, SparkContext._jvm = gateway, gateway.jvm


def _start_context(settings: Mapping[str, str]) -> None:
    """Start Spark in that JVM like its builder of sessions, but by rule 5."""
    conf = SparkConf()
    for key, value in settings.items():
        conf.set(key, value)
    with handlers_kept():
        SparkContext.getOrCreate(conf)


def _own_settings(url: str, asked: Mapping[str, str]) -> dict[str, str]:
    """Return the additional settings of a session that starts its own Spark, and set up the
    environment for it."""
    home = java_home()
    if home is not None:
        os.environ["JAVA_HOME"] = home
    os.environ["PYSPARK_PYTHON"] = _workers_python(url, asked)
    os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    settings = _SETTINGS | ARROW_BATCHES
    archive = archive_option()
    settings["spark.driver.extraJavaOptions"] = f"{own_java_options()} {archive}"
    if url.startswith("local"):
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        settings |= _LOCAL_SETTINGS
        settings["spark.executor.extraJavaOptions"] = f"{_JVM_OPTION} {archive}"
    return settings


def _workers_python(url: str, asked: Mapping[str, str]) -> str:
    """Choose the Python of workers (rule 2)."""
    if url.startswith("local"):
        return sys.executable
    said = asked.get("spark.pyspark.python") or os.environ.get("PYSPARK_PYTHON")
    return said or sys.executable


def own_java_options() -> str:
    """Return the options of a driver's JVM that is started here, without the archive of its
    classes."""
    path = files("weir.spark") / "log4j2.properties"
    return f"-Dlog4j2.configurationFile=file:{path} {_JVM_OPTION}"


@dataclass(slots=True)
class _Start:
    """The state of a JVM's start: whether it is over, and what the JVM died of."""

    is_over: bool = False
    died_of: str | None = None


@contextmanager
def _clear_start(start: _Start) -> Iterator[None]:
    try:
        yield
    except (PySparkException, Py4JError, RuntimeError, OSError) as error:
        raise RunError(f"Spark did not start: {start.died_of or first_lines(error)}") from error


def first_lines(error: Exception) -> str:
    """Return the important part of a Java error, which can be pages long: its cause, on the line
    after the first."""
    lines = [line.strip(": ") for line in str(error).splitlines() if line.strip()]
    return " ".join(lines[:2])


def default_parallelism(spark: SparkSession) -> int:
    """Return the default number of vertices of a keyed stage: as many as Spark runs at once."""
    if not is_remote():
        return int(spark.sparkContext.defaultParallelism)
    # Spark Connect does not report it, but splits a range into as many parts.
    parts = spark.range(1 << 16).select(f.spark_partition_id()).distinct()
    return parts.count()


@contextmanager
def _quiet_start(start: _Start) -> Iterator[None]:
    """While the block runs, filter the stderr of started processes: greetings are left out, and so
    is the trace of a JVM that does not start. Its cause is read before an error is raised.

    The JVM holds its end of the pipe as long as it lives, so the filter's thread runs until then.
    """
    if is_submitted():
        yield
        return
    try:
        kept = os.dup(2)
    except OSError:  # stderr is missing
        yield
        return
    reading, writing = os.pipe()
    os.dup2(writing, 2)
    os.close(writing)
    arguments = (reading, os.dup(kept), start)
    listener = threading.Thread(target=_filter, args=arguments, daemon=True)
    listener.start()
    try:
        yield
        start.is_over = True
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        if not start.is_over:
            listener.join(LAST_WORDS)


def _filter(reading: int, writing: int, start: _Start) -> None:
    with os.fdopen(reading, "rb") as lines, os.fdopen(writing, "wb", buffering=0) as out:
        for said in _paragraphs(lines):
            text = b"".join(said).decode(errors="replace")
            death = _DEATH.match(text)
            if death is not None and not start.is_over:
                start.died_of = printable(death[1])
                continue
            # Workers that are busy when a job ends report that their pipe was closed.
            ends = [line for line in said if not line.startswith((b" ", b"\n", *_HEADS))]
            gone = "pyspark/daemon.py" in text and all(b"BrokenPipeError" in end for end in ends)
            if not gone and not _NOISE.search(text):
                out.write(printable(text).encode())  # it may quote rows


def _paragraphs(lines: Iterable[bytes]) -> Iterator[list[bytes]]:
    """Yield single lines, but keep some together: a Python traceback, with others that several
    processes write at the same time (their lines are mixed), and the trace of a JVM's main
    thread."""
    held: list[bytes] = []
    java: list[bytes] = []
    under_way = 0
    for line in lines:
        if java and not line.startswith((b"\t", b"Caused by: ")):
            yield java
            java = []
        if java or (line.startswith(_JAVA_TRACE) and not held):
            java.append(line)
        elif held or line.startswith(_HEADS):
            held.append(line)
            if line.startswith(_TRACEBACK):
                under_way += 1
            elif under_way and not line.startswith((b" ", b"\n", *_HEADS)):
                under_way -= 1
                if not under_way:
                    yield held
                    held = []
        else:
            yield [line]
    for left in (java, held):
        if left:
            yield left
