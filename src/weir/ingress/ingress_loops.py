"""The compiled loop that judges the rows of an ordinary chunk."""

from __future__ import annotations

from weir.events.batch import LATEST, OPEN, START
from weir.loops.argument_types import I64, Bool, I64s
from weir.loops.compiled import in_place


@in_place
def judge(vs: I64s, ve: I64s, ends: Bool, lifetime: I64, delay: I64, now: I64):
    """Tell whether every row is a good event on time, and return `now` after the last row. Fill in
    `ve` for rows without an end column."""
    for row in range(len(vs)):
        start = vs[row]
        if start < now or start > LATEST or start < -LATEST:
            return False, now
        if ends:
            if ve[row] <= start or (ve[row] > LATEST and ve[row] != OPEN):
                return False, now
        elif start >= OPEN - lifetime:
            return False, now
        else:
            ve[row] = start + lifetime
        now = max(now, max(start, START + delay) - delay)
    return True, now
