"""Checks that a machine has what a host of a job needs.

Rules
1. Before the hosts of a job start on a cluster, a small Spark job asks as many of its machines as
   there are hosts; what is missing there ends the run, by machine and by name. Its function
   travels by value: it works where Weir is not installed, or another version of it.
2. Every host asks its own machine again before it does anything: it may be another one. What is
   missing there fails its task, and the driver shows that error (`host_tasks.py`).
3. The task's process forks the host later, so it may not use obstore (`obstore_use.py`): a child
   of its own looks at the store.
4. A machine must have the same Weir, Python, and libraries that read and write what is shared; it
   must reach the manager; it must find the files and folders that the job reads; and the store, if
   it is a folder, must be the same folder: the object `job` there has the job's own token.
5. It must have what the user's code imports and what does not travel with it, as far as the
   driver's machine has it; and the user's files must run there.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import socket
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from functools import cache
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import TypedDict
from urllib.parse import urlsplit

import pyarrow as pa
from pyspark import cloudpickle
from pyspark.sql import SparkSession

import weir
from weir.errors import RunError, WeirError
from weir.files.object_store import existing_store
from weir.files.obstore_use import is_used_here
from weir.ingress.connectors.registry import needed_path
from weir.job.job_identity import read_job
from weir.plan.usercode.code_fingerprint import user_functions
from weir.plan.usercode.functions import describe
from weir.spark.live.host_process import said_by_child
from weir.spark.live.job_description import JobDescription

LIBRARIES = ("pyarrow", "numpy", "numba", "msgspec", "obstore")
REACH_WITHIN = 5.0
"""Seconds in which the manager must accept a connection."""


class Needs(TypedDict):
    """What a machine must have; plain values, since it may have no Weir."""

    python: str
    libraries: dict[str, str]
    weir: str
    manager: str
    paths: list[str]
    store: str
    token: str
    modules: dict[str, str]
    """With the file or module of the user's that imports each."""
    code: bytes
    """The user's functions, pickled: to load them runs the files that they are from."""


def needs_of(job: JobDescription, code: bytes = b"") -> Needs:
    """Say what a machine must have to run a host of this job."""
    return Needs(
        python=needed_python(),
        libraries=needed_libraries(),
        weir=own_version(),
        manager=job.manager,
        paths=sorted(_paths(job)),
        store=job.store,
        token=job.log_token,
        modules=dict(job.needed),
        code=code,
    )


def code_of(job: JobDescription) -> bytes:
    """Pickle all the user's functions that hosts of this job call."""
    functions = [*user_functions(job.plan), *job.emits.values()]
    data: bytes = cloudpickle.dumps(functions)  # type: ignore[no-untyped-call]  # PySpark's copy
    return data


def needed_python() -> str:
    return ".".join(map(str, sys.version_info[:2]))


def needed_libraries() -> dict[str, str]:
    return {name: version(name) for name in LIBRARIES}


def _paths(job: JobDescription) -> Iterator[str]:
    for parts in job.partitions.values():
        for path in map(needed_path, parts):
            if path is not None:
                yield os.path.abspath(path)


@cache
def own_version() -> str:
    """Name this Weir: its version and a hash of its files, since two of one version may differ."""
    total = hashlib.sha256()
    folder = Path(weir.__file__).parent
    for path in sorted(folder.rglob("*.py")):
        total.update(str(path.relative_to(folder)).encode() + b"\0" + path.read_bytes())
    return f"{weir.__version__} ({total.hexdigest()[:8]})"


# --- on a machine --------------------------------------------------------------------------------


def missing_here(needs: Needs) -> list[str]:
    """List what this machine lacks, once it is known to have the right libraries."""
    if own_version() != needs["weir"]:
        here = Path(weir.__file__).parent
        return [f"Weir {own_version()} instead of {needs['weir']}, at {here}"]
    lacks = [f"'{path}' is not there, or cannot be read" for path in _unreadable(needs["paths"])]
    lacks += _code_trouble(needs)
    return [*lacks, *_store_trouble(needs), *_manager_trouble(needs["manager"])]


