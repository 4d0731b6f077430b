"""Keeps an archive of Spark's loaded classes, which halves the start time of its JVM.

    python -m weir.spark.class_archive

creates it (about 160 MB, half a minute) in the virtual environment, so that both are deleted
together, or else in the user's cache folder. Every session that Weir creates with the same Java and
the same Spark then uses it. This is Java's class data sharing: Java ignores an archive that does
not fit, so nothing depends on it.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pyspark

from weir.errors import RunError

# On stdout Java reports classes that it cannot archive, and archives that do not fit.
_SILENT = "-Xlog:disable -Xlog:all=error:stderr"

_FILL = """
import sys, tempfile
from pathlib import Path
from weir import run_offline
from weir.spark.session import make_session, own_java_options
options = f"{own_java_options()} -XX:ArchiveClassesAtExit={sys.argv[1]}"
spark = make_session("local[2]", {"spark.driver.extraJavaOptions": options})
with tempfile.TemporaryDirectory() as folder:
    for name in "ab":
        Path(folder, f"{name}.csv").write_text("vs,k\\n1,1\\n2,2\\n")
    run_offline(f'''
        STREAM A (vs BIGINT, k BIGINT) FROM '{folder}/a.csv';
        STREAM B (vs BIGINT, k BIGINT) FROM '{folder}/b.csv';
        J = SELECT A.k AS k FROM A INNER JOIN B ON A.k == B.k;
        S = SELECT k, COUNT(*) AS n FROM J GROUP BY k WITH TUMBLING(10);
        OUTPUT S TO '{folder}/s.parquet';
        OUTPUT J TO '{folder}/j/';''', spark)
spark.stop()
"""


def archive_option() -> str:
    """Return the JVM option that uses the archive; empty if there is none."""
    path = archive_path()
    # To Spark, a space ends the option.
    usable = path is not None and path.is_file() and " " not in str(path)
    return f"-XX:SharedArchiveFile={path} {_SILENT}" if usable else ""


def archive_path() -> Path | None:
    """Return the path of the archive for this Java and this Spark, whether it exists or not; None
    if no Java was found that reports its version."""
    home = os.environ.get("JAVA_HOME")
    java = os.path.join(home, "bin", "java") if home else shutil.which("java")
    release = Path(java).resolve().parents[1] / "release" if java else None
    if release is None or not release.is_file():
        return None
    spark = f"{pyspark.__version__} {pyspark.__path__[0]}"
    key = hashlib.sha256(release.read_bytes() + spark.encode()).hexdigest()[:16]
    return _folder() / f"spark-{key}.jsa"


def _folder() -> Path:
    if sys.prefix != sys.base_prefix:
        return Path(sys.prefix, "share", "weir")
    return Path(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "weir")


def make_archive() -> Path:
    """Create the archive, replacing an old one."""
    path = archive_path()
    if path is None:
        raise RunError("no Java with a file `release` in its folder was found: set JAVA_HOME")
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        archive = Path(folder, "archive")
        # The JVM writes the archive when it ends. It holds our pipes until then, so this waits for
        # it.
        done = subprocess.run(
            [sys.executable, "-c", _FILL, archive], capture_output=True, text=True, check=False
        )
        if not archive.is_file():
            raise RunError(f"Java made no archive: {done.stderr.strip() or done.stdout.strip()}")
        archive.replace(path)
    return path


if __name__ == "__main__":
    try:
        print(make_archive())  # noqa: T201
    except RunError as error:
        sys.exit(f"weir: error: {error}")
