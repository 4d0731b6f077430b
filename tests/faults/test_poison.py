"""Rows that kill their host, in a simulated world: the job ends with their names, or gets past."""

from dataclasses import replace

import numpy as np
import pytest

from weir.job.record_reader import last_record
from weir.job.signals import EndJob
from weir.runtime.topology import vertex_name
from weir.simulator.faults import Faults, Poison
from weir.simulator.processes import SimulatedJob
from weir.simulator.simulate import SeedResult, Wish, committed, draw_job, run_seed
from weir.simulator.witness import Truth, truth_of
from weir.simulator.workloads import Workload, make_workload
from weir.simulator.world import World

NEVER_POISON = Faults(fall=0.1, crash=0.3, delay=0.01, until=8.0)


def poisoned(
    name: str, seed: int, poison: Poison, faults: Faults | None = None
) -> tuple[World, EndJob]:
    workload = make_workload(name, seed)
    job = replace(made(workload, seed), poison=poison)
    world = World(job, np.random.default_rng([seed, 4]), faults or Faults())
    return world, world.run()


def made(workload: Workload, seed: int) -> SimulatedJob:
    return draw_job(workload, 2, np.random.default_rng([seed, 3]))


def check_kept(world: World) -> None:
    ledger = last_record(world.disk)
    assert ledger is not None and not ledger.finished
    assert all(world.disk.has(key) for key in ledger.names)


def reader_of_two(workload: Workload, seed: int) -> str:
    job = made(workload, seed)
    return next(v.id for v in job.topology.order if v.kind == "inner" and len(v.inputs) > 1)


@pytest.mark.parametrize("seed", range(4))
def test_a_poisoned_row_of_a_source_is_named(seed: int) -> None:
    world, ended = poisoned("select", seed, Poison("0.0", row=3))
    assert "vertex 0.0 killed its host 3 times at row 3 of input 0 (" in ended.error, ended
    assert "killed by the simulator" in ended.error and "--resume" in ended.error
    assert world.hosts.poisoned <= 5
    check_kept(world)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("name", ["tumbling", "left_join", "user_operator"])
def test_a_poisoned_row_of_an_inner_vertex_is_named_through_other_faults(
    name: str, seed: int
) -> None:
    workload = make_workload(name, seed)
    vertex = reader_of_two(workload, seed) if name == "left_join" else "1.0"
    faults = Faults(crash=0.3, manager_crash=0.5, lose=0.1, delay=0.01, until=10.0)
    world, ended = poisoned(name, seed, Poison(vertex, row=0), faults)
    if not world.hosts.poisoned:
        assert not ended.error  # no row came its way
        return
    assert f"vertex {vertex} killed its host 3 times at row 0 of input 0" in ended.error
    check_kept(world)


@pytest.mark.parametrize("seed", range(6))
def test_an_event_time_that_kills_is_named_whichever_input_comes_last(seed: int) -> None:
    workload = make_workload("left_join", seed)
    vertex = reader_of_two(workload, seed)
    world, ended = poisoned("left_join", seed, Poison(vertex, time=9), Faults(delay=0.05))
    assert f"vertex {vertex} killed its host" in ended.error, (ended, world.time.log[-40:])
    assert world.hosts.poisoned <= 6
    check_kept(world)


@pytest.mark.parametrize("times", [1, 3])
@pytest.mark.parametrize("name", ["select", "left_join", "user_operator"])
def test_what_kills_a_few_times_and_then_no_more_changes_nothing(name: str, times: int) -> None:
    for seed in range(2):
        truth: Truth = truth_of(make_workload(name, seed), 2)
        for poison in (Poison("0.0", row=2, times=times), Poison("1.0", time=6, times=times)):
            world, ended = poisoned(name, seed, poison)
            assert ended == EndJob(), (seed, poison, ended)
            assert not world.sweep()
            for number, wanted in enumerate(truth.digests):
                assert committed(world.disk, vertex_name("sink", number)) == (wanted, None)


def told(result: SeedResult) -> str:
    return "\n".join([f"seed {result.seed}, {result.workload}: {result.reason}", *result.log])


@pytest.mark.parametrize("first", range(0, 16, 8))
def test_kills_in_steps_never_look_like_poison(first: int) -> None:
    """At no row more than twice: three at the same rows would be poison."""
    died = 0
    for seed in range(first, first + 8):
        result = run_seed(seed, wish=Wish(faults=NEVER_POISON))
        assert result.passed, told(result)
        died += sum("its host died" in line for line in result.log)
    assert died > 20
