"""The ledger: where vertices restart, and what is garbage."""

from machine.jobs import checkpoint, commit, segment, topology
from weir.job.ledger import (
    Ledger,
    durable_from,
    forget,
    learn_checkpoints,
    learn_segments,
    restarts,
)
from weir.reliable.object_names import (
    checkpoint_key,
    commit_key,
    ingress_key,
    is_ephemeral,
    record_key,
    segment_key,
    step_of,
)
from weir.reliable.strategies import CheckpointStrategy
from whole_ledger import collect, read_base

WHOLE = {v: CheckpointStrategy() for v in topology(sinks=2).vertices}


def test_a_checkpoint_counts_when_its_output_can_be_had_without_its_vertex() -> None:
    ledger = Ledger(checkpoints={"1.0": (checkpoint("1.0", 0, 2, 2), checkpoint("1.0", 1, 5, 5))})
    assert restarts(topology(), WHOLE, ledger).checkpoint["1.0"] is None
    ledger.segments["1.0/0"] = (segment("1.0/0", 0, 4),)
    found = restarts(topology(), WHOLE, ledger).checkpoint["1.0"]
    assert found is not None and found.number == 0
    ledger.segments["1.0/0"] += (segment("1.0/0", 4, 5),)
    found = restarts(topology(), WHOLE, ledger).checkpoint["1.0"]
    assert found is not None and found.number == 1


def test_rows_that_no_reader_can_ask_for_need_not_be_durable() -> None:
    ledger = Ledger(checkpoints={"1.0": (checkpoint("1.0", 0, 3, 3),), "sink.0": (commit(0, 3),)})
    found = restarts(topology(), WHOLE, ledger)
    assert found.checkpoint["1.0"] is not None
    assert found.needed == {"1.0/0": 3, "0.0/0": 3}


def test_a_gap_between_segments_ends_what_is_durable() -> None:
    assert durable_from([segment("s", 0, 3), segment("s", 4, 9)], 0) == 3
    assert durable_from([segment("s", 0, 3), segment("s", 2, 9)], 1) == 9


def test_collecting_keeps_what_the_restarts_need() -> None:
    ledger = Ledger(
        checkpoints={
            "1.0": (checkpoint("1.0", 0, 1, 1), checkpoint("1.0", 1, 4, 4)),
            "sink.0": (commit(0, 2), commit(1, 3)),
        },
        segments={
            "0.0/0": (segment("0.0/0", 0, 4), segment("0.0/0", 4, 6)),
            "1.0/0": (segment("1.0/0", 0, 3), segment("1.0/0", 3, 4)),
        },
    )
    garbage = collect(topology(), WHOLE, ledger)
    assert set(garbage) == {
        checkpoint_key("1.0", 1, 0),
        segment_key("0.0/0", 0, 1),
        segment_key("1.0/0", 0, 1),
    }
    assert ledger.collected == {"0.0/0": 4, "1.0/0": 3}
    assert [s.first for s in ledger.segments["1.0/0"]] == [3]
    assert [c.number for c in ledger.checkpoints["sink.0"]] == [1]
    assert not set(garbage) & ledger.names


def test_records_of_a_log_before_the_restart_are_garbage_the_smallest_first() -> None:
    usable, later = checkpoint("0.0", 0, 9, 0, log=3), checkpoint("0.0", 1, 12, 4, log=5)
    ledger = Ledger(checkpoints={"0.0": (usable, later)})
    assert collect(topology(), WHOLE, ledger) == tuple(ingress_key("0.0", n) for n in range(3))
    assert ledger.collected["ingress/0.0"] == 3, "the later one wrote rows that are not durable"
    assert collect(topology(), WHOLE, ledger) == ()
    learn_segments(ledger, "0.0/0", [segment("0.0/0", 0, 4)])
    assert collect(topology(), WHOLE, ledger)[-2:] == (ingress_key("0.0", 3), ingress_key("0.0", 4))


def test_a_checkpoint_that_needs_more_of_the_log_is_not_ahead() -> None:
    ledger = Ledger()
    assert learn_checkpoints(ledger, "0.0", [checkpoint("0.0", 0, 9, 9, log=5)])
    assert not learn_checkpoints(ledger, "0.0", [checkpoint("0.0", 1, 9, 9, log=4)])


