"""The chain of commits: whatever happens to one of its objects is found, and said by name."""

import numpy as np
import pyarrow as pa
import pytest

from machine.jobs import rows
from weir.errors import SnapshotCorrupt
from weir.job.commit_log import Commit, encode_part, read_part
from weir.job.history import History
from weir.job.job_identity import (
    FORMAT,
    Decisions,
    JobRecord,
    OutputRecord,
    encode_job,
    output_record,
    read_job,
)
from weir.job.ledger import Ledger
from weir.job.messages import Checkpoint
from weir.job.output_reader import commits
from weir.job.plan_drawing import DrawnPlan
from weir.job.record_reader import check_commits, encode_hint, job_ledger, known_record, last_record
from weir.job.status import STATUS, JobStatus
from weir.job.store_check import verify_store
from weir.job.story import StoryLine, story_key
from weir.plan.plan_fingerprint import PlanFingerprint
from weir.plan.schema import Schema
from weir.reliable.codec import encode_record
from weir.reliable.digest import Digest, digest
from weir.reliable.object_names import (
    HISTORY,
    JOB,
    PLAN,
    commit_key,
    ingress_key,
    ingress_log,
    part_key,
    record_key,
)
from weir.reliable.objects import ObjectRef
from weir.reliable.store import ObjectUnreadable
from weir.script.program import parse_program
from weir.simulator.simulated_disk import SimulatedDisk

SINK = "sink.0"
COUNT = 5


class Disk(SimulatedDisk):
    def sizes(self, prefix: str = "") -> list[tuple[str, int]]:
        return [(k, len(self._objects[k])) for k in sorted(self._objects) if k.startswith(prefix)]


def put(disk: SimulatedDisk, key: str, body: bytes | bytearray) -> ObjectRef:
    disk.put(key, body)
    return ObjectRef.of(key, body)


def store(count: int = COUNT, recorded: int = COUNT) -> Disk:
    """A store with so many commits of three rows each; the record knows of the first ones."""
    disk = Disk(np.random.default_rng(0))
    total, last = Digest(), None
    refs: list[ObjectRef] = []
    for number in range(count):
        batch = rows(3 * number, 3)
        total += digest(batch)
        part = part_key(SINK, 1, number)
        ref = put(disk, part, encode_part(part, [(0, batch)]))
        commit = Commit(
            number, 1, ref, 3, (3 * number + 3,), f"{total.total:032x}", total.count, last, 0
        )
        key = commit_key(SINK, number)
        last = put(disk, key, encode_record(key, commit))
        refs.append(last)
    named = refs[recorded - 1] if recorded else None
    ledger = Ledger(number=0, epoch=1, finished=recorded == count)
    if named is not None:
        at = (3 * recorded,)
        ledger.checkpoints[SINK] = (Checkpoint(named, recorded - 1, 1, at, (), at),)
    disk.put(record_key(0), ledger.encode())
    disk.put(JOB, encode_job(JobRecord(PlanFingerprint(), Decisions(), (), "")))
    disk.settle()
    return disk


def read(disk: Disk, since: int = 0) -> list[int]:
    """The rows, in the order of the commits."""
    return [
        v
        for link in commits(disk, SINK, last_record(disk), since)
        for _, batch in read_part(disk, link)
        for v in batch.vs.tolist()
    ]


@pytest.mark.parametrize("recorded", [0, 1, 3, COUNT])
@pytest.mark.parametrize("since", [0, 2, COUNT - 1, COUNT])
def test_all_commits_are_read_whatever_the_record_knows(recorded: int, since: int) -> None:
    disk = store(recorded=recorded)
    assert read(disk, since) == list(range(3 * since, 3 * COUNT))


@pytest.mark.parametrize("recorded", [0, 3, COUNT])
@pytest.mark.parametrize("kind", ["commits", "parts"])
@pytest.mark.parametrize("number", range(COUNT))
def test_a_lost_object_is_named_and_never_a_shorter_output(
    recorded: int, kind: str, number: int
) -> None:
    disk = store(recorded=recorded)
    key = commit_key(SINK, number) if kind == "commits" else part_key(SINK, 1, number)
    disk.delete([key])
    disk.settle()
    if kind == "commits" and number == COUNT - 1 and recorded < COUNT:
        # Nothing refers to it: it was never written.
        assert read(disk) == list(range(3 * number))
        return
    with pytest.raises(SnapshotCorrupt, match=key):
        read(disk)


