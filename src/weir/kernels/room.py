"""Refuses a step that makes more rows out of a few than memory can hold, before it makes them.

A window or a piece of a lifetime is a row, and an event that is valid for long can be in billions
of them. Where the CTI moves on by little, a few come out at a time; at the end of a finite input
all are due at once. The refusal says how many they are. Which steps are refused depends on the
machine and on how the input is cut, as running out of memory does; no answer depends on it.
"""

from __future__ import annotations

import numpy as np

from weir.errors import RunError
from weir.events.batch import Int64s
from weir.events.machine_memory import memory_limit

ROW_BYTES = 64
"""What a row takes at least while it is made: its times, its order, where it comes from."""


def check_room(counts: Int64s, what: str, advice: str) -> None:
    """Raise RunError if so many rows do not fit into memory; `what` makes them."""
    rows = float(counts.sum(dtype=np.float64))  # the sum may be beyond 64 bits
    limit = memory_limit()
    if rows * ROW_BYTES > limit:
        raise RunError(
            f"{what} gives {int(rows):,} rows at once, which do not fit into the "
            f"{limit / 2**30:.1f} GiB of memory here; {advice}"
        )
