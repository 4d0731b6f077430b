"""§2: changes of one row's lifetime, CHOP and STITCH."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import pairwise

from oracle.expressions import evaluate_expression, scope
from oracle.rows import OPEN, OracleError, Row, by_payload
from weir.plan.lifetime_changes import (
    ClipDuration,
    Duration,
    Extend,
    HopLifetime,
    LifetimeChange,
    Point,
    PointAtEnd,
    Quantize,
    SetLifetime,
    Shift,
)


def altered(row: Row, change: LifetimeChange) -> list[Row]:
    """The row with its new lifetime; nothing where that is empty."""
    lifetime = _lifetime(row, change)
    if lifetime is None or lifetime[0] >= lifetime[1]:
        return []
    return [replace(row, vs=lifetime[0], ve=lifetime[1])]


def _lifetime(row: Row, change: LifetimeChange) -> tuple[int, float] | None:
    vs, ve = row.vs, row.ve
    match change:
        case Duration(ticks=d):
            return vs, vs + d
        case SetLifetime(shift=a, end=end):
            value = evaluate_expression(end, scope(row))
            return vs + a, OPEN if value is None else value
        case Shift(ticks=d):
            return vs + d, ve + d
        case Extend(ticks=d):
            return vs, ve + d
        case ClipDuration(ticks=d):
            return vs, min(ve, vs + d)
        case Point():
            return vs, vs + 1
        case PointAtEnd():
            return None if ve == OPEN else (int(ve), ve + 1)
        case Quantize():
            return _quantized(vs, ve, change.size, change.hop, change.offset)
        case HopLifetime():
            return _hopped(vs, change.size, change.hop, change.offset)


def _quantized(vs: int, ve: float, size: int, hop: int, offset: int) -> tuple[int, float]:
    start = _down(vs, hop, offset)
    if ve == OPEN:
        return start, OPEN
    return start, _down(max(int(ve) + hop - 1, vs + size), hop, offset + size)


def _hopped(vs: int, size: int, hop: int, offset: int) -> tuple[int, float] | None:
    start = _up(vs, hop, offset)
    if hop > size:
        return (start, start + size) if start - vs < size else None
    return start, _up(vs + size, hop, offset)


def _down(t: int, hop: int, offset: int) -> int:
    """The largest `offset + k·hop` ≤ t."""
    return t - (t - offset) % hop


def _up(t: int, hop: int, offset: int) -> int:
    """The smallest `offset + k·hop` ≥ t."""
    return t + (offset - t) % hop


def chopped(row: Row, period: int, offset: int) -> list[Row]:
    """Cut at every grid point strictly inside."""
    if row.ve == OPEN:
        raise OracleError("open")
    grid = (t for t in range(row.vs + 1, int(row.ve)) if (t - offset) % period == 0)
    points = [row.vs, *grid, int(row.ve)]
    return [Row(a, b, row.payload) for a, b in pairwise(points)]


def stitched(rows: Iterable[Row]) -> list[Row]:
    """Each row, in order, extends the oldest chain that ends where it starts, if any."""
    return [Row(a, b, same[0].payload) for same in by_payload(rows) for a, b in _chains(same)]


def _chains(rows: list[Row]) -> list[tuple[int, float]]:
    chains: list[tuple[int, float]] = []
    for row in rows:
        before = [c for c in chains if c[1] == row.vs]
        start = row.vs
        if before:
            chains.remove(min(before))
            start = min(before)[0]
        chains.append((start, row.ve))
    return chains
