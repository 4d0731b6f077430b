"""How long an operator can hold rows back, and what it keeps meanwhile.

Results are final when they come out. An operator whose rows have an end that later input can
change holds them, and the output CTI at their start, until that end is known. How long that can
take follows from how long rows live at its input:

    a duration          of a lifetime that the program itself bounds (DURATION, CHOP, a window)
    longest lifetime    of rows that live as long as the data says
    unbounded           where rows that go on from one another have no end in sight (SESSION,
                        DISTINCT, STITCH), or where the program makes events that never end
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias

from weir.plan.durations import UNITS
from weir.plan.expressions import Call, Column, Expr, Literal
from weir.plan.nodes import (
    Aggregate,
    AlterLifetime,
    Apply,
    Chop,
    ClipDuration,
    CountWindow,
    Distinct,
    Duration,
    Explode,
    Extend,
    Filter,
    HopLifetime,
    Hopping,
    Join,
    LifetimeChange,
    Node,
    PartialAggregate,
    Partition,
    Point,
    PointAtEnd,
    Project,
    Quantize,
    Session,
    SetLifetime,
    Shift,
    Snapshot,
    Source,
    Stitch,
    Top,
    Union,
    inputs_of,
)
from weir.plan.rewrites.traversal import ordered_nodes


@dataclass(frozen=True, slots=True, order=True)
class Span:
    """An upper bound of a time: some ticks, what the data says, or none at all."""

    rank: int
    ticks: int = 0

    def __str__(self) -> str:
        if self.rank:
            return "longest lifetime" if self.rank == 1 else "unbounded"
        return duration(self.ticks) if self.ticks else "none"

    def __add__(self, ticks: int) -> Span:
        return self if self.rank else Span(0, max(self.ticks + ticks, 0))

    @property
    def known(self) -> bool:
        return self.rank == 0


Hold: TypeAlias = Span

NONE = Span(0)
LONGEST_LIFETIME = Span(1)
UNBOUNDED = Span(2)
_TICK = Span(0, 1)


def duration(ticks: int) -> str:
    """Ticks as a script writes them.

    >>> duration(90_000_000), duration(3_600_000_000), duration(7)
    ('90s', '1h', '7us')
    """
    if not ticks:
        return "0s"
    unit, size = max(
        ((u, s) for u, s in UNITS.items() if ticks % s == 0), key=lambda found: found[1]
    )
    return f"{ticks // size}{unit}"


def longest_hold(node: Node) -> Hold:
    """How long the operator can hold a row back."""
    return longest_holds([node])[node]


def longest_holds(roots: Iterable[Node]) -> dict[Node, Hold]:
    """The longest hold of every operator below these."""
    lives = longest_lifetimes(roots)
    return {node: _hold(node, [lives[i] for i in inputs_of(node)]) for node in lives}


def longest_lifetime(node: Node) -> Span:
    """How long the node's rows can live; `unbounded` when they certainly may be open."""
    return longest_lifetimes([node])[node]


def longest_lifetimes(roots: Iterable[Node]) -> dict[Node, Span]:
    """The longest lifetime of every operator's rows."""
    lives: dict[Node, Span] = {}
    for node in ordered_nodes(roots):
        lives[node] = _lifetime(node, [lives[i] for i in inputs_of(node)])
    return lives


# --- holds ---------------------------------------------------------------------------------


def _hold(node: Node, below: list[Span]) -> Hold:
    match node:
        case Aggregate(window=Hopping() as window):
            return Span(0, window.size)
        case PartialAggregate():  # until the first of a row's windows ends
            return Span(0, node.window.hop)
        case Aggregate(window=Session()) | Distinct() | Stitch():
            return UNBOUNDED
        case Aggregate(window=Snapshot()) | Top(scope="instant"):
            return below[0]
        case Join():
            return _join_hold(node, *below)
        case _:
            return NONE


def _join_hold(node: Join, left: Span, right: Span) -> Hold:
    match node.kind:
        case "left" | "semi" | "anti" | "clip":
            return left
        case "right":
            return right
        case "full":
            return max(left, right)
        case _:
            return NONE


# --- lifetimes -----------------------------------------------------------------------------


def _lifetime(node: Node, below: list[Span]) -> Span:
    match node:
        case Source():
            return _source_lifetime(node)
        case AlterLifetime():
            return _changed(node.change, below[0])
        case Chop():
            return min(below[0], Span(0, node.period))
        case Project() | Filter() | Explode() | Partition() | Top():
            return below[0]
        case Stitch() | Distinct():
            return max(below[0], LONGEST_LIFETIME)
        case Aggregate():
            return _window_lifetime(node, below[0])
        case PartialAggregate():
            # Both ends move outwards, each by less than a hop.
            return below[0] + 2 * (node.window.hop - 1)
        case Join():
            return _join_lifetime(node, *below)
        case Union():
            return max(below)
        case Apply():
            return LONGEST_LIFETIME


