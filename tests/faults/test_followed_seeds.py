"""Followed sources in simulated worlds: whatever goes wrong, the answer is that of the same log."""

import json
import os
from dataclasses import replace
from functools import cache, partial

import numpy as np
import pytest

from weir.script.program import parse_program
from weir.simulator.faults import Faults
from weir.simulator.feeds import FedRow, TailFeed
from weir.simulator.followed_workloads import PROGRAMS, followed_program, make_feeds
from weir.simulator.logged_truth import log_before
from weir.simulator.processes import When
from weir.simulator.simulate import (
    SeedResult,
    Wish,
    built_in,
    draw_job,
    opened,
    over_its_log,
    run_seed,
)
from weir.simulator.workloads import Workload, make_workload
from weir.simulator.world import World

SEEDS = int(os.environ.get("WEIR_FOLLOWED_SEEDS", "60"))
HARM_SEEDS = int(os.environ.get("WEIR_FOLLOWED_HARM_SEEDS", "20"))
CHUNK = 10

followed = partial(built_in, names=tuple(PROGRAMS))

OFTEN = {
    "crash": 2.0,
    "freeze": 1.5,
    "cut": 1.5,
    "write_fails": 0.4,
    "read_fails": 0.5,
    "late_writes": 1.0,
    "second_manager": 2.0,
    "jump": 2.0,
    "stop": 1.0,
    "relapse": 0.3,
}


def test_a_stream_that_no_feed_is_made_for_is_refused() -> None:
    program = parse_program("STREAM X (vs BIGINT) FROM 'tail://x.jsonl'; OUTPUT X TO 'out.csv';")
    with pytest.raises(ValueError, match="nothing feeds the stream X"):
        make_feeds(program, np.random.default_rng(0), 9)


def told(result: SeedResult, harm: str = "") -> str:
    command = f"weir simulate --seed {result.seed} --workloads {result.workload}{harm}"
    return "\n".join([f"{command}: {result.reason}", *result.log])


@pytest.mark.parametrize("first", range(0, SEEDS, CHUNK))
def test_the_answer_is_that_of_the_log(first: int) -> None:
    for seed in range(first, first + CHUNK):
        result = run_seed(seed, followed)
        assert result.passed, told(result)


@pytest.mark.parametrize("first", range(0, HARM_SEEDS, CHUNK))
def test_harm_to_a_log_gives_the_answer_of_the_log_or_a_clear_end(first: int) -> None:
    for seed in range(first, first + CHUNK):
        result = run_seed(seed, followed, Wish(harm=2.0))
        assert result.passed, told(result, " --harm 2")


@pytest.mark.parametrize("seed", [124])
def test_a_seed_that_failed_once(seed: int) -> None:
    result = run_seed(seed, followed)
    assert result.passed, told(result)


@pytest.mark.parametrize("kind", OFTEN)
def test_one_kind_of_fault_often(kind: str) -> None:
    also = {"crash": 1.0} if kind in ("late_writes", "read_fails", "relapse") else {}
    faults = Faults(delay=0.02, until=4.0, **{**also, kind: OFTEN[kind]})
    for number, name in enumerate(PROGRAMS):
        result = run_seed(number, lambda s, name=name: make_workload(name, s), Wish(faults=faults))
        assert result.passed, told(result)


def test_a_followed_seed_is_the_same_every_time() -> None:
    first, second = run_seed(17, followed), run_seed(17, followed)
    assert first.log == second.log and first.steps == second.steps


# --- on purpose ----------------------------------------------------------------------------------


@cache
def small(name: str) -> Workload:
    return make_workload(name, 5, most_rows=8)


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("name", ["followed_tail", "followed_folder", "followed_socket"])
def test_a_source_that_dies_at_each_record_of_its_log(name: str, when: When) -> None:
    """Between a claim, a row or a file and its effect."""
    wish = Wish(faults=Faults(), parallelism=1, hosts=2)
    steps = run_seed(5, lambda _: small(name), wish).steps
    logged = [number for number, step in enumerate(steps) if step == "log"]
    assert logged
    for number in logged:
        crash = Wish(faults=Faults(), parallelism=1, hosts=2, crashes={number: when})
        result = run_seed(5, lambda _: small(name), crash)
        assert result.passed, f"{when} step {number}: {told(result)}"


def rows(first: float, stop: float, step: float) -> list[FedRow]:
    times = np.arange(first, stop, step)
    texts = (json.dumps({"vs": int(at * 1e6), "k": "a", "v": i}) for i, at in enumerate(times))
    return [FedRow(float(at), f"{text}\n".encode()) for at, text in zip(times, texts, strict=True)]


def test_the_time_of_a_partition_that_appears_later_starts_where_its_claims_are() -> None:
    rng = np.random.default_rng(0)
    feeds = [
        TailFeed("t0.jsonl", rows(0.0, 3.0, 0.1), 3.1, rng),
        # It brings rows of the last half second, of which some lie before its claims.
        TailFeed("t1.jsonl", [FedRow(2.0, r.text) for r in rows(1.5, 2.0, 0.05)], 3.1, rng),
    ]
    workload = Workload("late", followed_program("followed_tail"), {}, {"T": feeds})
    with opened(workload) as (ready, begin):
        job = draw_job(ready, 1, np.random.default_rng(1))
        world = World(replace(job, feeds=begin), np.random.default_rng(2), Faults(delay=0.001))
        assert not world.run().error
        logged = over_its_log(workload, world).partitions["T"][1]
    log = log_before(world.disk, world.sources.ends["0.1"][1])
    before = [r.claim for r in log if r.claim is not None and r.offset == 0]
    assert len(before) > 3, "while it was not there it did not hold the others back"
    assert max(before) > 1.5e6
    chunks = list(logged.chunks())
    assert chunks[0].cti_times.tolist() == before and len(chunks[1].offsets) == 10
