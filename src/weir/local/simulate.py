"""Seeds: a job, a world and its faults from one number, and whether the answer came out right.

After every run: each output has the rows of the run without faults (digest and count, from the
local runner), the commits follow one another without a gap, and everything that only a running
job needs is collected.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from weir.events.batch import Batch
from weir.io.chunks import Partition
from weir.job.keys import commit_key
from weir.job.manager import ManagerSettings
from weir.job.running import HostSettings, decode_commit
from weir.job.strategy import Strategy
from weir.job.topology import make_topology
from weir.local.instances import InstanceMaker
from weir.local.runner import LocalRun
from weir.local.simulated_disk import SimulatedDisk
from weir.local.simulator import Faults, SimulatedJob, World, drawn_faults
from weir.plan.horizon import horizons
from weir.plan.nodes import Program
from weir.plan.rewrites import rewrite
from weir.plan.stages import StagedPlan, cut_stages
from weir.reliable.codec import decode_entries
from weir.reliable.digest import Digest, digest


@dataclass(frozen=True, slots=True)
class Workload:
    """A program with its data in memory, and the digests of its outputs."""

    name: str
    program: Program
    partitions: Mapping[str, Sequence[Partition]]


@dataclass(frozen=True, slots=True)
class SeedResult:
    """What came of a seed; `reason` is empty when all was right."""

    seed: int
    workload: str
    reason: str
    log: tuple[str, ...]
    simulated_seconds: float

    @property
    def passed(self) -> bool:
        return not self.reason


def run_seed(
    seed: int,
    workloads: Sequence[Workload],
    *,
    faults: Faults | None = None,
    crash_before: int | None = None,
    crash_after: int | None = None,
    strategy: Strategy | None = None,
) -> SeedResult:
    """Run a job in the world of this seed and judge it."""
    rng = np.random.default_rng(seed)
    workload = workloads[int(rng.integers(len(workloads)))]
    parallelism = int(rng.integers(1, 4))
    drawn = drawn_faults(rng)
    job = make_job(workload, parallelism, rng, strategy)
    world = World(job, rng, faults if faults is not None else drawn)
    world.crash_before, world.crash_after = crash_before, crash_after
    try:
        ended = world.run()
        reason = judge(world, workload, parallelism, ended.error)
    except Exception as error:  # a seed that breaks a machine is a result, shown with its story
        reason = f"{type(error).__name__}: {error}"
    return SeedResult(seed, workload.name, reason, tuple(world.log), world.now)


def staged(program: Program, parallelism: int) -> StagedPlan:
    return cut_stages(rewrite(program), parallelism)


def make_job(
    workload: Workload,
    parallelism: int,
    rng: np.random.Generator,
    strategy: Strategy | None = None,
) -> SimulatedJob:
    plan = staged(workload.program, parallelism)
    counts = plan.vertex_counts(lambda s: len(workload.partitions[s.name]))
    topology = make_topology(plan, counts)
    names = {n: [p.name for p in parts] for n, parts in workload.partitions.items()}
    partitions = {
        v.id: workload.partitions[plan.stages[v.stage].operators[0].name][v.index]  # type: ignore[union-attr]
        for v in topology.order
        if v.kind == "source"
    }
    known = [h.known for h in horizons(plan)]
    strategies = {
        v.id: _strategy_for(v.kind, rng, strategy, v.kind == "inner" and known[v.stage])
        for v in topology.order
    }
    return SimulatedJob(
        topology,
        strategies,
        InstanceMaker(plan, names, strategies=strategies, check=True),
        partitions,
        cut=int(rng.choice([1, 2, 3, 7, 100])),
        hosts=int(rng.integers(1, 4)),
        host_settings=HostSettings(
            tail_bytes=int(rng.choice([200, 4000, 1 << 20])),
            flush_after=float(rng.choice([0.01, 0.2, 5.0])),
            segment_bytes=int(rng.choice([100, 2000, 1 << 20])),
            window_bytes=int(rng.choice([100, 1 << 20])),
            commit_every=float(rng.choice([0.05, 0.5])),
            check=True,
        ),
        manager_settings=ManagerSettings(patience=1.0, trouble_limit=120.0),
    )


def _strategy_for(
    kind: str, rng: np.random.Generator, strategy: Strategy | None, can_replay: bool
) -> Strategy:
    """The one that is given where it fits, else one that is drawn."""
    if strategy is not None and (can_replay or strategy.kind != "replay"):
        return strategy
    every = float(rng.choice([0.03, 0.3, 3.0]))
    if can_replay and rng.random() < 0.5:
        return Strategy("replay", every)
    if kind == "inner" and rng.random() < 0.3:
        return Strategy("replicate", every, copies=2)
    return Strategy("checkpoint", every)


def judge(world: World, workload: Workload, parallelism: int, error: str) -> str:
    """What is wrong with a run that ended; empty: nothing."""
    if error:
        rotten = world.disk.flipped and "no checkpoint that can be read" in error
        return "" if rotten else f"the job failed: {error}"
    for number, wanted in enumerate(expected_digests(workload, parallelism)):
        came, why = committed(world.disk, f"sink.{number}")
        if why:
            return why
        if came != wanted:
            return f"output {number} has digest {came}, wanted {wanted}"
    left = world.left_over
    return f"not collected: {', '.join(left)}" if _uncollected(world, left) else ""


def _uncollected(world: World, left: Sequence[str]) -> bool:
    """What the last record names may stay until the job's folder is removed."""
    return len(left) > 3 * len(world.job.topology.order) + 8


def committed(disk: SimulatedDisk, sink: str) -> tuple[Digest, str]:
    """The digest of all committed rows of an output, read back; and what is wrong with them."""
    total, number = Digest(), 0
    positions: tuple[int, ...] | None = None
    while (body := disk.get(commit_key(sink, number))) is not None:
        commit = decode_commit(body)
        if positions is not None and any(
            a < b for a, b in zip(commit.inputs, positions, strict=True)
        ):
            return total, f"{sink}: commit {number} goes back to {commit.inputs}"
        positions = commit.inputs
        if commit.part:
            part = disk.get(commit.part)
            if part is None:
                return total, f"{sink}: commit {number} without its part {commit.part}"
            rows: Batch = decode_entries(part)[0].rows
            total += digest(rows)
        if total != commit.digest:
            return total, f"{sink}: commit {number} says {commit.digest}, its rows {total}"
        number += 1
    return total, ""


def expected_digests(workload: Workload, parallelism: int) -> list[Digest]:
    """What the local runner answers."""
    nowhere = [lambda vertex, rows: None for _ in workload.program.outputs]
    run = LocalRun(workload.program, workload.partitions, nowhere, parallelism=parallelism)
    run.run()
    return [egress.digest for egress in run.egress]
