"""The windows of `WITH`, and the functions of the fluent API that make them.

The functions take durations as in a script (`"5s"`) or in ticks.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import SupportsIndex, TypeAlias, assert_never

from weir.errors import PlanError
from weir.plan.durations import Ticks, duration_text, parse_duration, plain_number


@dataclass(frozen=True, slots=True)
class Hopping:
    """Hopping windows: the k-th is `[offset + k·hop, offset + k·hop + size)`.

    They are tumbling if hop == size."""

    size: int
    hop: int
    offset: int = 0
    plain: tuple[int, ...] = field(default=(), compare=False, repr=False)
    """The durations that Python wrote as numbers without a unit."""


@dataclass(frozen=True, slots=True)
class Session:
    """A run of events, each of which starts less than `timeout` after the one before."""

    timeout: int
    plain: tuple[int, ...] = field(default=(), compare=False, repr=False)
    """The durations that Python wrote as numbers without a unit."""


@dataclass(frozen=True, slots=True)
class CountWindow:
    """A window of `n` events of a group; a new one begins every `step` events."""

    n: int
    step: int


@dataclass(frozen=True, slots=True)
class SnapshotWindow:
    """A cell between any two neighbouring endpoints of a group's events."""


Window: TypeAlias = Hopping | Session | CountWindow | SnapshotWindow


def window_text(window: Window) -> str:
    """Return the window as a script writes it.

    >>> window_text(Hopping(5_000_000, 5_000_000))
    'TUMBLING(5s)'
    """
    match window:
        case Hopping(size, hop, offset) if size == hop:
            return f"TUMBLING({duration_text(size)}{offset_text(offset)})"
        case Hopping(size, hop, offset):
            return f"HOPPING({duration_text(size)}, {duration_text(hop)}{offset_text(offset)})"
        case Session(timeout):
            return f"SESSION({duration_text(timeout)})"
        case CountWindow(n, step):
            return f"COUNT({n}{f', {step}' if step != n else ''})"
        case SnapshotWindow():
            return "SNAPSHOT"
    assert_never(window)


def offset_text(offset: int) -> str:
    """Return an offset as it follows a size in a script; empty if it is 0."""
    return f", offset {duration_text(offset)}" if offset else ""


def hopping(size: Ticks, hop: Ticks, offset: Ticks = 0) -> Hopping:
    """Make windows of `size`, with a new one every `hop`.

    >>> hopping("30s", "2s")
    Hopping(size=30000000, hop=2000000, offset=0)
    """
    ticks = (parse_duration(size), parse_duration(hop), parse_duration(offset))
    return Hopping(*ticks, _plain(size, hop, offset))


def tumbling(size: Ticks, offset: Ticks = 0) -> Hopping:
    """Make windows of `size`, one directly after the other.

    >>> tumbling(5)
    Hopping(size=5, hop=5, offset=0)
    """
    return hopping(size, size, offset)


def session(timeout: Ticks) -> Session:
    """Make a window for each run of events that start less than `timeout` after the one before.

    >>> session("30m")
    Session(timeout=1800000000)
    """
    return Session(parse_duration(timeout), _plain(timeout))


def _plain(*durations: Ticks) -> tuple[int, ...]:
    numbers = (plain_number(value) for value in durations)
    return tuple(dict.fromkeys(n for n in numbers if n is not None))


def count_window(n: int, step: int | None = None) -> CountWindow:
    """Make windows of `n` events of a group, with a new one every `step` events.

    >>> count_window(4)
    CountWindow(n=4, step=4)
    """
    return CountWindow(_count("n", n), _count("step", n if step is None else step))


def _count(name: str, value: int) -> int:
    if isinstance(value, bool) or not isinstance(value, SupportsIndex):
        message = f"{name} of a count window must be a whole number, not {value!r}"
        raise PlanError(message, hint="count_window(4)")
    return value.__index__()


def snapshot() -> SnapshotWindow:
    """Make a window between any two neighbouring endpoints: the value at every instant.

    >>> snapshot()
    SnapshotWindow()
    """
    return SnapshotWindow()