@pytest.mark.parametrize("how", ["copy", "old", "torn", "flip"])
@pytest.mark.parametrize("number", range(COUNT - 1))
@pytest.mark.parametrize("recorded", [1, COUNT])
def test_an_object_that_is_another_is_named(how: str, number: int, recorded: int) -> None:
    for key, other in (
        (commit_key(SINK, number), commit_key(SINK, COUNT - 1)),
        (part_key(SINK, 1, number), part_key(SINK, 1, COUNT - 1)),
    ):
        disk = store(recorded=recorded)
        body = disk.body(key)
        match how:
            case "copy":
                disk.put(key, disk.body(other))
            case "old":  # whole and under its own name, but not the one that was written
                again = encode_record(key, Commit(number, 9, None, 0, (0,), "0" * 32, 0))
                part = encode_part(key, [(0, rows(1, 3))])
                disk.put(key, again if key.startswith("commits/") else part)
            case "torn":
                disk.put(key, body[:-3])
            case "flip":
                disk.put(key, body[:-3] + bytes([body[-3] ^ 1]) + body[-2:])
        with pytest.raises(SnapshotCorrupt, match=key):
            read(disk)


def test_rows_are_counted_and_digested_against_the_commit() -> None:
    """A commit and its part that fit each other by name and seal, with other rows than promised."""
    disk = store(count=1, recorded=0)
    part = part_key(SINK, 1, 0)
    ref = put(disk, part, encode_part(part, [(0, rows(7, 3))]))
    key = commit_key(SINK, 0)
    total = digest(rows(0, 3))
    commit = Commit(0, 1, ref, 3, (3,), f"{total.total:032x}", total.count, None, 0)
    disk.put(key, encode_record(key, commit))
    with pytest.raises(SnapshotCorrupt, match=f"{key} stands for 3 rows"):
        read(disk)


@pytest.mark.parametrize("name", [commit_key(SINK, COUNT), commit_key(SINK, 99), "commits/x"])
def test_what_nobody_wrote_harms_no_reader(name: str) -> None:
    disk = store(recorded=3)
    disk.put(name, b"junk that somebody left here")
    disk.settle()
    assert read(disk) == list(range(3 * COUNT))


def test_a_missing_commit_is_found_before_a_job_goes_on() -> None:
    disk = store()
    ledger = last_record(disk)
    assert ledger is not None
    check_commits(disk, ledger)
    disk.delete([commit_key(SINK, 1)])
    disk.settle()
    with pytest.raises(SnapshotCorrupt, match=commit_key(SINK, 1)):
        check_commits(disk, ledger)


# --- records -----------------------------------------------------------------------------------


def test_a_commit_ahead_of_the_newest_record_means_that_records_are_lost() -> None:
    disk = store(count=1, recorded=0)
    key, last = commit_key(SINK, 1), commit_key(SINK, 0)
    before = ObjectRef.of(last, disk.body(last))
    disk.put(key, encode_record(key, Commit(1, 1, None, 0, (3,), "0" * 32, 3, before, 4)))
    disk.settle()
    with pytest.raises(SnapshotCorrupt, match=record_key(4)):
        known_record(disk, 1)
    disk.put(record_key(4), Ledger(number=4).encode())
    disk.settle()
    found = known_record(disk, 1)
    assert found is not None and found.number == 4


def test_a_hint_ahead_of_the_newest_record_means_that_records_are_lost() -> None:
    disk = store()
    disk.put("records/latest", encode_hint(2))
    with pytest.raises(SnapshotCorrupt, match=record_key(2)):
        last_record(disk)


def test_a_damaged_record_that_nothing_knows_of_was_never_written() -> None:
    disk = store()
    disk.put("records/latest", encode_hint(0))
    disk.put(record_key(1), b"torn")
    disk.put("records/README", b"?")
    disk.settle()
    found = last_record(disk)
    assert found is not None and found.number == 0


def test_records_of_another_job_are_refused() -> None:
    disk = store()
    with pytest.raises(Exception, match="another job"):
        job_ledger(disk, JobRecord(PlanFingerprint(), Decisions(), (), "token"))


# --- the whole store -----------------------------------------------------------------------------


def test_a_whole_store_is_verified() -> None:
    disk = store()
    job = read_job(disk)
    assert job is not None
    outputs = JobRecord(PlanFingerprint(), Decisions(), (_output(),), "")
    disk.put(JOB, encode_job(outputs))
    found = verify_store(disk)
    assert (found.objects, found.unreferred, found.damage) == (1 + 2 * COUNT, 0, ())
    disk.put("parts/sink.0/junk", b"")
    disk.put(part_key(SINK, 9, 9), b"")
    found = verify_store(disk)
    assert (found.unreferred, found.strange, found.damage) == (1, ("parts/sink.0/junk",), ())


def test_a_damaged_status_is_named_and_called_harmless() -> None:
    disk = store()
    disk.put(STATUS, encode_record(STATUS, JobStatus("running", 0.0, 1, 0, 0, None, (), ())))
    whole = verify_store(disk)
    assert not whole.damage
    disk.put(STATUS, b"torn")
    found = verify_store(disk)
    assert found.objects == whole.objects
    assert [d.key for d in found.damage] == [STATUS] and "no harm" in found.damage[0].what


