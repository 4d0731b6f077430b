"""Windows that a group's own events make: sessions and counts."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from weir.events.batch import OPEN, Batch, Int64s
from weir.events.compiled import compiled, in_place
from weir.kernels.operators.panes import EMIT, ENTER, EXIT, Operations, Panes
from weir.kernels.operators.windows import Due, Results
from weir.kernels.structures.keys import each_once, grown
from weir.kernels.structures.time_queue import Holds, TimeQueue


class SessionWindows:
    """A group's events with gaps below the timeout; positions are session numbers."""

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
        numbers, closed, touched = _sessions(
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
        )
        end = last + self._timeout
        return Due(operations, Results(np.arange(len(panes)), first, end, end), panes)

    def output_cti(self, cti: int) -> int:
        return min(cti, self._holds.minimum(self._first))

    def forgets(self, groups: Int64s) -> npt.NDArray[np.bool_]:
        forgotten: npt.NDArray[np.bool_] = self._first[groups] == OPEN
        self._number[groups[forgotten]] = 0
        return forgotten

    def group_state(self, groups: Int64s) -> dict[str, Int64s]:
        return {"first": self._first[groups], "last": self._last[groups]}

    def restore(self, groups: Int64s, state: Mapping[str, Int64s], panes: Int64s, cti: int) -> None:
        self._first[groups], self._last[groups] = state["first"], state["last"]
        self._number[self._panes.group[panes]] = self._panes.start[panes]
        self._timers.add(state["last"] + self._timeout, groups)
        self._holds.push(state["first"], groups, self._first)

    def entered(self, panes: Int64s) -> npt.NDArray[np.bool_]:
        return np.zeros(len(panes), dtype=np.bool_)


@compiled
def _sessions(vs, groups, timeout, first, last, number):  # type: ignore[no-untyped-def]
    """Each row's session number; sessions closed by a later event (group, number, first, last);
    the groups touched."""
    none = np.iinfo(np.int64).max
    numbers = np.empty(len(vs), dtype=np.int64)
    closed = np.empty((len(vs), 4), dtype=np.int64)
    count = 0
    for row in range(len(vs)):
        group = groups[row]
        if first[group] != none and vs[row] >= last[group] + timeout:
            closed[count, 0], closed[count, 1] = group, number[group]
            closed[count, 2], closed[count, 3] = first[group], last[group]
            count += 1
            number[group] += 1
            first[group] = none
        if first[group] == none:
            first[group] = vs[row]
        last[group] = vs[row]
        numbers[row] = number[group]
    touched = np.empty(len(vs), dtype=np.int64)
    seen = 0
    for row in range(len(vs)):
        # The last row of a group in this slice speaks for it (earlier ones have other times
        # or repeat it, which is harmless).
        if last[groups[row]] == vs[row]:
            touched[seen] = groups[row]
            seen += 1
    return numbers, closed[:count], touched[:seen]


