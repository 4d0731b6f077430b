"""How far back a stage's state reaches: what replay has to read again.

A stage that has taken in everything before T can be rebuilt without a snapshot if nothing that
comes out of it later depends on rows that start before T − `ticks`. Two numbers follow the rows
through its operators:

    reach   input that is right from time a on (below it: anything) makes rows right from a + reach
            on. A row lives L at most: what it is part of starts less than L after it, and what
            begins where it ends, L after it at most.
    lag     at T the operator has taken in its own input up to T − lag: the holds before it.

All that an operator gives later starts at T − lag or behind, and is right if that is a + reach
or behind. So the horizon is reach + lag at the last operator with state:

    HOPPING             reach L − 1, lag the size    rows before a window may live into it
    SNAPSHOT, LIMIT     reach L, lag L               a cell begins where a row that is gone ended
    INNER JOIN          reach L − 1                  the older row of a pair
    other joins         reach L, lag as they hold    pieces begin where a match ends
    CLIP JOIN           reach 0, lag L of the left   right rows are looked at once
    CHOP                reach L − 1                  pieces of what began before
    panes               lag one hop
    POINT_AT_END, HOP_LIFETIME, QUANTIZE, SHIFT      move starts, and so move both

Operators that look at all of history have no horizon: SESSION, DISTINCT and STITCH (what goes on
from one row to the next has no bound), COUNT windows, ASOF joins, the user's own operators; and
any that asks for L where the program does not bound it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from weir.plan.holds import Span, duration, longest_lifetimes
from weir.plan.nodes import (
    Aggregate,
    AlterLifetime,
    Apply,
    Chop,
    CountWindow,
    Distinct,
    HopLifetime,
    Hopping,
    Join,
    LifetimeChange,
    Node,
    PartialAggregate,
    PointAtEnd,
    Quantize,
    Session,
    SetLifetime,
    Shift,
    Snapshot,
    Stitch,
    Top,
    inputs_of,
)
from weir.plan.stages import Branch, Stage, StagedPlan


@dataclass(frozen=True, slots=True)
class Horizon:
    """`ticks` is None where the stage depends on all of history; `why` says by what.

    `reaches` has, for each operator of the stage, the reach behind it. A stage without state has
    a horizon of −1: it needs no row again, waiting ones included.
    """

    ticks: int | None
    why: str
    reaches: tuple[int, ...] = ()

    @property
    def known(self) -> bool:
        return self.ticks is not None

    def __str__(self) -> str:
        if self.ticks is None:
            return "all of history"
        return _shown(self.ticks) if self.ticks >= 0 else "nothing"


def _shown(ticks: int) -> str:
    """To the millisecond above, where that is less to read."""
    return duration(-(-ticks // 1000) * 1000 if ticks > 1000 else ticks)


class _Endless(Exception):
    """All of history counts, for this reason."""


@dataclass(frozen=True, slots=True)
class _Addition:
    """What one operator adds to reach and lag; the reach may ask for a lifetime."""

    reach: int
    lag: int
    stateful: bool = True


_NOTHING = _Addition(0, 0, stateful=False)


def horizons(plan: StagedPlan) -> tuple[Horizon, ...]:
    """The horizon of each stage."""
    operators = [o for s in plan.stages for o in s.operators if not isinstance(o, Branch)]
    lives = longest_lifetimes(operators)
    return tuple(_horizon(stage, lives) for stage in plan.stages)


def _horizon(stage: Stage, lives: Mapping[Node, Span]) -> Horizon:
    reach = lag = 0
    ticks, reaches = -1, []
    unknown = ""  # why the reach is not known from here on, if a stateful operator follows
    for operator in stage.operators:
        step = _NOTHING
        if not isinstance(operator, Branch):
            try:
                step = _step(operator, [lives[i] for i in inputs_of(operator)])
            except _Endless as reason:
                unknown = unknown or str(reason)
                step = _Addition(0, 0, stateful=not isinstance(operator, AlterLifetime))
        reach, lag = reach + step.reach, lag + step.lag
        reaches.append(reach)
        if step.stateful:
            if unknown:
                return Horizon(None, unknown)
            ticks = reach + lag
    why = "it keeps nothing" if ticks < 0 else f"what comes depends on {_shown(ticks)} of input"
    return Horizon(ticks, why, tuple(reaches))


def _step(node: Node, lives: list[Span]) -> _Addition:
    match node:
        case AlterLifetime():
            return _moved(node.change, lives[0])
        case Chop():
            return _Addition(_last_instant(node, lives[0]), 0)
        case PartialAggregate():
            return _Addition(0, node.window.hop)
        case Aggregate():
            return _window(node, lives[0])
        case Top(scope="window"):
            return _Addition(0, 0)
        case Top():
            life = _bound(node, lives[0])
            return _Addition(life, life)
        case Join():
            return _join(node, *lives)
        case Distinct():
            raise _Endless("DISTINCT: a row goes on for as long as equal ones follow")
        case Stitch():
            raise _Endless("STITCH: a row goes on for as long as others continue it")
        case Apply():
            raise _Endless(f"{node.call.operator.name}: its state may hold anything it ever saw")
        case _:
            return _NOTHING


def _moved(change: LifetimeChange, life: Span) -> _Addition:
    match change:
        case Shift(ticks) | SetLifetime(shift=ticks):
            return _Addition(ticks, -ticks, stateful=False)
        case PointAtEnd():
            if not life.known:
                raise _Endless("POINT_AT_END of events whose lifetime the program does not bound")
            return _Addition(life.ticks, 0, stateful=False)
        case HopLifetime(hop=hop):
            return _Addition(hop, 0, stateful=False)
        case Quantize(hop=hop):
            return _Addition(0, hop, stateful=False)
        case _:
            return _NOTHING


def _window(node: Aggregate, life: Span) -> _Addition:
    match node.window:
        case Hopping(size):
            return _Addition(_last_instant(node, life), size)
        case Snapshot():
            bound = _bound(node, life)
            return _Addition(bound, bound)
        case Session():
            raise _Endless("SESSION: a session goes on for as long as events follow")
        case CountWindow():
            raise _Endless("COUNT: a window is found by counting all rows before it")


def _join(node: Join, left: Span, right: Span) -> _Addition:
    match node.kind:
        case "asof" | "left_asof":
            raise _Endless("ASOF JOIN: the newest right row counts, however old it is")
        case "clip":
            return _Addition(0, _bound(node, left))
    longer = max(left, right)
    either = _bound(node, longer)
    match node.kind:
        case "inner":
            return _Addition(_last_instant(node, longer), 0)
        case "right":
            return _Addition(either, right.ticks)
        case "full":
            return _Addition(either, either)
        case _:
            return _Addition(either, left.ticks)


def _last_instant(node: Node, life: Span) -> int:
    """The reach of operators that look at rows while they live, not at where they end."""
    return max(_bound(node, life) - 1, 0)


def _bound(node: Node, life: Span) -> int:
    if not life.known:
        raise _Endless(
            f"{_name(node)} over events whose lifetime the program does not bound "
            "(CLIP_DURATION or CHOP before it would)"
        )
    return life.ticks


def _name(node: Node) -> str:
    match node:
        case Join():
            return f"{node.kind.upper()} JOIN"
        case Aggregate():
            return type(node.window).__name__.upper()
        case Top():
            return "LIMIT"
        case _:
            return type(node).__name__.upper()
