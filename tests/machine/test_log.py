"""The live stream and its reading end: numbers, durability, collection, channels that misbehave."""

import random

import msgspec
import pytest

from machine.jobs import entry, read_rows, rows
from weir.errors import DeterminismViolation, RunError, SnapshotCorrupt
from weir.events.batch import OPEN, concat_batches
from weir.reliable.codec import (
    decode_entries,
    decode_record,
    decode_snapshot,
    encode_entries,
    encode_record,
    encode_snapshot,
)
from weir.reliable.cursor import Cursor
from weir.reliable.digest import OrderedChecksum
from weir.reliable.log import LogStream, Segment
from weir.reliable.objects import ObjectRef
from weir.reliable.stream import Entry
from weir.reliable.vertex import Snapshot


def durable(first: int, count: int, key: str = "") -> Segment:
    checksum = OrderedChecksum()
    checksum.add(rows(first, count))
    end = first + count
    return Segment(ObjectRef(key or f"s{first}"), first, end, end, str(checksum))


def test_rows_written_again_are_dropped_and_claims_kept() -> None:
    stream = LogStream("s")
    stream.write(entry(0, 3))
    stream.register("r", 0)
    assert read_rows(stream, "r") == [0, 1, 2]
    stream = LogStream("s", [durable(0, 3)], start=1)
    stream.register("r", 3)
    stream.write(entry(1, 4, cti=9))
    found = stream.read_next("r")
    assert found is not None and (found.seq, found.end, found.cti) == (3, 5, 9)


def test_a_gap_is_refused() -> None:
    with pytest.raises(RunError, match="written before"):
        LogStream("s").write(entry(1, 1))


def test_other_rows_under_durable_numbers_are_found() -> None:
    stream = LogStream("s", [durable(0, 2)], start=0, check=True)
    stream.write(Entry(0, concat_batches([rows(0, 1), rows(5, 1)]), 7))
    assert isinstance(stream.doubt, DeterminismViolation) and list(stream.missing) == ["s0"]
    stream.write(Entry(2, rows(2, 2), 7))
    assert stream.end == 2, "what follows is made of what is wrong"
    assert "stream s: among the rows from 0 to 2" in str(stream.doubt)
    stream.load("s0", [entry(0, 1), entry(1, 1)])
    assert "row 1 was {'vs': 1, " in str(stream.doubt)
    assert "written again it is {'vs': 5, " in str(stream.doubt)
    again = LogStream("s", [durable(0, 2)], start=0, check=True)
    again.write(entry(0, 1))
    again.write(entry(1, 1))
    assert again.doubt is None
    unchecked = msgspec.structs.replace(durable(0, 2), checksum="")
    without = LogStream("s", [unchecked], start=0, check=True)
    without.write(entry(0, 2))
    assert without.doubt is None, "the segment was written by a run that checked nothing"


def test_the_same_rows_in_another_order_are_other_rows() -> None:
    stream = LogStream("s", [durable(0, 2)], start=0, check=True)
    stream.write(Entry(0, concat_batches([rows(1, 1), rows(0, 1)]), 7))
    assert isinstance(stream.doubt, DeterminismViolation)
    stream.load("s0", [entry(0, 2)])
    assert "row 0 was {'vs': 0, " in str(stream.doubt)


def test_volatile_rows_stay_until_they_are_durable() -> None:
    stream = LogStream("s", cache=0)
    stream.write(entry(0, 2))
    stream.write(entry(2, 2))
    assert stream.volatile_bytes == stream.held_bytes > 0
    found = stream.next_segment()
    assert found is not None and found[0].seq == 0 and found[-1].end == 4
    stream.flushed(durable(0, 4, "a"))
    assert (stream.durable, stream.volatile_bytes, stream.held_bytes) == (4, 0, 0)
    stream.register("r", 1)
    assert stream.read_next("r") is None
    assert list(stream.missing) == ["a"]
    stream.load("a", [entry(0, 4)])
    assert read_rows(stream, "r") == [1, 2, 3]


def test_it_is_ahead_when_its_fastest_reader_has_much_to_read() -> None:
    stream = LogStream("s", cache=0)
    stream.write(entry(0, 2))
    size = stream.held_bytes
    assert stream.is_ahead(size - 1), "nobody reads, and nothing is durable"
    stream.register("slow", 0)
    assert stream.is_ahead(size - 1) and not stream.is_ahead(size)
    stream.register("fast", 0)
    assert read_rows(stream, "fast") == [0, 1]
    assert not stream.is_ahead(0), "one who has all waits for more"
    stream.unregister("fast")
    stream.flushed(durable(0, 2, "a"))
    stream.write(entry(2, 1))
    assert stream.is_ahead(1000), "what is to read is not even in memory"
    stream.unregister("slow")
    assert stream.is_ahead(0) and not stream.is_ahead(size), "without readers: what is volatile"


def test_one_segment_is_written_at_a_time_and_begins_where_the_last_ended() -> None:
    stream = LogStream("s")
    stream.write(entry(0, 2))
    stream.flushing = durable(0, 2)
    stream.write(entry(2, 1))
    assert stream.next_segment() is None
    stream.flushed(durable(0, 2))
    found = stream.next_segment()
    assert found is not None and (found[0].seq, found[-1].end) == (2, 3)


def test_durable_rows_stay_in_memory_while_a_reader_needs_them() -> None:
    stream = LogStream("s")
    stream.register("slow", 0)
    stream.write(entry(0, 3))
    stream.flushed(durable(0, 3))
    assert read_rows(stream, "slow") == [0, 1, 2]
    assert not stream.missing


