"""Marks, rehearsals, and what they must not do."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pytest

from weir.errors import DeterminismViolation, RunError
from weir.events.batch import OPEN, START, Batch
from weir.plan.horizon import horizons
from weir.reliable.chain import Chain
from weir.reliable.codec import decode_snapshot, encode_snapshot
from weir.reliable.memory_stream import MemoryStream
from weir.reliable.rebuildable_vertex import RebuildableVertex, Starts, needs_of
from weir.reliable.stream import Entry
from weir.reliable.vertex import Snapshot, Vertex
from weir.runtime.program_plan import plan_program
from weir.script.program import parse_program

BIG = 2**62
TEXT = """
STREAM A (vs BIGINT, k BIGINT, v BIGINT) FROM 'a.jsonl' WITH (vs = vs, lifetime = 20);
Out = SELECT k, SUM(v) AS total FROM A GROUP BY k WITH TUMBLING(10); OUTPUT Out TO 'o.jsonl';
"""


class Bench:
    """One vertex of the aggregate's stage, its input and its output."""

    def __init__(self) -> None:
        self.read, self.written = MemoryStream("in", check=True), MemoryStream("out", check=True)
        self._made = 0

    def fresh(self, *, marks: bool = True) -> RebuildableVertex:
        plan = plan_program(parse_program(TEXT)).stages
        chain = Chain(plan.stages[1], plan.origins, [0])
        outlets = [self.written]
        self._made += 1  # each reads for itself
        return RebuildableVertex(
            f"1.0#{self._made}", chain, [self.read], outlets, horizons(plan)[1], marks=marks
        )

    def rows(self, starts: Sequence[int], cti: int, values: Sequence[int] | None = None) -> None:
        """Write rows, each in an entry of its own, and then a claim."""
        for index, start in enumerate(starts):
            self._write([start], [1 if values is None else values[index]], START)
        self._write([], [], cti)

    def _write(self, starts: Sequence[int], values: Sequence[int], cti: int) -> None:
        vs = np.array(starts, dtype=np.int64)
        payload = (pa.array([0] * len(vs), pa.int64()), pa.array(values, pa.int64()))
        self.read.write(Entry(self.read.end, Batch(vs, vs + 20, payload), cti))

    def in_one_entry(self, starts: Sequence[int], cti: int) -> None:
        self._write(starts, [1] * len(starts), cti)


def caught_up(vertex: Vertex) -> Vertex:
    while vertex.execute():
        pass
    return vertex


def test_starts() -> None:
    starts = Starts(0, START, grain=3)
    assert starts.position_before(START) == 0
    for seq, vs in ((0, [5, 1]), (2, [6]), (3, [9, 2]), (5, [8]), (6, [40]), (7, [])):
        times = np.array(vs, dtype=np.int64)
        starts.note(Entry(seq, Batch(times, times + 1, ()), 0))
    assert starts.position_before(5) == 0
    assert starts.position_before(6) == 2
    assert starts.position_before(7) == 2  # 3 is right too, but less than a grain apart
    assert starts.position_before(10) == 6
    assert starts.position_before(41) == 7


def test_a_mark_is_numbers_alone() -> None:
    bench = Bench()
    vertex = bench.fresh()
    bench.rows(range(100), 100)
    caught_up(vertex)
    mark = vertex.snapshot()
    assert mark.inputs == (100,) and mark.outputs == (bench.written.end,)
    # The window of 10, and the 20 that rows live, less one instant.
    assert needs_of(mark) == (100 - 10 - 19,)
    assert sum(t.num_rows for t in mark.tables.values()) < 10
    again = decode_snapshot("s", bytes(encode_snapshot("s", mark)))
    assert needs_of(again) == needs_of(mark)


def test_a_rehearsal_is_silent_and_then_goes_on_alike() -> None:
    bench = Bench()
    old = bench.fresh()
    bench.rows(range(100), 100)
    caught_up(old)
    mark, written = old.snapshot(), bench.written.end
    fresh = bench.fresh()
    fresh.load(mark)
    assert not fresh.caught_up
    with pytest.raises(AssertionError, match="has not caught up"):
        fresh.snapshot()
    caught_up(fresh)
    assert fresh.caught_up and bench.written.end == written
    assert needs_of(fresh.snapshot()) == needs_of(mark)
    bench.rows(range(100, 150), OPEN)
    caught_up(old)
    checksum = bench.written.ordered_checksum
    caught_up(fresh)
    assert bench.written.ordered_checksum == checksum and fresh.cti == OPEN