def _unreadable(paths: Iterable[str]) -> Iterator[str]:
    for path in paths:
        if not os.access(path, os.R_OK):
            yield path


def _code_trouble(needs: Needs) -> list[str]:
    lacks = [
        f"the module '{name}' is not installed, which {by} imports"
        for name, by in sorted(needs["modules"].items())
        if find_spec(name) is None
    ]
    if lacks or not needs["code"]:
        return lacks
    try:
        pickle.loads(needs["code"])
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # the user's files may raise anything
        return [str(error) if isinstance(error, RunError) else describe(error)]
    return []


def _store_trouble(needs: Needs) -> Sequence[str]:
    """List what is wrong with the store (rule 3)."""
    if is_used_here():
        return list(_look_at_store(needs))
    return said_by_child(lambda: list(_look_at_store(needs)))


def _look_at_store(needs: Needs) -> Iterator[str]:
    where = f"the store '{needs['store']}'"
    try:
        with closing(existing_store(needs["store"])) as store:
            job = read_job(store)
    except WeirError as error:
        yield f"{where} cannot be used: {error}"
        return
    if (job.token if job is not None else "") != needs["token"]:
        yield (
            f"{where} is not the folder that the driver writes to: it must be shared by all "
            "machines, or a bucket"
        )


def _manager_trouble(url: str) -> Iterator[str]:
    parts = urlsplit(url)
    if parts.hostname is None or parts.port is None:
        return  # a socket in a folder of this machine
    try:
        socket.create_connection((parts.hostname, parts.port), REACH_WITHIN).close()
    except OSError as error:
        yield (
            f"the job's manager cannot be reached at {parts.hostname}:{parts.port}: "
            f"{error.strerror or error}"
        )


def check_this_machine(job: JobDescription) -> None:
    """Raise a RunError if this machine lacks what a host of the job needs."""
    if lacks := missing_here(needs_of(job)):
        raise RunError(f"{socket.gethostname()}: {'; '.join(lacks)}")


# --- on all machines -----------------------------------------------------------------------------


def check_machines(spark: SparkSession, needs: Needs, count: int) -> None:
    """Ask so many tasks what their machines lack; raise a RunError that names all of it."""

    def ask(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in batches:
            machine, lacks = probe(needs)
            names = ["machine", "lacks"]
            columns = [pa.array([machine] * len(lacks), pa.string()), pa.array(lacks, pa.string())]
            yield pa.RecordBatch.from_arrays(columns, names=names)

    module = sys.modules[__name__]
    cloudpickle.register_pickle_by_value(module)  # type: ignore[no-untyped-call]  # PySpark's copy
    try:
        tasks = spark.range(0, count, 1, count)
        rows = tasks.mapInArrow(ask, "machine string, lacks string").collect()
    finally:
        cloudpickle.unregister_pickle_by_value(module)  # type: ignore[no-untyped-call]
    if rows:
        lines = sorted({f"{row.machine}: {row.lacks}" for row in rows})
        raise RunError("not all machines can run a host of this job:\n  " + "\n  ".join(lines))


def probe(needs: Needs) -> tuple[str, list[str]]:
    """Say which machine this is, and what it lacks. It must work without Weir."""
    import importlib.metadata
    import socket
    import sys

    machine = f"{socket.gethostname()} ({sys.executable})"
    lacks = []
    python = ".".join(map(str, sys.version_info[:2]))
    if python != needs["python"]:
        lacks.append(f"Python {python} instead of {needs['python']}")
    for name, expected in needs["libraries"].items():
        try:
            installed = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            lacks.append(f"{name} is not installed")
            continue
        if installed != expected:
            lacks.append(f"{name} {installed} instead of {expected}")
    if lacks:
        return machine, lacks
    try:
        from weir.spark.live.machine_check import missing_here as missing
    except ImportError as error:
        return machine, [f"Weir is not installed, or another version of it: {error}"]
    return machine, missing(needs)