def test_a_segment_is_garbage_only_when_its_last_row_is() -> None:
    ledger = Ledger(
        checkpoints={"sink.0": (commit(0, 3),)}, segments={"1.0/0": (segment("1.0/0", 0, 4),)}
    )
    assert collect(topology(), WHOLE, ledger) == ()


def test_a_stream_is_kept_for_its_slowest_reader() -> None:
    """Sinks 0 and 1 read the same stream, at 5 and at 2."""
    two = topology(sinks=2)
    for ahead, behind in (("sink.0", "sink.1"), ("sink.1", "sink.0")):
        ledger = Ledger(checkpoints={ahead: (commit(0, 5),), behind: (commit(0, 2),)})
        assert restarts(two, WHOLE, ledger).needed["1.0/0"] == 2


def test_a_finished_job_needs_nothing_but_its_commits() -> None:
    ledger = Ledger(
        checkpoints={"1.0": (checkpoint("1.0", 0, 1, 1),), "sink.0": (commit(0, 2), commit(1, 3))},
        segments={"1.0/0": (segment("1.0/0", 0, 3),)},
        finished=True,
    )
    garbage = collect(topology(), WHOLE, ledger)
    assert len(garbage) == 2 and all(is_ephemeral(k) for k in garbage)
    assert ledger.names == {commit_key("sink.0", 1)}


def test_checkpoints_move_forward_only() -> None:
    ledger = Ledger()
    assert learn_checkpoints(ledger, "1.0", [checkpoint("1.0", 1, 3, 3)])
    assert not learn_checkpoints(ledger, "1.0", [checkpoint("1.0", 0, 2, 2, incarnation=2)])
    assert learn_checkpoints(ledger, "1.0", [checkpoint("1.0", 2, 4, 3)])
    assert [c.number for c in ledger.checkpoints["1.0"]] == [1, 2]


def test_a_checkpoint_after_claims_alone_replaces_the_one_before() -> None:
    ledger = Ledger(checkpoints={"sink.0": (commit(0, 3),)})
    for number in range(3):
        assert learn_checkpoints(ledger, "1.0", [checkpoint("1.0", number, 3, 3)])
    garbage = collect(topology(), WHOLE, ledger)
    assert garbage == (checkpoint_key("1.0", 1, 0), checkpoint_key("1.0", 1, 1))


def test_segments_are_learned_in_order_without_gaps() -> None:
    ledger = Ledger()
    later, first = segment("1.0/0", 3, 5), segment("1.0/0", 0, 3)
    assert not learn_segments(ledger, "1.0/0", [later])
    assert learn_segments(ledger, "1.0/0", [first, later])
    assert not learn_segments(ledger, "1.0/0", [first, later])
    assert ledger.segments["1.0/0"] == (first, later)


def test_what_cannot_be_read_is_forgotten_with_the_segments_behind_it() -> None:
    a, b, c = (segment("1.0/0", i, i + 1) for i in range(3))
    ledger = Ledger(
        segments={"1.0/0": (a, b, c)}, checkpoints={"1.0": (checkpoint("1.0", 0, 1, 1),)}
    )
    forget(ledger, [b.key, checkpoint_key("1.0", 1, 0)])
    assert ledger.segments["1.0/0"] == (a,)
    assert ledger.checkpoints["1.0"] == ()


def test_a_record_comes_back_as_it_was() -> None:
    ledger = Ledger(
        epoch=3,
        manager="m",
        number=7,
        segments={"1.0/0": (segment("1.0/0", 0, 3),)},
        checkpoints={"1.0": (checkpoint("1.0", 0, 1, 1),)},
        collected={"0.0/0": 4},
        snapshots={"1.0": 3},
        recoveries={"1.0": 2},
    )
    assert read_base(record_key(7), ledger.encode()) == ledger


def test_every_object_has_a_step() -> None:
    assert step_of("parts/sink.0/0-0") == "part"
    assert step_of(checkpoint_key("1.0", 1, 0)) == "checkpoint"
    assert step_of(segment_key("1.0/0", 1, 0)) == "segment"
