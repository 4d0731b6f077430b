"""Tells what a plan shows about when its rows are valid: as points, as windows, or otherwise.

Rows that nobody gave a lifetime are points, and rows of windows last as long as their window. Two
such streams overlap only where their times happen to fall together, unless they go back to the same
input: `doubts.py` warns of joins that count on it. Where the program sets lifetimes itself
(`ve`, `lifetime`, DURATION, POINT and the like), it is taken at its word.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from typing import assert_never

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
)
from weir.plan.windows import CountWindow, Hopping, Session, SnapshotWindow


class Shape(Enum):
    """A `Shape` is how long rows are valid."""

    POINTS = "points"
    """For one tick, since nothing else was said."""
    WINDOWS = "windows"
    """For a window that is laid over other rows."""
    CHOSEN = "chosen"
    """For as long as the program or the data say."""


@dataclass(frozen=True, slots=True)
class Validity:
    """A `Validity` is the shape of rows' lifetimes, and the inputs that their times come from."""

    shape: Shape
    sources: frozenset[Source]

    @property
    def names(self) -> str:
        """Name the inputs, in the order of the program."""
        return " and ".join(s.name for s in sorted(self.sources, key=lambda s: (s.index, s.name)))

    @property
    def query(self) -> str:
        """Name the stream to write in a query; several inputs have no name of their own."""
        return self.names if len(self.sources) == 1 else "…"


def validity_of(node: Node) -> Validity:
    """Return when the rows of a plan are valid, as far as it shows."""
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
            Project() | Filter() | Explode() | Partition() | Recovery() | Number() | Enter()
            | Distinct() | Stitch() | Top() | StateScan() | RowScan()
        ):  # fmt: skip
            return below[0]
    assert_never(node)


def _shortened(node: AlterLifetime | Chop, below: Validity) -> Validity:
    """Points that are cut are points; every other lifetime is the program's own."""
    cuts = isinstance(node, Chop) or isinstance(node.change, ClipDuration)
    stays = cuts and below.shape is Shape.POINTS
    return below if stays else Validity(Shape.CHOSEN, below.sources)


def _of_windows(node: Aggregate | PartialAggregate, below: Validity) -> Validity:
    match node.window:
        case Hopping() | Session():
            return Validity(Shape.WINDOWS, below.sources)
        case SnapshotWindow() | CountWindow():  # inside an event's lifetime, or equal to one
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
