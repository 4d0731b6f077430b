"""Warnings for plans that run but look wrong.

Warnings that need the words of a script are in `script/script_warnings.py`.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from enum import Enum
from typing import assert_never

from weir.errors import PlanWarning, Position, ProgramPlace
from weir.events.types import TIMESTAMP
from weir.plan.durations import UNITS, Ticks, duration_text, plain_number
from weir.plan.expressions import Column, Expr
from weir.plan.lifetime_changes import ClipDuration, Shift
from weir.plan.operators import (
    Aggregate,
    AlterLifetime,
    Apply,
    Chop,
    Distinct,
    Enter,
    Explode,
    Filter,
    FinalState,
    Join,
    JoinKind,
    Node,
    Number,
    PartialAggregate,
    Partition,
    Project,
    Recovery,
    RowScan,
    Source,
    StateScan,
    Stitch,
    Top,
    Union,
    computed,
    schema,
)
from weir.plan.windows import CountWindow, Hopping, Session, SnapshotWindow, Window, window_text
from weir.wording import visible

_MEET_AT_INSTANTS = ("inner", "left", "right", "full", "semi", "anti")


_TOLD = ContextVar("_TOLD", default=False)
SHORT = UNITS["m"]
"""The least plain number that is taken for ticks: nobody means that many seconds."""


def plain_words(what: str, number: int, quote: str = "") -> tuple[str, str]:
    """Return what a plain number means over TIMESTAMPs, and what to write instead.

    Python programs write durations in quotes."""
    message = f"{what}: {number} is {number:,} microseconds here, as the times are TIMESTAMPs"
    seconds, ticks = (f"{quote}{text}{quote}" for text in (f"{number}s", duration_text(number)))
    return message, f"write {seconds} for seconds, or {ticks} to keep the value"


def warn_of_plain(what: str, durations: Iterable[Ticks | None], nodes: Iterable[Node]) -> None:
    """Warn of plain numbers that Python passes as durations, over TIMESTAMPs."""
    if any(schema(node).time != TIMESTAMP for node in nodes):
        return
    for value in durations:
        number = None if value is None else plain_number(value)
        if number is not None and 0 < abs(number) < SHORT:
            warn("; ".join(plain_words(what, number, "'")))


def warn_of_unordered(k: int) -> None:
    """Warn of a top without an order: it keeps rows of each instant, not of the whole stream."""
    text = f"top({k}) without `by` keeps {k} rows of each instant or window, not {k} in all"
    warn(f"{text}; write top({k}, by=col('x').desc())")


def warn_of_null(function: str) -> None:
    """Warn of a comparison with NULL in Python."""
    message, instead = {
        "eq": ("`== None` is never true", ".is_null()"),
        "ne": ("`!= None` is never true", ".is_not_null()"),
        "in": (
            "None in isin(…) equals nothing, and makes ~isin(…) never true",
            "isin(…) | ….is_null()",
        ),
    }[function]
    warn(f"{message}; write {instead}")


def warn_of_pairs(position: Position | None) -> None:
    """Warn of a join without an equality."""
    text = "a join without an equality in ON compares every pair of live rows"
    _doubt(text, position, *["if there is one, write it: ON A.key = B.key AND …"] * 2)


def warn_of_gaps(window: Window, position: Position | None) -> None:
    """Warn of windows with gaps between them: elsewhere, the hop comes before the size."""
    if isinstance(window, Hopping) and window.hop > window.size > 0:
        size, hop = duration_text(window.size), duration_text(window.hop)
        _doubt(
            f"{window_text(window)} is a window of {size} every {hop}: what starts between them "
            "is in none",
            position,
            f"the size comes first: HOPPING({hop}, {size})",
            f"the size comes first: hopping('{hop}', '{size}')",
        )


def warn_of_lone_points(node: Node, keys: Sequence[Expr], position: Position | None) -> None:
    """Warn of an aggregate at every instant over events that are valid for one instant each."""
    source = _points(node)
    if source is None or any(_is_time(key, source) for key in keys):
        return
    size = "1h" if schema(node).time == TIMESTAMP else "size"
    _doubt(
        "an aggregate without WITH is over what is valid at each instant, and events of "
        f"{source.name} are points: only those of the same {_tick(node)} come together",
        position,
        f"write WITH TUMBLING({size}) for windows, or WITH SNAPSHOT if each instant is meant",
        f"write .window(tumbling('{size}')) for windows, or .window(snapshot()) if each instant "
        "is meant",
    )


def warn_of_missed_points(
    sides: Sequence[Node], kind: JoinKind, keys: Iterable[Sequence[Expr]], position: Position | None
) -> None:
    """Warn of a join whose sides meet only by chance.

    These are points with points, or points with windows over other inputs."""
    left, right = map(validity_of, sides)
    if kind not in _MEET_AT_INSTANTS or left.sources & right.sources:
        return
    shapes = {left.shape, right.shape}
    if shapes not in ({Shape.POINTS}, {Shape.POINTS, Shape.WINDOWS}):
        return
    if any(_is_time(a, *left.sources) and _is_time(b, *right.sources) for a, b in keys):
        return
    if Shape.WINDOWS in shapes:
        _warn_of_windows_and_points(left, right, position)
    else:
        _warn_of_two_points(left, right, _tick(sides[0]), position)


def _warn_of_two_points(
    left: Validity, right: Validity, tick: str, position: Position | None
) -> None:
    name = right.query
    _doubt(
        f"rows meet while both are valid, and events of {left.names} and {right.names} are points: "
        f"only those of the same {tick} meet",
        position,
        "write ASOF JOIN for the latest row before, or make one side live longer: "
        f"(SELECT * FROM {name} WITH DURATION(10m)) AS {name}; WITH POINT there if it "
        "is meant",
        "write kind='asof' for the latest row before, or make one side live longer: "
        ".duration('10m'); .point() if it is meant",
    )


def _warn_of_windows_and_points(left: Validity, right: Validity, position: Position | None) -> None:
    points, windows = (left, right) if left.shape is Shape.POINTS else (right, left)
    names, name = points.names, points.query
    _doubt(
        f"rows meet while both are valid, and events of {names} are points: a window over "
        f"{windows.names} meets only those whose time lies inside it",
        position,
        f"write how long rows of {names} are valid, (SELECT * FROM {name} WITH LIFETIME(vs, NULL)) "
        f"AS {name} from then on; or ASOF JOIN for the latest row before; WITH POINT there if "
        "it is meant",
        f"write how long rows of {names} are valid, .lifetime('vs', lit(None)) from then on; or "
        "kind='asof' for the latest row before; .point() if it is meant",
    )


def _points(node: Node) -> Source | None:
    """Return the source of these rows if they are its events and the events are points."""
    while isinstance(node, Project | Filter | Partition):
        node = node.input
    if not isinstance(node, Source) or node.options.ve is not None:
        return None
    return node if node.options.lifetime is None else None


def _is_time(key: Expr, *sources: Source) -> bool:
    times = {"vs", *(source.options.vs for source in sources)}
    return isinstance(key, Column) and key.name.split(".")[-1] in times


def _tick(node: Node) -> str:
    return "microsecond" if schema(node).time == TIMESTAMP else "instant"


def _doubt(message: str, position: Position | None, script: str, python: str) -> None:
    """Warn with the position and with what to write there, in a script or in Python."""
    if isinstance(position, ProgramPlace):
        text = f"{position.pointed(visible(message))}\n  hint: {visible(script)}"
    else:
        text = f"{message}; {python}"
    warn(text)


@contextmanager
def told_already() -> Iterator[None]:
    """Suppress warnings: this was planned before, with its warnings."""
    token = _TOLD.set(True)
    try:
        yield
    finally:
        _TOLD.reset(token)


def warn(text: str) -> None:
    """Warn at the line of the user's program that called Weir."""
    if _TOLD.get():
        return
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_globals["__name__"].partition(".")[0] == "weir":
        level, frame = level + 1, frame.f_back
    warnings.warn(PlanWarning(text), stacklevel=level)


