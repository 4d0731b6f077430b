"""The methods of a stream that change lifetimes; each is a form of WITH in a script."""

from __future__ import annotations

from typing import Self

from weir.plan.advice.plan_warnings import warn_of_plain
from weir.plan.binding.lifetimes import BoundChange, change_lifetime
from weir.plan.binding.query import ChopChange, StitchChange
from weir.plan.durations import Ticks, parse_duration
from weir.plan.lifetime_changes import (
    ClipDuration,
    Duration,
    Extend,
    HopLifetime,
    Point,
    PointAtEnd,
    Quantize,
    Shift,
)
from weir.plan.operators import Node


class LifetimeMethods:
    """The methods of a stream that change lifetimes.

    The stream defines how to make a stream of another plan."""

    __slots__ = ()

    node: Node

    def _keeping(self, node: Node) -> Self:
        """Return the stream of a plan, under the same name."""
        raise NotImplementedError

    def duration(self, d: Ticks) -> Self:
        """Make every row valid for `d` from its start, as DURATION.

        >>> from weir import collect, stream
        >>> a = stream("A", {"vs": "BIGINT", "ve": "BIGINT", "v": "BIGINT"}, "a.jsonl", vs="vs")
        >>> collect(a.duration(3), inputs={"A": [{"vs": 1, "ve": 9, "v": 5}]}).to_pylist()
        [{'vs': 1, 've': 4, 'v': 5}]
        """
        return self._change(Duration(*self._ticks("duration", d)))

    def shift(self, d: Ticks) -> Self:
        """Move both ends of lifetimes by `d`, as SHIFT.

        >>> from weir import collect, stream
        >>> a = stream("A", {"vs": "BIGINT", "ve": "BIGINT", "v": "BIGINT"}, "a.jsonl", vs="vs")
        >>> collect(a.shift(3), inputs={"A": [{"vs": 1, "ve": 9, "v": 5}]}).to_pylist()
        [{'vs': 4, 've': 12, 'v': 5}]
        """
        return self._change(Shift(*self._ticks("shift", d)))

    def extend(self, d: Ticks) -> Self:
        """Move the ends of lifetimes by `d`, which may be negative, as EXTEND.

        >>> from weir import collect, stream
        >>> a = stream("A", {"vs": "BIGINT", "ve": "BIGINT", "v": "BIGINT"}, "a.jsonl", vs="vs")
        >>> collect(a.extend(3), inputs={"A": [{"vs": 1, "ve": 9, "v": 5}]}).to_pylist()
        [{'vs': 1, 've': 12, 'v': 5}]
        """
        return self._change(Extend(*self._ticks("extend", d)))

    def clip_duration(self, d: Ticks) -> Self:
        """Limit each row's lifetime to `d`, as CLIP_DURATION.

        >>> from weir import collect, stream
        >>> a = stream("A", {"vs": "BIGINT", "ve": "BIGINT", "v": "BIGINT"}, "a.jsonl", vs="vs")
        >>> collect(a.clip_duration(3), inputs={"A": [{"vs": 1, "ve": 9, "v": 5}]}).to_pylist()
        [{'vs': 1, 've': 4, 'v': 5}]
        """
        return self._change(ClipDuration(*self._ticks("clip_duration", d)))

    def point(self) -> Self:
        """Make every row a point at its start, as POINT.

        >>> from weir import collect, stream
        >>> a = stream("A", {"vs": "BIGINT", "ve": "BIGINT", "v": "BIGINT"}, "a.jsonl", vs="vs")
        >>> collect(a.point(), inputs={"A": [{"vs": 1, "ve": 9, "v": 5}]}).to_pylist()
        [{'vs': 1, 've': 2, 'v': 5}]
        """
        return self._change(Point())

    def point_at_end(self) -> Self:
        """Make every row a point at its end, as POINT_AT_END; open rows are dropped.

        >>> from weir import collect, stream
        >>> a = stream("A", {"vs": "BIGINT", "ve": "BIGINT", "v": "BIGINT"}, "a.jsonl", vs="vs")
        >>> collect(a.point_at_end(), inputs={"A": [{"vs": 1, "ve": 9, "v": 5}]}).to_pylist()
        [{'vs': 9, 've': 10, 'v': 5}]
        """
        return self._change(PointAtEnd())

    def quantize(self, size: Ticks, hop: Ticks, offset: Ticks = 0) -> Self:
        """Move both ends of lifetimes to the grid of hopping windows, as QUANTIZE.

        Each row is then valid as long as the windows that it falls into.

        >>> from weir import collect, stream
        >>> a = stream("A", {"vs": "BIGINT", "ve": "BIGINT", "v": "BIGINT"}, "a.jsonl", vs="vs")
        >>> collect(a.quantize(10, 5), inputs={"A": [{"vs": 1, "ve": 9, "v": 5}]}).to_pylist()
        [{'vs': 0, 've': 10, 'v': 5}]
        """
        return self._change(Quantize(*self._ticks("quantize", size, hop, offset)))

    def hop_lifetime(self, size: Ticks, hop: Ticks, offset: Ticks = 0) -> Self:
        """Make rows valid between grid points, as HOP_LIFETIME.

        A row is then valid from the grid point at or after its start up to the one at or after its
        start + `size`.

        >>> from weir import collect, stream
        >>> a = stream("A", {"vs": "BIGINT", "ve": "BIGINT", "v": "BIGINT"}, "a.jsonl", vs="vs")
        >>> collect(a.hop_lifetime(10, 5), inputs={"A": [{"vs": 1, "ve": 9, "v": 5}]}).to_pylist()
        [{'vs': 5, 've': 15, 'v': 5}]
        """
        return self._change(HopLifetime(*self._ticks("hop_lifetime", size, hop, offset)))

    def chop(self, period: Ticks, offset: Ticks = 0) -> Self:
        """Cut lifetimes at every point of a grid, as CHOP.

        >>> from weir import collect, stream
        >>> a = stream("A", {"vs": "BIGINT", "ve": "BIGINT", "v": "BIGINT"}, "a.jsonl", vs="vs")
        >>> collect(a.chop(5), inputs={"A": [{"vs": 1, "ve": 9, "v": 5}]}).to_pylist()
        [{'vs': 1, 've': 5, 'v': 5}, {'vs': 5, 've': 9, 'v': 5}]
        """
        return self._change(ChopChange(*self._ticks("chop", period, offset)))

    def stitch(self) -> Self:
        """Combine equal rows into one where one ends exactly when the next starts, as STITCH.

        >>> from weir import collect, stream
        >>> a = stream("A", {"vs": "BIGINT", "ve": "BIGINT", "v": "BIGINT"}, "a.jsonl", vs="vs")
        >>> rows = [{"vs": 1, "ve": 3, "v": 5}, {"vs": 3, "ve": 7, "v": 5}]
        >>> collect(a.stitch(), inputs={"A": rows}).to_pylist()
        [{'vs': 1, 've': 7, 'v': 5}]
        """
        return self._change(StitchChange())

    def _ticks(self, method: str, *durations: Ticks) -> list[int]:
        warn_of_plain(method, durations, [self.node])
        return [parse_duration(value) for value in durations]

    def _change(self, change: BoundChange) -> Self:
        return self._keeping(change_lifetime(self.node, change))
