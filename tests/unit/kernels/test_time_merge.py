"""The merge against sorting everything at once: any cut, any order of streams, any restart."""

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa
import pytest

from weir.events.batch import NO_ORIGIN, OPEN, START, Batch, empty_batch
from weir.events.types import BIGINT, STRING
from weir.kernels.operators.time_merge import PortShape, TimeMerge, with_branch, with_depth
from weir.plan.schema import Schema

SHAPE = Schema((("v", BIGINT), ("s", STRING)), BIGINT)
Row = tuple[int, int, int, int, int | None, str]
"""vs, source, offset, ve, v, s: compared left to right, as the order of events is."""


def _batch(rows: list[Row]) -> Batch:
    def numbers(i: int) -> np.ndarray:  # type: ignore[type-arg]
        return np.array([r[i] for r in rows], dtype=np.int64)

    payload = (pa.array([r[4] for r in rows], BIGINT), pa.array([r[5] for r in rows], STRING))
    return Batch(numbers(0), numbers(3), payload, (numbers(1), numbers(2)))


def _rows(batch: Batch) -> list[Row]:
    source, offset = batch.origin
    columns = [batch.vs, source, offset, batch.ve]
    plain = [c.tolist() for c in columns] + [c.to_pylist() for c in batch.columns]
    return list(zip(*plain, strict=True))


def _streams(chance: random.Random, count: int) -> list[list[Row]]:
    streams = []
    for source in range(count):
        vs = sorted(chance.randrange(40) for _ in range(chance.randrange(60)))
        streams.append(
            [
                (t, source, n, t + chance.randint(1, 9), chance.randrange(5), chance.choice("ab"))
                for n, t in enumerate(vs)
            ]
        )
    return streams


def _run(
    streams: list[list[Row]], chance: random.Random, merge: TimeMerge, restart: bool
) -> list[Row]:
    out: list[Row] = []
    at = [0] * len(streams)
    last = START
    while any(a <= len(s) for a, s in zip(at, streams, strict=True)):
        i = chance.choice([i for i, a in enumerate(at) if a <= len(streams[i])])
        step = chance.randint(1, 10)
        part = streams[i][at[i] : at[i] + step]
        at[i] += step
        ended = at[i] >= len(streams[i])
        at[i] += ended  # one past the end: finished
        cti = OPEN if ended else streams[i][at[i]][0]
        merge.push(i, _batch(part), cti)
        if restart:
            fresh = TimeMerge([PortShape(SHAPE, 2, True)], [0] * len(streams))
            fresh.load(merge.snapshot())
            assert fresh.state_rows == merge.state_rows
            merge = fresh
        released = merge.release()
        if released is not None:
            (slice_,), cti = released
            assert all(last <= row[0] < cti for row in _rows(slice_))
            last = cti
            out += _rows(slice_)
    assert merge.state_rows == 0 and last == OPEN
    return out


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("restart", [False, True])
def test_slices_in_the_total_order_however_rows_come(seed: int, restart: bool) -> None:
    chance = random.Random(seed)
    streams = _streams(chance, chance.randint(1, 4))
    merge = TimeMerge([PortShape(SHAPE, 2, True)], [0] * len(streams))
    everything = sorted(row for stream in streams for row in stream)
    assert _run(streams, chance, merge, restart) == everything


def test_rows_wait_for_the_slowest_stream() -> None:
    merge = TimeMerge([PortShape(SHAPE, 2, True)], [0, 0])
    merge.push(0, _batch([(1, 0, 0, 2, 1, "a"), (5, 0, 1, 6, 1, "a")]), 6)
    assert merge.release() is None
    merge.push(1, _batch([]), 5)
    released = merge.release()
    assert released is not None and released[1] == 5
    assert [r[0] for r in _rows(released[0][0])] == [1]  # 5 itself may still get company
    assert merge.release() is None, "no CTI has advanced"
    assert merge.state_rows == 1


def test_while_many_rows_wait_only_what_they_wait_for_is_wanted() -> None:
    merge = TimeMerge([PortShape(SHAPE, 2, True)], [0, 0, 0])
    merge.push(0, _batch([(5, 0, 0, 6, 1, "a"), (5, 0, 1, 6, 1, "a")]), 6)
    merge.push(1, _batch([]), 4)
    merge.push(2, _batch([]), 4)
    assert list(merge.wanted(2)) == [0, 1, 2]
    assert list(merge.wanted(1)) == [1, 2]
    merge.push(1, _batch([]), 7)
    assert list(merge.wanted(1)) == [2]
    merge.push(2, _batch([]), 6)
    merge.release()
    assert list(merge.wanted(0)) == [0, 1, 2], "nothing waits any more"


def test_a_smaller_cti_takes_nothing_back() -> None:
    merge = TimeMerge([PortShape(SHAPE, 2, True)], [0])
    merge.push(0, _batch([]), 7)
    merge.push(0, _batch([]), 3)
    released = merge.release()
    assert released is not None and released[1] == 7


def test_two_ports_are_cut_at_the_same_time() -> None:
    shape = PortShape(SHAPE, 2, True)
    merge = TimeMerge([shape, shape], [0, 1])
    merge.push(0, _batch([(1, 0, 0, 2, 1, "a"), (4, 0, 1, 6, 1, "a")]), OPEN)
    merge.push(1, _batch([(2, 1, 0, 3, 1, "b")]), 3)
    released = merge.release()
    assert released is not None
    (left, right), cti = released
    assert cti == 3 and left.vs.tolist() == [1] and right.vs.tolist() == [2]


def test_a_port_that_asks_for_no_order_sorts_by_start_alone() -> None:
    merge = TimeMerge([PortShape(SHAPE, 0, False)], [0])
    merge.push(0, _batch([(1, 0, 0, 9, 2, "b"), (1, 0, 1, 3, 1, "a")]), OPEN)
    released = merge.release()
    assert released is not None
    assert released[0][0].origin == () and released[0][0].ve.tolist() == [9, 3]


def test_many_small_pushes_make_few_runs() -> None:
    merge = TimeMerge([PortShape(SHAPE, 0, False)], [0, 0])
    for i in range(300):
        merge.push(0, _batch([(i, 0, i, i + 1, 1, "a")]), i)
    assert merge.state_rows == 300
    assert len(merge._ports[0]._runs) <= 10


# --- origins -------------------------------------------------------------------------------


def test_depth_of_origins() -> None:
    batch = _batch([(1, 7, 8, 2, 1, "a")])
    assert with_depth(batch, 2) is batch
    assert with_depth(batch, 0).origin == ()
    assert [o.tolist() for o in with_depth(batch, 4).origin] == [[7], [8], [-1], [-1]]
    bare = Batch(batch.vs, batch.ve, batch.columns)
    assert [o.tolist() for o in with_depth(bare, 2).origin] == [[NO_ORIGIN], [-1]]


def test_branches_of_a_union() -> None:
    batch = _batch([(1, 7, 8, 2, 1, "a")])
    assert [o.tolist() for o in with_branch(batch, 3, 5).origin] == [[7], [8], [-1], [5]]
    bare = Batch(batch.vs, batch.ve, batch.columns)
    assert with_branch(bare, 0, 5) is bare
    # Rows without an origin stay so, whichever branch they came by.
    assert [o.tolist() for o in with_branch(bare, 1, 5).origin] == [[NO_ORIGIN], [-1]]
    assert len(with_branch(empty_batch(SHAPE.types, 2), 2, 0).origin) == 3
