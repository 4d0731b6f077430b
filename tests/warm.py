"""What every process of the tests needs, and would else make for itself: the compiled loops of the
kernels, the archive of Spark's classes (a JVM then starts in half the time), and the tests' modules
with their asserts as pytest rewrites them."""

import subprocess
import sys

from weir.loops.parallel_compilation import compile_together, missing_loops
from weir.runtime.loop_needs import all_loops
from weir.spark.class_archive import archive_path


def main() -> None:
    archive = archive_path()
    collect = [sys.executable, "-m", "pytest", "--collect-only", "-qq"]
    making = [subprocess.Popen(collect, stdout=subprocess.DEVNULL)]  # the run tells what is wrong
    if archive is not None and not archive.exists():
        making.append(subprocess.Popen([sys.executable, "-m", "weir.spark.class_archive"]))
    compile_together(missing_loops(all_loops()))
    for process in making:
        process.wait()  # without it all is slower, but right


if __name__ == "__main__":
    main()
