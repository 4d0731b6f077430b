"""The topology: names, order, generations, and cycles that a back edge closes."""

from __future__ import annotations

import fnmatch
import json
import pickle

import pytest

from weir.errors import PlanError
from weir.job.ledger import Ledger, restarts
from weir.plan.explain.explanation import explain
from weir.reliable.object_names import (
    checkpoint_key,
    commit_key,
    first_of,
    incarnation_of,
    ingress_key,
    is_known,
    number_of,
    part_key,
    segment_key,
)
from weir.reliable.strategies import CheckpointStrategy
from weir.runtime.program_plan import plan_program
from weir.runtime.topology import OutletSpec, StreamSpec, Topology, VertexSpec, wire
from weir.script.program import parse_program
from whole_ledger import collect

TEXT = """
STREAM A (vs BIGINT, k BIGINT, v BIGINT) FROM 'a.jsonl' WITH (late = 'drop', bad = 'skip');
S = SELECT k, SUM(v) AS s FROM A GROUP BY k WITH TUMBLING(5);
J = SELECT A.v AS v, S.s AS s FROM A INNER JOIN S ON A.k == S.k;
OUTPUT S TO 's.csv'; OUTPUT J TO 'j.csv'; OUTPUT LATE OF A TO 'late.csv';
"""


def topology(generation: int = 0) -> Topology:
    return plan_program(parse_program(TEXT), 3).topology({"A": range(2)}, generation)


def test_names_say_stage_index_and_outlet() -> None:
    made = topology()
    assert made.vertices["0.1"].outputs[-1] == "0.1/late"
    assert made.streams["0.1/0"] == StreamSpec("0.1/0", "0.1", 0)
    assert made.streams["0.1/late"].kind == "late"
    assert made.vertices["sink.2"].inputs == ("0.0/late", "0.1/late")
    assert [v.id for v in made.sinks] == ["sink.0", "sink.1", "sink.2"]
    assert [v.id for v in made.sources] == ["0.0", "0.1"]


def test_writers_and_readers_fit_together() -> None:
    made = topology()
    for vertex in made.order:
        assert [made.streams[s].writer for s in vertex.outputs] == [vertex.id] * len(vertex.outputs)
        for number, stream in enumerate(vertex.inputs):
            assert (vertex.id, number) in made.readers_of[stream]
    assert made.readers_of.keys() == made.streams.keys()
    written = [s for v in made.order for s in v.outputs]
    assert list(made.streams) == written


def test_writers_come_before_their_readers() -> None:
    made = topology()
    shuffled = wire(made.order[::-1])
    for given in (made, shuffled):
        seen: set[str] = set()
        for vertex in given.order:
            assert seen.issuperset(vertex.inputs)
            seen.update(vertex.outputs)
    assert shuffled.vertices == made.vertices


def test_names_of_a_later_generation_carry_it() -> None:
    made, first = topology(3), topology()
    assert made.generation == 3
    assert set(made.vertices) == {f"g3-{name}" for name in first.vertices}
    assert set(made.streams) == {f"g3-{name}" for name in first.streams}
    assert made.streams.keys().isdisjoint(topology(4).streams)


@pytest.mark.parametrize("generation", [0, 3, 12])
def test_keys_of_any_generation_are_known(generation: int) -> None:
    made = topology(generation)
    for vertex in made.vertices:
        keys = (checkpoint_key(vertex, 7, 3), part_key(vertex, 7, 3))
        assert [(is_known(k), incarnation_of(k), number_of(k)) for k in keys] == [(True, 7, 3)] * 2
        assert is_known(commit_key(vertex, 5)) and number_of(commit_key(vertex, 5)) == 5
        assert is_known(ingress_key(vertex, 9)) and number_of(ingress_key(vertex, 9)) == 9
    for stream in made.streams:
        key = segment_key(stream, 9, 7)
        assert is_known(key) and (first_of(key), incarnation_of(key)) == (9, 7)


def test_explain_calls_streams_by_these_names() -> None:
    planned = plan_program(parse_program(TEXT), 3)
    stages = json.loads(explain(planned.program, planned.stages, "json"))["stages"]
    named = [w["streams"] for stage in stages for w in stage["writes"]]
    found = {name: fnmatch.filter(topology().streams, name) for name in named}
    assert all(found.values())
    assert sorted(s for names in found.values() for s in names) == sorted(topology().streams)


# --- cycles --------------------------------------------------------------------------------


def _inner(name: str, *inputs: str, writes: int = 1) -> VertexSpec:
    outlets = tuple(OutletSpec(f"{name}/{n}") for n in range(writes))
    ports = tuple(range(len(inputs)))
    return VertexSpec(name, "inner", int(name[0]), 0, inputs, ports, outlets)


LOOP = (
    VertexSpec("0.0", "source", 0, 0, outlets=(OutletSpec("0.0/0"),)),
    _inner("1.0", "0.0/0", "2.0/1"),
    _inner("2.0", "1.0/0", writes=2),
    VertexSpec("sink.0", "sink", 0, 0, ("2.0/0",), (0,)),
)


def test_a_back_edge_closes_a_cycle() -> None:
    made = wire(LOOP, back=("2.0/1",))
    assert [v.id for v in made.order] == ["0.0", "1.0", "2.0", "sink.0"]
    assert [s.id for s in made.streams.values() if s.back] == ["2.0/1"]
    assert made.readers_of["2.0/1"] == (("1.0", 1),)
    assert made.streams["2.0/1"].writer == "2.0"


def test_the_ledger_walks_a_cycle_once() -> None:
    made = wire(LOOP, back=("2.0/1",))
    strategies = {v.id: CheckpointStrategy() for v in made.order}
    found = restarts(made, strategies, Ledger())
    assert set(found.checkpoint) == set(made.vertices)
    assert set(found.needed) == set(made.streams)
    assert collect(made, strategies, Ledger()) == ()


def test_another_process_gets_the_same_topology() -> None:
    for made in (topology(3), wire(LOOP, back=("2.0/1",))):
        assert pickle.loads(pickle.dumps(made)) == made


def test_a_cycle_without_a_back_edge_is_refused() -> None:
    with pytest.raises(PlanError, match=r"the cycle of 1\.0, 2\.0.* has no back edge"):
        wire(LOOP)
