"""Runs an example: python examples/run.py FOLDER/PROGRAM [--runner local|offline|live]

    python examples/run.py streamscope/grep
    python examples/run.py nexmark/q5 --runner offline
    python examples/run.py replay/spam --runner live

The folder's `generate.py`, where it has one, makes the example's data, always the same; then
`weir run` runs the program there. An app of event handlers is its folder, `app.py` in it. The
digest that it prints is the one of the folder's README, on every runner.
"""

from __future__ import annotations

import argparse
import runpy
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent


def make_data(example: Path, into: Path) -> None:
    """Write the data of an example's folder below `into`."""
    runpy.run_path(str(example / "generate.py"))["generate"](into / "data")


def programs() -> list[Path]:
    """All scripts of examples that have data, or make them."""
    has_data = {p.parent for name in ("generate.py", "data") for p in HERE.glob(f"*/{name}")}
    return sorted(p for p in HERE.glob("*/*.weir") if p.parent in has_data)


def apps() -> list[Path]:
    """All apps of event handlers."""
    return sorted(HERE.glob("replay/*/app.py"))


def log_options(data: Path) -> list[str]:
    """The options that name an app's logs: each is a file of `data`, or a folder of such."""
    options = []
    for log in sorted(data.iterdir()):
        path = f"{data.name}/{log.name}" + ("/*" if log.is_dir() else "")
        options += ["--log", f"{log.stem}={path}"]
    return options


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program", help="as in streamscope/grep")
    parser.add_argument("--runner", choices=["local", "offline", "live"], default="local")
    asked, more = parser.parse_known_args()
    program = HERE / asked.program / "app.py"
    if program not in apps():
        program = (HERE / asked.program).with_suffix(".weir")
    example = program.parent
    if program not in (*programs(), *apps()):
        known = [str(p.relative_to(HERE).with_suffix("")) for p in programs()]
        known += [str(p.parent.relative_to(HERE)) for p in apps()]
        page = example / "README.md"
        see = f" (see {page})" if page.is_file() and page.parent != HERE else ""
        parser.error(f"no example {asked.program}{see}; there are {', '.join(known)}")
    if program in apps():
        shutil.rmtree(example / "data", ignore_errors=True)
        subprocess.run([sys.executable, "generate.py", "data"], cwd=example, check=True)
        more = [*log_options(example / "data"), "--out", "out", *more]
    elif (example / "generate.py").exists():
        make_data(example, example)
    with tempfile.TemporaryDirectory() as store:
        words = ["run", program.name, "--runner", asked.runner, *more]
        if asked.runner == "live" and "--store" not in more:
            words += ["--store", f"{store}/job"]
        command = [sys.executable, "-m", "weir.cli", *words]
        sys.exit(subprocess.run(command, cwd=example, check=False).returncode)


if __name__ == "__main__":
    main()
