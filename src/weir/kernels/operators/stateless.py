"""Operators without state turn rows into rows and keep their order.

A `Transform` maps a batch to a batch and a CTI to a CTI. It keeps origins, except that EXPLODE
appends the element's number, and `Enter` inserts a number in front or between. So the order means
the same above and below.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from weir.events.batch import LATEST, OPEN, START, Batch, Int64s, ticks
from weir.kernels.expressions.evaluation import RowFailure
from weir.kernels.expressions.evaluator import compile_expression
from weir.kernels.expressions.failed_events import named_failure
from weir.kernels.operators.stateless_loops import BIT_NUMBERS, repeated, set_bits
from weir.loops.arrow_memory import array_of, numbers_of
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
from weir.plan.operators import AlterLifetime, Enter, Explode, Filter, Project, schema
from weir.plan.schema import Schema

_LAST_END = LATEST + 1
"""The end of a point at the last of all times."""


@dataclass(frozen=True, slots=True)
class Transform:
    """What a stateless operator does to rows and to CTIs."""

    rows: Callable[[Batch], Batch]
    cti: Callable[[int], int]


def make_transform(node: Project | Filter | Explode | AlterLifetime | Enter) -> Transform:
    below = schema(node.input)
    match node:
        case Project():
            return Transform(_project(node, below), _same)
        case Filter():
            return Transform(_filter(node, below), _same)
        case Explode():
            return Transform(_explode(below.index(node.column)), _same)
        case AlterLifetime():
            return _naming(_alter(node.change, below), below)
        case Enter():
            return Transform(_enter(node), _same)


def _naming(transform: Transform, below: Schema) -> Transform:
    """Wrap the transform so that the error of a failing row names the event."""

    def rows(batch: Batch) -> Batch:
        try:
            return transform.rows(batch)
        except RowFailure as failure:
            raise named_failure(failure, batch, below) from None

    return Transform(rows, transform.cti)


def _same(cti: int) -> int:
    return cti


def _project(node: Project, below: Schema) -> Callable[[Batch], Batch]:
    columns = [compile_expression(expr, below) for _, expr in node.columns]

    def project(batch: Batch) -> Batch:
        return Batch(batch.vs, batch.ve, tuple(c(batch) for c in columns), batch.origin)

    return project


def _filter(node: Filter, below: Schema) -> Callable[[Batch], Batch]:
    predicate = compile_expression(node.predicate, below)

    def keep(batch: Batch) -> Batch:
        mask = predicate(batch)
        if mask.null_count:
            mask = pc.fill_null(mask, False)
        if mask.true_count == len(batch):
            return batch
        return batch.take(true_rows(mask))

    return keep


def true_rows(mask: pa.BooleanArray) -> Int64s:
    """Return the positions at which a mask without NULLs is true."""
    bits = array_of(mask.buffers()[1], np.uint8)
    if mask.offset:
        bits = np.packbits(mask.to_numpy(zero_copy_only=False), bitorder="little")
    if len(bits) % 8:
        bits = np.concatenate((bits, np.zeros(-len(bits) % 8, dtype=np.uint8)))
    rows: Int64s = set_bits(bits.view(np.int64), BIT_NUMBERS, mask.true_count)
    return rows


def _explode(at: int) -> Callable[[Batch], Batch]:
    def explode(batch: Batch) -> Batch:
        lists = batch.columns[at]
        lengths = numbers_of(pc.fill_null(pc.list_value_length(lists), 0))
        elements = pc.list_flatten(lists)
        others = (*batch.columns[:at], *batch.columns[at + 1 :])
        origin: tuple[Int64s, ...] = ()
        if others or batch.origin:
            rows = np.repeat(np.arange(len(batch)), lengths)
            index = pa.array(rows)
            others = tuple(c.take(index) for c in others)
            origin = tuple(o.take(rows) for o in batch.origin)
        if origin:
            number = np.arange(len(elements)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
            origin = (*origin, number)
        vs, ve = repeated(batch.vs, batch.ve, lengths, len(elements))
        return Batch(vs, ve, (*others[:at], elements, *others[at:]), origin)

    return explode


def _enter(node: Enter) -> Callable[[Batch], Batch]:
    rows_before = node.behind or 0

    def enter(batch: Batch) -> Batch:
        if not batch.origin:  # not needed downstream
            return batch
        number = np.full(len(batch), node.number, dtype=np.int64)
        before, rest = batch.origin[:rows_before], batch.origin[rows_before:]
        padding = [np.full(len(batch), -1, dtype=np.int64)] * (node.depth - 1 - len(batch.origin))
        return Batch(batch.vs, batch.ve, batch.columns, (*before, number, *rest, *padding))

    return enter


def _alter(change: LifetimeChange, below: Schema) -> Transform:
    match change:
        case Duration(d):
            return Transform(_ends(lambda vs, ve: _moved(vs, d)), _same)
        case Extend(d):
            return Transform(_ends(lambda vs, ve: _moved(ve, d)), _same)
        case ClipDuration(d):
            return Transform(_ends(lambda vs, ve: np.minimum(ve, _moved(vs, d))), _same)
        case Point():
            return Transform(_ends(lambda vs, ve: vs + 1), _same)
        case Shift(d):
            return Transform(_lifetimes(lambda vs, ve: (_moved(vs, d), _moved(ve, d))), _shifted(d))
        case PointAtEnd():
            return Transform(_point_at_end, _same)
        case SetLifetime(shift, end):
            return Transform(_set_lifetime(shift, compile_expression(end, below)), _shifted(shift))
        case Quantize(size, hop, offset):
            down = _Grid(hop, offset)
            return Transform(
                _lifetimes(lambda vs, ve: (down.floor(vs), _quantized(vs, ve, size, down))),
                lambda c: c if c in (OPEN, START) else max(int(down.floor_one(c)), START),
            )
        case HopLifetime(size, hop, offset):
            grid = _Grid(hop, offset)
            return Transform(
                _hop_lifetime(size, grid),
                lambda c: c if c in (OPEN, START) else -((offset - c) // hop) * hop + offset,
            )


def _moved(times: Int64s, by: int) -> Int64s:
    """Return the times, later by `by`.

    A result that does not fit lies beyond all valid times, but is not `OPEN`."""
    if by < 0:
        return np.where(times == OPEN, OPEN, np.maximum(times, START - by) + by)
    return np.where(times == OPEN, OPEN, np.minimum(times, OPEN - 1 - by) + by)


def _shifted(by: int) -> Callable[[int], int]:
    def move(cti: int) -> int:
        return cti if cti in (OPEN, START) else max(min(cti + by, OPEN - 1), START)

    return move


def _with_lifetimes(batch: Batch, vs: Int64s, ve: Int64s) -> Batch:
    """Return the batch with these lifetimes, without the rows whose lifetime is empty."""
    _check_range(vs, (vs < -LATEST) | (vs > LATEST))
    _check_range(ve, (ve > _LAST_END) & (ve != OPEN))
    moved = Batch(vs, ve, batch.columns, batch.origin)
    kept = vs < ve
    return moved if kept.all() else moved.take(kept)


def _check_range(times: Int64s, beyond: npt.NDArray[np.bool_]) -> None:
    if beyond.any():
        row = int(np.argmax(beyond))
        raise RowFailure(row, f"overflow: a lifetime was moved to {times[row]}, beyond ±2⁶² ticks")


def _lifetimes(
    change: Callable[[Int64s, Int64s], tuple[Int64s, Int64s]],
) -> Callable[[Batch], Batch]:
    def alter(batch: Batch) -> Batch:
        return _with_lifetimes(batch, *change(batch.vs, batch.ve))

    return alter


def _ends(change: Callable[[Int64s, Int64s], Int64s]) -> Callable[[Batch], Batch]:
    return _lifetimes(lambda vs, ve: (vs, change(vs, ve)))


def _point_at_end(batch: Batch) -> Batch:
    never = batch.ve == OPEN  # such rows get an empty lifetime
    vs = np.where(never, batch.vs, batch.ve)
    return _with_lifetimes(batch, vs, np.where(never, vs, _moved(vs, 1)))


def _set_lifetime(shift: int, end: Callable[[Batch], pa.Array]) -> Callable[[Batch], Batch]:
    def alter(batch: Batch) -> Batch:
        ends = end(batch)
        ve = ticks(ends)
        _check_range(ve, (ve == OPEN) & np.asarray(ends.is_valid()))  # only NULL means open
        return _with_lifetimes(batch, _moved(batch.vs, shift), ve)

    return alter


@dataclass(frozen=True, slots=True)
class _Grid:
    """The points offset + k·hop."""

    hop: int
    offset: int

    def floor(self, times: Int64s) -> Int64s:
        return (times - self.offset) // self.hop * self.hop + self.offset

    def floor_one(self, time: int) -> int:
        return (time - self.offset) // self.hop * self.hop + self.offset

    def ceil(self, times: Int64s) -> Int64s:
        return -((self.offset - times) // self.hop) * self.hop + self.offset


def _quantized(vs: Int64s, ve: Int64s, size: int, grid: _Grid) -> Int64s:
    latest = np.maximum(_moved(np.where(ve == OPEN, 0, ve), grid.hop - 1), _moved(vs, size))
    ends = _Grid(grid.hop, grid.offset + size).floor(latest)
    return np.where(ve == OPEN, OPEN, ends)


def _hop_lifetime(size: int, grid: _Grid) -> Callable[[Batch], Batch]:
    def alter(batch: Batch) -> Batch:
        start = grid.ceil(batch.vs)
        if grid.hop <= size:
            # An end that is rejected later is kept low enough for the grid's next point.
            last = np.minimum(_moved(batch.vs, size), _LAST_END + 1)
            return _with_lifetimes(batch, start, grid.ceil(last))
        inside = start - batch.vs < size
        return _with_lifetimes(batch, start, np.where(inside, start + size, start))

    return alter
