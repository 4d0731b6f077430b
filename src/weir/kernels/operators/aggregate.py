"""Runs every windowed aggregation: one kernel joins groups, panes, measures and a windower.

Tables of a snapshot, by name:
    groups      key columns, and what the windower keeps of each group
    values<i>   key columns, interval, and what measure i keeps of each pane
    progress    one row: the CTI, and how many rows have arrived
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pyarrow as pa

from weir.errors import RunError, SnapshotCorrupt
from weir.events.batch import START, Batch, Int64s, empty_batch
from weir.kernels.aggregates.distinct_counts import DistinctMeasure
from weir.kernels.aggregates.group_failures import GroupFailure, OperationFailure, located
from weir.kernels.aggregates.lanes import ADDITIVE
from weir.kernels.aggregates.measures import LaneMeasure, Measure
from weir.kernels.aggregates.ordered import CollectMeasure, OrderedMeasure
from weir.kernels.aggregates.user_aggregate import FoldedMeasure, UserMeasure
from weir.kernels.expressions.evaluation import RowFailure, shown_value
from weir.kernels.kernel import Tables, emitted
from weir.kernels.operators.counter_windows import CountWindows, SessionWindows
from weir.kernels.operators.partial import PaneWindows
from weir.kernels.operators.windows import (
    NO_RESULTS,
    Due,
    HoppingWindows,
    SnapshotWindows,
    Windower,
    results_from,
)
from weir.kernels.structures.keys_loops import count_down, count_up
from weir.kernels.structures.panes import Groups, Operations, Panes, Results
from weir.kernels.structures.panes_loops import EMIT, ENTER
from weir.loops.arrow_memory import numbers_of
from weir.plan.aggregations import Aggregation
from weir.plan.operators import Aggregate, PartialAggregate, schema
from weir.plan.schema import Schema
from weir.plan.windows import CountWindow, Hopping, Session, SnapshotWindow


class AggregateKernel:
    """Computes the aggregates of each group and window (see `kernel.Kernel`)."""

    right_from = START

    def __init__(self, node: Aggregate | PartialAggregate) -> None:
        below, self._schema = schema(node.input), schema(node)
        keys = [below.index(k) for k in node.keys]
        self._key_names = node.keys
        self._groups = Groups(keys, [below.types[i] for i in keys])
        self._panes = Panes()
        self._windows = _windower(node, self._panes)
        self._measures, self._order = _measures(
            [a for _, a in node.aggregates], below, self._panes, self._wanted_from
        )
        self._arrivals = 0
        self._cti = START

    @property
    def state_rows(self) -> int:
        return max(len(self._groups), len(self._panes)) + sum(m.state_rows for m in self._measures)

    def step(self, slices: Sequence[Batch], cti: int) -> tuple[Batch, int]:
        (batch,) = slices
        if len(batch):
            self._take_in(batch)
        due = self._due(cti)
        if self.right_from != START:
            due = results_from(due, self.right_from)
        self._cti = cti
        if not len(due.operations.kinds):  # most steps of a long window
            return empty_batch(self._schema.types), self._windows.output_cti(cti)
        columns: list[pa.Array] = []
        for measure in self._measures:
            columns += self._replayed(measure, due.operations, due.results)
        rows = due.results
        if not len(rows.vs):
            self._let_go(due.gone)
            return empty_batch(self._schema.types), self._windows.output_cti(cti)
        groups = due.operations.groups[due.operations.kinds == EMIT]
        payload = self._groups.keys(groups) + tuple(columns[i] for i in self._order)
        if len(rows.emit) != len(groups):
            index = pa.array(rows.emit)
            payload = tuple(c.take(index) for c in payload)
        result = emitted([(rows.final, Batch(rows.vs, rows.ve, payload))])
        self._let_go(due.gone)
        return result, self._windows.output_cti(cti)

    def _take_in(self, batch: Batch) -> None:
        groups = self._groups.encode(batch)
        self._windows.grow(self._groups.capacity)
        arrivals = np.arange(self._arrivals, self._arrivals + len(batch))
        self._arrivals += len(batch)
        starts, ends = self._windows.assign(batch, groups)
        inside = starts < ends
        if not inside.all():
            outside = np.unique(groups[~inside])
            batch = batch.take(inside)
            groups, arrivals = groups[inside], arrivals[inside]
            starts, ends = starts[inside], ends[inside]
            outside = np.setdiff1d(outside, groups)
            self._forget(outside[self._groups.members[outside] == 0])
        panes, new = self._panes.encode(groups, starts, ends)
        count_up(self._panes.group[new], self._groups.members)
        for measure in self._measures:
            measure.grow(self._panes.capacity, self._groups.capacity)
            self._put(measure, batch, panes, groups, arrivals)
        self._windows.opened(new)

    def _put(
        self, measure: Measure, batch: Batch, panes: Int64s, groups: Int64s, arrivals: Int64s
    ) -> None:
        try:
            measure.put(batch, panes, groups, arrivals)
        except GroupFailure as failure:
            raise self._named(failure) from failure.__cause__

    def _wanted_from(self) -> int:
        """Return the first position whose results are needed."""
        return START if self.right_from == START else self._windows.first_from(self.right_from)

    def _due(self, cti: int) -> Due:
        try:
            return self._windows.due(cti)
        except GroupFailure as failure:
            raise self._named(failure) from None

    def _replayed(
        self, measure: Measure, operations: Operations, results: Results
    ) -> list[pa.Array]:
        try:
            return measure.replay(operations)
        except (RowFailure, OperationFailure) as failure:
            error = self._named(located(failure, operations, results))
            raise error from failure.__cause__

    def _named(self, failure: GroupFailure) -> RunError:
        keys = self._groups.keys(np.array([failure.group]))
        values = (shown_value(column[0]) for column in keys)
        return failure.named(dict(zip(self._key_names, values, strict=True)), self._schema.time)

    def _let_go(self, gone: Int64s) -> None:
        if not len(gone):
            return
        for measure in self._measures:
            measure.drop(gone)
        emptied = count_down(self._panes.group[gone], self._groups.members)
        self._panes.release(gone)
        self._forget(emptied)

    def _forget(self, groups: Int64s) -> None:
        """Forget groups without panes, except those that the windower still needs."""
        self._groups.release(groups[self._windows.forgets(groups)])

    # --- snapshots ---------------------------------------------------------------------------

    def snapshot(self) -> Tables:
        panes, groups = self._panes.live(), self._groups.live()
        tables = {"groups": self._keyed(groups, self._windows.group_state(groups), {})}
        for i, measure in enumerate(self._measures):
            at, columns = measure.values(panes)
            owners = panes[at]
            interval = {"start": self._panes.start[owners], "end": self._panes.end[owners]}
            tables[f"values{i}"] = self._keyed(self._panes.group[owners], interval, columns)
        progress = {"cti": [self._cti], "arrivals": [self._arrivals]}
        tables["progress"] = pa.table({k: pa.array(v, pa.int64()) for k, v in progress.items()})
        return tables

    def _keyed(
        self, groups: Int64s, numbers: Mapping[str, Int64s], columns: Mapping[str, pa.Array]
    ) -> pa.Table:
        arrays = [*self._groups.keys(groups), *map(pa.array, numbers.values()), *columns.values()]
        extra = [f"${name}" for name in (*numbers, *columns)]
        return pa.table(arrays, names=[*self._key_names, *extra])

    def load(self, tables: Mapping[str, pa.Table]) -> None:
        missing = {"groups", "progress", "values0"} - set(tables)
        if missing:
            raise SnapshotCorrupt(f"an aggregate's snapshot lacks {sorted(missing)}")
        progress = tables["progress"].to_pydict()
        self._cti, self._arrivals = min(progress["cti"]), max(progress["arrivals"])
        groups, state = self._load_groups(tables["groups"])
        self._windows.grow(self._groups.capacity)
        for i, measure in enumerate(self._measures):
            self._load_measure(measure, tables[f"values{i}"])
        panes = self._panes.live()
        self._windows.restore(groups, state, panes, self._cti)
        self._reenter(panes)

    def _load_groups(self, table: pa.Table) -> tuple[Int64s, dict[str, Int64s]]:
        keys, extra = self._split(table)
        groups = self._groups.encode_keys(keys, table.num_rows)
        numbers = {n: numbers_of(c) for n, c in extra.items()}
        return groups, numbers

    def _load_measure(self, measure: Measure, table: pa.Table) -> None:
        keys, extra = self._split(table)
        groups = self._groups.encode_keys(keys, table.num_rows)
        starts, ends = (numbers_of(extra.pop(n)) for n in ("start", "end"))
        panes, new = self._panes.encode(groups, starts, ends)
        count_up(self._panes.group[new], self._groups.members)
        measure.grow(self._panes.capacity, self._groups.capacity)
        measure.restore(panes, groups, extra)

    def _split(self, table: pa.Table) -> tuple[list[pa.Array], dict[str, pa.Array]]:
        columns = [c.combine_chunks() for c in table.columns]
        count = len(self._key_names)
        names = [n[1:] for n in table.column_names[count:]]
        return columns[:count], dict(zip(names, columns[count:], strict=True))

    def _reenter(self, panes: Int64s) -> None:
        """Let the panes that were in their windows before the snapshot enter them again."""
        entered = panes[self._windows.entered(panes)]
        again = Operations(
            np.full_like(entered, ENTER), self._panes.group[entered], entered, entered[:0]
        )
        for measure in self._measures:
            measure.grow(self._panes.capacity, self._groups.capacity)
            self._replayed(measure, again, NO_RESULTS)


def _windower(node: Aggregate | PartialAggregate, panes: Panes) -> Windower:
    if isinstance(node, PartialAggregate):
        return PaneWindows(panes, node.window)
    match node.window:
        case Hopping():
            return HoppingWindows(panes, node.window)
        case Session():
            return SessionWindows(panes, node.window.timeout)
        case CountWindow():
            return CountWindows(panes, node.window.n, node.window.step)
        case SnapshotWindow():
            return SnapshotWindows(panes)


def _measures(
    aggregates: Sequence[Aggregation],
    below: Schema,
    panes: Panes,
    wanted_from: Callable[[], int],
) -> tuple[list[Measure], list[int]]:
    """Return the measures; for each aggregate, also the index of its column among all of theirs."""
    additive = [i for i, a in enumerate(aggregates) if a.function in ADDITIVE]
    others = [i for i in range(len(aggregates)) if i not in additive]
    measures: list[Measure] = [LaneMeasure([aggregates[i] for i in additive], below)]
    measures += [_measure(aggregates[i], below, panes, wanted_from) for i in others]
    indices = [*additive, *others]
    return measures, [indices.index(i) for i in range(len(aggregates))]


def _measure(
    aggregation: Aggregation, below: Schema, panes: Panes, wanted_from: Callable[[], int]
) -> Measure:
    match aggregation.function:
        case "count_distinct":
            return DistinctMeasure(aggregation, below, panes)
        case "collect":
            return CollectMeasure(aggregation, below)
        case "user" if aggregation.keeps_state:
            return FoldedMeasure(aggregation, below, panes, wanted_from)
        case "user":
            return UserMeasure(aggregation, below)
        case _:
            return OrderedMeasure(aggregation, below)
