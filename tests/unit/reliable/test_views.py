"""Views of streams: each row in one part, under its number, whatever is read from where."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest

from weir.errors import RunError, SnapshotCorrupt
from weir.events.batch import START, Batch, concat_batches, empty_batch
from weir.events.hashing import BUCKETS, buckets_of
from weir.reliable.codec import decode_entries, encode_entries, numbers_after, steps_of
from weir.reliable.cursor import Cursor
from weir.reliable.log import LogStream, Segment
from weir.reliable.memory_stream import MemoryStream
from weir.reliable.objects import ObjectRef
from weir.reliable.stream import Entry, StreamReader, joined
from weir.reliable.views import CellEntry, StreamLayout, View, layout_of, view_of_part

COUNT = 200
WAYS = [((0,), 3), ((1,), 4), ((0,), 5), (None, 1)]
"""The columns and parts by which the streams of these tests are read."""
VIEWS = [view_of_part(keys or (), p, parts) for keys, parts in WAYS for p in range(parts)]


def rows(first: int, end: int) -> Batch:
    """Rows that say their own number in the second column; the first has few values."""
    numbers = np.arange(first, end, dtype=np.int64)
    return Batch(numbers, numbers + 1, (pa.array(numbers * 7 % 11), pa.array(numbers)))


def entry(first: int, end: int, cti: int | None = None) -> Entry:
    return Entry(first, rows(first, end), end if cti is None else cti)


def of_view(view: View | None, first: int, end: int) -> list[int]:
    """The numbers in [first, end) of the rows that a view has, found in another way."""
    numbers = np.arange(first, end)
    if view is None:
        return numbers.tolist()
    buckets = buckets_of([rows(first, end).columns[k] for k in view.keys], end - first)
    return numbers[(view.first <= buckets) & (buckets < view.end)].tolist()


def read_all(stream: StreamReader, reader: str, at: int, view: View | None) -> int:
    """Read what there is from number `at` on, compare it, and return how far that was."""
    while (found := stream.read_next(reader)) is not None:
        assert found.seq == at and found.cti >= START
        expected = of_view(view, found.seq, found.end)
        assert found.row_numbers.tolist() == found.rows.columns[1].to_pylist() == expected
        at = found.end
    return at


def cuts(chance: random.Random, end: int = COUNT) -> list[tuple[int, int]]:
    points = sorted({0, end, *(chance.randrange(end) for _ in range(chance.randrange(30)))})
    return list(pairwise(points))


def stored(name: str, entries: Sequence[object], key: str) -> tuple[Segment, bytes]:
    body = bytes(encode_entries(key, entries))  # type: ignore[arg-type]
    first, end = entries[0].seq, entries[-1].end  # type: ignore[attr-defined]
    return Segment(ObjectRef.of(key, body), first, end, end, ""), body


# --- layouts -------------------------------------------------------------------------------


@pytest.mark.parametrize("parts", [1, 2, 3, 7, 64, 1000])
def test_every_row_is_in_one_part(parts: int) -> None:
    views = [view_of_part((0,), part, parts) for part in range(parts)]
    found = [n for view in views for n in of_view(view, 0, COUNT)]
    assert sorted(found) == list(range(COUNT))
    stream = MemoryStream("s", layout_of([((0,), parts)]))
    stream.write(entry(0, COUNT))
    for part, view in enumerate(views):
        reader = stream.through(view)
        reader.register(f"{part}", 0)
        assert read_all(reader, f"{part}", 0, view) == COUNT


def test_ranges_of_two_counts_of_parts_cut_cells() -> None:
    (cells,) = layout_of([((0,), 2), ((0,), 3)]).cells
    assert cells.bounds == (0, 1366, 2048, 2731, BUCKETS)
    assert layout_of([((0,), 1)]) == StreamLayout() == layout_of([(None, 1)])
    assert not layout_of([((0,), 2)]).whole


def test_a_view_that_no_reader_has_is_refused() -> None:
    stream = LogStream("s", layout=layout_of([((0,), 2)]))
    for view in (View((0,), 0, 100), View((1,), 0, 2048), View((0,), 2048, 2048)):
        assert not stream.has_view(view)
        with pytest.raises(RunError, match="no reader has"):
            stream.register("r", 0, view)
    assert stream.has_view(None) and stream.has_view(View((0,), 2048, BUCKETS))


# --- reading -------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(8))
def test_any_view_of_a_stream_has_its_rows_from_anywhere(seed: int) -> None:
    """Rows are written in any cuts, some of them twice; readers go back and forth."""
    chance = random.Random(seed)
    stream = MemoryStream("s", layout_of(WAYS), check=True)
    at: dict[str, int] = {}
    for first, end in cuts(chance):
        again = chance.randrange(first + 1)
        stream.write(entry(again, end))
        for number, view in enumerate(VIEWS):
            reader = stream.through(view)
            if chance.random() < 0.2:
                at[f"{number}"] = chance.randrange(stream.end + 1)
                reader.register(f"{number}", at[f"{number}"])
            if f"{number}" in at and chance.random() < 0.7:
                at[f"{number}"] = read_all(reader, f"{number}", at[f"{number}"], view)
                assert at[f"{number}"] == stream.end == stream.position(f"{number}")


def test_a_view_without_rows_moves_its_position_and_brings_the_claim() -> None:
    stream = MemoryStream("s", layout_of([((0,), 1000)]))
    first, end = (next(v for v in parts if bool(of_view(v, 0, 20)) is has) for has in (True, False))
    stream.register("some", 0, first)
    stream.register("none", 0, end)
    for number in range(20):
        stream.write(entry(number, number + 1))
    found = stream.read_next("none")
    assert found is not None and (found.seq, found.end, found.cti) == (0, 20, 20)
    assert not len(found.rows) and found.left_out == 20
    assert stream.read_next("none") is None
    assert read_all(stream, "some", 0, first) == 20
    stream.collect_read()
    assert [len(e.rows) for e in stream.entries] == [0], "a reader without rows holds nothing up"


def test_a_view_without_rows_moves_its_position_though_no_claim_comes() -> None:
    """As in rows of one time: what is collected must not wait for the next claim."""
    stream = MemoryStream("s", layout_of([((0,), 1000)]))
    empty = next(view for view in parts if not of_view(view, 0, 20))
    stream.register("none", 0, empty)
    stream.write(entry(0, 10, cti=5))
    assert (found := stream.read_next("none")) is not None and found.end == 10
    stream.write(entry(10, 20, cti=5))
    assert (found := stream.read_next("none")) is not None
    assert (found.seq, found.end, found.cti, len(found.rows)) == (10, 20, 5, 0)


parts = [view_of_part((0,), part, 1000) for part in range(1000)]


def test_a_claim_comes_no_sooner_than_the_rows_before_it() -> None:
    """The second entry's claim is past the first row of the third: they must not be joined so that
    a reader of the view has it before."""
    view = view_of_part((1,), 0, 2)
    mine = of_view(view, 0, COUNT)[0]
    stream = MemoryStream("s", layout_of([((1,), 2)]))
    stream.register("r", 0, view)
    stream.write(entry(0, mine, cti=1))
    stream.write(entry(mine, mine + 1, cti=5))
    stream.write(entry(mine + 1, COUNT, cti=9))
    found = stream.read_next("r")
    assert found is not None and found.rows.columns[1].to_pylist() == [mine]
    assert (found.seq, found.end, found.cti) == (0, mine + 1, 5)


# --- the live stream -----------------------------------------------------------------------


def flush(stream: LogStream, objects: dict[str, bytes], incarnation: int, limit: int) -> None:
    found = stream.next_segment(limit)
    if found is not None:
        key = f"{found[0].seq}-{incarnation}"
        segment, objects[key] = stored("s", [e.stored() for e in found], key)
        stream.flushed(segment)


def load(stream: LogStream, objects: dict[str, bytes]) -> bool:
    missing = list(stream.missing.values())
    for segment in missing:
        stream.load(segment.key, segment.decode(objects[segment.key]))
    return bool(missing)


@pytest.mark.parametrize("ways", [WAYS, WAYS[:1], WAYS[:3], WAYS[3:]])
@pytest.mark.parametrize("seed", range(6))
def test_views_are_read_from_memory_and_from_segments(seed: int, ways: list) -> None:  # type: ignore[type-arg]
    """A writer that restarts writes again, in other cuts, from before what is durable."""
    chance, objects = random.Random(seed), {}
    views = [view_of_part(keys or (), p, parts) for keys, parts in ways for p in range(parts)]
    at = dict.fromkeys(range(len(views)), 0)
    segments: tuple[Segment, ...] = ()
    for incarnation in range(3):
        durable = segments[-1].end if segments else 0
        start = chance.randrange(durable + 1)
        stream = LogStream("s", segments, start, layout_of(ways), cache=chance.choice([0, 1 << 20]))
        for number, view in enumerate(views):
            at[number] = chance.randrange(at[number] + 1)
            stream.register(number, at[number], view)
        for first, end in cuts(chance):
            if end <= start:
                continue
            stream.write(entry(max(first, start), end))
            if chance.random() < 0.6:
                flush(stream, objects, incarnation, chance.choice([100, 1 << 20]))
            for number, view in enumerate(views):
                if chance.random() < 0.5:
                    at[number] = read_all(stream, number, at[number], view)  # type: ignore[arg-type]
                    while load(stream, objects):
                        at[number] = read_all(stream, number, at[number], view)  # type: ignore[arg-type]
                    assert at[number] == max(stream.end, at[number])
        segments = stream.segments


def test_a_segment_begins_where_those_of_another_instance_end() -> None:
    """Also in the middle of an entry."""
    stream = LogStream("s", layout=layout_of([((0,), 3)]))
    stream.write(entry(0, 20))
    stream.learn([Segment(ObjectRef("a"), 0, 7, 7, "")])
    found = stream.next_segment()
    assert found is not None and (found[0].seq, found[-1].end) == (7, 20)
    kept = found[0].stored()
    assert isinstance(kept, CellEntry)
    view = view_of_part((0,), 2, 3)
    assert kept.of_cells(2, 3).row_numbers.tolist() == of_view(view, 7, 20)


def test_a_stream_is_ahead_of_a_view_by_the_rows_that_the_view_has() -> None:
    ways = [((1,), 4)]
    views = [view_of_part((1,), part, 4) for part in range(4)]
    stream = LogStream("s", layout=layout_of(ways), cache=1 << 30)
    for number, view in enumerate(views):
        stream.register(number, 0, view)
    stream.write(entry(0, COUNT))
    size = stream.held_bytes
    assert stream.is_ahead(size // 2), "each has a fourth to read, and may be an eighth behind"
    assert not stream.is_ahead(2 * size)
    assert read_all(stream, 3, 0, views[3]) == COUNT  # type: ignore[arg-type]
    assert not stream.is_ahead(0), "one who has all waits for more"
    of_none = LogStream("s", layout=layout_of([((0,), 1000)]))
    empty = next(view for view in parts if not of_view(view, 0, COUNT))
    of_none.register("r", 0, empty)
    of_none.write(entry(0, COUNT))
    assert not of_none.is_ahead(0), "there is nothing to read"


# --- the cursor ----------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(20))
def test_whatever_the_channel_does_a_cursor_hands_on_each_row_of_its_view_once(seed: int) -> None:
    chance = random.Random(seed)
    view = VIEWS[seed % len(VIEWS)]
    stream = MemoryStream("s", layout_of(WAYS))
    for first, end in cuts(chance):
        stream.write(entry(first, end))
    cursor, got = Cursor("s", "r", view), []
    while cursor.position < COUNT:
        first = max(0, cursor.wanted - chance.randrange(9))
        begin = min(first + chance.choice([0, 0, 0, 0, 3]), COUNT)
        stream.register("c", begin, view)
        before, found = cursor.wanted, stream.read_next("c")
        if found is not None:
            assert cursor.arrive(sent(found)) == (begin <= before)
        if chance.random() < 0.5 and (handed := cursor.read_next("r")) is not None:
            assert handed.row_numbers.tolist() == handed.rows.columns[1].to_pylist()
            got += handed.rows.columns[1].to_pylist()
    assert got == of_view(view, 0, COUNT) and cursor.count == len(got)
    assert cursor.queued_bytes == 0


def sent(found: Entry) -> Entry:
    """An entry as it comes over a channel."""
    if not len(found.rows):
        return Entry(found.seq, rows(0, 0), found.cti, None, found.left_out)
    steps = steps_of(found)
    numbers = numbers_after(found.seq, steps, len(found.rows)) if steps else None
    return Entry(found.seq, found.rows, found.cti, numbers, found.left_out)


def test_an_attached_cursor_reads_its_view() -> None:
    view = view_of_part((0,), 1, 3)
    stream, cursor = LogStream("s", layout=layout_of([((0,), 3)])), Cursor("s", "r", view)
    stream.write(entry(0, COUNT))
    cursor.attach(stream)
    found = cursor.read_next("r")
    assert found is not None and found.rows.columns[1].to_pylist() == of_view(view, 0, COUNT)
    cursor.register("r", 7)
    found = cursor.read_next("r")
    assert found is not None and found.row_numbers.tolist() == of_view(view, 7, COUNT)
    cursor.detach()
    assert cursor.wanted == COUNT


# --- entries -------------------------------------------------------------------------------


@pytest.mark.parametrize("at", [0, 3, 4, 5, 6, 9, 10, 12])
def test_an_entry_is_cut_by_numbers(at: int) -> None:
    whole = Entry(3, rows(0, 3), 7, np.array([4, 6, 9]), 4)
    assert (whole.end, whole.first_row) == (10, 4)
    after, before = whole.since(at), whole.before(at)
    assert after.row_numbers.tolist() == [n for n in (4, 6, 9) if n >= at]
    assert before.row_numbers.tolist() == [n for n in (4, 6, 9) if n < at]
    assert (after.seq, after.end) == (max(at, 3), max(at, 10))
    assert (before.seq, before.end) == (3, min(max(at, 3), 10))


def test_entries_that_touch_are_joined() -> None:
    some = Entry(2, rows(0, 2), 5, np.array([3, 5]), 3)
    nothing = Entry(7, empty_batch(()), 6, None, 2)
    full = entry(9, 11)
    made = joined([some, nothing, full])
    assert (made.seq, made.end, made.cti) == (2, 11, 11)
    assert made.row_numbers.tolist() == [3, 5, 9, 10] and made.left_out == 5
    assert joined([entry(0, 2), entry(2, 3)]).numbers is None
    assert joined([nothing]) == nothing


# --- bytes ---------------------------------------------------------------------------------


@pytest.mark.parametrize("gap", [1, 255, 256, 257, 70_000, 2**33])
def test_numbers_travel_as_small_steps(gap: int) -> None:
    numbers = np.array([8, 9, 9 + gap, 10 + 2 * gap])
    before = Entry(5, rows(0, 4), 1, numbers, int(numbers[-1]) - 5)
    assert numbers_after(5, steps_of(before), 4).tolist() == numbers.tolist()
    assert steps_of(entry(0, 3)) == b""
    for wrong in (b"", b"123", b"12345"):
        with pytest.raises(ValueError, match="numbers of 4 rows"):
            numbers_after(5, wrong, 4)


def by_cell() -> CellEntry:
    stream = LogStream("s", layout=layout_of([((0,), 3)]))
    stream.write(entry(0, 20))
    stream.write(entry(20, 40))
    found = stream.next_segment()
    assert found is not None
    kept = found[1].stored()
    assert isinstance(kept, CellEntry)
    return kept


def test_rows_are_stored_by_cell_and_come_back() -> None:
    kept = by_cell()
    (back,) = decode_entries("s", encode_entries("s", [kept]))
    assert isinstance(back, CellEntry)
    assert (back.seq, back.end, back.cti, back.starts) == (20, 40, 40, kept.starts)
    assert back.in_order().rows.columns[1].to_pylist() == list(range(20, 40))
    for part in range(3):
        mine = back.of_cells(part, part + 1)
        assert mine.row_numbers.tolist() == of_view(view_of_part((0,), part, 3), 20, 40)


@pytest.mark.parametrize(
    "change",
    [
        lambda e: (e.numbers, (0, *e.starts[2:], e.starts[-1] + 1)),
        lambda e: (e.numbers, (1, *e.starts[1:])),
        lambda e: (e.numbers, (*e.starts[:-1], e.starts[-1] - 1)),
        lambda e: (e.numbers, (0, e.starts[2], e.starts[1], e.starts[3])),
        lambda e: (np.where(e.numbers == 21, 22, e.numbers), e.starts),
        lambda e: (e.numbers + 20, e.starts),
    ],
)
def test_rows_in_no_cell_or_in_two_are_refused(
    change: Callable[[CellEntry], tuple[np.ndarray, tuple[int, ...]]],
) -> None:
    kept = by_cell()
    numbers, starts = change(kept)
    wrong = CellEntry(kept.seq, kept.rows, kept.cti, numbers, starts)
    with pytest.raises(SnapshotCorrupt, match=r"^s "):
        decode_entries("s", bytes(encode_entries("s", [wrong])))


def test_rows_arranged_for_other_readers_are_refused() -> None:
    kept = by_cell()
    for layout in (layout_of([((0,), 4)]), StreamLayout()):
        with pytest.raises(SnapshotCorrupt, match="in the cells"):
            LogStream("s", layout=layout).load("k", [kept])
    with pytest.raises(SnapshotCorrupt, match="in the cells"):
        LogStream("s", layout=layout_of([((0,), 3)])).load("k", [entry(0, 3)])


def test_the_order_of_all_rows_is_that_of_their_numbers() -> None:
    stream = MemoryStream("s", layout_of([((0,), 3)]))
    stream.register("r", 0, view_of_part((0,), 0, 3))
    stream.write(entry(0, 30))
    stream.write(entry(30, 50))
    stream.read_next("r")
    found = concat_batches([e.rows for e in stream.entries])
    assert found.columns[1].to_pylist() == list(range(50))
