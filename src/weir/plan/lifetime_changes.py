"""What `AlterLifetime` does to the lifetimes of rows; all times are in ticks. The exact rules are
in docs/reference/semantics.md."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from weir.plan.expressions import Expr


@dataclass(frozen=True, slots=True)
class Duration:
    """`[vs, vs + ticks)`."""

    ticks: int


@dataclass(frozen=True, slots=True)
class SetLifetime:
    """`[vs + shift, end)`; a NULL end is open. `end` reads the lifetime before the change."""

    shift: int
    end: Expr


@dataclass(frozen=True, slots=True)
class Shift:
    """`[vs + ticks, ve + ticks)`."""

    ticks: int


@dataclass(frozen=True, slots=True)
class Extend:
    """`[vs, ve + ticks)`."""

    ticks: int


@dataclass(frozen=True, slots=True)
class ClipDuration:
    """`[vs, min(ve, vs + ticks))`."""

    ticks: int


@dataclass(frozen=True, slots=True)
class Point:
    """`[vs, vs + 1)`."""


@dataclass(frozen=True, slots=True)
class PointAtEnd:
    """`[ve, ve + 1)`; open events give nothing."""


@dataclass(frozen=True, slots=True)
class Quantize:
    """The start moves down to the grid of these windows, the end up to where one of them ends."""

    size: int
    hop: int
    offset: int = 0


@dataclass(frozen=True, slots=True)
class HopLifetime:
    """From the next point of the grid on, for as long as windows of this size see the event."""

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
