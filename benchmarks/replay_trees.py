"""The replayed examples by two trees of Weir side by side: what a change costs an app.

    git worktree add /tmp/before COMMIT
    python benchmarks/replay_trees.py /tmp/before . [--events 300_000] [--rounds 2] [--runs 4]
        [--only NAME …] [--data DIR]

The four apps of `examples/replay`, and the light variant of the spam rules, by the local runner on
one core, from loading the app to the written result. Each tree runs in a process of its own; they
take turns, run by run, and each round begins with new processes. Processor time: the best run of
each. A tree that has the serial loop beside the run does without it (`--shadow 0`), then with it.
All must write the same rows.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
EXAMPLES = Path("examples", "replay")


@dataclass(frozen=True)
class Example:
    """An app of a tree, which example's generator makes its logs, and with what."""

    app: Path
    made_by: str
    count: str
    logs: Mapping[str, str]


SPAM_LOGS = {"friendship": "friendship/*.parquet", "message": "message/*.parquet"}
EXAMPLES_BY_NAME = {
    "features": Example(
        EXAMPLES / "features" / "app.py",
        "features",
        "impressions",
        {"click": "click.parquet", "impression": "impression.parquet"},
    ),
    "payments": Example(
        EXAMPLES / "payments" / "app.py",
        "payments",
        "payments",
        {name: f"{name}.jsonl" for name in ("chargeback", "support", "payment")},
    ),
    "spam": Example(EXAMPLES / "spam" / "app.py", "spam", "events", SPAM_LOGS),
    "spam, light": Example(Path("benchmarks", "replay_light_app.py"), "spam", "events", SPAM_LOGS),
    "trading": Example(
        EXAMPLES / "trading" / "app.py", "trading", "trades", {"trade": "trade.csv"}
    ),
}


# --- one tree, in a process of its own ----------------------------------------------------------


def loader() -> Callable[[Path], Any]:
    """Return what loads an app's file: old trees have it elsewhere."""
    try:
        from weir.handlers.api.app_file import load_app
    except ImportError:
        from weir.handlers.loading import load_app  # type: ignore[import-not-found,no-redef]
    return load_app


def serve() -> None:
    """Run what each line of stdin says, and print its processor time and the digests."""
    import pyarrow as pa

    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    pa.set_cpu_count(1)
    load_app = loader()
    for line in sys.stdin:
        run = json.loads(line)
        shutil.rmtree(run["out"], ignore_errors=True)
        start = time.process_time()
        app = load_app(Path(run["app"]))
        report = app.replay(logs=run["logs"], out=run["out"], parallelism=1, **run["more"])
        seconds = time.process_time() - start
        (variant,) = report.variants
        digests = sorted(str(output.digest) for output in variant.outputs)
        print("\n" + json.dumps({"seconds": seconds, "digests": digests}), flush=True)


class Tree:
    """A tree in a process of its own, with its own `weir` and its own apps."""

    def __init__(self, root: Path) -> None:
        self.root = root.resolve()
        self.has_shadow = (self.root / "src" / "weir" / "shadow").is_dir()
        self._process = subprocess.Popen(
            [sys.executable, "-W", "ignore", __file__, "--serve"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": str(self.root / "src"), "PYTHONSAFEPATH": "1"},
        )

    def run(
        self, example: Example, folder: Path, out: Path, *, shadow: bool
    ) -> tuple[float, list[str]]:
        """Replay an example's logs; return the processor time and the digests of what is
        written."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        run = {
            "app": str(self.root / example.app),
            "logs": {name: str(folder / path) for name, path in example.logs.items()},
            "out": str(out),
            "more": {"shadow": 0} if self.has_shadow and not shadow else {},
        }
        print(json.dumps(run), file=self._process.stdin, flush=True)
        for line in self._process.stdout:
            if line.startswith('{"seconds"'):
                result = json.loads(line)
                return result["seconds"], result["digests"]
        raise SystemExit(f"{self.root} failed at {run['app']}")

    def close(self) -> None:
        self._process.communicate()


# --- comparing -----------------------------------------------------------------------------------


def generated(example: Example, folder: Path, count: int) -> Path:
    """Make the logs of an example, unless they are there."""
    target = folder / f"{example.made_by}-{count}"
    if not target.is_dir():
        path = ROOT / EXAMPLES / example.made_by / "generate.py"
        spec = spec_from_file_location(f"generate_{example.made_by}", path)
        assert spec is not None and spec.loader is not None
        module = module_from_spec(spec)
        sys.modules[spec.name] = module
        spec.loader.exec_module(module)
        partial = target.with_suffix(".partial")
        shutil.rmtree(partial, ignore_errors=True)
        module.generate(partial, **{example.count: count})
        partial.rename(target)
    return target


def compare(
    roots: Sequence[Path],
    name: str,
    folders: tuple[Path, Path],
    scratch: Path,
    runs: int,
) -> list[tuple[float, float, float]]:
    """Return the seconds of the first tree, of the second without the loop beside it, and with it,
    run by run. `folders` have the logs to measure, and small ones to get ready by."""
    example, (logs, small) = EXAMPLES_BY_NAME[name], folders
    before, after = trees = [Tree(root) for root in roots]
    for tree in trees:
        tree.run(example, small, scratch / "out", shadow=True)
    measured = []
    for number in range(runs):
        results = {}
        sides = [(before, False), (after, False), (after, True)]
        for side in sides if number % 2 else sides[::-1]:
            results[side] = side[0].run(example, logs, scratch / "out", shadow=side[1])
        if len({tuple(digests) for _, digests in results.values()}) > 1:
            raise SystemExit(f"{name}: the trees wrote other rows")
        first, second, third = (results[side][0] for side in sides)
        measured.append((first, second, third))
    for tree in trees:
        tree.close()
    return measured


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("trees", nargs="*", type=Path)
    parser.add_argument("--events", type=int, default=300_000)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--runs", type=int, default=4, help="of each round")
    parser.add_argument(
        "--only", nargs="*", choices=[*EXAMPLES_BY_NAME], default=[*EXAMPLES_BY_NAME]
    )
    parser.add_argument("--data", type=Path, default=None)
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.serve:
        serve()
        return
    print(f"{'':14} {'before s':>9} {'after s':>9} {'ratio':>6} {'with loop s':>12} {'ratio':>6}")
    with tempfile.TemporaryDirectory() as temporary:
        data = args.data or Path(temporary)
        for name in args.only:
            example = EXAMPLES_BY_NAME[name]
            folders = (generated(example, data, args.events), generated(example, data, 2000))
            measured = [
                times
                for _ in range(args.rounds)
                for times in compare(args.trees, name, folders, Path(temporary), args.runs)
            ]
            before, after, shadow = (min(side) for side in zip(*measured, strict=True))
            print(
                f"{name:14} {before:9.3f} {after:9.3f} {before / after:6.2f} "
                f"{shadow:12.3f} {before / shadow:6.2f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
