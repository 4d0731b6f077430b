"""Windowers decide which interval of positions an event is in, and when results are due.

Every kind of window gives each group a line of integer *positions*, and each event an interval
[start, end) on it. Positions are window numbers (hopping), ticks (snapshot), session numbers, or
numbers of count windows. Panes of equal interval enter and leave together.

Contract of a windower
1. `assign(batch, groups)` returns every row's interval; if it is empty, the row is in no window.
2. `due(cti)` returns, in order, the operations on panes that are due (see `panes.Operations`),
   their results, and the panes that have left permanently.
3. `output_cti(cti)` returns a time; no later result starts before it.
4. `forgets(groups)` returns which of the groups without panes can be forgotten.
5. `first_from(time)` returns the first position whose window starts at this time or later, or START
   if positions have no times.
6. The kernel calls `grow` before it uses a new group, and `opened` when it has made new panes.
7. `group_state` is what a snapshot keeps of groups. `restore` loads it; after that, `entered`
   returns which of the restored panes were in their windows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from weir.events.batch import OPEN, START, Batch, Int64s
from weir.kernels.aggregates.group_failures import GroupFailure
from weir.kernels.operators.windows_loops import cut_cells, window_numbers
from weir.kernels.room import check_room
from weir.kernels.structures.keys import grown
from weir.kernels.structures.panes import Operations, Panes, Results
from weir.kernels.structures.panes_loops import EMIT
from weir.kernels.structures.time_queue import Holds, TimeQueue
from weir.plan.windows import Hopping, window_text

_NONE = np.zeros(0, dtype=np.int64)
NO_RESULTS = Results(_NONE, _NONE, _NONE, _NONE)


@dataclass(frozen=True, slots=True)
class Due:
    """The operations that are due, their results, and the panes that are gone."""

    operations: Operations
    results: Results
    gone: Int64s


def results_from(due: Due, time: int) -> Due:
    """Omit results that start before this time, and the operations that only they need."""
    operations, results = due.operations, due.results
    kept = results.vs >= time
    if kept.all():
        return due
    emits = np.flatnonzero(operations.kinds == EMIT)
    asked = np.zeros(len(emits), dtype=np.bool_)
    asked[results.emit[kept]] = True
    stays = np.ones(len(operations.kinds), dtype=np.bool_)
    stays[emits[~asked]] = False
    numbers = np.cumsum(asked) - 1
    return Due(
        Operations(
            operations.kinds[stays],
            operations.groups[stays],
            operations.panes[stays],
            operations.positions[asked],
        ),
        Results(
            numbers[results.emit[kept]], results.vs[kept], results.ve[kept], results.final[kept]
        ),
        due.gone,
    )


class Windower(Protocol):
    """Maps events to intervals of positions, and a CTI to the operations that are due."""

    def grow(self, groups: int) -> None: ...
    def assign(self, batch: Batch, groups: Int64s) -> tuple[Int64s, Int64s]: ...
    def opened(self, panes: Int64s) -> None: ...
    def due(self, cti: int) -> Due: ...
    def output_cti(self, cti: int) -> int: ...
    def forgets(self, groups: Int64s) -> npt.NDArray[np.bool_]: ...
    def first_from(self, time: int) -> int: ...
    def group_state(self, groups: Int64s) -> dict[str, Int64s]: ...
    def restore(self, groups: Int64s, state: Mapping[str, Int64s], panes: Int64s, cti: int) -> None:
        """Load groups and panes from a snapshot."""
        ...

    def entered(self, panes: Int64s) -> npt.NDArray[np.bool_]:
        """Tell which restored panes had entered their windows before the snapshot."""
        ...


class _Sliding:
    """What hopping windows and snapshot windows share: groups are cut where panes change."""

    def __init__(self, panes: Panes) -> None:
        self._panes = panes
        self._enters = TimeQueue()
        self._exits = TimeQueue()
        self._inside = np.zeros(0, dtype=np.int64)  # by group: panes in the window
        self._cut = np.full(0, OPEN, dtype=np.int64)  # by group: all before it is emitted

    def grow(self, groups: int) -> None:
        self._inside = grown(self._inside, groups)
        self._cut = grown(self._cut, groups, OPEN)

    def opened(self, panes: Int64s) -> None:
        self._enters.add(self._panes.start[panes], panes)
        self._exits.add(self._panes.end[panes], panes)

    def forgets(self, groups: Int64s) -> npt.NDArray[np.bool_]:
        return np.ones(len(groups), dtype=np.bool_)

    def group_state(self, groups: Int64s) -> dict[str, Int64s]:
        return {"cut": self._cut[groups]}

    def _operations(self, enter_until: int, exit_until: int) -> tuple[Operations, Int64s, Int64s]:
        """Return the operations that are due, with an EMIT wherever a group's contents change.

        Also return the EMITs' cells (from, to, whether an exit cut it) and the panes that left.
        """
        enter_at, entering = self._enters.pop(enter_until)
        exit_at, leaving = self._exits.pop(exit_until)
        kinds, groups, panes, cells = cut_cells(
            enter_at, entering, exit_at, leaving, self._panes.group, self._inside, self._cut
        )
        return Operations(kinds, groups, panes, cells[:, 0]), cells, leaving


class SnapshotWindows(_Sliding):
    """Snapshot windows: cells between neighbouring endpoints of a group's events.

    Positions are ticks."""

    def __init__(self, panes: Panes) -> None:
        super().__init__(panes)
        self._holds = Holds()

    def assign(self, batch: Batch, groups: Int64s) -> tuple[Int64s, Int64s]:
        return batch.vs, batch.ve

    def due(self, cti: int) -> Due:
        operations, cells, gone = self._operations(cti, cti)
        # A cell that an event's end closes is final at that end. One that only a start closes is
        # final once the row with that start has come.
        start, end, leaves = np.ascontiguousarray(cells.T)
        final = end + (leaves == 0)
        touched = operations.groups[operations.kinds != EMIT]
        touched = touched[self._inside[touched] > 0]
        self._holds.push(self._cut[touched], touched, self._cut)
        numbers = np.arange(len(cells))
        return Due(operations, Results(numbers, start, end, final), gone)

    def output_cti(self, cti: int) -> int:
        return min(cti, self._holds.minimum(self._cut))

    def first_from(self, time: int) -> int:
        return time

    def restore(self, groups: Int64s, state: Mapping[str, Int64s], panes: Int64s, cti: int) -> None:
        self._cut[groups] = state["cut"]
        self._exits.add(self._panes.end[panes], panes)
        np.add.at(self._inside, self._panes.group[panes], 1)
        self._holds.push(state["cut"], groups, self._cut)

    def entered(self, panes: Int64s) -> npt.NDArray[np.bool_]:
        return np.ones(len(panes), dtype=np.bool_)


class HoppingWindows(_Sliding):
    """The k-th window is `[offset + k·hop, offset + k·hop + size)`; positions are the numbers k."""

    def __init__(self, panes: Panes, window: Hopping) -> None:
        super().__init__(panes)
        self._window = window
        self._flushed = START
        self._restored_at = START

    def assign(self, batch: Batch, groups: Int64s) -> tuple[Int64s, Int64s]:
        return windows_met(self._window, batch.vs, batch.ve)

    def due(self, cti: int) -> Due:
        last = last_ended(self._window, cti)
        operations, cells, gone = self._operations(last, min(last + 1, OPEN - 1))
        if cti == OPEN:
            if len(self._exits):
                raise self._endless()
            return Due(operations, self._results(operations, cells), gone)
        operations, cells = self._flush(operations, cells, last + 1)
        return Due(operations, self._results(operations, cells), gone)

    def _endless(self) -> GroupFailure:
        """Return the failure of the first open event; only its first window is still known."""
        w, panes = self._window, self._exits.pop(OPEN)[1]
        pane = panes[np.argmin(self._panes.start[panes])]
        start = w.offset + int(self._panes.start[pane]) * w.hop
        return GroupFailure(
            int(self._panes.group[pane]),
            "an open event is in a HOPPING window that never ends; "
            "clip it first (CLIP_DURATION or CHOP)",
            window=(start, start + w.size),
        )

    def _flush(
        self, operations: Operations, cells: Int64s, until: int
    ) -> tuple[Operations, Int64s]:
        """Let every group that is in a window emit up to the last window that has ended."""
        if until == self._flushed:
            return operations, cells
        self._flushed = until
        late = np.flatnonzero((self._inside > 0) & (self._cut < until))
        if not len(late):
            return operations, cells
        extra = np.stack([self._cut[late], np.full_like(late, until), late * 0], axis=1)
        self._cut[late] = until
        emits = np.full_like(late, EMIT)
        operations = Operations(
            np.concatenate([operations.kinds, emits]),
            np.concatenate([operations.groups, late]),
            np.concatenate([operations.panes, -np.ones_like(late)]),
            np.concatenate([operations.positions, extra[:, 0]]),
        )
        return operations, np.concatenate([cells, extra])

    def _results(self, operations: Operations, cells: Int64s) -> Results:
        w = self._window
        counts = cells[:, 1] - cells[:, 0]
        check_room(
            counts,
            window_text(w),
            "take longer windows, or clip long lifetimes first (CLIP_DURATION)",
        )
        emit = np.repeat(np.arange(len(cells)), counts)
        firsts = np.repeat(np.cumsum(counts) - counts, counts)
        numbers = np.repeat(cells[:, 0], counts) + np.arange(len(emit)) - firsts
        vs = w.offset + numbers * w.hop
        beyond = vs >= OPEN - w.size  # such an end would mean open, or be before all times
        if beyond.any():
            groups = operations.groups[operations.kinds == EMIT]
            group = int(groups[emit[np.argmax(beyond)]])
            raise GroupFailure(
                group, f"overflow: a window of {window_text(w)} ends beyond 2⁶³ ticks"
            )
        return Results(emit, vs, vs + w.size, vs + w.size)

    def output_cti(self, cti: int) -> int:
        if cti in (OPEN, START):
            return cti
        w = self._window
        return max(w.offset + (last_ended(w, cti) + 1) * w.hop, START)

    def first_from(self, time: int) -> int:
        return -((self._window.offset - time) // self._window.hop)

    def restore(self, groups: Int64s, state: Mapping[str, Int64s], panes: Int64s, cti: int) -> None:
        self._cut[groups] = state["cut"]
        self._exits.add(self._panes.end[panes], panes)
        self._restored_at = cti
        entered = self.entered(panes)
        self._enters.add(self._panes.start[panes[~entered]], panes[~entered])
        np.add.at(self._inside, self._panes.group[panes[entered]], 1)

    def entered(self, panes: Int64s) -> npt.NDArray[np.bool_]:
        return self._panes.start[panes] <= last_ended(self._window, self._restored_at)


def last_ended(window: Hopping, cti: int) -> int:
    """Return the number of the last window that has ended at this CTI."""
    if cti == OPEN:
        return OPEN - 1
    return max((cti - window.offset - window.size) // window.hop, START)


def windows_met(window: Hopping, vs: Int64s, ve: Int64s) -> tuple[Int64s, Int64s]:
    """Return the first window that each lifetime meets, and one past the last.

    `OPEN` means that there is no last one."""
    numbers: tuple[Int64s, Int64s] = window_numbers(vs, ve, window.size, window.hop, window.offset)
    return numbers
