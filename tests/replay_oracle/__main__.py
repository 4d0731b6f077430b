"""`python -m replay_oracle`: many random apps, the engine against the loop.

python -m replay_oracle --seeds 20000 --jobs 2       count verdicts, print failures
python -m replay_oracle --seed 17 --shrink           one case, made small
python -m replay_oracle --seed 17 --show             its source and logs
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor

from replay_oracle.differences import How, Verdict, judge, way_of
from replay_oracle.programs import Case, draw_case
from replay_oracle.shrinking import shrink


def main() -> int:
    args = _arguments()
    if args.seed is not None:
        return _one(args)
    seeds = range(args.start, args.start + args.seeds)
    counts: Counter[str] = Counter()
    refusals: dict[str, list[int]] = {}
    for seed, verdict in _verdicts(seeds, args.jobs):
        counts[verdict.kind] += 1
        if verdict.kind == "refused":
            refusals.setdefault(_class(verdict.text), []).append(seed)
        elif verdict.kind != "same":
            print(f"seed {seed} {way_of(seed)}: {verdict.kind}\n{verdict.text}\n", flush=True)
    for text, found in sorted(refusals.items(), key=lambda item: -len(item[1])):
        print(f"refused {len(found)}: {text}   e.g. {found[:5]}")
    print(dict(counts))
    return 1 if counts.keys() - {"same", "refused"} else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="replay_oracle", description=__doc__)
    parser.add_argument("--seeds", type=int, default=500)
    parser.add_argument("--start", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--seed", type=int)
    parser.add_argument("--shrink", action="store_true")
    parser.add_argument("--show", action="store_true")
    parser.add_argument("--tries", type=int, default=1500)
    return parser.parse_args()


def _verdict(seed: int) -> tuple[int, Verdict]:
    return seed, judge(draw_case(seed), way_of(seed))


def _verdicts(seeds: range, jobs: int) -> Iterator[tuple[int, Verdict]]:
    if jobs == 1:
        yield from map(_verdict, seeds)
        return
    with ProcessPoolExecutor(jobs) as pool:
        yield from pool.map(_verdict, seeds, chunksize=20)


def _class(text: str) -> str:
    """Return a message without what differs from app to app."""
    plain = re.sub(r"/\S*app.py|`[^`]*`|'[^']*'|\d+", "·", text)
    return " ".join(plain.split())[:200]


def _one(args: argparse.Namespace) -> int:
    case, how = draw_case(args.seed), way_of(args.seed)
    verdict = judge(case, how)
    if args.shrink and verdict.kind != "same":
        case = smallest(case, how, verdict, args.tries)
        verdict = judge(case, how)
    if args.show or args.shrink:
        print(case.source, f"\nlogs = {case.logs}\nparams = {case.params}\n")
    print(how, verdict.kind, verdict.text, sep="\n")
    return 0 if verdict.kind == "same" else 1


def smallest(case: Case, how: How, verdict: Verdict, tries: int) -> Case:
    """Make a case small that keeps its kind of verdict (of a refusal, crash or failure its first
    words, too)."""
    words = verdict.kind in ("refused", "crashed", "failed")

    def fails(other: Case) -> bool:
        try:
            found = judge(other, how)
        except Exception:
            return False  # what is no app any more
        return found.kind == verdict.kind and (
            not words or _class(found.text)[:60] == _class(verdict.text)[:60]
        )

    return shrink(case, fails, tries)


if __name__ == "__main__":
    sys.exit(main())
