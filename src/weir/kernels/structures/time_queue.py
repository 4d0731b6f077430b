"""A time queue keeps ids that are due at a time, in a few runs that are merged geometrically.

Contract
1. `add(times, ids)` stores ids under times. `pop(until)` removes and returns all with time ≤ until,
   ordered by time; those of the same time come in the order in which they were added.
2. Adding k ids costs O(k log n), not only amortised: each call merges a part of long runs, which
   can still be read while their merge is unfinished. Popping touches only what is due.
3. Only `pop` removes ids: an owner that drops an id early must recognise it when it comes due.
"""

from __future__ import annotations

import numpy as np

from weir.events.batch import OPEN, Int64s
from weir.kernels.structures.keys import each_once
from weir.kernels.structures.time_queue_loops import drop_stale, merge_runs, push_all

_NOTHING = np.zeros(0, dtype=np.int64)

_AT_LEAST = 4_096
"""The fewest ids of each merge that one call moves, which takes about 10 µs.

If more are added, a call moves four times as many as are added. So a merge is done before the next
one is due."""


class TimeQueue:
    """Stores ids under times and returns those that are due."""

    def __init__(self) -> None:
        # The longest first; each is at least twice as long as the next, or about to be merged with
        # it.
        self._runs: list[_Run | _Merge] = []

    def __len__(self) -> int:
        return sum(map(len, self._runs))

    @property
    def next_time(self) -> int:
        """Return the smallest time at which something is due, or `OPEN`."""
        return min((run.next_time for run in self._runs), default=OPEN)

    def add(self, times: Int64s, ids: Int64s) -> None:
        if not len(times):
            return
        runs = self._runs
        runs.append(_Run(*_sorted(times, ids)))
        # From the end: a merge that is done at once may be merged with the run before it.
        for at in reversed(range(len(runs) - 1)):
            one, other = runs[at], runs[at + 1]
            if isinstance(one, _Run) and isinstance(other, _Run) and len(one) < 2 * len(other):
                runs[at : at + 2] = [_Merge(one, other)]
            runs[at] = runs[at].advanced(max(_AT_LEAST, 4 * len(times)))

    def pop(self, until: int) -> tuple[Int64s, Int64s]:
        due = [part for run in self._runs for part in run.pop(until)]
        if not due:
            return _NOTHING, _NOTHING
        self._runs = [run for run in self._runs if len(run)]
        if len(due) == 1:
            return due[0]
        return _sorted(np.concatenate([t for t, _ in due]), np.concatenate([i for _, i in due]))


class _Run:
    """Times in order, with their ids."""

    def __init__(self, times: Int64s, ids: Int64s) -> None:
        self.times, self.ids = times, ids

    def __len__(self) -> int:
        return len(self.times)

    @property
    def next_time(self) -> int:
        return int(self.times[0]) if len(self.times) else OPEN

    def pop(self, until: int) -> list[tuple[Int64s, Int64s]]:
        cut = int(np.searchsorted(self.times, until, side="right"))
        due = self.times[:cut], self.ids[:cut]
        self.times, self.ids = self.times[cut:], self.ids[cut:]
        return [due] if cut else []

    def advanced(self, count: int) -> _Run:
        return self


class _Merge:
    """Two runs that are being merged; popped ids are the first ones of the merged run."""

    def __init__(self, one: _Run, other: _Run) -> None:
        self._one, self._other = one, other
        self._whole = (one.times, one.ids, other.times, other.ids)
        self._times = np.empty(len(self), dtype=np.int64)
        self._ids = np.empty(len(self), dtype=np.int64)
        self._done = np.zeros(2, dtype=np.int64)  # how many of each run are merged

    def __len__(self) -> int:
        return len(self._one) + len(self._other)

    @property
    def next_time(self) -> int:
        return min(self._one.next_time, self._other.next_time)

    def pop(self, until: int) -> list[tuple[Int64s, Int64s]]:
        return self._one.pop(until) + self._other.pop(until)

    def advanced(self, count: int) -> _Run | _Merge:
        """Merge this many more; return the merged run once it is complete, else this merge."""
        if not len(self._one) or not len(self._other):
            return self._one if len(self._one) else self._other
        if not merge_runs(*self._whole, self._times, self._ids, self._done, count):
            return self
        popped = len(self._times) - len(self)
        return _Run(self._times[popped:], self._ids[popped:])


def _sorted(times: Int64s, ids: Int64s) -> tuple[Int64s, Int64s]:
    """Return the times in order with their ids, in new arrays."""
    if bool((times[1:] >= times[:-1]).all()):
        return times.copy(), ids.copy()
    order = np.argsort(times, kind="stable")
    return times[order], ids[order]


def after(ends: Int64s) -> Int64s:
    """Return the first CTI at which nothing can touch a piece with this end any more.

    For an open end, it is OPEN."""
    return np.minimum(ends, OPEN - 1) + 1


class Holds:
    """Tracks the smallest start among all that is still held; it bounds the output CTI.

    It is a heap with lazy deletion. The owner keeps `current`, indexed by id: an entry counts while
    `current[id]` is still the start that it was pushed with.
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
        self._size = push_all(self._starts, self._ids, self._size, starts, ids)

    def _make_room(self, count: int, current: Int64s) -> None:
        """Drop entries that are stale or were pushed twice; make room for this many more."""
        starts, ids = self._starts[: self._size], self._ids[: self._size]
        ids = each_once(ids[(current[ids] == starts) & (starts != OPEN)])
        ids = ids[np.argsort(current[ids])]  # sorted, so it is a heap
        self._size = len(ids)
        room = np.zeros(max(64, 2 * (self._size + count)), np.int64)
        self._starts, self._ids = np.concatenate([current[ids], room]), np.concatenate([ids, room])

    def minimum(self, current: Int64s) -> int:
        """Return the smallest start still held, or `OPEN` if nothing is held."""
        self._size = drop_stale(self._starts, self._ids, self._size, current)
        return int(self._starts[0]) if self._size else OPEN
