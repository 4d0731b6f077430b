"""The ways in which `AlterLifetime` changes lifetimes; all times are in ticks.

The exact rules are in docs/reference/semantics.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from weir.plan.expressions import Expr


@dataclass(frozen=True, slots=True)
class Duration:
    """The lifetime becomes `[vs, vs + ticks)`."""

    ticks: int


@dataclass(frozen=True, slots=True)
class SetLifetime:
    """The lifetime becomes `[vs + shift, end)`; a NULL end is open.

    `end` reads the old lifetime."""

    shift: int
    end: Expr


@dataclass(frozen=True, slots=True)
class Shift:
    """The lifetime becomes `[vs + ticks, ve + ticks)`."""

    ticks: int


@dataclass(frozen=True, slots=True)
class Extend:
    """The lifetime becomes `[vs, ve + ticks)`."""

    ticks: int


@dataclass(frozen=True, slots=True)
class ClipDuration:
    """The lifetime becomes `[vs, min(ve, vs + ticks))`."""

    ticks: int


@dataclass(frozen=True, slots=True)
class Point:
    """The lifetime becomes `[vs, vs + 1)`."""


@dataclass(frozen=True, slots=True)
class PointAtEnd:
    """The lifetime becomes `[ve, ve + 1)`; open events are dropped."""


@dataclass(frozen=True, slots=True)
class Quantize:
    """The start moves down to the grid of these windows, the end up to the end of one of them."""

    size: int
    hop: int
    offset: int = 0


@dataclass(frozen=True, slots=True)
class HopLifetime:
    """The event is valid from the next grid point on, while windows of this size contain it."""

    size: int
    hop: int
    offset: int = 0


LifetimeChange: TypeAlias = (
    Duration
    | SetLifetime
    | Shift
    | Extend
    | ClipDuration
    | Point
    | PointAtEnd
    | Quantize
    | HopLifetime
)
