"""Runs an example: python examples/run.py FOLDER/PROGRAM [--runner local|offline|live]

    python examples/run.py streamscope/grep
    python examples/run.py nexmark/q5 --runner offline

The folder's `generate.py`, where it has one, makes the example's data, always the same; then
`weir run` runs the program there. The digest that it prints is the one of the
folder's README, on every runner.
"""

from __future__ import annotations

import argparse
import runpy
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent


def make_data(example: Path, into: Path) -> None:
    """Write the data of an example's folder below `into`."""
    runpy.run_path(str(example / "generate.py"))["generate"](into / "data")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program", help="as in streamscope/grep")
    parser.add_argument("--runner", choices=["local", "offline", "live"], default="local")
    asked, more = parser.parse_known_args()
    program = (HERE / asked.program).with_suffix(".weir")
    if not program.is_file():
        known = sorted(str(p.relative_to(HERE).with_suffix("")) for p in HERE.glob("*/*.weir"))
        parser.error(f"no example {asked.program}; there are {', '.join(known)}")
    example = program.parent
    if (example / "generate.py").exists():
        make_data(example, example)
    with tempfile.TemporaryDirectory() as store:
        words = ["run", program.name, "--runner", asked.runner, *more]
        if asked.runner == "live" and "--store" not in more:
            words += ["--store", f"{store}/job"]
        command = [sys.executable, "-m", "weir.cli", *words]
        sys.exit(subprocess.run(command, cwd=example, check=False).returncode)


if __name__ == "__main__":
    main()
