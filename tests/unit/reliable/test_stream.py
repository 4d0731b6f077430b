"""The rules of rStream, one by one."""

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa
import pytest

from weir.errors import DeterminismViolation, RunError
from weir.events.batch import OPEN, START, Batch
from weir.reliable.memory_stream import MemoryStream
from weir.reliable.stream import Entry


def _rows(values: list[int]) -> Batch:
    vs = np.array(values, dtype=np.int64)
    return Batch(vs, vs + 1, (pa.array(values, pa.int64()),))


def _entry(seq: int, stop: int, cti: int) -> Entry:
    """Rows seq … stop − 1, whose value is their number."""
    return Entry(seq, _rows(list(range(seq, stop))), cti)


def _read(stream: MemoryStream, reader: str = "r") -> tuple[list[int], int]:
    """All that is new, and the last claim."""
    values: list[int] = []
    cti = START
    at = stream.position(reader)
    while (entry := stream.read_next(reader)) is not None:
        assert entry.seq == at, "a gap or a repetition"
        at = entry.end
        values += entry.rows.columns[0].to_pylist()
        assert entry.cti >= cti
        cti = entry.cti
    return values, cti


def _stream(*entries: Entry, check: bool = False) -> MemoryStream:
    stream = MemoryStream("numbers", check=check)
    stream.register("r", 0)
    for entry in entries:
        stream.write(entry)
    return stream


# --- rule 1: numbers without gaps ----------------------------------------------------------


def test_a_gap_is_refused() -> None:
    stream = _stream(_entry(0, 3, 3))
    with pytest.raises(RunError, match="stream numbers: row 4 written before row 3"):
        stream.write(_entry(4, 5, 5))
    assert stream.end == 3 and stream.cti == 3


def test_rows_and_claims_come_as_they_were_written() -> None:
    stream = _stream(_entry(0, 2, 1))
    first = stream.read_next("r")
    assert first is not None and (first.seq, first.end, first.cti) == (0, 2, 1)
    assert stream.read_next("r") is None
    stream.write(_entry(2, 2, 7))
    claim = stream.read_next("r")
    assert claim is not None and (claim.seq, len(claim.rows), claim.cti) == (2, 0, 7)


# --- rule 2: the first write of a number wins ----------------------------------------------


@pytest.mark.parametrize("seq", range(6))
@pytest.mark.parametrize("stop", range(9))
def test_rows_written_again_are_dropped_whatever_the_overlap(seq: int, stop: int) -> None:
    stream = _stream(_entry(0, 3, 1), _entry(3, 5, 2))
    if stop < seq:
        return
    stream.write(_entry(seq, stop, 2))
    assert _read(stream)[0] == list(range(max(5, stop)))
    assert stream.end == max(5, stop)


def test_the_first_write_wins_over_other_rows() -> None:
    stream = _stream(_entry(0, 3, 1))
    stream.write(Entry(1, _rows([70, 71, 72]), 2))
    assert _read(stream)[0] == [0, 1, 2, 72]


def test_other_rows_under_the_same_numbers_are_a_violation() -> None:
    stream = _stream(_entry(0, 3, 1), _entry(3, 6, 1), check=True)
    stream.write(_entry(1, 7, 2))  # the same again, and one more
    with pytest.raises(
        DeterminismViolation, match=r"stream numbers: row 4 was .*, written again it is .*99"
    ):
        stream.write(Entry(2, _rows([2, 3, 99, 98]), 3))
    assert stream.end == 7


def test_lifetimes_are_compared_too() -> None:
    stream = _stream(_entry(0, 1, 1), check=True)
    longer = Batch(np.array([0]), np.array([2]), (pa.array([0]),))
    with pytest.raises(DeterminismViolation, match="row 0 was"):
        stream.write(Entry(0, longer, 1))


def test_without_check_nothing_is_compared() -> None:
    stream = _stream(_entry(0, 2, 1))
    stream.write(Entry(0, _rows([8, 9]), 1))
    assert _read(stream)[0] == [0, 1]