def test_a_collected_row_is_an_error_and_never_a_gap() -> None:
    stream = LogStream("s")
    stream.write(entry(0, 4))
    stream.collect(2)
    with pytest.raises(RunError, match="was collected"):
        stream.register("r", 1)
    stream.register("r", 2)
    assert read_rows(stream, "r") == [2, 3]


def test_collecting_takes_no_row_too_many() -> None:
    stream = LogStream("s")
    for number in range(3):
        stream.write(entry(number, 1))
    stream.collect(1)
    stream.register("r", 1)
    assert read_rows(stream, "r") == [1, 2]


def test_volatile_rows_stay_though_all_have_read_them() -> None:
    stream = LogStream("s")
    stream.register("r", 0)
    stream.write(entry(0, 2))
    assert read_rows(stream, "r") == [0, 1]
    stream.unregister("r")
    found = stream.next_segment()
    assert found is not None and found[-1].end == 2


def test_a_segment_behind_a_gap_is_not_durable_yet() -> None:
    stream = LogStream("s")
    stream.write(entry(0, 4))
    stream.learn([durable(2, 2)])
    assert (stream.durable, stream.segments) == (0, ())


def test_the_last_claim_outlives_its_rows() -> None:
    stream = LogStream("s")
    stream.write(entry(0, 2, cti=OPEN))
    stream.collect(2)
    stream.register("r", 2)
    found = stream.read_next("r")
    assert found is not None and (found.seq, len(found.rows), found.cti) == (2, 0, OPEN)


def test_a_writer_that_repeats_what_is_collected_is_caught_up_with() -> None:
    stream = LogStream("s", [], start=3)
    stream.collect(7)
    stream.register("r", 7)
    stream.write(entry(3, 2))
    stream.write(entry(5, 4))
    assert read_rows(stream, "r") == [7, 8]
    assert stream.durable == 7


def test_synchronous_rows_are_hidden_until_they_are_durable() -> None:
    stream = LogStream("s", synchronous=True)
    stream.register("r", 0)
    stream.write(entry(0, 2))
    assert stream.read_next("r") is None
    stream.flushed(durable(0, 2))
    assert read_rows(stream, "r") == [0, 1]


# --- the cursor --------------------------------------------------------------------------------


def test_a_cursor_drops_what_came_before_and_refuses_a_gap() -> None:
    cursor = Cursor("s", "r")
    assert cursor.arrive(entry(0, 3))
    assert cursor.arrive(entry(1, 4))
    assert not cursor.arrive(entry(6, 1))
    found = cursor.read_next("r")
    assert found is not None and found.rows.columns[0].to_pylist() == [0, 1, 2, 3, 4]
    assert (cursor.position, cursor.wanted, cursor.queued_bytes) == (5, 5, 0)


def test_a_cursor_goes_on_behind_what_waits_when_it_reconnects() -> None:
    cursor = Cursor("s", "r")
    cursor.arrive(entry(0, 3))
    before = cursor.connection
    assert cursor.reconnect() > before
    assert cursor.wanted == 3
    cursor.register("r", 1)
    assert (cursor.wanted, cursor.queued_bytes) == (1, 0)


def test_no_two_connections_have_one_number() -> None:
    first, second = Cursor("s", "r"), Cursor("s", "r")
    numbers = [c.connection for c in (first, second)] + [c.reconnect() for c in (first, second)]
    assert len(set(numbers)) == 4


def test_attached_it_reads_the_stream_itself() -> None:
    stream, cursor = LogStream("s"), Cursor("s", "r")
    stream.write(entry(0, 2))
    cursor.register("r", 1)
    cursor.attach(stream)
    found = cursor.read_next("r")
    assert found is not None and found.seq == 1
    cursor.detach()
    assert cursor.near is None and cursor.wanted == 2


@pytest.mark.parametrize("seed", range(20))
def test_whatever_the_channel_does_each_row_comes_once(seed: int) -> None:
    chance, cursor, got = random.Random(seed), Cursor("s", "r"), []
    while len(got) < 30:
        first = max(0, cursor.wanted - chance.randrange(3)) + (chance.random() < 0.2)
        before = cursor.wanted
        count = min(chance.randrange(1, 5), 30 - first)
        if count > 0:
            assert cursor.arrive(entry(first, count)) == (first <= before)
        if chance.random() < 0.5 and (found := cursor.read_next("r")) is not None:
            got += found.rows.columns[0].to_pylist()
    assert got == list(range(30))


# --- bytes -------------------------------------------------------------------------------------


def test_entries_and_snapshots_come_back_as_they_were() -> None:
    entries = [entry(4, 3), Entry(7, rows(0, 0), 11)]
    back = decode_entries("s", encode_entries("s", entries))
    assert [(e.seq, e.end, e.cti) for e in back] == [(4, 7, 7), (7, 7, 11)]
    assert back[0].rows.columns[0].to_pylist() == [4, 5, 6]
    snapshot = Snapshot((1, 2), (3,), {})
    assert decode_snapshot("s", encode_snapshot("s", snapshot)) == snapshot
    assert decode_record("r", encode_record("r", {"a": 1}), msgspec.json.Decoder()) == {"a": 1}


@pytest.mark.parametrize("index", [0, 15, 16, 40, -1])
def test_changed_and_torn_bytes_are_found(index: int) -> None:
    for body, decode in (
        (encode_entries("s", [entry(0, 3)]), decode_entries),
        (encode_snapshot("s", Snapshot((1,), (1,), {})), decode_snapshot),
    ):
        at = index % len(body)
        changed = body[:at] + bytes([body[at] ^ 4]) + body[at + 1 :]
        for wrong in (changed, body[:at], b""):
            with pytest.raises(SnapshotCorrupt, match=r"^s: "):
                decode("s", bytes(wrong))
        with pytest.raises(SnapshotCorrupt, match=r"^other: .* another name"):
            decode("other", bytes(body))
