"""`make chaos`: kills of real processes all through a live job; its answer must stay the same.

    python -m chaos [--kills 30] [--seed 1] [--master URL] [--strategy TEXT] [--keep]

A job of several stages (`live_run.py`) runs on Spark while another process writes what it reads.
Hosts, executors and the driver are killed (`kills.py`); then the input ends. The files must be
those of the local runner byte for byte, and nothing may be left of drivers that were killed. Exit
code 1 when they are not, or when the job hangs or fails; its folder is then kept.
"""

from __future__ import annotations

import argparse
import random
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from chaos.job import Answer, Job, JobFailed
from chaos.kills import Chaos, JobHangs, Kill, Kind, found_at, make_deck, running_at
from weir.job.story import StoryLine

MASTER = "local-cluster[2,2,1024]"
LIMIT = 90.0
"""Seconds in which a job must be whole again after a kill, or through after its input ended."""
ORPHANS_GONE_WITHIN = 40.0


def main() -> int:
    asked = _arguments()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that the job's processes go too
    folder = Path(tempfile.mkdtemp(prefix="weir-chaos-"))
    job = Job(folder, asked.master, seed=asked.seed, strategy=asked.strategy)
    began = time.time()
    chaos = Chaos(job, random.Random(asked.seed), LIMIT, lambda said: _say(began, said))
    try:
        trouble = _run(job, chaos, asked)
    except (JobHangs, JobFailed) as error:
        trouble = f"{type(error).__name__}: {error}"
    finally:
        job.close()
    print(_table(chaos.kills, job.story(), began))
    if trouble:
        print(f"FAILED after {len(chaos.kills)} kills (seed {asked.seed}): {trouble}")
        print(f"everything is in {folder}; its story: weir story {folder}/store")
        return 1
    if not asked.keep:
        shutil.rmtree(folder)
    print(f"{len(chaos.kills)} kills, {time.time() - began:.0f} s: one answer, byte for byte")
    return 0


def _run(job: Job, chaos: Chaos, asked: argparse.Namespace) -> str:
    """What went wrong; empty when nothing did."""
    kinds = [k for k in Kind if k is not Kind.executor or not asked.master.startswith("local[")]
    job.start()
    job.start_feeding()
    chaos.run(make_deck(asked.kills, kinds, chaos.rng))
    answer = job.finish(LIMIT)
    return _difference(job.run_locally(), answer) or _orphans(job)


def _difference(wanted: Answer, found: Answer) -> str:
    for name, digest in wanted.digests.items():
        if found.digests.get(name) != digest:
            return f"{name} has digest {found.digests.get(name)}, the local runner's {digest}"
    for name, body in wanted.files.items():
        if found.files.get(name) != body:
            return f"{name} is not byte for byte the local runner's"
    return ""


def _orphans(job: Job) -> str:
    """Processes that outlive their driver."""
    until = time.monotonic() + ORPHANS_GONE_WITHIN
    while left := [p.pid for family in job.families for p in family.look()]:
        if time.monotonic() > until:
            return f"processes of drivers that are gone: {left}"
        time.sleep(0.2)
    return ""


def _table(kills: Sequence[Kill], story: Sequence[StoryLine], began: float) -> str:
    """One line a kill; seconds from it until it was found, all vertices ran, all hosts were
    there."""
    lines = ["       at s  kind      whom                            found  running  whole"]
    for number, kill in enumerate(kills, 1):
        times = (found_at(kill, story), running_at(kill, story), kill.whole_at)
        found, running, whole = ("-" if t is None else f"{t - kill.at:.1f}" for t in times)
        lines.append(
            f"{number:3} {kill.at - began:6.1f}  {kill.kind:9} {kill.victim:30} "
            f"{found:>6} {running:>8} {whole:>6}"
        )
    return "\n".join(lines)


def _say(began: float, said: str) -> None:
    print(f"{time.time() - began:6.1f} s  {said}", file=sys.stderr, flush=True)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="chaos", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--kills", type=int, default=30, help="how many (30)")
    parser.add_argument("--seed", type=int, default=1, help="of what, whom and when (1)")
    parser.add_argument("--master", default=MASTER, help=f"Spark's, on this machine ({MASTER})")
    parser.add_argument("--strategy", default="", help="of all stages; the planner's without it")
    parser.add_argument("--keep", action="store_true", help="keep the folder in any case")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
