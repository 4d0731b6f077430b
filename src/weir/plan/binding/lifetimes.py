"""Checks and applies the WITH clause: windows and changes of lifetimes.

A window determines how an aggregate divides time; a lifetime change determines how each row's `[vs,
ve)` changes. All durations are ticks.
"""

from __future__ import annotations

from typing import TypeAlias, assert_never

from weir.errors import PlanError, Position
from weir.events.types import type_name
from weir.plan.binding.binder import NameScope, bind
from weir.plan.binding.partitioning import checked
from weir.plan.binding.query import ChopChange, LifetimeClause, StitchChange, WithClause
from weir.plan.durations import duration_text, rounded_up
from weir.plan.expressions import Call, Column, Expr, Literal
from weir.plan.functions.coercion import coerce, type_of, widens
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
from weir.plan.limits import MOST_WINDOWS
from weir.plan.operators import AlterLifetime, Chop, Node, Stitch, schema
from weir.plan.windows import CountWindow, Hopping, Session, SnapshotWindow, Window, window_text

BoundChange: TypeAlias = LifetimeChange | ChopChange | StitchChange


def as_window(clause: WithClause | None) -> Window | None:
    """Return the clause if it is a window, else None."""
    return clause if isinstance(clause, Window) else None


def check_clause(clause: WithClause, position: Position | None = None) -> None:
    """Raise PlanError, naming the parameter, if one of a window or lifetime change is invalid."""
    positive: dict[str, int] = {}
    free: dict[str, int] = {}
    match clause:
        case Hopping() | Quantize() | HopLifetime():
            positive, free = ({"size": clause.size, "hop": clause.hop}, {"offset": clause.offset})
        case Session():
            positive = {"timeout": clause.timeout}
        case CountWindow():
            positive = {"n": clause.n, "step": clause.step}
        case Duration():
            positive = {"DURATION": clause.ticks}
        case ClipDuration():
            positive = {"CLIP_DURATION": clause.ticks}
        case ChopChange():
            positive, free = {"period": clause.period}, {"offset": clause.offset}
        case Shift() | Extend():
            free = {type(clause).__name__.upper(): clause.ticks}
        case SetLifetime():
            free = {"shift": clause.shift}
        case SnapshotWindow() | Point() | PointAtEnd() | StitchChange() | LifetimeClause():
            pass  # these have no parameter, or it is bound before
        case never:
            assert_never(never)
    for name, ticks in positive.items():
        if ticks <= 0:
            length = ticks if isinstance(clause, CountWindow) else duration_text(ticks)
            raise PlanError(f"{name} must be positive, not {length}", position=position)
    for name, ticks in (positive | free).items():
        if not -(2**62) < ticks < 2**62:
            unit = "" if isinstance(clause, CountWindow) else " ticks"
            raise PlanError(f"{name} is out of range: {ticks}{unit}", position=position)
    if isinstance(clause, Hopping):
        _check_windows(clause, position)


def _check_windows(window: Hopping, position: Position | None) -> None:
    if abs(window.offset) + max(window.size, window.hop) > 2**62:
        # The numbers of windows at the first and last possible times would not fit 64 bits.
        raise PlanError(
            f"{window_text(window)}: size and offset are out of range together",
            position=position,
            hint="windows are the same with the offset's remainder by the hop",
        )
    count = -(-window.size // window.hop)
    if count <= MOST_WINDOWS:
        return
    hop = duration_text(rounded_up(-(-window.size // MOST_WINDOWS)))
    size = duration_text(window.size)
    raise PlanError(
        f"{window_text(window)}: every event is in {count:,} windows, each of which is a row; at "
        f"most {MOST_WINDOWS:,} are allowed",
        position=position,
        hint=f"take a hop of {hop} or more, or let rows live for {size} (SELECT * FROM … WITH "
        f"DURATION({size})) and aggregate WITH SNAPSHOT: a row whenever the value changes",
        python=f"take a hop of '{hop}' or more, or .duration('{size}') and .window(snapshot()): a "
        "row whenever the value changes",
    )


def change_lifetime(node: Node, change: BoundChange, position: Position | None = None) -> Node:
    """Return the node with a change of its rows' lifetimes, which is bound and checked."""
    check_clause(change, position)
    match change:
        case ChopChange():
            return Chop(node, change.period, change.offset)
        case StitchChange():
            return checked(Stitch(node), position)
    return AlterLifetime(node, change)


def bind_lifetime(clause: LifetimeClause, scope: NameScope, node: Node) -> SetLifetime:
    """Bind LIFETIME(vs + constant, end); the start moves by a constant so that CTIs can follow."""
    time = schema(node).time
    end = bind(clause.end, scope.at("LIFETIME"))
    if not widens(type_of(end), time):
        raise PlanError(
            f"the end of LIFETIME must be {type_name(time)}, not {type_name(type_of(end))}",
            position=clause.end.position,
        )
    return SetLifetime(_shift(clause.start), coerce(end, time))


def _shift(start: Expr) -> int:
    match start:
        case Column(name="vs"):
            return 0
        case Call(function="add", args=(Column(name="vs"), offset)):
            return _constant(offset, start)
        case Call(function="add", args=(offset, Column(name="vs"))):
            return _constant(offset, start)
        case Call(function="sub", args=(Column(name="vs"), offset)):
            return -_constant(offset, start)
    raise _moving_start(start)


def _constant(expr: Expr, start: Expr) -> int:
    match expr:
        case Literal(value=int() as value) if not isinstance(value, bool):
            return value
        case Call(function="neg", args=(arg,)):
            return -_constant(arg, start)
        case Call(function="add", args=(left, right)):
            return _constant(left, start) + _constant(right, start)
        case Call(function="sub", args=(left, right)):
            return _constant(left, start) - _constant(right, start)
        case Call(function="mul", args=(left, right)):
            return _constant(left, start) * _constant(right, start)
    raise _moving_start(start)


def _moving_start(start: Expr) -> PlanError:
    return PlanError(
        "the start of LIFETIME must be `vs` plus or minus a constant",
        position=start.position,
        hint="only then can CTIs follow it",
    )
