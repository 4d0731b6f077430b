"""The strategy of every vertex, and what marks mean to the ledger."""

from __future__ import annotations

from weir.job.ledger import Ledger, learn_checkpoints, restarts
from weir.job.messages import Checkpoint
from weir.plan.stages import StagedPlan
from weir.plan.strategy import NamedStrategy
from weir.reliable.log import Segment
from weir.reliable.objects import ObjectRef
from weir.reliable.strategies import CheckpointStrategy, ReplayStrategy
from weir.runtime.program_plan import plan_program
from weir.runtime.topology import Topology
from weir.runtime.vertices import vertex_strategies
from weir.script.program import parse_program
from whole_ledger import collect

TEXT = """
STREAM A (At TIMESTAMP, k STRING) FROM 'a.jsonl' WITH (vs = At);
Out = SELECT k, COUNT(*) AS n FROM A GROUP BY k WITH TUMBLING(5s);
OUTPUT Out TO 'out.jsonl';
"""


BY_MARKS = {v: ReplayStrategy() for v in ("0.0", "1.0", "1.1", "sink.0")}


def planned() -> tuple[StagedPlan, Topology]:
    plan = plan_program(parse_program(TEXT), 2)
    return plan.stages, plan.topology({"A": range(1)})


def test_every_vertex_has_its_stages_strategy() -> None:
    whole, marks = CheckpointStrategy(10.0), ReplayStrategy(10.0)
    assert vertex_strategies(*planned()) == {
        "0.0": whole,
        "1.0": marks,
        "1.1": marks,
        "sink.0": whole,
    }
    copied = vertex_strategies(*planned(), NamedStrategy("replicate", copies=2))
    assert {v: s.copies for v, s in copied.items()} == {"0.0": 1, "1.0": 2, "1.1": 2, "sink.0": 1}


def _mark(number: int, position: int, needs: int, written: int = 0) -> Checkpoint:
    return Checkpoint(
        ObjectRef(f"checkpoints/1.0/1-{number}"), number, 1, (position,), (written,), (needs,)
    )


def test_collection_keeps_what_a_mark_needs() -> None:
    _, topology = planned()
    stream = topology.vertices["1.0"].inputs[0]
    ledger = Ledger()
    ledger.segments[stream] = tuple(
        Segment(ObjectRef(f"s{i}"), 10 * i, 10 * i + 10, 0, "") for i in range(4)
    )
    assert learn_checkpoints(ledger, "1.0", [_mark(0, 35, 12)])
    assert restarts(topology, BY_MARKS, ledger).needed[stream] == 0, "1.1 reads it too"
    assert learn_checkpoints(ledger, "1.1", [_mark(0, 40, 31)])
    assert restarts(topology, BY_MARKS, ledger).needed[stream] == 12
    assert collect(topology, BY_MARKS, ledger) == ("s0",)
    assert ledger.collected[stream] == 12


def test_a_mark_that_only_needs_less_is_ahead() -> None:
    ledger = Ledger()
    assert learn_checkpoints(ledger, "1.0", [_mark(0, 35, 12)])
    assert learn_checkpoints(ledger, "1.0", [_mark(1, 35, 30)])
    assert learn_checkpoints(ledger, "1.0", [_mark(2, 35, 30)])  # later, so it takes its place
    assert not learn_checkpoints(ledger, "1.0", [_mark(0, 35, 12)])
    assert not learn_checkpoints(ledger, "1.0", [_mark(3, 36, 12)])


def test_a_finished_job_keeps_nothing() -> None:
    _, topology = planned()
    ledger = Ledger(finished=True)
    stream = topology.vertices["1.0"].inputs[0]
    ledger.segments[stream] = (Segment(ObjectRef("streams/s"), 0, 10, 0, ""),)
    learn_checkpoints(ledger, "1.0", [_mark(0, 5, 0)])
    learn_checkpoints(
        ledger, "sink.0", [Checkpoint(ObjectRef("commits/sink.0/0"), 0, 1, (3, 3), (), (3, 3))]
    )
    assert collect(topology, BY_MARKS, ledger) == ("checkpoints/1.0/1-0", "streams/s")
    assert collect(topology, BY_MARKS, ledger) == ()
