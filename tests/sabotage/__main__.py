"""`make sabotage`: plant known bugs one at a time; each must turn the tests red.

The sources and the tests are copied to a temporary folder, so nothing here is ever changed. The
copy must be green before it is sabotaged. Exit code 1 when a bug survives.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from sabotage.bugs import Bug
from sabotage.collected import all_bugs

ROOT = Path(__file__).parents[2]
SEEDS = "100"
NEEDED = tuple(
    f"tests/{n}"
    for n in (
        "attack",
        "machine",
        "faults",
        "conformance",
        "property",
        "oracle",
        "replay_oracle",
        "unit",
    )
)
FILES = (
    "conftest.py",
    "buckets.py",
    "commands.py",
    "certificates.py",
    "handler_apps.py",
    "hostile.py",
    "log_talk.py",
    "small_app.py",
    "small_shadow.py",
    "whole_ledger.py",
)
QUICK = ("tests/machine",)
THOROUGH = ("-n", "2", "tests/faults")


def main() -> int:
    wanted = sys.argv[1:]
    bugs = [b for b in all_bugs() if not wanted or any(w in b.name for w in wanted)]
    with tempfile.TemporaryDirectory(prefix="weir-sabotage-") as folder:
        copy = Path(folder)
        for name in ("src", *NEEDED):
            shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copy(ROOT / "pyproject.toml", copy)
        for name in FILES:
            shutil.copy(ROOT / "tests" / name, copy / "tests")
        if finder := found_by(copy):
            print(f"red without any bug: {finder}")
            return 1
        survivors = [bug for bug in bugs if not _is_found(copy, bug)]
    print(f"{len(bugs) - len(survivors)} of {len(bugs)} bugs found")
    return 1 if survivors else 0


def _is_found(copy: Path, bug: Bug) -> bool:
    began = time.monotonic()
    path = copy / "src" / "weir" / bug.file
    sound = path.read_text(encoding="utf-8")
    if sound.count(bug.text) != 1:
        print(f"'{bug.name}': its text is there {sound.count(bug.text)} times in {bug.file}")
        return False
    path.write_text(sound.replace(bug.text, bug.by), encoding="utf-8")
    try:
        finder = found_by(copy, (bug.tests,) if bug.tests else (QUICK, THOROUGH))
    finally:
        path.write_text(sound, encoding="utf-8")
    took = time.monotonic() - began
    print(f"{'found' if finder else 'SURVIVED'}  {bug.name}  [{finder}, {took:.0f} s]", flush=True)
    return bool(finder)


def found_by(copy: Path, rounds: tuple[tuple[str, ...], ...] = (QUICK, THOROUGH)) -> str:
    """The first test that fails; empty when all pass."""
    paths = os.pathsep.join(str(copy / name) for name in ("src", "tests"))
    environment = os.environ | {"PYTHONPATH": paths, "WEIR_SEEDS": SEEDS}
    environment["WEIR_CACHE"] = str(copy / ".loops")
    for tests in rounds:
        options = ("-q", "-x", "--no-header", "--tb=no", "-p", "no:cacheprovider")
        command = (sys.executable, "-m", "pytest", *options, *tests)
        done = subprocess.run(command, cwd=copy, env=environment, capture_output=True, text=True)
        if done.returncode == 0:
            continue
        failed = [line for line in done.stdout.splitlines() if line.startswith("FAILED")]
        # Two that fail at once interrupt pytest, which then ends with 2 and not with 1.
        if not failed and done.returncode != 1:
            raise SystemExit(f"pytest could not run {tests}: {done.stdout[-2000:]}{done.stderr}")
        return failed[0].split(" - ")[0] if failed else f"pytest exit {done.returncode}"
    return ""


if __name__ == "__main__":
    sys.exit(main())
