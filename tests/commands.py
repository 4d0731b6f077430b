"""The weir command in a process of its own, and a look at the live job that it runs."""

import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from weir.files.object_store import ObjectStore
from weir.job.status import JobStatus, read_status

START_LIMIT = 120.0
END_LIMIT = 240.0


def weir_run(folder: Path, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "weir.cli", "run", *arguments, "--json"],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finished(process: subprocess.Popen[str]) -> dict[str, str]:
    """The digests of a run that ends well."""
    out, err = process.communicate(timeout=END_LIMIT)
    assert process.returncode == 0, err
    return {o["name"]: o["digest"] for o in json.loads(out)["outputs"]}


def wait_for(folder: Path, holds: Callable[[JobStatus], bool]) -> JobStatus:
    """The state of the job whose store is there, once something holds."""
    until = time.monotonic() + START_LIMIT
    while time.monotonic() < until:
        if (folder / "store" / "status").exists():
            status = read_status(ObjectStore(str(folder / "store")))
            if status is not None and holds(status):
                return status
        time.sleep(0.05)
    raise AssertionError("the job did not get there")