# --- when rows are valid
# ---------------------------------------------------------------------------


class Shape(Enum):
    """How long rows are valid, and what decides it."""

    POINTS = "points"
    """For one tick: the program says nothing else."""
    WINDOWS = "windows"
    """For a window that contains other rows."""
    CHOSEN = "chosen"
    """For as long as the program or the data says."""


@dataclass(frozen=True, slots=True)
class Validity:
    """The shape of rows' lifetimes, and the inputs that their times come from."""

    shape: Shape
    sources: frozenset[Source]

    @property
    def names(self) -> str:
        """Return the names of the inputs, in the order of the program."""
        return " and ".join(s.name for s in sorted(self.sources, key=lambda s: (s.index, s.name)))

    @property
    def query(self) -> str:
        """Return the stream to write in a query; several inputs have no common name."""
        return self.names if len(self.sources) == 1 else "…"


def validity_of(node: Node) -> Validity:
    """Return how long the rows of a plan are valid, as far as the plan shows it."""
    return computed(node, "_validity", _validity)


def _validity(node: Node) -> Validity:
    below = [validity_of(i) for i in node.inputs]
    match node:
        case Source():
            points = node.options.ve is None and node.options.lifetime is None
            return Validity(Shape.POINTS if points else Shape.CHOSEN, frozenset([node]))
        case AlterLifetime():
            return below[0] if isinstance(node.change, Shift) else _shortened(node, below[0])
        case Chop():
            return _shortened(node, below[0])
        case Aggregate() | PartialAggregate():
            return _of_windows(node, below[0])
        case Join():
            return _joined(node, *below)
        case Union():
            shapes = {v.shape for v in below}
            return Validity(shapes.pop() if len(shapes) == 1 else Shape.CHOSEN, _sources(below))
        case Apply() | FinalState():
            return Validity(Shape.CHOSEN, _sources(below))
        case (
            Project()
            | Filter()
            | Explode()
            | Partition()
            | Recovery()
            | Number()
            | Enter()
            | Distinct()
            | Stitch()
            | Top()
            | StateScan()
            | RowScan()
        ):
            return below[0]
    assert_never(node)


