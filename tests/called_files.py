"""Runs a command and lists the files of `src/weir` whose functions it called.

A `sitecustomize.py` on PYTHONPATH installs the trace in every Python process of the run, Spark's
workers and the hosts of a live job included. Functions that run only while a module is imported do
not count.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

SRC = Path(__file__).parents[1] / "src"

TRACE = """
import os, sys, threading

home = os.environ["CALLED_HOME"]
log = os.open(os.environ["CALLED_FILES"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
seen = set()

def is_imported(frame):
    while frame is not None:
        if frame.f_code.co_filename == "<frozen importlib._bootstrap>":
            return True
        frame = frame.f_back
    return False

def trace(frame, event, _):
    path = frame.f_code.co_filename
    if event == "call" and path not in seen:
        if not path.startswith(home):
            seen.add(path)
        elif frame.f_code.co_name[0] != "<" and not is_imported(frame):
            seen.add(path)
            os.write(log, (path + "\\n").encode())

threading.setprofile(trace)
sys.setprofile(trace)
"""


def called_files(
    command: Sequence[str], folder: Path, environment: Mapping[str, str] | None = None
) -> list[str]:
    """Run a command in a folder; return the paths below `weir/`, in order of their first call.

    Processes that run at once are mixed: the order means something for one process only.
    """
    traced, log = folder / "trace", folder / "called.txt"
    traced.mkdir()
    (traced / "sitecustomize.py").write_text(TRACE, encoding="utf-8")
    paths = [str(traced), str(SRC)]
    subprocess.run(
        command,
        cwd=folder,
        check=True,
        capture_output=True,
        env=os.environ
        | {
            "PYTHONPATH": os.pathsep.join(paths),
            "CALLED_HOME": f"{SRC}/weir/",
            "CALLED_FILES": str(log),
        }
        | (environment or {}),
    )
    lines = log.read_text(encoding="utf-8").splitlines()
    return list(dict.fromkeys(line.removeprefix(f"{SRC}/weir/") for line in lines))
