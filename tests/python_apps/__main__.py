"""`python -m python_apps`: many apps drawn from Python's grammar, the engine against the loop.

python -m python_apps --seeds 5000 --jobs 2      count verdicts, shrink and print what is wrong
python -m python_apps --seed 17 --shrink         one app, made small
python -m python_apps --seed 17 --show           its source and logs
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace

from python_apps.apps import DrawnApp, draw_app
from python_apps.node_kinds import Coverage
from python_apps.verdicts import RunWay, Verdict, judge, way_of
from replay_oracle.shrinking import shrink


def main() -> int:
    args = _arguments()
    if args.seed is not None:
        return _one(args)
    counts: Counter[str] = Counter()
    refusals: dict[str, list[int]] = {}
    coverage = Coverage()
    wrong = 0
    seeds = range(args.start, args.start + args.seeds)
    for seed, verdict in _verdicts(seeds, args.jobs):
        counts[count_name(verdict)] += 1
        counts["staged"] += verdict.is_staged and verdict.kind == "same"
        counts["failed as the loop did"] += verdict.has_failed
        if verdict.kind in ("same", "refused"):
            coverage.note(draw_app(seed).source, is_refused=verdict.kind == "refused")
        if verdict.kind == "refused":
            refusals.setdefault(_class(verdict.text), []).append(seed)
        elif verdict.kind != "same":
            print(f"seed {seed} {way_of(seed)}: {verdict.kind}\n{verdict.text}\n", flush=True)
        if verdict.is_wrong:
            wrong += 1
            if wrong <= args.most:
                small = smallest(draw_app(seed), way_of(seed), verdict, args.tries)
                print(f"{small.source}\nlogs = {small.logs}\n", flush=True)
    if args.refusals:
        for text, examples in sorted(refusals.items(), key=lambda item: -len(item[1])):
            print(f"refused {len(examples)}: {text}   e.g. {examples[:5]}")
    print(coverage.table())
    print("never drawn:", coverage.missing() or "nothing")
    for name, count in sorted(counts.items()):
        print(f"{name:24} {count:7} {100 * count / args.seeds:5.1f} %")
    return 1 if wrong else 0


def count_name(verdict: Verdict) -> str:
    """Return the name under which a verdict is counted: its kind, and how the app runs."""
    if verdict.kind != "same":
        return f"WRONG {verdict.kind}" if verdict.is_wrong else verdict.kind
    for way in ("serial", "rows"):
        if way in verdict.ways:
            return f"same, {way}"
    return "same, columns"


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python_apps", description=__doc__)
    parser.add_argument("--seeds", type=int, default=500)
    parser.add_argument("--start", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--seed", type=int)
    parser.add_argument("--shrink", action="store_true")
    parser.add_argument("--show", action="store_true")
    parser.add_argument("--refusals", action="store_true", help="say why apps are refused")
    parser.add_argument("--tries", type=int, default=1500)
    parser.add_argument("--most", type=int, default=20, help="how many wrong apps are shrunk")
    return parser.parse_args()


def _verdict(seed: int) -> tuple[int, Verdict]:
    return seed, judge(draw_app(seed), way_of(seed))


def _verdicts(seeds: range, jobs: int) -> Iterator[tuple[int, Verdict]]:
    if jobs == 1:
        yield from map(_verdict, seeds)
        return
    with ProcessPoolExecutor(jobs) as pool:
        yield from pool.map(_verdict, seeds, chunksize=20)


def _class(text: str) -> str:
    """Return a message without what differs from app to app."""
    plain = re.sub(r"\S*app.py|`[^`]*`|'[^']*'|\d+", "·", text.split("\n")[0])
    return " ".join(plain.split())[:200]


def _one(args: argparse.Namespace) -> int:
    drawn, way = draw_app(args.seed), way_of(args.seed)
    verdict = judge(drawn, way)
    if args.shrink and verdict.kind != "same":
        drawn = smallest(drawn, way, verdict, args.tries)
        verdict = judge(drawn, way)
    if args.show or args.shrink:
        print(drawn.source, f"\nlogs = {drawn.logs}\n")
    print(way, verdict.kind, verdict.text, sep="\n")
    return 1 if verdict.is_wrong else 0


def smallest(drawn: DrawnApp, way: RunWay, verdict: Verdict, tries: int) -> DrawnApp:
    """Make an app small that keeps its kind of verdict, and the first words where it says why."""
    words = verdict.kind not in ("same", "order", "other", "other failure", "went on")

    def fails(other: DrawnApp) -> bool:
        try:
            found = judge(other, way)
        except Exception:
            return False  # it is no app any more
        return found.kind == verdict.kind and (
            not words or _class(found.text)[:60] == _class(verdict.text)[:60]
        )

    if verdict.kind != "order":
        unordered = replace(drawn, touches=None)
        drawn = unordered if fails(unordered) else drawn
    return shrink(drawn, fails, tries)  # type: ignore[arg-type,return-value]


if __name__ == "__main__":
    sys.exit(main())
