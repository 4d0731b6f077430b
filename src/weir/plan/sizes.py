"""Reads and writes sizes, such as `64KB`, in bytes; the units are powers of 1024."""

from __future__ import annotations

import re

from weir.errors import PlanError

_UNITS = {"": 1, "B": 1, "KB": 1 << 10, "MB": 1 << 20, "GB": 1 << 30}
_SIZE = re.compile(r"([0-9]{1,15}) ?([A-Za-z]*)", re.ASCII)


def parse_size(value: str | int) -> int:
    """Return the bytes of `64KB`, `16MB`, `1GB`, or of a plain number.

    >>> parse_size("64KB"), parse_size("16 mb"), parse_size(7)
    (65536, 16777216, 7)
    """
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    match = _SIZE.fullmatch(value.strip()) if isinstance(value, str) else None
    if match is None or match[2].upper() not in _UNITS:
        raise PlanError(
            f"invalid size {value!r}",
            hint="expected a number and a unit, such as 64KB, 16MB or 1GB, or a number of bytes",
        )
    return int(match[1]) * _UNITS[match[2].upper()]


def size_text(size: int) -> str:
    """Return a size as `parse_size` reads it, in the largest unit that fits.

    >>> size_text(16 << 20), size_text(1000)
    ('16MB', '1000B')
    """
    for unit in ("GB", "MB", "KB"):
        if size and size % _UNITS[unit] == 0:
            return f"{size // _UNITS[unit]}{unit}"
    return f"{size}B"
