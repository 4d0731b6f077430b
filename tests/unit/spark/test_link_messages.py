"""What two hosts say to each other: what is right comes through, anything else is refused."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import numpy as np
import pyarrow as pa
import pytest

from machine.jobs import entry, rows
from weir.errors import RunError
from weir.events.batch import Batch
from weir.reliable.codec import record_of
from weir.reliable.stream import Entry
from weir.reliable.views import View
from weir.spark.live.link_messages import (
    Bring,
    Bye,
    Gone,
    Hello,
    Leave,
    Room,
    Want,
    Yours,
    pack_hello,
    pack_message,
    read_hello,
    read_rows,
    read_words,
)

BIGINTS = (pa.int64(),)
pack = msgspec.msgpack.encode


def test_words_and_entries_come_through() -> None:
    said = [Want(3, "0.0/0", 5, 100), Leave(3), Room(4, 10), Gone(5), Yours(), Bye()]
    origin = (np.array([7, 8], dtype=np.int64),)
    given = rows(4, 2)
    deep = Entry(4, Batch(given.vs, given.ve, given.columns, origin), 9)
    words, body = pack_message(said, [(1, entry(0, 3), 72), (2, entry(5, 0, 6), 0), (1, deep, 64)])
    found = read_words(words, len(body))
    assert found[: len(said)] == said
    first, claim, last = found[len(said) :]
    assert isinstance(first, Bring) and isinstance(claim, Bring) and isinstance(last, Bring)
    assert (first.subscription, first.size, claim.length) == (1, 72, 0)
    data = pa.py_buffer(body)
    read = read_rows(first, data.slice(0, first.length), BIGINTS)
    assert (read.seq, read.rows.vs.tolist(), read.cti) == (0, [0, 1, 2], 3)
    assert read_rows(claim, data.slice(0, 0), BIGINTS).cti == 6
    read = read_rows(last, data.slice(first.length, last.length), BIGINTS)
    assert (read.seq, read.cti, read.rows.origin[0].tolist()) == (4, 9, [7, 8])


def test_a_claim_is_short_and_no_schema_is_sent() -> None:
    words, body = pack_message((), [(1000, Entry(10**9, rows(0, 0), 10**15), 0)])
    assert not body and len(words) < 30
    _, body = pack_message((), [(1, entry(0, 3), 72)])
    assert len(body) < 400


def test_who_makes_a_link_says_where_it_serves() -> None:
    assert read_hello(pack_hello("grpc://a:1")) == Hello("grpc://a:1")
    for wrong in (None, b"", b"\x93", pack({"address": "a"}), pack([3])):
        with pytest.raises(RunError, match="the beginning of a link that cannot be used"):
            read_hello(wrong)


def test_a_word_with_more_to_say_than_is_known_is_still_understood() -> None:
    more = pack([[1, 3, "0.0/0", 5, 100, None, [0, 2048]]])
    assert read_words(more, 0) == [Want(3, "0.0/0", 5, 100)]


def test_a_view_comes_back_with_its_numbers_and_what_it_covers() -> None:
    view = View((0, 2), 1024, 2048)
    words, _ = pack_message([Want(3, "0.0/0", 5, 100, view)], ())
    assert read_words(words, 0) == [Want(3, "0.0/0", 5, 100, view)]
    some = Entry(4, rows(0, 3), 9, np.array([5, 6, 300]), 400)
    nothing = Entry(707, rows(0, 0), 11, None, 50)
    words, body = pack_message((), [(1, some, 9), (2, nothing, 0)])
    first, second = read_words(words, len(body))
    assert isinstance(first, Bring) and isinstance(second, Bring)
    back = read_rows(first, pa.py_buffer(body), BIGINTS)
    assert (back.seq, back.end, back.cti) == (4, 407, 9)
    assert back.row_numbers.tolist() == [5, 6, 300]
    covered = read_rows(second, pa.py_buffer(b""), BIGINTS)
    assert (covered.seq, covered.end, covered.cti, len(covered.rows)) == (707, 757, 11, 0)


@pytest.mark.parametrize("steps", [b"", b"12", b"\xff\xff\xff", b"\xff" * 24])
def test_numbers_that_are_none_are_refused(steps: bytes) -> None:
    body = record_of(entry(0, 3)).serialize()
    with pytest.raises(RunError, match="the numbers of rows"):
        read_rows(
            Bring(1, 0, 0, 9, body.size, left_out=5, steps=steps), pa.py_buffer(body), BIGINTS
        )


@pytest.mark.parametrize(
    "words",
    [
        b"",
        b"\xc1",
        pack({}),
        pack([[99, 1]]),
        pack([[1, 3, "s", -1, 0]]),
        pack([[1, 3, "s", 0, 2**63]]),
        pack([[3, 3, 2**63]]),
        pack([[4, 3, -1, 0]]),
        pack([[4, 3, 0, 2**63]]),
        pack([[4, 3, 0, 0, 0, 0, 1]]),
        pack([[4, 3, 0, 0, 0, 0, 10**9]]),
        pack([[2]]),
    ],
)
def test_words_that_cannot_be_used(words: bytes) -> None:
    with pytest.raises(RunError, match="a message between hosts that cannot be used"):
        read_words(words, 0)


@pytest.mark.parametrize("length", [0, 1, 99, 101])
def test_a_body_that_is_not_of_its_rows(length: int) -> None:
    with pytest.raises(RunError, match="for other rows"):
        read_words(pack([Bring(1, 0, 0, 5, 100)]), length)


def columns(**given: pa.Array) -> pa.RecordBatch:
    times = {"t0": pa.array([1, 2]), "t1": pa.array([2, 3]), "c0": pa.array([5, 6])}
    return pa.record_batch({n: a for n, a in (times | given).items() if a is not None})


def torn_text() -> pa.Array:
    """Texts of which the second begins far behind the end of all of them."""
    offsets = np.array([0, 1 << 30, 2], np.int32)
    return pa.Array.from_buffers(pa.string(), 2, [None, pa.py_buffer(offsets), pa.py_buffer(b"ab")])


@pytest.mark.parametrize(
    ("record", "types"),
    [
        (columns(c0=None), BIGINTS),
        (columns(c0=torn_text()), (pa.string(),)),
        (columns(t0=pa.array([1, None])), BIGINTS),
        (columns(c0=pa.array(["a", "b"])), (pa.list_(pa.string()),)),
        (
            columns(c0=pa.Array.from_buffers(
                pa.string(), 2, [None, pa.py_buffer(np.array([0, 1, 2], np.int32)),
                                 pa.py_buffer(b"\xff\xfe")])),
            (pa.string(),),
        ),
    ],
)  # fmt: skip
def test_rows_that_cannot_be_used(record: pa.RecordBatch, types: tuple[pa.DataType, ...]) -> None:
    body = record.serialize()
    with pytest.raises(RunError, match="rows that cannot be used"):
        read_rows(Bring(1, 0, 0, 9, body.size), body, types)


@pytest.mark.parametrize("body", [b"x", b"\xff" * 64, bytes(64)])
def test_bytes_that_are_no_rows(body: bytes) -> None:
    with pytest.raises(RunError, match="rows that cannot be used"):
        read_rows(Bring(1, 0, 0, 9, len(body)), pa.py_buffer(body), BIGINTS)


def test_rows_beyond_the_largest_number() -> None:
    body = columns().serialize()
    with pytest.raises(RunError, match="rows that cannot be used: the number"):
        read_rows(Bring(1, 2**63 - 2, 0, 9, body.size), body, BIGINTS)


@pytest.mark.parametrize("start", [b"", b"\x91"])
@pytest.mark.parametrize("read", [read_hello, lambda b: read_words(b, 0)])
def test_deep_nesting_is_no_crash(read: Callable[[bytes], object], start: bytes) -> None:
    with pytest.raises(RunError, match="cannot be used"):
        read(start + b"\x91" * 200_000)
