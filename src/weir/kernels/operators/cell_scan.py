"""A cell scan takes the requests of a slice in order and keeps the cells of a scan's states.

It is what state scans and final states have in common: keys as numbers of groups, a table of cells
for each state, merges and reads in order, snapshots, and saved cells that a run goes on from.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import cast

import numpy as np
import pyarrow as pa

from weir.errors import OperatorFailed, RunError
from weir.events.batch import OPEN, START, Batch, Int64s
from weir.events.frozen_values import freezer
from weir.kernels.expressions.user_calls import check_not_interrupted, failing_line, python_values
from weir.kernels.expressions.user_values import typed_array
from weir.kernels.kernel import Tables, rows_table, table_rows
from weir.kernels.structures.cells import CellFailure, CellTable
from weir.kernels.structures.panes import Groups
from weir.kernels.structures.requests import StateRequest, ordered_requests
from weir.kernels.structures.saved_cells import cell_rows, load_cells
from weir.plan.saved_states import SavedCall, saved_calls, saved_name, state_schema
from weir.plan.schema import Schema
from weir.plan.states import Cell, MergeFunction, StateMerge, StateRead
from weir.plan.user_code import describe


class CellScan:
    """A `CellScan` keeps cells by group, and merges and reads them in the order of requests."""

    def __init__(
        self,
        inputs: Sequence[Schema],
        keys: Sequence[Sequence[str]],
        states: Sequence[Cell],
        merges: Sequence[Sequence[StateMerge]],
        reads: Sequence[StateRead],
        depth: int,
        restored: Mapping[int, int],
    ) -> None:
        """`restored` has the state of each port that brings saved cells."""
        self._inputs, self._depth = inputs, depth
        self._names = keys
        self._keys = [[s.index(k) for k in ks] for s, ks in zip(inputs, keys, strict=True)]
        self._groups = Groups((), [inputs[0].type_of(name) for name in keys[0]])
        self.tables = [CellTable(cell) for cell in states]
        self._restored = restored
        self._merges = [(port, m) for port, ms in enumerate(merges) for m in ms]
        self._reads = list(reads)
        self._functions = {
            saved_name(m.function): m.function.function for _, m in self._merges if m.function
        }
        self._calls = [self._saved_calls(state, merges) for state in range(len(states))]

    def _saved_calls(
        self, state: int, merges: Sequence[Sequence[StateMerge]]
    ) -> tuple[SavedCall, ...]:
        mine = [[m for m in of_port if m.state == state] for of_port in merges]
        return saved_calls(mine, self._inputs)

    @property
    def state_rows(self) -> int:
        return sum(map(len, self.tables))

    # --- requests ----------------------------------------------------------------------------

    def run(self, slices: Sequence[Batch], right_from: int = START) -> list[pa.Array]:
        """Take all requests of these rows; return a column of answers for each read.

        Windows are not folded for rows before `right_from`, which are not wanted.
        """
        for port, state in self._restored.items():
            self._restore(state, slices[port], self._inputs[port].names, self._keys[port])
        rows = [self._asking(slices[port], port, merge) for port, merge in self._merges]
        everybody = np.arange(len(slices[0]), dtype=np.int64)
        groups = self._groups_of(slices, rows)
        requests = [StateRequest(port, m.block, m.order) for port, m in self._merges]
        requests += [StateRequest(0, r.block, r.order) for r in self._reads]
        which, at = ordered_requests(
            requests, rows + [everybody] * len(self._reads), slices, self._depth
        )
        args = [self._arguments(slices[p], p, m) for p, m in self._merges]
        answers: list[list[object]] = [
            [self.tables[r.state].default] * len(everybody) for r in self._reads
        ]
        times = [batch.vs.tolist() for batch in slices]
        for number, row in zip(which.tolist(), at.tolist(), strict=True):
            if number < len(rows):
                port, merge = self._merges[number]
                group, time = groups[port][row], times[port][row]
                self._merge(merge, group, time, args[number], row, (port, slices[port]))
            else:
                read = self._reads[number - len(rows)]
                if times[0][row] >= right_from:
                    answers[number - len(rows)][row] = self._read(
                        read, groups[0][row], times[0][row], row, slices[0]
                    )
        return [
            typed_array(a, self.tables[r.state].cell.type)
            for a, r in zip(answers, self._reads, strict=True)
        ]

    def _asking(self, batch: Batch, port: int, merge: StateMerge) -> Int64s:
        """Return the rows for which the merge's condition holds."""
        if merge.condition is None:
            return np.arange(len(batch), dtype=np.int64)
        column = batch.columns[self._inputs[port].index(merge.condition)]
        kept = column.fill_null(False).to_numpy(zero_copy_only=False)
        return np.flatnonzero(kept)

    def _groups_of(self, slices: Sequence[Batch], rows: Sequence[Int64s]) -> list[list[int]]:
        """Return the groups of all rows; those that merge make theirs, others may have none."""
        merging = [np.zeros(len(batch), dtype=np.bool_) for batch in slices]
        for (port, _), at in zip(self._merges, rows, strict=True):
            merging[port][at] = True
        found = []
        for port, (batch, mask) in enumerate(zip(slices, merging, strict=True)):
            keys = [batch.columns[i] for i in self._keys[port]]
            made = pa.array(mask)
            groups = np.full(len(batch), -1, dtype=np.int64)
            if port not in self._restored:
                groups[mask] = self._groups.encode_keys(
                    [k.filter(made) for k in keys], int(mask.sum())
                )
            found.append((keys, groups))
        result = []
        for keys, groups in found:  # again: another port may have made them
            if (groups < 0).any():
                groups = self._groups.find_keys(keys, len(groups))
            result.append(groups.tolist())
        return result

    def _arguments(self, batch: Batch, port: int, merge: StateMerge) -> list[tuple[object, ...]]:
        columns = [self._python(batch, self._inputs[port].index(name)) for name in merge.args]
        if merge.kind == "top_k":
            columns.append([merge.k] * len(batch))
        return list(zip(*columns, strict=True)) if columns else [()] * len(batch)

    @staticmethod
    def _python(batch: Batch, column: int) -> list[object]:
        values = batch.columns[column]
        freeze = freezer(values.type)
        found = python_values(values)
        return found if freeze is None else [freeze(v) for v in found]

    def _merge(
        self, merge: StateMerge, group: int, time: int, args: Sequence[tuple[object, ...]],
        row: int, where: tuple[int, Batch],
    ) -> None:  # fmt: skip
        function = merge.function
        call, name = (function.function, saved_name(function)) if function else (None, "")
        try:
            self.tables[merge.state].merge(group, time, merge.kind, args[row], call, name)
        except CellFailure as failure:
            raise RunError(f"{failure}, {self._event_text(*where, row)}") from None
        except BaseException as error:
            if function is None:
                raise
            raise self._failed(function, error, *where, row) from error

    def _read(self, read: StateRead, group: int, time: int, row: int, batch: Batch) -> object:
        table = self.tables[read.state]
        if group < 0:
            return table.default
        try:
            return table.get(group, time)
        except CellFailure as failure:
            raise RunError(f"{failure}, {self._event_text(0, batch, row)}") from None
        except BaseException as error:
            function = self._called(read.state)
            if function is None:
                raise
            raise self._failed(function, error, 0, batch, row) from error

    def _called(self, state: int) -> MergeFunction | None:
        """Return a function that a window of this state calls."""
        called = (m.function for _, m in self._merges if m.state == state and m.function)
        return next(called, None)

    def _failed(
        self, function: MergeFunction, error: BaseException, port: int, batch: Batch, row: int
    ) -> OperatorFailed:
        check_not_interrupted(error, function.function)
        failed_at = failing_line(function.name, function.function, error)
        event = self._event(port, batch, row)
        return OperatorFailed(
            function=function.name, file=failed_at.file, line=failed_at.line, event=event,
            cause=describe(error),
        )  # fmt: skip

    def _event(self, port: int, batch: Batch, row: int) -> dict[str, object]:
        values = zip(self._inputs[port].names, batch.columns, strict=True)
        ve = int(batch.ve[row])
        lifetime = {"vs": int(batch.vs[row]), "ve": None if ve == OPEN else ve}
        return lifetime | {name: column[row].as_py() for name, column in values}

    def _event_text(self, port: int, batch: Batch, row: int) -> str:
        event = self._event(port, batch, row)
        key = ", ".join(f"{name} = {event[name]!r}" for name in self._names[port])
        return f"at {key or 'its only cell'} on event {event}"

    # --- keeping -----------------------------------------------------------------------------

    def forget(self, time: int) -> None:
        """Drop the cells that are the default for every read from this time on."""
        gone = [cast("list[int]", table.drop(time)) for table in self.tables]
        candidates = {group for groups in gone for group in groups}
        dead = [g for g in candidates if not any(_holds(table, g) for table in self.tables)]
        self._groups.release(np.array(sorted(dead), dtype=np.int64))

    def rows_of(self, state: int) -> Batch:
        """Return the cells of a state as rows."""
        return cell_rows(self.tables[state], self._key_columns, self._calls[state])

    def _key_columns(self, groups: Sequence[Hashable]) -> tuple[pa.Array, ...]:
        return self._groups.keys(np.array(groups, dtype=np.int64))

    def snapshot(self) -> Tables:
        return {
            f"state{i}": rows_table(
                self.rows_of(i), [n for n, _ in state_schema(table.cell, self._calls[i])]
            )
            for i, table in enumerate(self.tables)
        }

    def load(self, tables: Mapping[str, pa.Table]) -> None:
        for i, table in enumerate(self.tables):
            rows, _ = table_rows(tables[f"state{i}"])
            names = [n for n, _ in state_schema(table.cell, self._calls[i])]
            self._restore(i, rows, names, range(len(table.cell.keys)))

    def _restore(self, state: int, rows: Batch, names: Sequence[str], keys: Sequence[int]) -> None:
        if not len(rows):
            return
        groups = self._groups.encode_keys([rows.columns[i] for i in keys], len(rows))
        load_cells(self.tables[state], groups.tolist(), rows, names, self._functions)


def _holds(table: CellTable, group: int) -> bool:
    return group in table.entries or group in table.pasts
