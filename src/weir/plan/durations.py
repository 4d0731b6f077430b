"""Reads and writes durations, such as `5s`, in ticks (1 tick = 1 µs)."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import TypeAlias

from weir.errors import PlanError

UNITS = {
    "us": 1,
    "ms": 1_000,
    "s": 1_000_000,
    "m": 60_000_000,
    "h": 3_600_000_000,
    "d": 86_400_000_000,
}

Ticks: TypeAlias = "str | int | timedelta"
"""A duration as people write it."""

_LONG = re.compile(r"(-?[0-9]+) *(us|ms|s|m|h|d)[a-z]*")
"""How people may write a duration: `5 minutes`, `5min`."""
_DURATION = re.compile(r"(-?[0-9]+)([a-z]*)", re.ASCII)


def parse_duration(value: Ticks) -> int:
    """Return the ticks of a text such as `250ms`, a timedelta or a plain number.

    The units are us, ms, s, m, h and d.

    >>> parse_duration("250ms"), parse_duration("-2m"), parse_duration(timedelta(seconds=2))
    (250000, -120000000, 2000000)
    """
    if isinstance(value, timedelta):
        return value // timedelta(microseconds=1)
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    match = _DURATION.fullmatch(value.strip()) if isinstance(value, str) else None
    if match is None or (match[2] and match[2] not in UNITS):
        hint = (
            "expected a number and a unit, such as 250ms, 5s, 2m, 1h or 7d, a timedelta, "
            "or a number of ticks"
        )
        if long := _LONG.fullmatch(str(value).strip().lower()):
            hint = f"write '{long[1]}{long[2]}'"
        raise PlanError(f"invalid duration {value!r}", hint=hint)
    return int(match[1]) * UNITS.get(match[2], 1)


def plain_number(value: Ticks) -> int | None:
    """Return the ticks if the value was written as a plain number; None for a duration.

    >>> plain_number(5), plain_number("5"), plain_number("5s")
    (5, 5, None)
    """
    is_plain = not isinstance(value, timedelta) and not str(value).strip()[-1:].isalpha()
    return parse_duration(value) if is_plain else None


def duration_text(ticks: int) -> str:
    """Return ticks as a script writes them.

    >>> duration_text(90_000_000), duration_text(3_600_000_000), duration_text(7)
    ('90s', '1h', '7us')
    """
    if not ticks:
        return "0s"
    unit, size = max(((u, s) for u, s in UNITS.items() if ticks % s == 0), key=lambda pair: pair[1])
    return f"{ticks // size}{unit}"


def rounded_up(ticks: int) -> int:
    """Round a duration up to one with a short text.

    >>> duration_text(rounded_up(629_679)), duration_text(rounded_up(61_000_000))
    ('630ms', '2m')
    """
    for size in sorted(UNITS.values(), reverse=True):
        if ticks > size:
            return -(-ticks // size) * size
    return ticks
