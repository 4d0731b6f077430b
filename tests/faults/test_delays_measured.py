"""Delays of a job with an input that has ended beside one that goes on, in a simulated world."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from weir.job.delays import Delays, percentile
from weir.script.program import parse_program
from weir.simulator.faults import Faults
from weir.simulator.feeds import FedRow, TailFeed
from weir.simulator.simulate import draw_job, opened
from weir.simulator.workloads import Workload
from weir.simulator.world import World

PROGRAM = """
STREAM T (vs BIGINT, k STRING, v BIGINT) FROM 'tail://t.jsonl';
STREAM C (vs BIGINT, ve BIGINT, k STRING, name STRING) FROM 'tail://c.jsonl' WITH (ve = ve);
Out = SELECT T.v AS v, C.name AS name FROM T JOIN C ON T.k = C.k;
OUTPUT Out TO 'out.jsonl';
"""
LASTS = 6.0


def fed(at: float, **row: object) -> FedRow:
    return FedRow(at, (json.dumps(row) + "\n").encode())


def workload() -> Workload:
    rng = np.random.default_rng(0)
    times = np.arange(0.0, LASTS, 0.05)
    rows = [fed(float(at), vs=int(at * 1e6), k="a", v=i) for i, at in enumerate(times)]
    table = [fed(0.0, vs=0, ve=None, k="a", name="first")]
    feeds = {
        "T": [TailFeed("t.jsonl", rows, LASTS + 0.1, rng)],
        "C": [TailFeed("c.jsonl", table, 0.0, rng)],  # it has ended before anything else comes
    }
    return Workload("beside", parse_program(PROGRAM), {}, feeds)


@pytest.mark.parametrize("hosts", [1, 2])
@pytest.mark.parametrize("stop_at", [None, 2.0])
def test_an_input_that_has_ended_hides_no_delay(hosts: int, stop_at: float | None) -> None:
    measured: list[Delays] = []
    with opened(workload()) as (ready, begin):
        job = draw_job(ready, 1, np.random.default_rng(1))
        job = replace(job, feeds=begin, hosts=hosts)
        world = World(job, np.random.default_rng(2), Faults(delay=0.001))
        world.stop_at = stop_at
        start = world.managers.start

        def started() -> None:
            start()
            measured.extend(m.machine.delays for m in world.managers.alive)

        world.managers.start = started  # type: ignore[method-assign]
        assert not world.run().error
    assert len(measured) == (1 if stop_at is None else 2)
    for delays in measured:
        counts = delays.counts["sink.0"]
        assert sum(counts.values()) > 10, "most of what the endless input brought"
        longest = percentile(counts, 1.0)
        assert longest is not None and longest < 1.0
