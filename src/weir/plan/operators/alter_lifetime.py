"""WITH DURATION, SHIFT, LIFETIME and similar clauses change the lifetimes of rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, assert_never

from weir.plan.durations import duration_text
from weir.plan.expressions import Call, Column, Expr, Literal, columns_of
from weir.plan.functions.failures import can_fail
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
from weir.plan.operators.facts import (
    LIFETIME,
    NO_STEP,
    HorizonStep,
    Names,
    Predicates,
    Pushed,
    endless,
    reads_lifetime,
    sinking,
)
from weir.plan.operators.node_class import node_class
from weir.plan.operators.roles import RowByRow, SameColumns
from weir.plan.operators.spans import LONGEST_LIFETIME, NONE, TICK, UNBOUNDED, Span
from weir.plan.render import render
from weir.plan.windows import offset_text

if TYPE_CHECKING:
    from weir.plan.operators import Node


@node_class
class AlterLifetime(RowByRow, SameColumns):
    """Changes each row's lifetime; drops rows whose lifetime becomes empty."""

    input: Node
    change: LifetimeChange

    def longest_lifetime(self, lives: Sequence[Span]) -> Span:
        return _lifetime(self.change, lives[0])

    def horizon_step(self, lives: Sequence[Span]) -> HorizonStep:
        return _horizon_step(self.change, lives[0])

    def columns_read(self, wanted: Names) -> tuple[Names, ...]:
        if not isinstance(self.change, SetLifetime):
            return (wanted,)
        return (wanted | columns_of(self.change.end) - LIFETIME,)

    def pushed(self, arriving: Predicates, lives: Sequence[Span]) -> Pushed:
        fails = isinstance(self.change, SetLifetime) and can_fail(self.change.end)
        return sinking(self, arriving, lambda p: not fails and not reads_lifetime(p))

    def detail(self) -> str:
        return _text(self.change)


def _lifetime(change: LifetimeChange, below: Span) -> Span:
    match change:
        case Duration(ticks):
            return Span(0, ticks)
        case SetLifetime():
            return _set_lifetime(change, below)
        case Shift():
            return below
        case Extend(ticks):
            return below + ticks
        case ClipDuration(ticks):
            return min(below, Span(0, ticks))
        case Point() | PointAtEnd():
            return TICK
        case Quantize(size, hop):
            # Both ends move outwards, each by less than a hop.
            return max(below + 2 * (hop - 1), Span(0, size + hop - 1))
        case HopLifetime(size, hop):
            return Span(0, size if hop > size else -(-size // hop) * hop)
    assert_never(change)


def _set_lifetime(change: SetLifetime, below: Span) -> Span:
    end = change.end
    if isinstance(end, Literal):
        return UNBOUNDED if end.value is None else LONGEST_LIFETIME
    moved = _moved(end)
    if moved is None:
        return LONGEST_LIFETIME
    column, ticks = moved
    return (NONE if column == "vs" else below) + (ticks - change.shift)


def _moved(end: Expr) -> tuple[str, int] | None:
    """Return `vs` or `ve` and the shift, if the expression is just one of these plus a constant."""
    match end:
        case Column(name="vs" | "ve" as name):
            return name, 0
        case Call(
            function="add" | "sub" as sign,
            args=(Column(name="vs" | "ve" as name), Literal(value=int(ticks))),
        ):
            return name, ticks if sign == "add" else -ticks
    return None


def _horizon_step(change: LifetimeChange, life: Span) -> HorizonStep:
    match change:
        case Shift(ticks) | SetLifetime(shift=ticks):
            return HorizonStep(ticks, -ticks)
        case PointAtEnd():
            if life.known:
                return HorizonStep(life.ticks, 0)
            return endless(
                "POINT_AT_END of events whose lifetime the program does not bound",
                "CLIP_DURATION or CHOP before it",
            )
        case HopLifetime(hop=hop):
            return HorizonStep(hop, 0)
        case Quantize(hop=hop):
            return HorizonStep(0, hop)
        case Duration() | Extend() | ClipDuration() | Point():
            return NO_STEP
    assert_never(change)


def _text(change: LifetimeChange) -> str:
    match change:
        case Duration(ticks):
            return f"DURATION({duration_text(ticks)})"
        case SetLifetime(shift, end):
            moved = f"vs {'+' if shift > 0 else '-'} {duration_text(abs(shift))}"
            return f"LIFETIME({moved if shift else 'vs'}, {render(end)})"
        case Shift(ticks):
            return f"SHIFT({duration_text(ticks)})"
        case Extend(ticks):
            return f"EXTEND({duration_text(ticks)})"
        case ClipDuration(ticks):
            return f"CLIP_DURATION({duration_text(ticks)})"
        case Point():
            return "POINT"
        case PointAtEnd():
            return "POINT_AT_END"
        case Quantize(size, hop, offset):
            return f"QUANTIZE({_grid(size, hop, offset)})"
        case HopLifetime(size, hop, offset):
            return f"HOP_LIFETIME({_grid(size, hop, offset)})"
    assert_never(change)


def _grid(size: int, hop: int, offset: int) -> str:
    return f"{duration_text(size)}, {duration_text(hop)}{offset_text(offset)}"