def _shortened(node: AlterLifetime | Chop, below: Validity) -> Validity:
    """Return the validity of rows after a change: points that are cut stay points.

    All others are `CHOSEN`."""
    cuts = isinstance(node, Chop) or isinstance(node.change, ClipDuration)
    stays = cuts and below.shape is Shape.POINTS
    return below if stays else Validity(Shape.CHOSEN, below.sources)


def _of_windows(node: Aggregate | PartialAggregate, below: Validity) -> Validity:
    match node.window:
        case Hopping() | Session():
            return Validity(Shape.WINDOWS, below.sources)
        case SnapshotWindow() | CountWindow():  # inside an event's lifetime, or equal to it
            return below
    assert_never(node.window)


def _joined(node: Join, left: Validity, right: Validity) -> Validity:
    match node.kind:
        case "left" | "semi" | "anti" | "clip" | "asof" | "left_asof":
            return left
        case "right":
            return right
        case "full":
            shape = left.shape if left.shape is right.shape else Shape.CHOSEN
            return Validity(shape, left.sources | right.sources)
        case "inner":  # the intersection: of points, points
            for shape in (Shape.POINTS, Shape.WINDOWS):
                sides = [v for v in (left, right) if v.shape is shape]
                if sides:
                    return Validity(shape, _sources(sides))
            return Validity(Shape.CHOSEN, left.sources | right.sources)
    assert_never(node.kind)


def _sources(parts: Iterable[Validity]) -> frozenset[Source]:
    return frozenset(source for part in parts for source in part.sources)