def test_the_ordered_checksum_ignores_cuts_and_repetitions() -> None:
    whole = _stream(_entry(0, 6, 9), check=True)
    cut = _stream(_entry(0, 2, 0), _entry(2, 2, 3), _entry(1, 5, 4), _entry(0, 6, 9), check=True)
    other = _stream(Entry(0, _rows([1, 0, 2, 3, 4, 5]), 9), check=True)
    assert whole.ordered_checksum == cut.ordered_checksum != other.ordered_checksum
    assert whole.ordered_checksum.endswith("-6")


# --- rule 3: a claim is never lost ---------------------------------------------------------


@pytest.mark.parametrize(("seq", "stop"), [(0, 0), (0, 2), (1, 3), (3, 3)])
def test_a_claim_behind_known_rows_still_counts(seq: int, stop: int) -> None:
    stream = _stream(_entry(0, 3, 1))
    assert _read(stream)[1] == 1
    stream.write(_entry(seq, stop, 8))
    assert _read(stream) == ([], 8)
    assert stream.cti == 8


def test_claims_only_grow() -> None:
    stream = _stream(_entry(0, 1, 8))
    stream.write(_entry(1, 2, 3))
    assert _read(stream) == ([0, 1], 8)
    stream.write(_entry(2, 2, 5))
    assert stream.read_next("r") is None


# --- rule 4: each row once, in order -------------------------------------------------------


def test_readers_are_apart() -> None:
    stream = _stream(_entry(0, 3, 1))
    stream.register("late", 2)
    assert _read(stream, "late") == ([2], 1)
    assert _read(stream) == ([0, 1, 2], 1)
    assert stream.position("late") == stream.position("r") == 3


@pytest.mark.parametrize("seed", range(10))
def test_any_writes_and_reads(seed: int) -> None:
    chance = random.Random(seed)
    stream = _stream(check=True)
    got: list[int] = []
    claim = last = START
    for _ in range(200):
        seq = chance.randint(max(0, stream.end - 5), stream.end)
        stop = seq + chance.randrange(5)
        claim = max(claim, chance.randrange(1000))
        stream.write(_entry(seq, stop, claim))
        if chance.random() < 0.5:
            values, cti = _read(stream)
            got += values
            last = max(last, cti)
            assert last == claim
        if chance.random() < 0.3:
            stream.collect_read()
    assert got + _read(stream)[0] == list(range(stream.end))


# --- rule 5: what was written stays, until it is collected ---------------------------------


@pytest.mark.parametrize("seq", range(6))
def test_registering_again_rewinds(seq: int) -> None:
    stream = _stream(_entry(0, 2, 1), _entry(2, 5, 2), _entry(5, 5, 9))
    assert _read(stream) == ([0, 1, 2, 3, 4], 9)
    stream.register("r", seq)
    assert _read(stream) == (list(range(seq, 5)), 9)


def test_a_number_that_is_not_there_yet() -> None:
    with pytest.raises(RunError, match="stream numbers: row 1 is not written yet"):
        _stream().register("x", 1)


@pytest.mark.parametrize("seq", range(7))
def test_collecting_keeps_what_may_be_asked_for(seq: int) -> None:
    stream = _stream(_entry(0, 2, 1), _entry(2, 5, 2))
    stream.collect(seq)
    if seq > 0:
        with pytest.raises(RunError, match="was collected"):
            stream.register("x", 0)
    if seq <= 5:
        stream.register("x", seq)
        assert _read(stream, "x") == (list(range(seq, 5)), 2)


def held_rows(stream: MemoryStream) -> int:
    return sum(len(e.rows) for e in stream.entries)


def test_collecting_keeps_claims() -> None:
    stream = _stream(_entry(0, 5, 4), _entry(5, 5, OPEN))
    _read(stream)
    stream.collect_read()
    assert held_rows(stream) == 0
    stream.register("new", 5)
    assert _read(stream, "new") == ([], OPEN)
    # A writer that begins again writes everything: nothing comes twice, nothing is lost.
    stream.write(_entry(0, 6, OPEN))
    assert _read(stream, "new") == ([5], OPEN)


def test_only_what_all_have_read_is_collected() -> None:
    stream = _stream(_entry(0, 2, 1), _entry(2, 4, 2))
    stream.register("slow", 0)
    _read(stream)
    stream.collect_read()
    assert held_rows(stream) == 4
    assert _read(stream, "slow") == ([0, 1, 2, 3], 2)
    stream.collect_read()
    assert held_rows(stream) == 0 and len(stream.entries) == 1
