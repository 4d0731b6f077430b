"""Seeds: one number draws a job, a world and its faults; a run of it is judged.

After every run
1. each output has the rows of the run without faults (digest and count, from the local runner),
   and its commits follow one another without a gap;
2. every stream was read from its first row to its last, each row under its number (`witness.py`);
3. nothing that only a running job needs is left in the store, nor rows that no commit names;
4. no record ever named an object that was deleted, and every host heard that the job is over.
If an adversary harms the store (`Wish.harm`), a run may also end with an error that says what is
lost; it never gives another answer, and never goes on for ever.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from tempfile import TemporaryDirectory

import numpy as np

from weir.errors import RunError, SnapshotCorrupt
from weir.files.chunks import SourcePartition
from weir.job.commit_log import decode_commit, decode_part, read_part
from weir.job.output_reader import commits
from weir.job.record_reader import known_record
from weir.job.settings import HostSettings, ManagerSettings
from weir.plan.horizon import horizons
from weir.plan.strategy import NamedStrategy
from weir.reliable.digest import Digest, digest
from weir.reliable.object_names import commit_key
from weir.reliable.strategies import make_strategy
from weir.runtime.instance_factory import InstanceMaker
from weir.runtime.program_plan import plan_program
from weir.runtime.topology import vertex_name
from weir.runtime.vertices import source_of
from weir.simulator.faults import Faults, drawn_faults
from weir.simulator.logged_truth import LoggedPartition, log_before
from weir.simulator.processes import SimulatedJob, When
from weir.simulator.simulated_disk import SimulatedDisk
from weir.simulator.timeline import Timeline
from weir.simulator.witness import Truth, Witness, truth_of
from weir.simulator.workloads import MOST_ROWS, Workload, choose, make_workload, workload_names
from weir.simulator.world import World

Choose = Callable[[int], Workload]
"""Chooses the workload of a seed."""


@dataclass(frozen=True, slots=True)
class SeedResult:
    """The result of a seed's run."""

    seed: int
    workload: str
    reason: str | None
    """What was wrong, if anything was."""
    log: tuple[str, ...]
    """The story of the world, line by line."""
    simulated_seconds: float
    faults: Faults
    steps: tuple[str, ...]
    """The kinds of the durable steps, in order."""
    digests: tuple[str, ...]
    """What the outputs must have, and have if it passed; none if it is not known."""

    @property
    def passed(self) -> bool:
        return self.reason is None


@dataclass(frozen=True, slots=True)
class Wish:
    """Says what of a seed's world is to be otherwise than drawn; None: as it is drawn."""

    faults: Faults | None = None
    """The faults, instead of the drawn ones."""
    harm: float = 0.0
    """How often an adversary harms the store, per second."""
    kinds: tuple[str, ...] | None = None
    """The kinds of faults that happen; others that were drawn do not."""
    until: float | None = None
    """The simulated second after which nothing goes wrong any more."""
    crashes: Mapping[int, When] | None = None
    """The durable steps, by number, at which their writers die."""
    strategy: NamedStrategy | None = None
    """The strategy of all vertices between sources and sinks."""
    then: NamedStrategy | None = None
    """Their strategy after the job was stopped and resumed."""
    parallelism: int | None = None
    hosts: int | None = None
    stop_at: float | None = None
    """The simulated second at which the job is asked to stop."""
    held_until: float = 0.0
    """The simulated second at which the sinks are released; until then they are held."""

    def apply(self, drawn: Faults) -> Faults:
        """Change the faults that were drawn as this wish says."""
        faults = self.faults if self.faults is not None else drawn
        faults = replace(faults, harm=self.harm or faults.harm)
        if self.kinds is not None:
            faults = faults.only(self.kinds)
        return faults if self.until is None else replace(faults, until=self.until)


def built_in(seed: int, names: Sequence[str] | None = None) -> Workload:
    """Make the built-in workload of a seed (one of `names`), with its rows."""
    return make_workload(choose(seed, names or workload_names()), seed)