class CountWindows:
    """The i-th window of a group holds its events i·step … i·step + n − 1."""

    def __init__(self, panes: Panes, n: int, step: int) -> None:
        self._panes = panes
        self._n, self._step = n, step
        self._seen = np.zeros(0, dtype=np.int64)  # by group
        # By group: the oldest pane that has not entered, not left; the youngest.
        self._to_enter = np.full(0, -1, dtype=np.int64)
        self._to_leave = np.full(0, -1, dtype=np.int64)
        self._youngest = np.full(0, -1, dtype=np.int64)
        self._next = np.full(0, -1, dtype=np.int64)  # by pane
        self._full = np.zeros((0, 4), dtype=np.int64)

    def grow(self, groups: int) -> None:
        self._seen = grown(self._seen, groups)
        self._to_enter = grown(self._to_enter, groups, -1)
        self._to_leave = grown(self._to_leave, groups, -1)
        self._youngest = grown(self._youngest, groups, -1)

    def assign(self, batch: Batch, groups: Int64s) -> tuple[Int64s, Int64s]:
        starts, ends, self._full = _count_windows(
            batch.vs, batch.ve, groups, self._n, self._step, self._seen
        )
        return starts, ends

    def opened(self, panes: Int64s) -> None:
        self._next = grown(self._next, self._panes.capacity, -1)
        _append_panes(
            panes, self._panes.group, self._next, self._to_enter, self._to_leave, self._youngest
        )

    def due(self, cti: int) -> Due:
        full, self._full = self._full, np.zeros((0, 4), dtype=np.int64)
        kinds, groups, panes = _count_operations(
            full, self._panes.start, self._panes.end,
            self._next, self._to_enter, self._to_leave, self._youngest,
        )  # fmt: skip
        _, _, start, end = np.ascontiguousarray(full.T)
        results = Results(np.arange(len(full)), start, end, start + 1)
        return Due(Operations(kinds, groups, panes), results, panes[kinds == EXIT])

    def output_cti(self, cti: int) -> int:
        return cti

    def forgets(self, groups: Int64s) -> npt.NDArray[np.bool_]:
        # How many events a group has seen says where its next window begins: kept for good.
        return np.zeros(len(groups), dtype=np.bool_)

    def group_state(self, groups: Int64s) -> dict[str, Int64s]:
        return {"seen": self._seen[groups]}

    def restore(self, groups: Int64s, state: Mapping[str, Int64s], panes: Int64s, cti: int) -> None:
        self._seen[groups] = state["seen"]
        ordered = panes[np.lexsort((self._panes.end[panes], self._panes.start[panes]))]
        self.opened(ordered)
        for pane in ordered[self.entered(ordered)].tolist():  # one window's panes a group
            self._to_enter[self._panes.group[pane]] = self._next[pane]

    def entered(self, panes: Int64s) -> npt.NDArray[np.bool_]:
        closed = (self._seen[self._panes.group[panes]] - self._n) // self._step
        return self._panes.start[panes] <= closed


@compiled
def _count_windows(vs, ve, groups, n, step, seen):  # type: ignore[no-untyped-def]
    """Each row's interval of windows, and the windows that it fills (group, number, vs, ve)."""
    starts = np.empty(len(groups), dtype=np.int64)
    ends = np.empty(len(groups), dtype=np.int64)
    full = np.empty((len(groups), 4), dtype=np.int64)
    count = 0
    for row in range(len(groups)):
        group = groups[row]
        place = seen[group]
        seen[group] += 1
        starts[row] = max(0, -((n - 1 - place) // step))
        ends[row] = place // step + 1
        if place >= n - 1 and (place - n + 1) % step == 0:
            full[count, 0], full[count, 1] = group, (place - n + 1) // step
            full[count, 2], full[count, 3] = vs[row], ve[row]
            count += 1
    return starts, ends, full[:count]


@in_place
def _append_panes(panes, group_of, following, to_enter, to_leave, youngest):  # type: ignore[no-untyped-def]
    for pane in panes:
        group = group_of[pane]
        following[pane] = -1
        if youngest[group] >= 0:
            following[youngest[group]] = pane
        youngest[group] = pane
        if to_enter[group] < 0:
            to_enter[group] = pane
        if to_leave[group] < 0:
            to_leave[group] = pane


@compiled
def _count_operations(full, start, end, following, to_enter, to_leave, youngest):  # type: ignore[no-untyped-def]
    kinds = np.empty(64, dtype=np.int64)
    groups = np.empty(64, dtype=np.int64)
    panes = np.empty(64, dtype=np.int64)
    ops = 0
    for i in range(len(full)):
        group, number = full[i, 0], full[i, 1]
        for kind in (0, 2, 1):
            while True:
                if ops == len(kinds):
                    kinds = np.concatenate((kinds, np.empty_like(kinds)))
                    groups = np.concatenate((groups, np.empty_like(groups)))
                    panes = np.concatenate((panes, np.empty_like(panes)))
                pane = -1
                if kind == 0:
                    pane = to_enter[group]
                    if pane < 0 or start[pane] > number:
                        break
                    to_enter[group] = following[pane]
                elif kind == 1:
                    pane = to_leave[group]
                    if pane < 0 or end[pane] > number + 1:
                        break
                    to_leave[group] = following[pane]
                    if youngest[group] == pane:
                        youngest[group] = -1
                kinds[ops], groups[ops], panes[ops] = kind, group, pane
                ops += 1
                if kind == 2:
                    break
    return kinds[:ops], groups[:ops], panes[:ops]
