"""COUNT(DISTINCT) by panes against sets of values; what is dropped is freed a little at a time."""

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa
import pytest

from weir.events.batch import Batch
from weir.kernels.aggregates.distinct_counts import DistinctMeasure
from weir.kernels.structures.panes import Operations, Panes
from weir.kernels.structures.panes_loops import EMIT, ENTER, EXIT
from weir.plan.aggregations import Aggregation
from weir.plan.schema import Schema

GROUPS = 2
SCHEMA = Schema((("v", pa.int64()),), pa.int64())
COUNT = Aggregation("count_distinct", ("v",), pa.int64())


class Scene:
    """A measure over windows 0, 1, 2, …, each of which closes with `close`."""

    def __init__(self) -> None:
        self.table = Panes()
        self.measure = DistinctMeasure(COUNT, SCHEMA, self.table)
        self.measure.grow(0, GROUPS)
        self.rows: list[tuple[int, int, int, int]] = []  # group, start, end, value
        self.window = 0
        self.entered: set[int] = set()

    def put(self, rows: list[tuple[int, int, int, int]]) -> None:
        groups, starts, ends, values = (
            np.array(c, dtype=np.int64) for c in zip(*rows, strict=True)
        )
        panes, _ = self.table.encode(groups, starts, ends)
        self.measure.grow(self.table.capacity, GROUPS)
        batch = Batch(starts, ends, (pa.array(values),))
        self.measure.put(batch, panes, groups, np.arange(len(rows)))
        self.rows += rows

    def close(self) -> list[int]:
        """The counts of the window in each group, which panes enter before and leave behind."""
        live = self.table.live()
        start, end = self.table.start[live], self.table.end[live]
        entering = [p for p in live[start <= self.window].tolist() if p not in self.entered]
        leaving = live[end <= self.window + 1]
        steps = [(ENTER, int(self.table.group[p]), p) for p in entering]
        steps += [(EMIT, group, -1) for group in range(GROUPS)]
        steps += [(EXIT, int(self.table.group[p]), p) for p in leaving.tolist()]
        counts = self.replay(steps)
        self.entered = (self.entered | set(entering)) - set(leaving.tolist())
        self.measure.drop(leaving)
        self.table.release(leaving)
        self.window += 1
        return counts

    def replay(self, steps: list[tuple[int, int, int]]) -> list[int]:
        kinds, groups, panes = (np.array(c, dtype=np.int64) for c in zip(*steps, strict=True))
        operations = Operations(kinds, groups, panes, panes[kinds == EMIT])
        counts: list[int] = self.measure.replay(operations)[0].to_pylist()
        return counts

    def expected(self) -> list[int]:
        """The same by sets, for the window that closes next."""
        inside = [(g, v) for g, start, end, v in self.rows if start <= self.window < end]
        return [len({v for g, v in inside if g == group}) for group in range(GROUPS)]

    def resumed(self) -> Scene:
        """The same from a snapshot."""
        new, live = Scene(), self.table.live()
        at, columns = self.measure.values(live)
        owners = live[at]
        interval = (self.table.group[owners], self.table.start[owners], self.table.end[owners])
        new.table.encode(
            *(column[live] for column in (self.table.group, self.table.start, self.table.end))
        )
        panes, _ = new.table.encode(*interval)
        new.measure.grow(new.table.capacity, GROUPS)
        new.measure.restore(panes, interval[0], columns)
        new.rows, new.window = self.rows, self.window
        mine = new.table.live()
        new.entered = set(mine[new.table.start[mine] < self.window].tolist())
        if new.entered:
            new.replay([(ENTER, int(new.table.group[p]), p) for p in sorted(new.entered)])
        assert new.measure.state_rows == self.measure.state_rows
        return new


@pytest.mark.parametrize("seed", range(10))
def test_counts_are_those_of_sets(seed: int) -> None:
    chance = random.Random(seed)
    scene = Scene()
    for _ in range(120):
        for _ in range(chance.randrange(3)):
            rows = [
                (group, scene.window, scene.window + chance.randrange(1, 6), chance.randrange(20))
                for group in chance.choices(range(GROUPS), k=chance.randrange(1, 6))
            ]
            scene.put(rows)
        if chance.random() < 0.3:
            scene = scene.resumed()
        expected = scene.expected()
        assert scene.close() == expected
    for _ in range(6):
        scene.close()
    assert scene.measure.state_rows == 0


def test_rows_of_many_windows_at_once() -> None:
    """A value leaves with one pane and comes back with a later one, all in one step."""
    scene = Scene()
    scene.put([(0, 0, 2, 7), (0, 1, 3, 7), (0, 1, 2, 8), (0, 3, 4, 7), (0, 5, 6, 7)])
    assert [scene.close()[0] for _ in range(7)] == [1, 2, 1, 1, 0, 1, 0]


def test_a_snapshot_has_a_value_once_whatever_was_dropped_before() -> None:
    one, other = Scene(), Scene()
    other.put([(0, 0, 1, 7), (0, 0, 1, 9)])
    for scene in (one, other):
        scene.close()
        scene.put([(0, 1, 3, 7), (0, 1, 4, 7)])
        live = scene.table.live()
        at, columns = scene.measure.values(live)
        assert scene.table.end[live[at]].tolist() == [4]
        assert {n: c.to_pylist() for n, c in columns.items()} == {"value": [7]}


def test_values_of_a_dropped_pane_are_freed_two_for_each_row() -> None:
    scene = Scene()
    scene.put([(0, 0, 1, value) for value in range(1_000)])
    assert scene.close() == [1_000, 0]
    measure = scene.measure
    assert (measure.state_rows, len(measure._numbers)) == (0, 1_000)
    scene.put([(0, 1, 2, 5_000 + value) for value in range(100)])
    assert (measure.state_rows, len(measure._numbers)) == (100, 900)
    # One that comes again before it was freed is held again, not counted twice.
    scene.put([(0, 1, 2, 999), (0, 1, 2, 999)])
    assert measure.state_rows == 101
    for i in range(6):
        scene.put([(0, 1, 2, 6_000 + 100 * i + value) for value in range(100)])
    assert (measure.state_rows, len(measure._numbers)) == (701, 701)
    assert scene.close() == [701, 0]
