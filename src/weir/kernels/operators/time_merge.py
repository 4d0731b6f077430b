"""Merges several input streams into complete slices of time, in the total order.

Contract
1. `push` takes rows and the CTI of one input stream; rows wait until the smallest CTI of all
   streams has passed them. `release` returns, for each port, all rows with vs below that CTI that
   were not released before. They are ordered by (vs, origin, ve, payload) if the port needs that
   order, else by vs.
2. The output depends only on the rows and on the CTI at which they are released. It does not depend
   on which stream was pushed first, or on how rows were cut into batches.
3. Rows wait in a few sorted runs; a release touches only the rows that it returns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from weir.events.batch import NO_ORIGIN, START, Batch, Int64s, concat_batches, empty_batch
from weir.events.order import sort_batch, taken
from weir.kernels.kernel import Tables, rows_table, table_rows
from weir.plan.schema import Schema


@dataclass(frozen=True, slots=True)
class PortShape:
    """The types of a port's rows, and whether they must come out in the total order.

    `origins` is the depth of their origins (0: origins are not needed).
    """

    schema: Schema
    origins: int
    ordered: bool


class TimeMerge:
    """Keeps rows until the smallest CTI of all streams has passed them."""

    def __init__(self, ports: Sequence[PortShape], streams: Sequence[int]) -> None:
        """Make a merge; `streams[i]` is the port of stream i."""
        self._ports = [_Port(shape) for shape in ports]
        self._port_of = tuple(streams)
        self._ctis = [START] * len(streams)
        self._released = START

    @property
    def state_rows(self) -> int:
        return sum(len(p) for p in self._ports)

    @property
    def released(self) -> int:
        """Return the CTI up to which rows have been released."""
        return self._released

    def wanted(self, most: int) -> Sequence[int]:
        """Return the streams to read next.

        These are all streams. But while more than `most` rows wait, they are only the streams that
        the rows wait for: later rows had better wait in their stream than here.
        """
        streams = range(len(self._ctis))
        if self.state_rows <= most:
            return streams
        least = min(self._ctis)
        return [stream for stream in streams if self._ctis[stream] == least]

    def waiting(self, cti: int) -> Int64s:
        """Return the starts below this CTI of waiting rows, each once, in order."""
        starts = [run.vs[run.vs < cti] for port in self._ports for run in port.runs]
        return np.unique(np.concatenate(starts)) if starts else np.empty(0, dtype=np.int64)

    def push(self, stream: int, batch: Batch, cti: int) -> None:
        if len(batch):
            self._ports[self._port_of[stream]].add(batch)
        self._ctis[stream] = max(self._ctis[stream], cti)

    def release(self) -> tuple[list[Batch], int] | None:
        """Return the next slice of every port, and its CTI; None if the CTI has not advanced."""
        cti = min(self._ctis)
        if cti <= self._released:
            return None
        self._released = cti
        return [port.take_below(cti) for port in self._ports], cti

    def snapshot(self) -> Tables:
        tables = {f"port{i}": port.table() for i, port in enumerate(self._ports)}
        ctis = pa.array(self._ctis, pa.int64())
        tables["ctis"] = pa.table({"cti": ctis})
        tables["released"] = pa.table({"cti": pa.array([self._released], pa.int64())})
        return tables

    def load(self, tables: Mapping[str, pa.Table]) -> None:
        for i, port in enumerate(self._ports):
            batch, _ = table_rows(tables[f"port{i}"])
            if len(batch):
                port.add(batch)
        self._ctis = tables["ctis"].column(0).to_pylist()
        self._released = tables["released"].column(0).to_pylist()[0]


class _Port:
    """Keeps waiting rows in runs sorted by vs, each at least twice as long as the next."""

    def __init__(self, shape: PortShape) -> None:
        self._shape = shape
        self._runs: list[Batch] = []

    @property
    def runs(self) -> Sequence[Batch]:
        return self._runs

    def __len__(self) -> int:
        return sum(len(run) for run in self._runs)

    def add(self, batch: Batch) -> None:
        run = _by_start(with_depth(batch, self._shape.origins))
        while self._runs and len(self._runs[-1]) < 2 * len(run):
            run = _by_start(concat_batches([self._runs.pop(), run]))
        self._runs.append(run)

    def take_below(self, cti: int) -> Batch:
        due: list[Batch] = []
        rest: list[Batch] = []
        for run in self._runs:
            cut = int(np.searchsorted(run.vs, cti, side="left"))
            if cut:
                due.append(run.slice(0, cut))
            if cut < len(run):
                rest.append(run.slice(cut, len(run)))
        self._runs = rest
        if not due:
            return empty_batch(self._shape.schema.types, self._shape.origins)
        rows = concat_batches(due)
        if not self._shape.ordered:
            return _by_start(rows)
        return taken(rows, sort_batch(rows, by_origin=True, exact=True))

    def table(self) -> pa.Table:
        shape = self._shape
        rows = self._runs or [empty_batch(shape.schema.types, shape.origins)]
        return rows_table(concat_batches(rows), shape.schema.names)


def _by_start(batch: Batch) -> Batch:
    if bool((batch.vs[1:] >= batch.vs[:-1]).all()):
        return batch
    return batch.take(np.argsort(batch.vs, kind="stable"))


def with_depth(batch: Batch, depth: int) -> Batch:
    """Return the batch with exactly this many origin columns.

    A shorter origin sorts before the longer ones that it begins; a row without one sorts after all.
    """
    have = len(batch.origin)
    if have == depth:
        return batch
    if depth == 0:
        return Batch(batch.vs, batch.ve, batch.columns)
    missing = [np.full(len(batch), -1, dtype=np.int64) for _ in range(depth - have)]
    if have == 0:
        missing[0] = np.full(len(batch), NO_ORIGIN, dtype=np.int64)
    return Batch(batch.vs, batch.ve, batch.columns, (*batch.origin, *missing))


def with_branch(batch: Batch, depth: int, branch: int) -> Batch:
    """Return the batch as branch number `branch` of a union whose inputs have this origin depth."""
    deeper = with_depth(batch, depth)
    if not batch.origin:
        return with_depth(batch, depth + 1) if depth else batch
    return Batch(
        deeper.vs,
        deeper.ve,
        deeper.columns,
        (*deeper.origin, np.full(len(batch), branch, dtype=np.int64)),
    )
