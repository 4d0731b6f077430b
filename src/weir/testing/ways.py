"""The ways in which `check` runs a program, each with the likely cause if its answer differs.

Only the first way that differs is reported, so the ways that explain most come first: the same run
again, then cuts and parallelism, restarts, duplicate writes, another process, kills and faults.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Literal

from weir.errors import WeirError
from weir.local.second_run import more_calls
from weir.plan.program import Program
from weir.testing.memory_runs import memory_partitions
from weir.testing.other_process import OtherProcess
from weir.testing.trials import GivenProgram, LocalWay, Ran, difference, first_writer, run_locally

if TYPE_CHECKING:
    from weir.simulator.simulate import SeedResult, Wish
    from weir.simulator.workloads import Workload

CUTS = (1, 2, 7)
PARALLELISM = (1, 2, 3)

CALLS = "a function called again returns another value: it is random, counts, or keeps things"
GROUPS = "a function or an operator depends on which rows come together, or in which order"
SPREAD = "vertices or functions share something, or the result depends on an arbitrary order"
KEPT = "an operator keeps something that is not in its declared state"
AGAIN = "a function or an operator keeps something outside of its declared state"
PROCESS = "it uses `hash()`, the order of a set, the time zone, the locale or the environment"
GLOBALS = "a function keeps something in globals: a cache, or the first value that it saw"
KILLS = "something survives the restart of a vertex, or is lost by it"
SPARK = "something differs between Python processes: globals, hashes, the environment"


@dataclass(frozen=True, slots=True)
class Way:
    """A way to run a program. `differs` returns how its answer differs from the first answer; None
    if it does not."""

    name: str
    suspicion: str
    differs: Callable[[GivenProgram, Ran], str | None]
    trials: int = 300
    """The number of runs that may be used to shrink a counterexample."""
    simpler: Callable[[GivenProgram], Sequence[Way]] = lambda trial: ()
    """Ways that narrow down the cause, for a small trial."""


def local_ways(cuts: Sequence[int] = CUTS, parallelism: Sequence[int] = PARALLELISM) -> list[Way]:
    """Return the ways to run in this process, without faults."""
    ways = [
        Way("run once more", CALLS, partial(_differs, LocalWay())),
        Way("with functions called more often than needed", CALLS, _with_more_calls),
    ]
    ways += [_local(f"in batches of {_rows(c)}", GROUPS, LocalWay(cut=c)) for c in cuts]
    for spread in (p for p in parallelism if p > 1):
        name = f"with parallelism {spread}"
        ways.append(_local(name, SPREAD, LocalWay(parallelism=spread)))
        ways.append(_local(f"{name}, in batches of 1 row", SPREAD, LocalWay(1, spread)))
    for spread in sorted({min(parallelism), max(parallelism)}):
        name = f"with parallelism {spread}, " if spread > 1 else ""
        every = LocalWay(1, spread, restart=-1)
        restarted = _local(f"{name}every vertex restarted after each row", KEPT, every)
        ways.append(replace(restarted, simpler=partial(_single_restarts, every, name)))
        again = LocalWay(3, spread, duplicate_writes=spread)
        ways.append(_local(f"{name}rows written again (seed {spread})", AGAIN, again))
    return ways


def _rows(count: int) -> str:
    return "1 row" if count == 1 else f"{count} rows"


def _local(name: str, suspicion: str, way: LocalWay) -> Way:
    return Way(name, suspicion, partial(_differs, way))


def _differs(way: LocalWay, trial: GivenProgram, first: Ran) -> str | None:
    ran = run_locally(trial, way)
    shown = difference(trial.program, first, ran)
    if not shown or ran.error:
        return shown
    spread = way.parallelism
    plain = first if spread == 1 else run_locally(trial, LocalWay(parallelism=spread))
    writer = first_writer(trial, spread, plain, ran)
    return f"{shown}\nfirst after: {writer}" if writer else shown


def _with_more_calls(trial: GivenProgram, first: Ran) -> str | None:
    with more_calls():
        return _differs(LocalWay(), trial, first)


def _single_restarts(every: LocalWay, name: str, trial: GivenProgram) -> list[Way]:
    return [
        _local(
            f"{name}cut after every row, every vertex restarted after step {step + 1}", KEPT, way
        )
        for step in range(trial.count + len(trial.rows))
        for way in [replace(every, restart=step)]
    ]


def other_processes(process: OtherProcess, parallelism: Sequence[int]) -> list[Way]:
    """Return the ways to run in processes with another hash seed, time zone and locale, which have
    called nothing before."""

    def differs(way: LocalWay, trial: GivenProgram, first: Ran) -> str | None:
        return difference(trial.program, first, process.run(trial, way))

    name = f"in another process ({process.environment})"
    ways = [Way(name, PROCESS, partial(differs, LocalWay()))]
    if (spread := max(parallelism)) > 1:
        name = f"in another process, with parallelism {spread}, in batches of 1 row"
        ways.append(Way(name, GLOBALS, partial(differs, LocalWay(1, spread)), trials=100))
    return ways


# --- in the simulator --------------------------------------------------------------------

WHENS: tuple[Literal["before", "torn", "after"], ...] = ("before", "torn", "after")


def kill_points(trial: GivenProgram, kills: int | None) -> Iterator[Way]:
    """Yield the ways in which a process of a live job is killed at one of its durable steps:
    `kills` steps, spread evenly, or all."""
    from weir.simulator.faults import Faults
    from weir.simulator.simulate import Wish

    quiet = Wish(faults=Faults(), parallelism=2, hosts=2)
    whole = _simulated(trial, 0, quiet)
    yield Way("as a live job (simulated)", KILLS, partial(_world, 0, quiet), trials=100)
    points = [(step, when) for step in range(len(whole.steps)) for when in WHENS]
    few = len(points) if kills is None else min(kills, len(points))
    for number in range(few):
        step, when = points[number * len(points) // few]
        at = f"at durable step {step + 1} of {len(whole.steps)} ({whole.steps[step]}, {when})"
        wish = replace(quiet, crashes={step: when})
        name = f"as a live job (simulated) whose process is killed {at}"
        yield Way(name, KILLS, partial(_world, 0, wish), trials=100)


def worlds(count: int) -> list[Way]:
    """Return the ways to run in simulated clusters with random faults, by seed."""
    from weir.simulator.simulate import Wish

    return [
        Way(
            f"as a live job in a simulated cluster with faults (seed {seed})",
            KILLS,
            partial(_world, seed, Wish()),
            trials=100,
            simpler=partial(_fewer_faults, seed),
        )
        for seed in range(1, count + 1)
    ]


def _simulated(trial: GivenProgram, seed: int, wish: Wish) -> SeedResult:
    from weir.simulator.simulate import run_seed

    return run_seed(seed, partial(_workload, trial), wish)


def _workload(trial: GivenProgram, seed: int) -> Workload:
    from weir.simulator.workloads import Workload

    return Workload("check", trial.program, memory_partitions(trial.program, trial.rows))


def _world(seed: int, wish: Wish, trial: GivenProgram, first: Ran) -> str | None:
    result = _simulated(trial, seed, wish)
    return result.reason or difference(trial.program, first, Ran(result.digests))


def _fewer_faults(seed: int, trial: GivenProgram) -> list[Way]:
    from weir.simulator.simulate import Wish, minimise

    failed = _simulated(trial, seed, Wish())
    if failed.passed:  # an answer that differs only sometimes may not differ now
        return []
    wish, _ = minimise(failed, partial(_workload, trial))
    kinds = ", ".join(wish.kinds or ()) or "none"
    name = f"as a live job in a simulated cluster (seed {seed}; faults: {kinds})"
    return [Way(name, KILLS, partial(_world, seed, wish))]


# --- on Spark ----------------------------------------------------------------------------


def offline_way() -> Way:
    """Return the way to run with the offline runner, which needs Spark and Java."""
    return Way("by the offline runner", SPARK, _offline, trials=8)


def _offline(trial: GivenProgram, first: Ran) -> str | None:
    from weir.spark.offline.run_offline import run_programs
    from weir.spark.session import session

    with tempfile.TemporaryDirectory(prefix="weir-check-") as folder, session() as spark:
        try:
            (report,) = run_programs(
                [_to_files(trial.program)],
                spark,
                directory=folder,
                parallelism=2,
                partitions=[memory_partitions(trial.program, trial.rows)],
            )
        except WeirError as error:
            return f"this run fails: {type(error).__name__}: {error}"
    return difference(trial.program, first, Ran(tuple(o.digest for o in report.outputs)))


def _to_files(program: Program) -> Program:
    outputs = (replace(o, path=f"{number}.jsonl") for number, o in enumerate(program.outputs))
    return replace(program, outputs=tuple(outputs))