def shown_store() -> Disk:
    """A store that has all that onlookers are shown."""
    disk = store()
    disk.put(JOB, encode_job(JobRecord(PlanFingerprint(), Decisions(), (_output(),), "")))
    disk.put(PLAN, encode_record(PLAN, DrawnPlan((), (), ())))
    disk.put(HISTORY, encode_record(HISTORY, History()))
    for epoch, count in ((1, 3), (2, 1)):
        for number in range(count):
            key = story_key(epoch, number)
            disk.put(key, encode_record(key, [StoryLine(1.0, "", f"{epoch}-{number}")]))
    return disk


@pytest.mark.parametrize("key", [PLAN, HISTORY, story_key(1, 0), story_key(1, 1), story_key(2, 0)])
def test_damage_to_what_is_only_shown_is_named_and_called_harmless(key: str) -> None:
    whole = verify_store(shown_store())
    assert (whole.unreferred, whole.damage) == (0, ())
    for body in (b"torn", encode_record("other", {}), encode_record(key, 5)):
        disk = shown_store()
        disk.put(key, body)
        found = verify_store(disk)
        assert found.objects == whole.objects
        assert [d.key for d in found.damage] == [key] and "no harm" in found.damage[0].what
    disk = shown_store()
    disk.delete([key])
    disk.settle()
    is_gap = key in (story_key(1, 0), story_key(1, 1))
    assert [d.key for d in verify_store(disk).damage] == ([key] if is_gap else [])


def test_objects_that_cannot_be_read_are_all_named() -> None:
    class BadDisk(Disk):
        def get(self, key: str) -> bytes | None:
            if key in (PLAN, commit_key(SINK, 1), part_key(SINK, 1, 3)):
                raise ObjectUnreadable(f"cannot read {key}: Input/output error")
            return super().get(key)

    disk = shown_store()
    disk.__class__ = BadDisk
    found = verify_store(disk)
    assert {d.key for d in found.damage} == {PLAN, commit_key(SINK, 1), part_key(SINK, 1, 3)}
    assert all("Input/output error" in d.what for d in found.damage)


@pytest.mark.parametrize("finished", [True, False])
def test_only_a_job_that_goes_on_needs_the_log_of_a_source(finished: bool) -> None:
    disk = store()
    ledger = last_record(disk)
    assert ledger is not None
    key = ingress_key("0.0", 1)
    ledger.finished, ledger.logs = finished, {"0.0": ObjectRef(key)}
    ledger.collected[ingress_log("0.0")] = 1
    disk.put(record_key(0), ledger.encode())
    found = verify_store(disk)
    assert [d.key for d in found.damage] == ([] if finished else [key])


@pytest.mark.parametrize("seed", range(40))
def test_verifying_finds_what_readers_would(seed: int) -> None:
    disk = store()
    disk.put(JOB, encode_job(JobRecord(PlanFingerprint(), Decisions(), (_output(),), "")))
    rng = np.random.default_rng(seed)
    while not disk.harmed or any(k in (JOB, record_key(0)) for k in disk.harmed):
        disk = store()
        disk.put(JOB, encode_job(JobRecord(PlanFingerprint(), Decisions(), (_output(),), "")))
        disk.harm(rng)
    disk.settle()
    found = verify_store(disk)
    try:
        assert read(disk) == list(range(3 * COUNT))
        assert not found.damage
    except SnapshotCorrupt:
        assert {d.key for d in found.damage} <= disk.harmed and found.damage


def _output() -> OutputRecord:
    return OutputRecord("Out", "rows", "out.csv", True, "BIGINT", ())


def test_an_output_keeps_types_of_any_fields_and_of_nulls() -> None:
    columns = (
        ("s", pa.struct([("x y", pa.int64()), ('"', pa.list_(pa.null()))])),
        ("n", pa.null()),
    )
    schema = Schema(columns, pa.int64())
    (output,) = parse_program("STREAM A (vs BIGINT) FROM 'a.jsonl'; OUTPUT A TO 'out.csv';").outputs
    assert output_record(output, schema, kept=True).schema == schema


# --- the format ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (b"weir store, format 2\n" + b"x" * 40, "is in format 2"),
        (b"\x00" * 16 + b'{"plan": ""}', "has no format that this version knows"),
        (b"", "has no format that this version knows"),
        (b"\xff\n", "has no format that this version knows"),
    ],
)
def test_a_store_of_another_format_is_refused_by_name(body: bytes, why: str) -> None:
    disk = Disk(np.random.default_rng(0))
    disk.put(JOB, body)
    with pytest.raises(Exception, match=f"{why}.*reads and writes format {FORMAT}"):
        read_job(disk)


def test_a_job_that_is_lost_is_no_empty_store() -> None:
    disk = store()
    disk.delete([JOB])
    with pytest.raises(SnapshotCorrupt, match="'job' is not in the store"):
        read_job(disk)
