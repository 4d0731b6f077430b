"""Drives one kernel by hand, without a runner.

`drive` gives a stateful kernel rows in merge order, a CTI at a time. It keeps the caller's side
of `weir.kernels.kernel` and checks the kernel's: no row comes out below a CTI that was given
before it, and CTIs only grow. `transform` does the same for an operator without state.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from oracle import OPEN, Row
from oracle.rows import in_order
from weir.events import batch as events
from weir.events.batch import Batch
from weir.kernels.kernel import Kernel
from weir.kernels.operators.aggregate import AggregateKernel
from weir.kernels.operators.apply import ApplyKernel
from weir.kernels.operators.asof import AsofKernel
from weir.kernels.operators.chop import ChopKernel
from weir.kernels.operators.clip import ClipKernel
from weir.kernels.operators.distinct import DistinctKernel
from weir.kernels.operators.joins import JoinKernel
from weir.kernels.operators.presence import PresenceKernel
from weir.kernels.operators.stateless import make_transform
from weir.kernels.operators.stitch import StitchKernel
from weir.kernels.operators.top import TopOfInstant, TopOfWindow
from weir.plan.operators import (
    Aggregate,
    AlterLifetime,
    Apply,
    Chop,
    Distinct,
    Explode,
    Filter,
    Join,
    Node,
    Project,
    Stitch,
    Top,
    schema,
)
from weir.plan.schema import Schema

Stateless = Project | Filter | Explode | AlterLifetime


def make_kernel(node: Node) -> Kernel | None:
    """A fresh kernel, or None for an operator without state."""
    match node:
        case Aggregate():
            return AggregateKernel(node)
        case Join(kind="asof" | "left_asof"):
            return AsofKernel(node)
        case Join(kind="clip"):
            return ClipKernel(node)
        case Join(kind="semi" | "anti", condition=None):
            return PresenceKernel(node)
        case Join():
            return JoinKernel(node)
        case Chop():
            return ChopKernel(node)
        case Stitch():
            return StitchKernel(node)
        case Distinct():
            return DistinctKernel(node)
        case Apply():
            return ApplyKernel(node)
        case Top(scope="window"):
            return TopOfWindow(node)
        case Top():
            return TopOfInstant(node)
    return None


@dataclass(frozen=True, slots=True)
class Schedule:
    """The CTIs at which the kernel is stepped, and the steps after which it is replaced by a
    fresh one that loads its snapshot."""

    ctis: tuple[int, ...]
    reloads: frozenset[int] = frozenset()


def drive(node: Node, inputs: Sequence[Sequence[Row]], schedule: Schedule) -> list[Row]:
    """Everything the kernel gives, in its order."""
    kernel = make_kernel(node)
    assert kernel is not None
    shapes = [schema(i) for i in node.inputs]
    ordered = [in_order(rows) for rows in inputs]
    result: list[Row] = []
    before, claimed = events.START, events.START
    for number, cti in enumerate((*schedule.ctis, events.OPEN)):
        slices = [
            to_batch([r for r in rows if before <= r.vs < cti], shape, _depth(node, rows))
            for rows, shape in zip(ordered, shapes, strict=True)
        ]
        batch, out = kernel.step(slices, cti)
        rows = to_rows(batch, schema(node))
        assert all(r.vs >= claimed for r in rows), f"a row below the CTI {claimed}: {rows}"
        assert out >= claimed, f"the CTI went back from {claimed} to {out}"
        before, claimed = cti, out
        result += rows
        if number in schedule.reloads:
            tables = kernel.snapshot()
            kernel = make_kernel(node)
            assert kernel is not None
            kernel.load(tables)
    return result


def transform(node: Node, rows: Sequence[Row], ctis: Sequence[int]) -> list[Row]:
    """What a stateless operator makes of the rows, handed over in pieces between the CTIs."""
    assert isinstance(node, Stateless)
    operator = make_transform(node)
    shape, depth = schema(node.input), _origin_depth(rows)
    result: list[Row] = []
    before = events.START
    for cti in (*ctis, events.OPEN):
        piece = [r for r in in_order(rows) if before <= r.vs < cti]
        made = to_rows(operator.rows(to_batch(piece, shape, depth)), schema(node))
        claimed = operator.cti(before)
        assert all(r.vs >= claimed for r in made), f"a row below the CTI {claimed}: {made}"
        before = cti
        result += made
    return result


def _depth(node: Node, rows: Sequence[Row]) -> int:
    """How many origin columns rows have. Those of one input stand in merge order, which is all
    a kernel needs; only COMBINE brings two inputs into one order."""
    combines = isinstance(node, Apply) and len(node.inputs) == 2
    return _origin_depth(rows) if combines else 0


def _origin_depth(rows: Sequence[Row]) -> int:
    # Source and partition are one number.
    return max((len(r.origin) - 1 for r in rows if r.origin), default=0)


def to_batch(rows: Sequence[Row], shape: Schema, depth: int = 0) -> Batch:
    """Rows as a batch with so many origin columns."""
    columns = tuple(pa.array([r.payload[n] for r in rows], t) for n, t in shape.columns)
    return Batch(
        np.array([r.vs for r in rows], dtype=np.int64),
        np.array([events.OPEN if r.ve == OPEN else r.ve for r in rows], dtype=np.int64),
        columns,
        _origins(rows, depth),
    )


def _origins(rows: Sequence[Row], depth: int) -> tuple[np.ndarray, ...]:
    missing = (events.NO_ORIGIN, *[-1] * (depth - 1))
    flat = [missing if r.origin is None else _flat(r.origin) for r in rows]
    return tuple(np.array([o[i] for o in flat], dtype=np.int64) for i in range(depth))


def _flat(origin: tuple[int, ...]) -> tuple[int, ...]:
    return (origin[0] * 1000 + origin[1], *origin[2:])


def to_rows(batch: Batch, shape: Schema) -> list[Row]:
    columns = [c.to_pylist() for c in batch.columns]
    for column, dtype in zip(batch.columns, shape.types, strict=True):
        assert column.type == dtype, f"a column of {column.type} where the plan says {dtype}"
    return [
        Row(vs, OPEN if ve == events.OPEN else ve, dict(zip(shape.names, values, strict=True)))
        for vs, ve, *values in zip(batch.vs.tolist(), batch.ve.tolist(), *columns, strict=True)
    ]
