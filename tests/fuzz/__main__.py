"""`python -m fuzz TARGET [SECONDS]`: fuzzing guided by coverage (needs `pip install atheris`).

It stops at the first bug, and says which bytes show it. Targets are those of `targets.py`; without
one it lists them.
"""

from __future__ import annotations

import sys
import tempfile
import warnings
from pathlib import Path


def main() -> int:
    import atheris  # not one of our dependencies

    with atheris.instrument_imports(include=["weir"]):
        from fuzz.targets import TARGETS
    if len(sys.argv) < 2 or sys.argv[1] not in TARGETS:
        sys.stdout.write("\n".join(TARGETS) + "\n")
        return 2
    warnings.simplefilter("ignore")
    target = TARGETS[sys.argv[1]]
    seconds = sys.argv[2] if len(sys.argv) > 2 else "60"
    with tempfile.TemporaryDirectory() as corpus:
        for number, sample in enumerate(target.samples()):
            Path(corpus, str(number)).write_bytes(sample)
        options = [
            f"-max_total_time={seconds}",
            "-max_len=4096",
            "-timeout=20",
            "-rss_limit_mb=4096",
        ]
        atheris.Setup([sys.argv[0], *options, corpus], target.run)
        atheris.Fuzz()
    return 0


if __name__ == "__main__":
    sys.exit(main())
