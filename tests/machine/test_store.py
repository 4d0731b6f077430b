"""Records in a store, requests of it, what is nobody's in it, and the plan's names."""

import numpy as np
import pytest

from machine.jobs import commit, rows
from weir.errors import PlanError, RunError, SnapshotCorrupt
from weir.job.commit_log import Commit, decode_part, encode_part
from weir.job.ledger import Ledger
from weir.job.record_reader import (
    TRIES,
    encode_hint,
    known_record,
    last_record,
    sweep,
    take_over,
)
from weir.job.signals import Get, Put
from weir.job.store_requests import Requests
from weir.plan.strategy import parse_strategy
from weir.reliable.codec import encode_record
from weir.reliable.object_names import (
    LATEST_RECORD,
    checkpoint_key,
    commit_key,
    number_of,
    part_key,
    record_key,
)
from weir.reliable.objects import ObjectRef
from weir.reliable.store import Body, ObjectExists
from weir.runtime.program_plan import plan_program
from weir.simulator.simulated_disk import SimulatedDisk
from weir.simulator.workloads import choose, make_workload, workload_names


def disk(*numbers: int, hint: bytes | None = None) -> SimulatedDisk:
    made = SimulatedDisk(np.random.default_rng(0))
    for number in numbers:
        made.put(record_key(number), Ledger(number=number).encode(), new=True)
    if hint is not None:
        made.put(LATEST_RECORD, hint)
    made.settle()
    return made


def number_of_last(store: SimulatedDisk) -> int | None:
    found = last_record(store)
    return None if found is None else found.number


# --- records -----------------------------------------------------------------------------------


def test_a_store_without_records_has_none() -> None:
    assert last_record(disk()) is None


@pytest.mark.parametrize("hint", [None, b"", b"records/0000", b"\xff\x00", encode_hint(1)])
def test_the_last_record_is_found_from_any_hint(hint: bytes | None) -> None:
    assert number_of_last(disk(0, 1, 2, 3, hint=hint)) == 3


def test_listings_that_are_behind_do_not_hide_the_last() -> None:
    store = disk(0, 1)
    listed = dict(store._listed)
    for number in (2, 3):
        store.put(record_key(number), Ledger(number=number).encode(), new=True)
    store._listed = listed
    assert number_of_last(store) == 3


@pytest.mark.parametrize("hint", [encode_hint(101), encode_hint(140)])
def test_a_listing_that_names_nothing_hides_no_record(hint: bytes) -> None:
    store = disk(*range(1, 141), hint=hint)
    store._listed = {}
    assert number_of_last(store) == 140


def test_a_listing_that_names_nothing_hides_no_commit_under_a_lost_record() -> None:
    """The store has lost its records and its hint, and lists nothing: still it is no new job."""
    store = disk()
    for number in range(3):
        key = commit_key("sink.0", number)
        made = Commit(number, 1, None, 0, (1,), "0" * 32, 0, record=number)
        store.put(key, encode_record(key, made), new=True)
    store._listed = {}
    with pytest.raises(SnapshotCorrupt, match="000000000002, which a commit was made under"):
        known_record(store, outputs=1)


def test_a_hint_older_than_what_is_kept_does_not_mislead() -> None:
    store = disk(*range(5), 200, 201, hint=encode_hint(3))
    store.delete([record_key(4)])
    assert number_of_last(store) == 201


def test_a_store_whose_records_are_gone_is_no_new_job() -> None:
    with pytest.raises(SnapshotCorrupt):
        last_record(disk(hint=encode_hint(7)))


class Contested:
    """A store on which another manager writes a record before each of ours, for so many times."""

    def __init__(self, store: SimulatedDisk, times: int) -> None:
        self._store, self._times = store, times
        self.get, self.list, self.delete = store.get, store.list, store.delete

    def put(self, key: str, body: Body, *, new: bool = False) -> None:
        if self._times:
            self._times -= 1
            other = Ledger(number=number_of(key), epoch=1, finished=True)
            self._store.put(key, other.encode(), new=True)
        self._store.put(key, body, new=new)


@pytest.mark.parametrize("times", [0, 3])
def test_a_job_is_taken_over_from_a_manager_that_goes_on_meanwhile(times: int) -> None:
    """While Spark started, the other wrote three records more; and some before each of ours."""
    store = disk(0, 1, 2, 3, hint=encode_hint(2))
    known = Ledger(number=0, code={"f": "changed"}, strategies={"0": "replay"})
    taken = take_over(Contested(store, times), known, "b")
    assert (taken.number, taken.manager, taken.epoch) == (4 + times, "b", 2 if times else 1)
    assert (taken.code, taken.strategies) == (known.code, known.strategies)
    assert taken.finished == bool(times), "what the other wrote last counts"
    assert last_record(store) == taken


def test_a_job_is_not_taken_over_from_a_manager_that_is_always_faster() -> None:
    with pytest.raises(RunError, match="writes records faster than this one can take it over"):
        take_over(Contested(disk(0), TRIES), Ledger(number=0), "b")


def test_a_job_that_no_manager_has_begun_is_not_taken_over() -> None:
    begun = Ledger(token="t")
    assert take_over(disk(), begun, "b") is begun and begun.number == -1