def run_seed(seed: int, workload: Choose = built_in, wish: Wish | None = None) -> SeedResult:
    """Run a job in the world of this seed and judge it.

    >>> run_seed(1).passed
    True
    """
    wish = wish or Wish()
    chosen = workload(seed)
    faults = wish.apply(drawn_faults(np.random.default_rng([seed, 2])))
    rng = np.random.default_rng([seed, 3])
    parallelism = int(rng.integers(1, 4))
    if wish.parallelism is not None:
        parallelism = wish.parallelism
    with opened(chosen) as (followed, feeds):
        job = draw_job(followed, parallelism, rng, wish.strategy)
        truth = truth_of(chosen, parallelism) if chosen.feeds is None else None
        witness = Witness(truth, job.topology, forgets=faults.harm > 0)
        hosts = wish.hosts if wish.hosts is not None else job.hosts

        def watched(job: SimulatedJob) -> SimulatedJob:
            make = job.make
            return replace(
                job,
                make=lambda *arguments: witness.watch(make(*arguments)),
                hosts=hosts,
                feeds=feeds,
            )

        world = World(watched(job), np.random.default_rng([seed, 4]), faults)
        world.store.crashes.update(wish.crashes or {})
        world.stop_at, world.held_until = wish.stop_at, wish.held_until
        if wish.then is not None:
            same = np.random.default_rng([seed, 3])  # all else is drawn as before
            same.integers(1, 4)
            world.resumed_as = watched(draw_job(followed, parallelism, same, wish.then))
        try:
            ended = world.run()
            if truth is None and not ended.error:
                truth = truth_of(over_its_log(chosen, world), parallelism)
            reason = judge(world, truth, witness, ended.error)
        except Exception as error:  # a seed that breaks a machine is a result, with its story
            reason = f"{type(error).__name__}: {error}"
    log, steps = tuple(world.time.log), tuple(world.store.steps)
    digests = () if truth is None else tuple(map(str, truth.digests))
    return SeedResult(
        seed=seed,
        workload=chosen.name,
        reason=reason,
        log=log,
        simulated_seconds=world.time.now,
        faults=faults,
        steps=steps,
        digests=digests,
    )


# --- the job ---------------------------------------------------------------------------------


@contextmanager
def opened(
    workload: Workload,
) -> Iterator[tuple[Workload, Sequence[Callable[[Timeline], None]]]]:
    """Open the partitions of a workload, and return the functions that bring their rows; files lie
    in a folder of the run's own."""
    if workload.feeds is None:
        yield workload, []
        return
    with TemporaryDirectory(prefix="weir-seed-") as folder:
        partitions = {
            source.name: [f.connector(source, folder) for f in workload.feeds[source.name]]
            for source in workload.program.sources
            if source.name in workload.feeds
        }
        feeds = [partial(f.begin, folder) for of in workload.feeds.values() for f in of]
        yield replace(workload, partitions=partitions), feeds


def over_its_log(workload: Workload, world: World) -> Workload:
    """Make the same workload over partitions that have what the log of each source says."""
    assert workload.feeds is not None
    partitions: dict[str, list[SourcePartition]] = {name: [] for name in workload.feeds}
    for vertex, source in world.job.sources.items():
        if vertex not in world.sources.ends:
            raise RunError(f"the job has ended, and the source {vertex} has not")
        log = log_before(world.disk, world.sources.ends[vertex][1])
        feed = workload.feeds[source.name][len(partitions[source.name])]
        name = world.job.partitions[vertex].name
        partitions[source.name].append(LoggedPartition(name, source, feed, log))
    return replace(workload, partitions=partitions)


def draw_job(
    workload: Workload,
    parallelism: int,
    rng: np.random.Generator,
    strategy: NamedStrategy | None = None,
) -> SimulatedJob:
    """Draw a job that runs this workload."""
    planned = plan_program(workload.program, parallelism)
    plan, topology = planned.stages, planned.topology(workload.partitions)
    names = {n: [p.name for p in parts] for n, parts in workload.partitions.items()}
    sources = {v.id: source_of(plan, v) for v in topology.sources}
    partitions = {
        v: workload.partitions[source.name][topology.vertices[v].index]
        for v, source in sources.items()
    }
    cut = int(rng.choice([1, 2, 3, 7, 100]))
    # How many seconds the inputs last, so that things can go wrong at any stage of the job.
    lasts = float(rng.choice([0.0, 1.0, 5.0]))
    has_horizon = [h.known for h in horizons(plan)]
    strategies = {
        v.id: make_strategy(
            _strategy(v.kind, rng, strategy, v.kind == "inner" and has_horizon[v.stage])
        )
        for v in topology.order
    }
    # Drawn apart, so that what else a seed draws stays what it was.
    (apart,) = rng.spawn(1)
    return SimulatedJob(
        topology=topology,
        strategies=strategies,
        make=InstanceMaker(
            plan,
            names,
            strategies=strategies,
            check=True,
            ahead_rows=int(apart.choice([0, 5, 1000])),
        ),
        partitions=partitions,
        sources=sources,
        cut=cut,
        # Feeds bring their rows at their own pace.
        pace=0.0 if workload.feeds is not None else _pace(cut, lasts, partitions.values()),
        hosts=int(rng.integers(1, 4)),
        host_settings=HostSettings(
            tail_buffer=int(rng.choice([200, 4000, 1 << 20])),
            flush_interval=float(rng.choice([0.01, 0.2, 5.0])),
            segment_size=int(rng.choice([100, 2000, 1 << 20])),
            send_buffer=int(rng.choice([100, 1 << 20])),
            ahead_buffer=int(apart.choice([0, 500, 1 << 20])),
            commit_interval=float(rng.choice([0.05, 0.5])),
            synchronous=bool(rng.random() < 0.1),
            check=True,
        ),
        manager_settings=ManagerSettings(
            patience=1.0,
            trouble_limit=120.0,
            sweep_every=float(rng.choice([0.3, 2.0])),
            apart_limit=float(apart.choice([0.5, 3.0])),
            differences=4,  # so that bases are made and left behind in so short a time
            kept_records=3,
        ),
    )