@pytest.mark.parametrize("more", [[], [60, 70]])
def test_rows_and_claims_behind_the_mark_are_not_lost(more: list[int]) -> None:
    """They may come in one entry with rows before it."""
    bench = Bench()
    old = bench.fresh()
    bench.rows(range(50), 50)
    caught_up(old)
    mark = old.snapshot()
    bench.read = MemoryStream("in")
    bench.in_one_entry([*range(50), *more], OPEN)
    assert caught_up_from(bench, mark).cti == OPEN


def caught_up_from(bench: Bench, mark: Snapshot) -> Vertex:
    fresh = bench.fresh()
    fresh.load(mark)
    return caught_up(fresh)


def test_a_mark_at_the_very_beginning_and_at_the_end() -> None:
    bench = Bench()
    vertex = bench.fresh()
    assert needs_of(vertex.snapshot()) == (0,)
    assert caught_up_from(bench, vertex.snapshot()).caught_up
    bench.rows([3, 1, 2], START)
    caught_up(vertex)
    assert needs_of(vertex.snapshot()) == (0,)
    bench.rows([5], OPEN)
    caught_up(vertex)
    mark = vertex.snapshot()
    assert needs_of(mark) == mark.inputs == (4,)
    assert caught_up_from(bench, mark).cti == OPEN


def test_results_at_the_edge_are_not_computed() -> None:
    """Without the first row the sum of window [10, 20) does not fit its type."""
    bench = Bench()
    old = bench.fresh()
    bench.rows([5, 16, 17, 24], 45, [-BIG, BIG, BIG, -BIG])
    caught_up(old)
    mark = old.snapshot()
    assert needs_of(mark) == (1,)
    assert caught_up_from(bench, mark).caught_up
    alone = Bench()
    alone.rows([16, 17], OPEN, [BIG, BIG])
    with pytest.raises(RunError, match="overflow"):
        caught_up(alone.fresh())


def test_standing_elsewhere_is_an_error_not_another_answer() -> None:
    bench = Bench()
    old = bench.fresh()
    bench.rows(range(100), 100)
    caught_up(old)
    mark = old.snapshot()
    steps = mark.tables["$steps"].column("time").to_pylist()
    steps[2] += 1
    wrong = Snapshot(
        mark.inputs, mark.outputs, {**mark.tables, "$steps": pa.table({"time": steps})}
    )
    with pytest.raises(
        DeterminismViolation,
        match=r"vertex 1.0#2: Aggregate SUM.* had come to .* 101, built again it comes to 100; is",
    ):
        caught_up_from(bench, wrong)


def test_a_whole_snapshot_loads_too() -> None:
    bench = Bench()
    old = bench.fresh(marks=False)
    bench.rows(range(50), 50)
    caught_up(old)
    whole = old.snapshot()
    assert "$mark" not in whole.tables and needs_of(whole) == whole.inputs == (50,)
    fresh = bench.fresh()
    fresh.load(whole)
    assert fresh.caught_up
    bench.rows(range(50, 90), OPEN)
    caught_up(old)
    caught_up(fresh)
    assert needs_of(fresh.snapshot()) == fresh.snapshot().inputs == (90,)


def test_marks_behind_a_whole_snapshot_wait_until_they_need_nothing_before_it() -> None:
    bench = Bench()
    old = bench.fresh(marks=False)
    bench.rows([*range(50), 70], 50)
    caught_up(old)
    fresh = bench.fresh()
    fresh.load(old.snapshot())
    bench.rows(range(50, 99), 99)
    caught_up(fresh)
    assert "$mark" not in fresh.snapshot().tables, "the row at 70 was read before"
    bench.rows([99], 100)
    caught_up(fresh)
    mark = fresh.snapshot()
    assert "$mark" in mark.tables and needs_of(mark) == (51 + 21,)
    written = bench.written.end
    again = caught_up_from(bench, mark)
    assert again.caught_up and bench.written.end == written
    bench.rows(range(100, 130), OPEN)
    caught_up(fresh)
    checksum = bench.written.ordered_checksum
    caught_up(again)
    assert bench.written.ordered_checksum == checksum and again.cti == OPEN


def test_a_vertex_that_takes_no_marks_loads_one() -> None:
    bench = Bench()
    old = bench.fresh()
    bench.rows(range(100), 100)
    caught_up(old)
    fresh = bench.fresh(marks=False)
    fresh.load(old.snapshot())
    assert not fresh.caught_up
    caught_up(fresh)
    whole = fresh.snapshot()
    assert "$mark" not in whole.tables and needs_of(whole) == whole.inputs == (100,)
    third = bench.fresh()
    third.load(whole)
    bench.rows(range(100, 150), OPEN)
    caught_up(old)
    checksum = bench.written.ordered_checksum
    for other in (fresh, third):
        caught_up(other)
        assert bench.written.ordered_checksum == checksum and other.cti == OPEN
