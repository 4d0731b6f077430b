"""How much memory a process can have at most: the machine's, its container's, or its own limit."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from functools import cache
from pathlib import Path

if sys.platform != "win32":
    import resource

_CGROUPS = (
    Path("/sys/fs/cgroup/memory.max"),
    Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"),
)
_UNKNOWN = 1 << 40
"""Taken for the limit of a machine that does not tell one."""


@cache
def memory_limit() -> int:
    """Return the bytes that this process can have at most."""
    limits = [_UNKNOWN]
    with suppress(AttributeError, ValueError, OSError):
        limits.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    for path in _CGROUPS:
        with suppress(OSError, ValueError):  # there is none, or it says "max"
            limits.append(int(path.read_text(encoding="ascii")))
    if sys.platform != "win32":
        allowed = resource.getrlimit(resource.RLIMIT_AS)[0]
        limits += [allowed] if allowed != resource.RLIM_INFINITY else []
    return min(limit for limit in limits if limit > 0)
