"""Low-water marks that follow changes are those that are found from scratch, and so is garbage."""

from __future__ import annotations

import random
from collections.abc import Sequence
from copy import deepcopy

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weir.errors import SnapshotCorrupt
from weir.job.ledger import Ledger, forget, learn_checkpoints, learn_log, learn_segments, restarts
from weir.job.ledger_difference import LEAST, SHARE, Record, RecordMaker
from weir.job.low_water import LowWater
from weir.job.messages import Checkpoint
from weir.reliable.log import Segment
from weir.reliable.object_names import checkpoint_key, commit_key, ingress_key, segment_key
from weir.reliable.objects import ObjectRef
from weir.reliable.strategies import CheckpointStrategy
from weir.runtime.topology import OutletSpec, Topology, VertexSpec, wire
from whole_ledger import collect, follow


def two_by_two() -> Topology:
    """Two sources, two vertices that read both, of which one is read twice over, and a sink; a
    cycle goes back from the second vertex to the first."""
    sources = [
        VertexSpec(f"0.{n}", "source", 0, n, outlets=(OutletSpec(f"0.{n}/0"),)) for n in range(2)
    ]
    first = VertexSpec(
        id="1.0",
        kind="inner",
        stage=1,
        index=0,
        inputs=("0.0/0", "0.1/0", "1.1/1"),
        ports=(0, 0, 1),
        outlets=(OutletSpec("1.0/0"),),
    )
    second = VertexSpec(
        id="1.1",
        kind="inner",
        stage=1,
        index=1,
        inputs=("0.0/0", "0.1/0", "0.1/0", "1.0/0", "1.0/0"),
        ports=(0, 0, 0, 1, 1),
        outlets=(OutletSpec("1.1/0"), OutletSpec("1.1/1")),
    )
    sink = VertexSpec("sink.0", "sink", 0, 0, ("1.0/0", "1.1/0"), (0, 0))
    return wire([*sources, first, second, sink], back=("1.1/1",))


JOB = two_by_two()
STRATEGIES = {v: CheckpointStrategy(1.0) for v in JOB.vertices}
positions = st.integers(0, 12)


@st.composite
def checkpoints(draw: st.DrawFn) -> tuple[str, Checkpoint]:
    spec = draw(st.sampled_from(JOB.order))
    number, incarnation = draw(st.integers(0, 9)), draw(st.integers(1, 2))
    reads = 1 if spec.kind == "source" else len(spec.inputs)
    inputs = tuple(draw(positions) for _ in range(reads))
    is_sink = spec.kind == "sink"
    key = commit_key(spec.id, number) if is_sink else checkpoint_key(spec.id, incarnation, number)
    outputs = tuple(draw(positions) for _ in spec.outputs)
    needs = tuple(draw(st.integers(0, at)) for at in inputs)
    log = draw(st.integers(0, 3)) if spec.kind == "source" else 0
    return spec.id, Checkpoint(ObjectRef(key), number, incarnation, inputs, outputs, needs, log)


@st.composite
def segments(draw: st.DrawFn) -> tuple[str, Segment]:
    stream, first = draw(st.sampled_from(sorted(JOB.streams))), draw(positions)
    key = segment_key(stream, first, draw(st.integers(1, 2)))
    return stream, Segment(ObjectRef(key), first, first + draw(st.integers(1, 6)), 0, "")


steps = st.lists(
    st.one_of(
        checkpoints(),
        segments(),
        st.sampled_from(["restart", "collect"]),
        st.tuples(st.just("forget"), st.integers(0, 100)),
        st.tuples(st.just("log"), st.integers(0, 5)),
    ),
    max_size=60,
)


def follows(made: Sequence[object], known: int) -> int:
    """Check marks and garbage after each step; return how many restarts were not at the beginning.
    Also when the ledger was not empty at first, which is so for a manager that resumes."""
    ledger, later = Ledger(), 0
    for step in made[:known]:
        change(ledger, step)
    plain = deepcopy(ledger)
    ledger.watch()
    marks = LowWater(JOB, STRATEGIES, ledger)
    for step in made[known:]:
        if step == "collect":
            assert sorted(marks.collect()) == sorted(collect(JOB, STRATEGIES, plain))
            assert ledger == plain
        elif step == "restart":
            later += sum(c is not None for c in marks.restarts.checkpoint.values())
            found = restarts(JOB, STRATEGIES, plain)
            assert (marks.restarts.checkpoint, marks.restarts.needed) == (
                found.checkpoint,
                found.needed,
            )
        else:
            change(ledger, step)
            change(plain, step)
    plain.finished = ledger.finished = True
    assert sorted(marks.collect()) == sorted(collect(JOB, STRATEGIES, plain))
    assert ledger == plain
    return later


@settings(max_examples=200, deadline=None)
@given(steps, st.integers(0, 10))
def test_marks_that_follow_changes_are_those_found_from_scratch(
    made: list[object], known: int
) -> None:
    follows(made, known)


def test_marks_follow_a_job_that_gets_on() -> None:
    assert sum(follows(progress(random.Random(seed)), seed % 10) for seed in range(150)) > 5000


