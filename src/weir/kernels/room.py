"""Refuses a step that would make more rows than fit into memory, before it makes them.

Each window or piece of a lifetime becomes a row, and an event that is valid for long can be in
billions of them. While the CTI advances in small steps, a few come out at a time; at the end of a
finite input, all are due at once. The error message states their number. Which steps are refused
depends on the machine and on how the input is cut, just as running out of memory does; no answer
depends on it.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from functools import cache
from pathlib import Path

import numpy as np

from weir.errors import RunError
from weir.events.batch import Int64s

ROW_BYTES = 64
"""The least that a row takes while it is made: its times, its order, its origin."""


def check_room(counts: Int64s, what: str, advice: str) -> None:
    """Raise RunError if this many rows do not fit into memory; `what` makes them."""
    rows = float(counts.sum(dtype=np.float64))  # the sum may be beyond 64 bits
    limit = memory_limit()
    if rows * ROW_BYTES > limit:
        raise RunError(
            f"{what} gives {int(rows):,} rows at once, which do not fit into the "
            f"{limit / 2**30:.1f} GiB of memory here; {advice}"
        )


if sys.platform != "win32":
    import resource

_CGROUPS = (
    Path("/sys/fs/cgroup/memory.max"),
    Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"),
)
_UNKNOWN = 1 << 40
"""The limit on a machine that does not report one."""


@cache
def memory_limit() -> int:
    """Return the most bytes that this process can have."""
    limits = [_UNKNOWN]
    with suppress(AttributeError, ValueError, OSError):
        limits.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    for path in _CGROUPS:
        with suppress(OSError, ValueError):  # there is no limit, or its text is "max"
            limits.append(int(path.read_text(encoding="ascii")))
    if sys.platform != "win32":
        allowed = resource.getrlimit(resource.RLIMIT_AS)[0]
        limits += [allowed] if allowed != resource.RLIM_INFINITY else []
    return min(limit for limit in limits if limit > 0)
