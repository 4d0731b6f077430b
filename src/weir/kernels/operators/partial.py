"""The first half of a two-phase aggregation: it sends every pane of a hopping window as a row.

It runs wherever its input's rows are: no two rows need to meet. It makes the same panes that the
final aggregate would make of the rows. So the final aggregate, which reads these panes instead of
the rows, sees the same windows at the same time.

1. A pane [start, end) of window numbers is sent when its first window ends, because later rows are
   in later windows. So each vertex sends a pane once.
2. The lifetime of a sent pane is the longest that a row of the pane can have: from the end of
   window start − 1 to the start of window `end`. An event with that lifetime is in the same pane.
3. When windows up to K have ended, no unsent pane starts before the end of window K, so that end is
   the output CTI. By this CTI, the final aggregate knows that window K has ended.

Open events are in panes without an end, which are sent like others. At the end of a finite input,
the final aggregate reports them as an error.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from weir.events.batch import OPEN, START, Batch, Int64s
from weir.kernels.operators.windows import Due, last_ended, windows_met
from weir.kernels.structures.panes import Operations, Panes, Results
from weir.kernels.structures.panes_loops import EMIT, ENTER, EXIT
from weir.kernels.structures.time_queue import TimeQueue
from weir.plan.windows import Hopping


class PaneWindows:
    """Makes each pane of a hopping window due once, when its first window ends."""

    def __init__(self, panes: Panes, window: Hopping) -> None:
        self._panes = panes
        self._window = window
        self._unsent = TimeQueue()

    def grow(self, groups: int) -> None:
        pass

    def assign(self, batch: Batch, groups: Int64s) -> tuple[Int64s, Int64s]:
        return windows_met(self._window, batch.vs, batch.ve)

    def opened(self, panes: Int64s) -> None:
        self._unsent.add(self._panes.start[panes], panes)

    def due(self, cti: int) -> Due:
        _, panes = self._unsent.pop(last_ended(self._window, cti))
        # Only one pane at a time is in its group's running total, so the total is the pane's.
        kinds = np.tile(np.array([ENTER, EMIT, EXIT], dtype=np.int64), len(panes))
        groups = np.repeat(self._panes.group[panes], 3)
        positions = self._panes.start[panes]
        operations = Operations(kinds, groups, np.repeat(panes, 3), positions)
        return Due(operations, self._results(panes), panes)

    def _results(self, panes: Int64s) -> Results:
        w, ends = self._window, self._panes.end[panes]
        final = w.offset + self._panes.start[panes] * w.hop + w.size
        # Times before the first or after the last known window are moved to these windows: they are
        # in the same pane.
        earliest = START + max(w.size + w.offset, 0)
        vs = np.maximum(final, earliest + w.hop) - w.hop
        last = w.offset + (ends - 1) * w.hop
        ve = np.where(ends == OPEN, OPEN, np.minimum(last, OPEN - 1 - w.hop) + w.hop)
        return Results(np.arange(len(panes)), vs, ve, final)

    def output_cti(self, cti: int) -> int:
        if cti in (OPEN, START):
            return cti
        w = self._window
        return max(w.offset + last_ended(w, cti) * w.hop + w.size, START)

    def forgets(self, groups: Int64s) -> npt.NDArray[np.bool_]:
        return np.ones(len(groups), dtype=np.bool_)

    def first_from(self, time: int) -> int:
        return START

    def group_state(self, groups: Int64s) -> dict[str, Int64s]:
        return {}

    def restore(self, groups: Int64s, state: Mapping[str, Int64s], panes: Int64s, cti: int) -> None:
        self.opened(panes)

    def entered(self, panes: Int64s) -> npt.NDArray[np.bool_]:
        return np.zeros(len(panes), dtype=np.bool_)
