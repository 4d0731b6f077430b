"""The operators of a stage as one vertex runs them: merges, kernels and transforms in a row.

`push` hands in rows and a CTI of one input stream; `pull` returns what has come out since the last
call and the CTI of the output. `kernels/kernel_table.py` chooses the kernels of operators with
state; `_steps` here makes the transforms of the others.

A chain that is rebuilt from its input (`rebuildable_vertex.py`) rehearses: until `perform` is
called, each operator with state drops the result rows that start before a time of its own, because
it has not seen all the rows that they are made of.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from weir.errors import EventFailed
from weir.events.batch import START, Batch, Int64s, concat_batches, empty_batch
from weir.kernels.kernel import Kernel, Tables
from weir.kernels.kernel_table import make_kernel
from weir.kernels.operators.stateless import Transform, make_transform
from weir.kernels.operators.time_merge import PortShape, TimeMerge, with_branch, with_depth
from weir.plan.explain.explanation import operator_text
from weir.plan.operators import (
    AlterLifetime,
    Enter,
    Explode,
    Filter,
    Node,
    Partition,
    Project,
    Recovery,
    Source,
    schema,
)
from weir.plan.origins import input_row
from weir.plan.stages import Branch, Stage, stage_schema


class Chain:
    """A chain runs the operators of one stage, one after the other, on rows that are pushed in."""

    def __init__(self, stage: Stage, origins: Mapping[Node, int], streams: Sequence[int]) -> None:
        """`origins` has the depth of each node's origins; `streams[i]` is the port of the first
        operator that input stream i belongs to."""
        self._stage = stage
        self._steps: list[_Stateful | _Stateless] = []
        """What is run, in order; an operator that only routes rows has no step."""
        self._operators: list[int] = []
        """For each step, the index of its operator in the stage."""
        for index, operator in enumerate(stage.operators):
            steps = _steps(operator, origins, streams if index == 0 else (0,))
            self._steps += steps
            self._operators += [index] * len(steps)
        self._ports = tuple(streams)
        self._inputs = [(schema(n).types, origins[n]) for n in _read_by(stage.operators[0])]
        self._nothing: dict[int, Batch] = {}
        """No rows, by port."""
        self._types = stage_schema(stage).types
        self._out: list[Batch] = []
        """Rows that have come out since the last `pull`."""
        self._cti = START
        """The CTI of the output."""

    @property
    def state_rows(self) -> int:
        return sum(s.state_rows for s in self._steps)

    def wanted(self, most: int) -> Sequence[int]:
        """Say which input streams to read next; see `TimeMerge.wanted`."""
        first = self._steps[0] if self._steps else None
        if isinstance(first, _Stateful):
            return first.wanted(most)
        return range(len(self._ports))

    def waiting(self, cti: int) -> Int64s:
        """List the starts below this CTI of rows that wait in the first merge; see
        `TimeMerge.waiting`."""
        merges = (step for step in self._steps if isinstance(step, _Stateful))
        first = next(merges, None)
        return first.waiting(cti) if first is not None else np.empty(0, dtype=np.int64)

    def push(self, stream: int, rows: Batch, cti: int) -> None:
        traced, since = rows, 0
        for index, step in enumerate(self._steps):
            try:
                out = step.advance(stream if index == 0 else 0, rows, cti)
            except EventFailed as error:
                self._trace(error, index, traced, since)
                raise
            if out is None:
                return
            rows, cti = out
            if isinstance(step, _Stateful):
                traced, since = rows, index + 1
                rows = step.asked(rows)
        if len(rows):
            self._out.append(rows)
        self._cti = max(self._cti, cti)

    def _trace(self, error: EventFailed, index: int, traced: Batch, since: int) -> None:
        """Name the row of a source that an error of a step is about; `traced` are the rows that the
        step `since` got, with all of their origins."""
        row = error.row
        if row is None or error.input_row is not None:
            return
        operator, origin = self._stage.operators[self._operators[index]], row.origin
        between = [s for s in self._steps[since:index] if isinstance(s, _Stateless)]
        if not origin and len(between) == index - since:
            # Nobody asked for origins, but the source gave them, or a scan kept them.
            for step in between:
                traced = step.transformed(traced)
            origin = tuple(int(column[row.index]) for column in traced.origin)
        error.input_row = input_row(_read_by(operator)[row.port], origin)

    def claim(self, stream: int, cti: int) -> None:
        """Push a CTI of an input stream that comes without rows."""
        port = self._ports[stream]
        if port not in self._nothing:
            types, depth = self._inputs[port]
            self._nothing[port] = empty_batch(types, depth)
        self.push(stream, self._nothing[port], cti)

    def pull(self) -> tuple[Batch | None, int]:
        """Return the rows that came out since the last call (None: no rows) and the output CTI."""
        out, self._out = self._out, []
        return (concat_batches(out) if out else None), self._cti

    # --- rehearsing --------------------------------------------------------------------------

    def rehearse(self, right_from: Sequence[int]) -> None:
        """Begin to rehearse: each operator drops results that start before its time in
        `right_from`."""
        for step, operator in zip(self._steps, self._operators, strict=True):
            step.right_from(right_from[operator])

    def perform(self) -> None:
        """End the rehearsal: from now on every result row comes out."""
        for step in self._steps:
            step.right_from(START)

    def stands_at(self) -> list[int]:
        """List the time up to which each operator with state has taken in its input, then the
        CTI of the output."""
        merges = [s.reached for s in self._steps if isinstance(s, _Stateful)]
        return [*merges, self._cti]

    def why_elsewhere(self, before: Sequence[int]) -> str | None:
        """Say which operator stands elsewhere than it did `before` (a former `stands_at`), and
        where; None: all stand where they stood."""
        indices = [i for i, s in enumerate(self._steps) if isinstance(s, _Stateful)]
        for index, was, now in zip((*indices, None), before, self.stands_at(), strict=True):
            if was != now:
                who = "its output" if index is None else self._text(index)
                return f"{who} had come to the event time {was}, built again it comes to {now}"
        return None

    def _text(self, step: int) -> str:
        return operator_text(self._stage.operators[self._operators[step]])

    # --- snapshots ---------------------------------------------------------------------------

    def snapshot(self) -> Tables:
        progress = pa.table({"cti": pa.array([self._cti], pa.int64())})
        tables = {"progress": progress}
        for i, step in enumerate(self._steps):
            tables |= {f"{i}.{name}": table for name, table in step.snapshot().items()}
        return tables

    def load(self, tables: Mapping[str, pa.Table]) -> None:
        self._cti = tables["progress"].column(0)[0].as_py()
        for i, step in enumerate(self._steps):
            prefix = f"{i}."
            step.load(
                {n.removeprefix(prefix): t for n, t in tables.items() if n.startswith(prefix)}
            )

    def empty(self) -> Batch:
        return empty_batch(self._types)


class _Stateless:
    """A step without state: a transform, or a bare adjustment of origins."""

    state_rows = 0

    def __init__(self, transform: Transform | None, depth: int, branch: Branch | None) -> None:
        self._transform, self._depth, self._branch = transform, depth, branch

    def transformed(self, rows: Batch) -> Batch:
        """Return what becomes of rows, with all of their origins."""
        return rows if self._transform is None else self._transform.rows(rows)

    def advance(self, stream: int, rows: Batch, cti: int) -> tuple[Batch, int]:
        if self._transform is not None:
            rows = self._transform.rows(rows)
            cti = self._transform.cti(cti)
        if self._branch is not None:
            return with_branch(rows, self._branch.depth, self._branch.number), cti
        return (with_depth(rows, 0) if self._depth == 0 else rows), cti

    def right_from(self, time: int) -> None:
        pass

    def snapshot(self) -> Tables:
        return {}

    def load(self, tables: Mapping[str, pa.Table]) -> None:
        pass


class _Stateful:
    """A step with state: a merge and the kernel after it; `depth` is that of its rows' origins."""

    def __init__(self, merge: TimeMerge, kernel: Kernel, depth: int) -> None:
        self._merge, self._kernel, self._depth = merge, kernel, depth

    @property
    def reached(self) -> int:
        return self._merge.released

    @property
    def state_rows(self) -> int:
        return self._merge.state_rows + self._kernel.state_rows

    def wanted(self, most: int) -> Sequence[int]:
        return self._merge.wanted(most)

    def waiting(self, cti: int) -> Int64s:
        return self._merge.waiting(cti)

    def advance(self, stream: int, rows: Batch, cti: int) -> tuple[Batch, int] | None:
        self._merge.push(stream, rows, cti)
        released = self._merge.release()
        if released is None:
            return None
        out, reached = self._kernel.step(*released)
        if self._kernel.right_from == START or not len(out):
            return out, reached
        return out.take(out.vs >= self._kernel.right_from), reached

    def asked(self, rows: Batch) -> Batch:
        """Return rows of it without origins that a scan keeps and nobody asks for."""
        return rows if self._depth else with_depth(rows, 0)

    def right_from(self, time: int) -> None:
        self._kernel.right_from = time

    def snapshot(self) -> Tables:
        tables = {f"merge.{n}": t for n, t in self._merge.snapshot().items()}
        return tables | {f"kernel.{n}": t for n, t in self._kernel.snapshot().items()}

    def load(self, tables: Mapping[str, pa.Table]) -> None:
        for name, part in (("merge.", self._merge), ("kernel.", self._kernel)):
            part.load({n.removeprefix(name): t for n, t in tables.items() if n.startswith(name)})


def _read_by(operator: Node | Branch) -> tuple[Node, ...]:
    return (operator.input,) if isinstance(operator, Branch) else operator.inputs


def _steps(
    operator: Node | Branch, origins: Mapping[Node, int], streams: Sequence[int]
) -> list[_Stateful | _Stateless]:
    match operator:
        case Branch():
            return [_Stateless(None, operator.depth, operator)] if operator.depth else []
        case Partition() | Recovery():
            return []
        case Source():
            return [_Stateless(None, origins[operator], None)]
        case Project() | Filter() | Explode() | AlterLifetime() | Enter():
            return [_Stateless(make_transform(operator), origins[operator], None)]
    shapes = [
        PortShape(schema(below), origins[below], operator.sees_order(port))
        for port, below in enumerate(operator.inputs)
    ]
    merge = TimeMerge(shapes, streams)
    return [_Stateful(merge, make_kernel(operator), origins[operator])]