def progress(chance: random.Random) -> list[object]:
    """What a job that gets on reports, in any order: positions grow, and rows become durable."""
    ends = dict.fromkeys(JOB.streams, 0)
    read = {v.id: [0] * max(1, len(v.inputs)) for v in JOB.order}
    written, numbers, made = dict(ends), dict.fromkeys(JOB.vertices, 0), list[object]()
    for _ in range(120):
        spec = chance.choice(JOB.order)
        match chance.choice(("step", "flush", "save", "restart", "collect", "forget")):
            case "step":
                for input, stream in enumerate(spec.inputs):
                    most = ends[stream] - read[spec.id][input]
                    read[spec.id][input] += chance.randint(0, max(0, most))
                for stream in spec.outputs:
                    ends[stream] += chance.randint(0, 3)
            case "flush":
                for stream in spec.outputs:
                    first, end = written[stream], ends[stream]
                    if end > first and chance.random() < 0.8:
                        ref = ObjectRef(segment_key(stream, first, 1))
                        made.append((stream, Segment(ref, first, end, 0, "")))
                        written[stream] = end
            case "save":
                numbers[spec.id] += 1
                number, at = numbers[spec.id], tuple(read[spec.id])
                is_sink = spec.kind == "sink"
                name = commit_key(spec.id, number)
                key = name if is_sink else checkpoint_key(spec.id, 1, number)
                outputs = tuple(ends[stream] for stream in spec.outputs)
                log = number // 2 if spec.kind == "source" else 0
                saved = Checkpoint(ObjectRef(key), number, 1, at, outputs, at, log)
                made.append((spec.id, saved))
            case "forget":
                if chance.random() < 0.1:
                    made.append(("forget", chance.randrange(100)))
            case step:
                made.append(step)
    return made


@settings(max_examples=300, deadline=None)
@given(steps, st.integers(0, 10))
def test_a_base_and_all_differences_after_it_are_the_ledger(made: list[object], known: int) -> None:
    leads(made, known)


def leads(made: Sequence[object], known: int) -> None:
    """Check that records lead to the ledger, and that what one says has left is what the one before
    it names and it does not."""
    ledger = Ledger(number=3, base=1)
    for step in made[:known]:
        change(ledger, step)
    ledger.watch()
    marks, differences = LowWater(JOB, STRATEGIES, ledger), RecordMaker(ledger, 64)
    read, named, collected = None, ledger.names, dict(ledger.collected)
    for number, step in enumerate(made[known:]):
        if step not in ("collect", "restart"):
            ledger.recoveries[str(number % 3)] = number
            change(ledger, step)
            assert named <= ledger.names | differences.left
            continue
        if step == "collect":
            marks.collect()
        record = differences.next_record()
        if step == "restart" and number % 5 == 0:
            record = differences.instead_of(record)
            read = None
        collected |= record.collected
        read = follow(read, record.key, record.body)
        assert read == ledger and record.base == read.base
        assert set(record.left) == named - ledger.names
        assert collected == ledger.collected
        named = ledger.names


def test_records_follow_a_job_that_gets_on() -> None:
    for seed in range(60):
        leads(progress(random.Random(seed)), seed % 10)


def test_differences_since_a_base_are_few_and_small() -> None:
    ledger = Ledger()
    ledger.watch()
    differences, chance = RecordMaker(ledger, 64), random.Random(1)
    records: dict[int, list[int]] = {}
    for number in range(2000):
        stream = sorted(JOB.streams)[number % len(JOB.streams)]
        key = segment_key(stream, number, 1)
        added = [
            Segment(ObjectRef(key, seal=f"{chance.getrandbits(128):032x}"), 0, 1, 0, "")
            for _ in range(1 if number < 1000 else 40)
        ]
        ledger.segments[stream] = (*ledger.segments.get(stream, ()), *added)[-500:]
        record = differences.next_record()
        records.setdefault(record.base, []).append(len(record.body))
    assert max(map(len, records.values())) == 64 + 1
    assert min(map(len, records.values())) < 64
    for base, *after in records.values():
        assert sum(after) <= max(SHARE * base, LEAST)


def test_a_difference_that_does_not_fit_is_damaged() -> None:
    def records(first: int) -> list[Record]:
        ledger = Ledger(number=first - 1)
        ledger.watch()
        differences = RecordMaker(ledger, 64)
        ledger.snapshots |= {f"{n}": n for n in range(200)}
        made = [differences.next_record()]
        for _ in range(2):
            ledger.segments["0.0/0"] = (
                *ledger.segments.get("0.0/0", ()),
                Segment(ObjectRef(segment_key("0.0/0", 1, 1)), 0, 1, 0, ""),
            )
            made.append(differences.next_record())
        return made

    base, first, second = records(1)
    ledger = follow(None, base.key, base.body)
    with pytest.raises(SnapshotCorrupt, match="is a difference to record 2"):
        follow(ledger.copied(), second.key, second.body)
    follow(ledger, first.key, first.body)
    with pytest.raises(SnapshotCorrupt, match="is a difference to record 1"):
        follow(ledger, first.key, first.body)
    ledger.segments["0.0/0"] = ()
    with pytest.raises(SnapshotCorrupt, match="keeps 1 of 0 objects"):
        follow(ledger, second.key, second.body)


def change(ledger: Ledger, step: object) -> None:
    match step:
        case ("forget", int(which)):
            names = sorted(ledger.names)
            if names:
                forget(ledger, [names[which % len(names)]])
        case ("log", int(number)):
            learn_log(ledger, "0.0", ObjectRef(ingress_key("0.0", number)))
        case (str(vertex), Checkpoint() as checkpoint):
            learn_checkpoints(ledger, vertex, [checkpoint])
        case (str(stream), Segment() as segment):
            learn_segments(ledger, stream, [segment])
