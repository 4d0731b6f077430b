"""What every process of the tests needs, and would else make for itself: the compiled loops of the
kernels, and the archive of Spark's classes (a JVM then starts in half the time)."""

import subprocess
import sys
from pathlib import Path

from weir.conform.cases import check_cases, read_cases
from weir.spark.class_archive import archive_path

CASES = Path(__file__).parent / "conformance"


def main() -> None:
    archive = archive_path()
    making = None
    if archive is not None and not archive.exists():
        making = subprocess.Popen([sys.executable, "-m", "weir.spark.class_archive"])
    for path in sorted(CASES.glob("*.jsonl")):
        for _ in check_cases(list(read_cases(path))[::8], (3, None), (1,)):
            pass  # the tests look at what comes out
    if making is not None:
        making.wait()  # without it all is slower, but right


if __name__ == "__main__":
    main()
