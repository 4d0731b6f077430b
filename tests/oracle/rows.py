"""Rows, values and the total order (architecture §3.1).

Values compare: NULL first, -0 = 0, NaN last and equal to itself, strings by UTF-8 bytes.
Rows compare by (vs, origin, ve, payload left to right); without an origin they come after
those with one. An open end is `OPEN`, which is larger than every int.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

OPEN = math.inf
Key = tuple[object, ...]


class OracleError(Exception):
    """The program must fail on these inputs; the text is a word the message must contain."""


@dataclass(frozen=True, slots=True)
class Row:
    """An event: `payload` maps column names to values, in the order of the schema."""

    vs: int
    ve: float  # an int, or OPEN
    payload: dict[str, object]
    origin: tuple[int, ...] | None = None

    def meets(self, start: float, end: float) -> bool:
        return self.vs < end and start < self.ve


@dataclass(frozen=True, slots=True)
class Cti:
    """An explicit CTI in an input: no later event of its partition has a smaller vs."""

    time: int


def value_key(value: object) -> Key:
    """What a value compares, groups and hashes by."""
    if value is None:
        return (0,)
    if isinstance(value, float) and math.isnan(value):
        return (2,)
    return (1, _plain(value))


def _plain(value: object) -> object:
    match value:
        case str():
            return value.encode()
        case list() | tuple():
            return tuple(value_key(v) for v in value)
        case dict():
            return tuple(value_key(v) for v in value.values())
        case _:
            return value


def payload_key(payload: dict[str, object]) -> Key:
    return tuple(value_key(v) for v in payload.values())


def order_key(row: Row) -> Key:
    origin = (1, ()) if row.origin is None else (0, row.origin)
    return (row.vs, origin, row.ve, payload_key(row.payload))


def in_order(rows: Iterable[Row]) -> list[Row]:
    return sorted(rows, key=order_key)


def by_key(rows: Iterable[Row], names: Sequence[str]) -> list[list[Row]]:
    """Rows with equal values under `names`, each group in the total order."""
    groups: dict[Key, list[Row]] = {}
    for row in in_order(rows):
        groups.setdefault(tuple(value_key(row.payload[n]) for n in names), []).append(row)
    return list(groups.values())


def by_payload(rows: Iterable[Row]) -> list[list[Row]]:
    groups: dict[Key, list[Row]] = {}
    for row in in_order(rows):
        groups.setdefault(payload_key(row.payload), []).append(row)
    return list(groups.values())


def cells(rows: Iterable[Row]) -> list[tuple[float, float]]:
    """Time cut at every endpoint: between two neighbours nothing changes."""
    points = sorted({t for row in rows for t in (row.vs, row.ve)})
    return list(pairwise(points))


def maximal(pieces: Iterable[tuple[float, float]]) -> list[tuple[float, float]]:
    """Touching pieces, given in order, as one."""
    joined: list[tuple[float, float]] = []
    for start, end in pieces:
        if joined and joined[-1][1] == start:
            start = joined.pop()[0]
        joined.append((start, end))
    return joined


def canonical(rows: Iterable[Row]) -> Counter[Key]:
    """The multiset of (vs, ve, payload) under the language's equality."""
    return Counter((r.vs, r.ve, payload_key(r.payload)) for r in rows)
