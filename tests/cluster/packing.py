"""A virtual environment to pack: Weir and its libraries, but Spark, and a module of its own."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from importlib.metadata import requires, version
from pathlib import Path

import weir


def make_environment(folder: Path) -> None:
    """Make it, with the versions that run here, and `venv-pack`. Weir is copied as it is, compiled
    loops included."""
    do(sys.executable, "-m", "venv", str(folder))
    needed = [re.split(r"[^\w-]", line)[0] for line in requires("weir") or () if ";" not in line]
    wanted = [f"{name}=={version(name)}" for name in needed if name != "pyspark"]
    python = str(folder / "bin" / "python")
    do(python, "-m", "pip", "install", "--quiet", "venv-pack", *wanted)
    (site,) = folder.glob("lib/python*/site-packages")
    shutil.copytree(Path(weir.__file__).parent, site / "weir")
    (site / "packed_only.py").write_text("more = 1\n", encoding="utf-8")


def do(*command: str) -> None:
    """Run a command that must succeed."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert not done.returncode, f"{' '.join(command)}: {done.stderr[-2000:]}"