def _source_lifetime(source: Source) -> Span:
    options = source.options
    if options.ve is not None:
        return LONGEST_LIFETIME
    return _TICK if options.lifetime is None else Span(0, options.lifetime)


def _window_lifetime(node: Aggregate, below: Span) -> Span:
    match node.window:
        case Hopping(size):
            return Span(0, size)
        case Session():
            return LONGEST_LIFETIME
        case Snapshot() | CountWindow():  # inside an event's lifetime, or equal to one
            return below


def _join_lifetime(node: Join, left: Span, right: Span) -> Span:
    match node.kind:
        case "inner":
            return min(left, right)
        case "right":
            return right
        case "full":
            return max(left, right)
        case _:
            return left


def _changed(change: LifetimeChange, below: Span) -> Span:
    match change:
        case Duration(ticks):
            return Span(0, ticks)
        case SetLifetime():
            return _set(change, below)
        case Shift():
            return below
        case Extend(ticks):
            return below + ticks
        case ClipDuration(ticks):
            return min(below, Span(0, ticks))
        case Point() | PointAtEnd():
            return _TICK
        case Quantize(size, hop):
            # Both ends move outwards, each by less than a hop.
            return max(below + 2 * (hop - 1), Span(0, size + hop - 1))
        case HopLifetime(size, hop):
            return Span(0, size if hop > size else -(-size // hop) * hop)


def _set(change: SetLifetime, below: Span) -> Span:
    end = change.end
    if isinstance(end, Literal):
        return UNBOUNDED if end.value is None else LONGEST_LIFETIME
    moved = _moved(end)
    if moved is None:
        return LONGEST_LIFETIME
    column, ticks = moved
    return (NONE if column == "vs" else below) + (ticks - change.shift)


def _moved(end: Expr) -> tuple[str, int] | None:
    """`vs` or `ve` and by how much it is moved, where the expression is just that."""
    match end:
        case Column(name="vs" | "ve" as name):
            return name, 0
        case Call(
            function="add" | "sub" as sign,
            args=(Column(name="vs" | "ve" as name), Literal(value=int(ticks))),
        ):
            return name, ticks if sign == "add" else -ticks
    return None


# --- state ---------------------------------------------------------------------------------

_ADDED_UP = frozenset(("count_star", "count", "sum", "avg", "stddev", "variance", "moments"))


def kept(node: Node) -> str:
    """What a vertex keeps for the operator, in words; empty when it keeps nothing."""
    match node:
        case Aggregate() | PartialAggregate():
            return _kept_by_window(node)
        case Join():
            return _kept_by_join(node)
        case Distinct():
            return "one row for each live payload"
        case Stitch():
            return "chains that may go on, one row each"
        case Chop():
            return "rows until their last piece is out"
        case Top(scope="instant"):
            return "all live rows, in order"
        case Apply():
            each = "every key" if node.keys[0] else "the whole stream"
            return f"an instance of {node.call.operator.name} for {each}, for good, and its timers"
        case _:
            return ""


def _kept_by_window(node: Aggregate | PartialAggregate) -> str:
    each = "each key and" if node.keys else "each"
    valued = [a.user.name if a.user else a.function for _, a in node.aggregates]
    valued = [name for name in dict.fromkeys(valued) if name not in _ADDED_UP]
    values = f", and the values for {', '.join(valued)}" if valued else ""
    match node.window:
        case Hopping():
            return f"panes of open windows: one row of sums for {each} pane{values}"
        case Session():
            of_key = " for each key" if node.keys else ""
            return f"open sessions: one row of sums{of_key}{values}"
        case Snapshot():
            return f"live events: one row of sums for {each} lifetime{values}"
        case CountWindow():
            counter = "a counter for every key, for good" if node.keys else "a counter"
            return f"{counter}; one row of sums for {each} unfilled window{values}"


def _kept_by_join(node: Join) -> str:
    match node.kind:
        case "asof" | "left_asof":
            each = "every key" if node.keys else "all"
            if node.condition is None:
                return f"the newest right row of {each}, for good"
            return f"all right rows of {each}, for good: the condition may reject the newest"
        case "clip":
            return "left rows until they end or are clipped"
        case _:
            return "left and right rows until they end"