def _pace(cut: int, lasts: float, partitions: Iterable[SourcePartition]) -> float:
    """Return the seconds of a chunk, so that the longest partition takes about `lasts`."""
    most = max([MOST_ROWS, *(partition.size for partition in partitions)])
    return lasts * min(cut, most) / most


def _strategy(
    kind: str, rng: np.random.Generator, named: NamedStrategy | None, can_replay: bool
) -> NamedStrategy:
    """Draw a vertex's strategy, or take the wanted one if it suits; sources and sinks take
    checkpoints."""
    every, drawn = float(rng.choice([0.03, 0.3, 3.0])), rng.random()
    if kind != "inner":
        return NamedStrategy("checkpoint", every)
    if named is not None and (can_replay or not named.needs_horizon):
        return replace(named, every=every)
    if can_replay and drawn < 0.4:
        return NamedStrategy("replay", every)
    if drawn < 0.6:
        return NamedStrategy("replicate", every, copies=2)
    return NamedStrategy("checkpoint", every)


# --- judging ---------------------------------------------------------------------------------


def judge(world: World, truth: Truth | None, witness: Witness, error: str | None) -> str | None:
    """Say what is wrong with a run that ended; None: nothing."""
    if error:
        return None if _says_what_is_lost(world.disk, error) else f"the job failed: {error}"
    assert truth is not None
    unlike = witness.unlike(truth)
    if unlike:
        return unlike
    if world.faults.harm:
        world.harm()  # a job that has finished has a store too
        try:
            return _judge_readers(world, truth)
        except SnapshotCorrupt as corrupt:
            return None if _says_what_is_lost(world.disk, str(corrupt)) else f"unclear: {corrupt}"
    left = world.sweep()
    if left:
        return f"not collected: {', '.join(left)}"
    for number, expected in enumerate(truth.digests):
        actual, why = committed(world.disk, vertex_name("sink", number))
        if why:
            return why
        if actual != expected:
            return f"output {number} has digest {actual}, wanted {expected}"
    return _judge_readers(world, truth) or witness.unread()


def _says_what_is_lost(disk: SimulatedDisk, error: str) -> bool:
    """Say whether an error is a clear end: the store was harmed, and the error names an object that
    was, or the vertex that cannot go on."""
    if not disk.harmed and not disk.flipped:
        return False
    return "no checkpoint that can be read" in error or any(k in error for k in disk.harmed)


def _judge_readers(world: World, truth: Truth) -> str | None:
    """Compare what readers of the outputs get with the truth; then sweep the store."""
    world.disk.settle()
    ledger = known_record(world.disk, len(truth.digests))
    for number, expected in enumerate(truth.digests):
        actual = Digest()
        for link in commits(world.disk, vertex_name("sink", number), ledger):
            for _, rows in read_part(world.disk, link):
                actual += digest(rows)
        if actual != expected:
            return f"readers of output {number} get {actual}, wanted {expected}"
    world.sweep()
    return None


def committed(disk: SimulatedDisk, sink: str) -> tuple[Digest, str | None]:
    """Compute the digest of all committed rows of an output, and say what is wrong with its commits
    (None: nothing)."""
    total, number = Digest(), 0
    positions: tuple[int, ...] = ()
    while disk.has(key := commit_key(sink, number)):
        commit = decode_commit(key, disk.body(key))
        if any(a < b for a, b in zip(commit.inputs, positions, strict=False)):
            return total, f"{sink}: commit {number} goes back to {commit.inputs}"
        positions = commit.inputs
        if commit.part is not None:
            part = commit.part.key
            if not disk.has(part):
                return total, f"{sink}: commit {number} without its part {part}"
            for _, rows in decode_part(part, disk.body(part)):
                total += digest(rows)
        if total != commit.digest:
            return total, f"{sink}: commit {number} says {commit.digest}, its rows {total}"
        number += 1
    return total, None


# --- making a failure small --------------------------------------------------------------------

UNTIL = (0.5, 1.0, 2.0, 4.0, 8.0)
"""The ends of the faults that `minimise` tries, in simulated seconds."""


def minimise(
    failed: SeedResult, workload: Choose = built_in, wish: Wish | None = None
) -> tuple[Wish, SeedResult]:
    """Find few kinds of faults, and an early end of them, with which a seed still fails."""
    wish = replace(wish or Wish(), kinds=failed.faults.kinds)
    smallest = failed
    for kind in failed.faults.kinds:
        fewer = tuple(k for k in wish.kinds or () if k != kind)
        tried = run_seed(failed.seed, workload, replace(wish, kinds=fewer))
        if not tried.passed:
            wish, smallest = replace(wish, kinds=fewer), tried
    for until in UNTIL:
        if until >= smallest.faults.until:
            break
        tried = run_seed(failed.seed, workload, replace(wish, until=until))
        if not tried.passed:
            return replace(wish, until=until), tried
    return wish, smallest
