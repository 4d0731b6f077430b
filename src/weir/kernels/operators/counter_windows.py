"""Sessions and count windows, whose bounds depend on a group's own events."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from weir.events.batch import OPEN, START, Batch, Int64s
from weir.kernels.aggregates.group_failures import GroupFailure
from weir.kernels.operators.counter_windows_loops import (
    append_panes,
    count_operations,
    sessions_of,
    windows_of,
)
from weir.kernels.operators.windows import Due
from weir.kernels.structures.keys import each_once, grown
from weir.kernels.structures.panes import Operations, Panes, Results
from weir.kernels.structures.panes_loops import EMIT, ENTER, EXIT
from weir.kernels.structures.time_queue import Holds, TimeQueue


class SessionWindows:
    """Sessions are runs of a group's events with gaps below the timeout.

    Positions are session numbers."""

    def __init__(self, panes: Panes, timeout: int) -> None:
        self._panes = panes
        self._timeout = timeout
        # By group: the open session's first and last start, and its number.
        self._first = np.full(0, OPEN, dtype=np.int64)
        self._last = np.full(0, OPEN, dtype=np.int64)
        self._number = np.zeros(0, dtype=np.int64)
        self._timers = TimeQueue()
        self._holds = Holds()
        self._closed: list[Int64s] = []

    def grow(self, groups: int) -> None:
        self._first = grown(self._first, groups, OPEN)
        self._last = grown(self._last, groups, OPEN)
        self._number = grown(self._number, groups)

    def assign(self, batch: Batch, groups: Int64s) -> tuple[Int64s, Int64s]:
        numbers, closed, touched = sessions_of(
            batch.vs, groups, self._timeout, self._first, self._last, self._number
        )
        self._closed.append(closed)
        self._timers.add(self._last[touched] + self._timeout, touched)
        self._holds.push(self._first[touched], touched, self._first)
        return numbers, numbers + 1

    def opened(self, panes: Int64s) -> None:
        pass

    def due(self, cti: int) -> Due:
        at, groups = self._timers.pop(cti)
        groups = groups[self._last[groups] + self._timeout == at]
        groups = groups[self._first[groups] != OPEN]
        # A group may have set the same timer in several steps.
        groups = each_once(groups)
        timed = np.stack(
            [groups, self._number[groups], self._first[groups], self._last[groups]], axis=1
        )
        self._first[groups] = OPEN
        self._number[groups] += 1
        closed = np.concatenate([*self._closed, timed])
        self._closed = []
        groups, numbers, first, last = np.ascontiguousarray(closed.T)
        panes = self._panes.find(groups, numbers, numbers + 1)
        operations = Operations(
            np.tile(np.array([ENTER, EMIT, EXIT]), len(panes)),
            np.repeat(groups, 3),
            np.repeat(panes, 3),
            numbers,
        )
        end = last + self._timeout
        if (end == OPEN).any():
            group = int(groups[np.argmax(end)])
            raise GroupFailure(group, "overflow: a session ends beyond 2⁶³ ticks")
        return Due(operations, Results(np.arange(len(panes)), first, end, end), panes)

    def output_cti(self, cti: int) -> int:
        return min(cti, self._holds.minimum(self._first))

    def forgets(self, groups: Int64s) -> npt.NDArray[np.bool_]:
        forgotten: npt.NDArray[np.bool_] = self._first[groups] == OPEN
        self._number[groups[forgotten]] = 0
        return forgotten

    def first_from(self, time: int) -> int:
        return START

    def group_state(self, groups: Int64s) -> dict[str, Int64s]:
        return {"first": self._first[groups], "last": self._last[groups]}

    def restore(self, groups: Int64s, state: Mapping[str, Int64s], panes: Int64s, cti: int) -> None:
        self._first[groups], self._last[groups] = state["first"], state["last"]
        self._number[self._panes.group[panes]] = self._panes.start[panes]
        self._timers.add(state["last"] + self._timeout, groups)
        self._holds.push(state["first"], groups, self._first)

    def entered(self, panes: Int64s) -> npt.NDArray[np.bool_]:
        return np.zeros(len(panes), dtype=np.bool_)


class CountWindows:
    """Count windows: the i-th of a group holds its events i·step … i·step + n − 1.

    Positions are the numbers i."""

    def __init__(self, panes: Panes, n: int, step: int) -> None:
        self._panes = panes
        self._n, self._step = n, step
        self._seen = np.zeros(0, dtype=np.int64)  # by group: how many events it has had
        # By group: the oldest pane that has not entered, the oldest that has not left, the
        # youngest.
        self._to_enter = np.full(0, -1, dtype=np.int64)
        self._to_leave = np.full(0, -1, dtype=np.int64)
        self._youngest = np.full(0, -1, dtype=np.int64)
        self._next = np.full(0, -1, dtype=np.int64)  # by pane: the next younger one of its group
        self._full = np.zeros((0, 4), dtype=np.int64)

    def grow(self, groups: int) -> None:
        self._seen = grown(self._seen, groups)
        self._to_enter = grown(self._to_enter, groups, -1)
        self._to_leave = grown(self._to_leave, groups, -1)
        self._youngest = grown(self._youngest, groups, -1)

    def assign(self, batch: Batch, groups: Int64s) -> tuple[Int64s, Int64s]:
        starts, ends, self._full = windows_of(
            batch.vs, batch.ve, groups, self._n, self._step, self._seen
        )
        return starts, ends

    def opened(self, panes: Int64s) -> None:
        self._next = grown(self._next, self._panes.capacity, -1)
        append_panes(
            panes, self._panes.group, self._next, self._to_enter, self._to_leave, self._youngest
        )

    def due(self, cti: int) -> Due:
        full, self._full = self._full, np.zeros((0, 4), dtype=np.int64)
        kinds, groups, panes = count_operations(
            full,
            self._panes.start,
            self._panes.end,
            self._next,
            self._to_enter,
            self._to_leave,
            self._youngest,
        )
        _, numbers, start, end = np.ascontiguousarray(full.T)
        results = Results(np.arange(len(full)), start, end, start + 1)
        return Due(Operations(kinds, groups, panes, numbers), results, panes[kinds == EXIT])

    def output_cti(self, cti: int) -> int:
        return cti

    def forgets(self, groups: Int64s) -> npt.NDArray[np.bool_]:
        # The count of a group's events decides where its next window begins, so it is kept
        # permanently.
        return np.zeros(len(groups), dtype=np.bool_)

    def first_from(self, time: int) -> int:
        return START

    def group_state(self, groups: Int64s) -> dict[str, Int64s]:
        return {"seen": self._seen[groups]}

    def restore(self, groups: Int64s, state: Mapping[str, Int64s], panes: Int64s, cti: int) -> None:
        self._seen[groups] = state["seen"]
        ordered = panes[np.lexsort((self._panes.end[panes], self._panes.start[panes]))]
        self.opened(ordered)
        for pane in ordered[self.entered(ordered)].tolist():  # one window of each group
            self._to_enter[self._panes.group[pane]] = self._next[pane]

    def entered(self, panes: Int64s) -> npt.NDArray[np.bool_]:
        closed = (self._seen[self._panes.group[panes]] - self._n) // self._step
        return self._panes.start[panes] <= closed