def test_a_job_is_taken_over_though_the_answer_to_its_record_is_lost() -> None:
    store = disk(0)

    class Lossy(Contested):
        def put(self, key: str, body: Body, *, new: bool = False) -> None:
            store.put(key, body, new=new)
            raise ObjectExists(key)

    assert take_over(Lossy(store, 0), Ledger(number=0), "b").number == 1
    assert number_of_last(store) == 1


def test_what_is_no_record_does_not_keep_a_job_from_being_taken_over() -> None:
    store = disk(0)
    store.put(record_key(1), b"torn")
    assert take_over(store, Ledger(number=0), "b").number == 2
    assert number_of_last(store) == 2


def test_the_job_of_another_store_is_not_taken_over() -> None:
    with pytest.raises(RunError, match="records of another job"):
        take_over(disk(0), Ledger(number=0, token="t"), "b")


def test_the_last_sweep_leaves_what_the_record_and_the_commits_name() -> None:
    store = disk(0)
    for incarnation in (1, 2):
        store.put(part_key("sink.0", incarnation, 0), b"rows")
        store.put(checkpoint_key("1.0", incarnation, 0), b"state")
    chosen = Commit(0, 2, ObjectRef(part_key("sink.0", 2, 0)), 1, (1,), "0" * 32, 1)
    key = commit_key("sink.0", 0)
    store.put(key, encode_record(key, chosen), new=True)
    store.settle()
    found = sweep(store, Ledger(epoch=1, finished=True))
    assert set(found) == {
        part_key("sink.0", 1, 0),
        checkpoint_key("1.0", 1, 0),
        checkpoint_key("1.0", 2, 0),
    }


# --- requests ------------------------------------------------------------------------------------


def test_an_answer_goes_to_whoever_asked_in_turn() -> None:
    gone: set[str] = set()
    requests = Requests[str](lambda owner: owner not in gone)
    first, second = Put("k", lambda: b"1"), Put("k", lambda: b"2")
    requests.ask(first, "a")
    requests.ask(second, "b")
    requests.ask(Get("k"), "a")
    assert requests.ready == [first, Get("k")]
    requests.ready.clear()
    assert requests.answered(Get, "k") == "a"
    gone.add("a")
    assert requests.answered(Put, "k") is None
    assert requests.ready == [second]
    assert requests.answered(Put, "k") == "b"
    assert requests.answered(Put, "k") is None


def test_what_nobody_wants_is_not_tried_again() -> None:
    gone: set[str] = set()
    requests = Requests[str](lambda owner: owner not in gone)
    requests.ask(Get("k"), "a")
    requests.ready.clear()
    assert requests.failed(Get, "k", 0.0) and requests.failed(Get, "k", 0.0)
    requests.retry(1.0)
    assert requests.ready == [Get("k")]
    requests.failed(Get, "k", 1.0)
    requests.ready.clear()
    gone.add("a")
    requests.retry(2.0)
    assert requests.ready == [] and not requests.failed(Get, "k", 2.0)


# --- names ---------------------------------------------------------------------------------------


def test_parts_come_back_sorted_with_the_input_they_came_from() -> None:
    body = encode_part("p", [(1, rows(5, 1)), (0, rows(3, 1)), (1, rows(2, 1))])
    back = [(input, batch.vs.tolist()) for input, batch in decode_part("p", body)]
    assert back == [(0, [3]), (1, [2, 5])]


@pytest.mark.parametrize("text", ["checkpoint", "checkpoint(2s)", "replay", "replicate(3)"])
def test_strategies_read_as_they_print(text: str) -> None:
    assert parse_strategy(str(parse_strategy(text))) == parse_strategy(text)


@pytest.mark.parametrize("text", ["", "replicate", "replicate(1)", "checkpoint(0s)", "magic"])
def test_other_strategies_are_refused(text: str) -> None:
    with pytest.raises(PlanError):
        parse_strategy(text)


@pytest.mark.parametrize("name", ["figure1", "diamond", "pipeline", "turned_away", "union"])
@pytest.mark.parametrize("parallelism", [1, 3])
def test_every_stream_has_a_writer_and_every_input_is_a_stream(name: str, parallelism: int) -> None:
    workload = make_workload(name, 1)
    made = plan_program(workload.program, parallelism).topology(workload.partitions)
    seen: set[str] = set()
    for spec in made.order:
        assert set(spec.inputs) <= seen, "writers stand before their readers"
        seen |= set(spec.outputs)
    assert set(made.streams) == seen
    assert len(made.sinks) == len(workload.program.outputs)


def test_the_pipeline_has_ten_stages_behind_its_source() -> None:
    planned = plan_program(make_workload("pipeline", 0).program, 2)
    assert len(planned.stages.stages) >= 11


def test_a_new_workload_leaves_most_seeds_what_they_were() -> None:
    names = workload_names()
    moved = sum(choose(s, names) != choose(s, (*names, "new")) for s in range(500))
    assert moved == sum(choose(s, (*names, "new")) == "new" for s in range(500)) > 0
    assert {choose(s, names) for s in range(500)} == set(names)


def test_a_part_whose_commit_is_lost_or_damaged_is_kept() -> None:
    """With a backup of the commit it counts again."""
    store = disk(0)
    for number in range(4):
        store.put(part_key("sink.0", 1, number), b"rows")
    store.put(commit_key("sink.0", 1), b"damaged")
    store.settle()
    ledger = Ledger(epoch=1, finished=True, checkpoints={"sink.0": (commit(2, 9),)})
    assert sweep(store, ledger) == (part_key("sink.0", 1, 3),)
