"""Things that are due at a time: a few sorted runs, merged geometrically.

Contract
1. `add(times, ids)` remembers ids under times; `pop(until)` takes out all with time ≤ until,
   ordered by time.
2. Adding k things costs O(k log k) and now and then a merge of runs of like size: O(log n)
   amortised for each thing. Popping touches only what is due.
3. Nothing is removed but by `pop`: an owner that drops an id early must know it when it is due.
"""

from __future__ import annotations

import numpy as np

from weir.events.batch import OPEN, Int64s
from weir.events.compiled import compiled
from weir.kernels.keys import each_once

_NOTHING = np.zeros(0, dtype=np.int64)


class TimeQueue:
    """See the module's contract."""

    def __init__(self) -> None:
        # Each run is sorted; the longest first, each at least twice the next.
        self._runs: list[tuple[Int64s, Int64s]] = []

    def __len__(self) -> int:
        return sum(len(times) for times, _ in self._runs)

    @property
    def next_time(self) -> int:
        """The smallest time that something is due at; `OPEN` when nothing is."""
        return min((int(times[0]) for times, _ in self._runs), default=OPEN)

    def add(self, times: Int64s, ids: Int64s) -> None:
        if not len(times):
            return
        run = _sorted(times, ids)
        while self._runs and len(self._runs[-1][0]) < 2 * len(run[0]):
            other = self._runs.pop()
            run = _sorted(np.concatenate([other[0], run[0]]), np.concatenate([other[1], run[1]]))
        self._runs.append(run)

    def pop(self, until: int) -> tuple[Int64s, Int64s]:
        due: list[tuple[Int64s, Int64s]] = []
        rest: list[tuple[Int64s, Int64s]] = []
        for times, ids in self._runs:
            cut = int(np.searchsorted(times, until, side="right"))
            if cut:
                due.append((times[:cut], ids[:cut]))
            if cut < len(times):
                rest.append((times[cut:], ids[cut:]))
        if not due:
            return _NOTHING, _NOTHING
        self._runs = rest
        if len(due) == 1:
            return due[0]
        return _sorted(np.concatenate([t for t, _ in due]), np.concatenate([i for _, i in due]))


def _sorted(times: Int64s, ids: Int64s) -> tuple[Int64s, Int64s]:
    if len(times) > 1 and not bool((times[1:] >= times[:-1]).all()):
        # Stable sorting of runs that are sorted already is a merge.
        order = np.argsort(times, kind="stable")
        times, ids = times[order], ids[order]
    return times, ids


def after(ends: Int64s) -> Int64s:
    """The first CTI at which nothing can touch a piece with this end; an open one ends at OPEN."""
    return np.minimum(ends, OPEN - 1) + 1


class Holds:
    """The smallest start among things that are still held: it bounds the output CTI.

    A heap with lazy deletion. The owner keeps `current`, indexed by id: an entry counts while
    `current[id]` is still the start it was pushed with.
    """

    def __init__(self) -> None:
        self._starts = np.zeros(64, dtype=np.int64)
        self._ids = np.zeros(64, dtype=np.int64)
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def push(self, starts: Int64s, ids: Int64s, current: Int64s) -> None:
        if self._size + len(starts) > len(self._starts):
            self._make_room(len(starts), current)
        self._size = _push_all(self._starts, self._ids, self._size, starts, ids)

    def _make_room(self, count: int, current: Int64s) -> None:
        """Drop what is stale or was pushed twice; then there is room for this many more."""
        starts, ids = self._starts[: self._size], self._ids[: self._size]
        ids = each_once(ids[(current[ids] == starts) & (starts != OPEN)])
        ids = ids[np.argsort(current[ids])]  # in order: a heap
        self._size = len(ids)
        room = np.zeros(max(64, 2 * (self._size + count)), np.int64)
        self._starts, self._ids = np.concatenate([current[ids], room]), np.concatenate([ids, room])

    def minimum(self, current: Int64s) -> int:
        """The smallest start still held; `OPEN` when nothing is."""
        self._size = _drop_stale(self._starts, self._ids, self._size, current)
        return int(self._starts[0]) if self._size else OPEN


@compiled
def _push_one(heap, ids, size, start, owner):  # type: ignore[no-untyped-def]
    at = size
    while at > 0 and heap[(at - 1) >> 1] > start:
        heap[at], ids[at] = heap[(at - 1) >> 1], ids[(at - 1) >> 1]
        at = (at - 1) >> 1
    heap[at], ids[at] = start, owner
    return size + 1


@compiled
def _push_all(heap, ids, size, starts, new_ids):  # type: ignore[no-untyped-def]
    for i in range(len(starts)):
        size = _push_one(heap, ids, size, starts[i], new_ids[i])
    return size


@compiled
def _drop_stale(heap, ids, size, current):  # type: ignore[no-untyped-def]
    while size > 0 and current[ids[0]] != heap[0]:
        size -= 1
        start, owner = heap[size], ids[size]
        at = 0
        while True:
            child = 2 * at + 1
            if child >= size:
                break
            if child + 1 < size and heap[child + 1] < heap[child]:
                child += 1
            if heap[child] >= start:
                break
            heap[at], ids[at] = heap[child], ids[child]
            at = child
        heap[at], ids[at] = start, owner
    return size
