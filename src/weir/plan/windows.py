"""The windows of `WITH` for the fluent API; durations as in a script (`"5s"`) or in ticks."""

from __future__ import annotations

from weir.plan.durations import parse_duration
from weir.plan.nodes import CountWindow, Hopping, Session, Snapshot


def hopping(size: str | int, hop: str | int, offset: str | int = 0) -> Hopping:
    """Windows of `size`, one every `hop`.

    >>> hopping("30s", "2s")
    Hopping(size=30000000, hop=2000000, offset=0)
    """
    return Hopping(parse_duration(size), parse_duration(hop), parse_duration(offset))


def tumbling(size: str | int, offset: str | int = 0) -> Hopping:
    """Windows of `size`, one after the other.

    >>> tumbling(5)
    Hopping(size=5, hop=5, offset=0)
    """
    return hopping(size, size, offset)


def session(timeout: str | int) -> Session:
    """A window for each run of events that start less than `timeout` after the one before.

    >>> session("30m")
    Session(timeout=1800000000)
    """
    return Session(parse_duration(timeout))


def count_window(n: int, step: int | None = None) -> CountWindow:
    """A window for every `n` events of a group, a new one every `step` of them.

    >>> count_window(4)
    CountWindow(n=4, step=4)
    """
    return CountWindow(n, n if step is None else step)


def snapshot() -> Snapshot:
    """A window between any two neighbouring endpoints: the value at every instant.

    >>> snapshot()
    Snapshot()
    """
    return Snapshot()
