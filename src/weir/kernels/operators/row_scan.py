"""A row scan runs handler code row by row: the code reads and merges cells as it goes.

The rows of all ports run in order of (vs, the event's origin, block, element, order). Cells are
dicts by key (`live_cells.py`). Effects are what the code emits for an event: rows, and merges that
others need. Each effect becomes a column; its values were checked when they were emitted.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from weir.errors import OperatorFailed, RunError
from weir.events.batch import OPEN, START, Batch, Int64s, concat_batches
from weir.events.order import taken
from weir.events.python_lists import python_column, python_list
from weir.events.types import BIGINT, BOOLEAN, DOUBLE, STRING
from weir.garbage import collecting_later
from weir.kernels.expressions.evaluation import UserCode
from weir.kernels.expressions.failed_events import event_at, failed_row
from weir.kernels.expressions.handler_values import settled_value
from weir.kernels.expressions.user_calls import (
    check_not_interrupted,
    handler_line,
    python_values,
)
from weir.kernels.expressions.user_values import Misfit
from weir.kernels.kernel import Tables, rows_table, table_rows
from weir.kernels.operators.port_merges import PortMerges
from weir.kernels.structures.cells import CellTable
from weir.kernels.structures.live_cells import accessors, cell_key
from weir.kernels.structures.requests import (
    StateRequest,
    Visits,
    ordered_visits,
    request_programs,
)
from weir.kernels.structures.saved_cells import (
    cell_rows,
    check_restored,
    first_request,
    load_cells,
)
from weir.plan.operators import RowScan, schema
from weir.plan.saved_states import saved_calls, saved_name, state_schema
from weir.plan.states import (
    Cell,
    CellFailure,
    EffectRows,
    RowCursor,
    RowEffect,
    UnplannedAccess,
)
from weir.plan.usercode.functions import describe
from weir.plan.usercode.made_functions import plain_function

RowValues = tuple[object, ...]


class RowScanKernel:
    """Runs `RowScan` (see `kernel.Kernel`)."""

    right_from = START

    def __init__(self, node: RowScan) -> None:
        self._node = node
        self._inputs = [schema(i) for i in node.inputs]
        self._restored = {port: state for state, port in enumerate(node.restored) if port >= 0}
        self._first = OPEN
        """The time of the first row."""
        self._tables = [CellTable(cell, timed=False) for cell in node.states]
        self._cursor = RowCursor()
        keyed = bool(node.keys[0])
        methods = [accessors(table, self._cursor, keyed=keyed) for table in self._tables]
        self._effects = [_effect_rows(effect) for effect in node.effects]
        self._runner = node.code.make(methods, self._cursor, self._effects)
        self._calls = [
            saved_calls(
                [[m for m in ms if m.state == s] for ms in node.merges],
                self._inputs,
                [call for call in node.calls if call.state == s],
            )
            for s in range(len(node.states))
        ]
        functions = [m.function for ms in node.merges for m in ms if m.function is not None]
        functions += [call.function for call in node.calls]
        self._functions = {saved_name(f): plain_function(f.function) for f in functions}
        self._merges = [
            PortMerges(ms, node.keys[port], self._inputs[port], self._tables, port)
            for port, ms in enumerate(node.merges)
        ]
        self._requests = [
            *(
                (port, n, StateRequest(port, order, order, 0))
                for port, orders in enumerate(node.places)
                for n, order in enumerate(orders)
            ),
            *(
                (port, n, StateRequest(port, m.block, m.order, 0))
                for port, ms in enumerate(node.merges)
                for n, m in enumerate(ms)
            ),
        ]
        """Everything done for rows: port, number of the place or merge, request."""
        self._programs = request_programs(
            [replace(request, number=i) for i, (_, _, request) in enumerate(self._requests)],
            [True] * len(node.inputs),
        )

    @property
    def state_rows(self) -> int:
        return sum(map(len, self._tables))

    def step(self, slices: Sequence[Batch], cti: int) -> tuple[Batch, int]:
        self._first = min(self._first, first_request(slices, self._restored))
        for port, state in self._restored.items():
            check_restored(self._node.states[state], slices[port], self._first)
            self._restore(state, slices[port], self._inputs[port].names, self._node.keys[port])
        with collecting_later():
            order = self._run(slices)
            rows = self._batch(slices, order)
            if cti == OPEN:
                self._runner.check()
            if cti != OPEN:
                for table in self._tables:
                    table.sweep(cti)
            return rows, cti

    # --- running -----------------------------------------------------------------------------

    def _run(self, slices: Sequence[Batch]) -> Int64s | None:
        """Run the code on all rows in order; return the order in which rows come out.

        The rows are numbered over the ports that have output, one port after the other. None means
        that the rows of port 0 come out as they are."""
        for effect in self._effects:
            effect.clear()
        busy = [port for port, batch in enumerate(slices) if len(batch)]
        first = [program for program in self._programs if program.port == 0]
        if (busy == [0] and len(first) == 1) or not busy:
            self._run_first(slices[0])
            return None
        return self._run_all(slices)

    def _run_first(self, batch: Batch) -> None:
        """Run the code on the rows of port 0, when no row of another port comes between them."""
        cursor = self._cursor
        try:
            rows = self._rows(0, batch)
            with cursor.running(), self._runner.bound():
                self._runner.loop(rows)
        except RunError:  # raised for what handler code keeps, which is not the fault of a row
            raise
        except BaseException as error:
            raise self._failed(error, 0, batch, cursor.row) from error

    def _run_all(self, slices: Sequence[Batch]) -> Int64s:
        cursor, running = self._cursor, len(self._node.columns)
        visits = ordered_visits(self._programs, slices, self._node.depth)
        numbers, order = self._output_rows(visits, slices)
        port = row = 0
        try:
            rows = [list(self._rows(p, slices[p])) for p in range(running)]
            steps = self._steps(slices)
            ports = [program.port for program in self._programs]
            with cursor.running(), self._runner.bound():
                for program, row in visits.each():
                    port = ports[program]
                    if port < running:
                        cursor.row = numbers[port][row] if port < len(numbers) else -1
                        for run in steps[program]:
                            run(rows[port][row])
                    else:
                        for merge in steps[program]:
                            merge(row)
        except RunError:  # raised for a merge of another port, or for what handler code keeps
            raise
        except BaseException as error:
            raise self._failed(error, port, slices[port], row) from error
        return order

    def _steps(self, slices: Sequence[Batch]) -> list[list[Callable[[Any], None]]]:
        """Return what each program does: functions of a row's values, or of its number."""
        running = len(self._node.columns)
        doing: list[Sequence[Callable[[Any], None]]] = [
            self._runner.runs[port] if port < running else self._merges[port].prepared(batch)
            for port, batch in enumerate(slices)
        ]
        return [
            [doing[port][number] for port, number, _ in map(self._requests.__getitem__, p.requests)]
            for p in self._programs
        ]

    def _output_rows(
        self, visits: Visits, slices: Sequence[Batch]
    ) -> tuple[list[list[int]], Int64s]:
        """Number the output rows in the order of their first visits.

        Return the numbers by port and row; for each number, also its row, counted over these ports
        one after the other."""
        lengths = [len(batch) for batch in slices[: self._node.out_ports]]
        starts = np.cumsum([0, *lengths])
        ports = np.array([program.port for program in self._programs], dtype=np.int64)
        if visits.only >= 0:
            at, rows = np.full(visits.count, ports[visits.only]), np.arange(visits.count)
        else:
            at, rows = ports[visits.programs], visits.rows
        mine = at < self._node.out_ports
        order = _in_order(starts[at[mine]] + rows[mine])
        numbers = np.empty(int(starts[-1]), dtype=np.int64)
        numbers[order] = np.arange(len(order))
        parts = [numbers[a:b].tolist() for a, b in pairwise(starts.tolist())]
        return parts, order

    def _rows(self, port: int, batch: Batch) -> Iterable[RowValues]:
        """Return the rows as Python values: vs, ve (None if open), then the port's columns."""
        ends: list[int | None] = batch.ve.tolist()
        if (batch.ve == OPEN).any():
            ends = [None if ve == OPEN else ve for ve in ends]
        columns: list[Sequence[object]] = [batch.vs.tolist(), ends]
        converted: dict[str, Sequence[object]] = {}  # a key is the same object as in the event
        for name in self._node.columns[port]:
            if name not in converted:
                converted[name] = _user_values(batch.columns[self._inputs[port].index(name)])
            columns.append(converted[name])
        return zip(*columns, strict=True)

    # --- what comes out ----------------------------------------------------------------------

    def _batch(self, slices: Sequence[Batch], order: Int64s | None) -> Batch:
        ports = slices[: self._node.out_ports]
        rows = ports[0] if self._node.passes else _without_columns(ports)
        if order is not None:
            rows = taken(rows, order)
        columns = [
            _effect_column(entries, effect, len(rows))
            for entries, effect in zip(self._effects, self._node.effects, strict=True)
        ]
        return Batch(rows.vs, rows.ve, (*rows.columns, *columns), rows.origin)

    # --- failures ----------------------------------------------------------------------------

    def _failed(self, error: BaseException, port: int, batch: Batch, row: int) -> OperatorFailed:
        check_not_interrupted(error, self._runner)
        at = error.at if isinstance(error, CellFailure) else None
        if at is not None:
            failed_at = UserCode(at.handler, at.place.file, at.place[0], at.place)
        else:
            failed_at = handler_line(self._node.code.name, self._runner, error)
        why = str(error) if isinstance(error, CellFailure) else describe(error)
        failed = OperatorFailed(
            function=failed_at.function,
            file=failed_at.file,
            line=failed_at.line,
            cause=why,
            event=event_at(batch, self._inputs[port], row),
            place=failed_at.place,
            row=failed_row(batch, row, port),
        )
        failed.is_guard = isinstance(error, UnplannedAccess)
        return failed

    # --- snapshots ---------------------------------------------------------------------------

    def snapshot(self) -> Tables:
        self._runner.check()
        return {
            f"state{i}": rows_table(
                cell_rows(table, _key_columns(table.cell), self._calls[i]), self._saved_names(i)
            )
            for i, table in enumerate(self._tables)
        }

    def load(self, tables: Mapping[str, pa.Table]) -> None:
        for i, table in enumerate(self._tables):
            rows, _ = table_rows(tables[f"state{i}"])
            names = self._saved_names(i)
            self._restore(i, rows, names, names[: len(table.cell.keys)])

    def _saved_names(self, state: int) -> list[str]:
        return [n for n, _ in state_schema(self._node.states[state], self._calls[state])]

    def _restore(self, state: int, rows: Batch, names: Sequence[str], keys: Sequence[str]) -> None:
        columns = [python_list(rows.columns[names.index(key)]) for key in keys]
        keyed = zip(*columns, strict=True) if columns else [()] * len(rows)
        cells = [cell_key(key) for key in keyed]
        load_cells(self._tables[state], cells, rows, names, self._functions)


def _user_values(column: pa.Array) -> list[object]:
    """Return the values of a column as handler code gets them: all NaNs are the same object."""
    values = python_values(column)
    if column.type == DOUBLE and pc.any(pc.is_nan(column)).as_py():
        return [math.nan if value != value else value for value in values]
    return values


# --- effects ---------------------------------------------------------------------------------


_KINDS: dict[pa.DataType, type] = {BIGINT: int, DOUBLE: float, BOOLEAN: bool, STRING: str}


def _effect_rows(effect: RowEffect) -> EffectRows:
    settle = tuple(_settler(dtype) for _, dtype in effect.fields)
    kinds = tuple(_KINDS.get(dtype) for _, dtype in effect.fields)
    return EffectRows([], tuple([] for _ in effect.fields), settle, kinds)


def _settler(dtype: pa.DataType) -> Callable[[Any], Any]:
    settle = settled_value(dtype)

    def settled(value: Any) -> Any:
        try:
            return settle(value)
        except Misfit as misfit:
            raise CellFailure(str(misfit)) from None

    return settled


def _effect_column(entries: EffectRows, effect: RowEffect, length: int) -> pa.Array:
    """Return the column of an effect, for this many rows."""
    columns = [
        python_column(values, dtype)
        for values, (_, dtype) in zip(entries.columns, effect.fields, strict=True)
    ]
    numbers = np.array(entries.rows, dtype=np.int64)
    kept = numbers >= 0  # the others belong to rows that do not come out
    if not kept.all():
        numbers = numbers[kept]
        columns = [column.filter(pa.array(kept)) for column in columns]
    if not effect.is_list:
        places = np.full(length, -1, dtype=np.int64)
        places[numbers] = np.arange(len(numbers))
        return columns[0].take(pa.array(places, mask=places < 0))
    values = columns[0]
    if pa.types.is_struct(effect.type.value_type) and not effect.is_whole:
        values = pa.StructArray.from_arrays(columns, fields=list(effect.type.value_type))
    offsets = np.concatenate(([0], np.cumsum(np.bincount(numbers, minlength=length))))
    return pa.ListArray.from_arrays(pa.array(offsets.astype(np.int32)), values, type=effect.type)


def _in_order(numbers: Int64s) -> Int64s:
    """Return each number once, in the order of first occurrence."""
    _, first = np.unique(numbers, return_index=True)
    return numbers[np.sort(first)]


def _without_columns(ports: Sequence[Batch]) -> Batch:
    bare = [Batch(b.vs, b.ve, (), b.origin) for b in ports]
    return bare[0] if len(bare) == 1 else concat_batches(bare)


def _key_columns(cell: Cell) -> Callable[[Sequence[Hashable]], tuple[pa.Array, ...]]:
    def columns(keys: Sequence[Any]) -> tuple[pa.Array, ...]:
        parts = [(key,) for key in keys] if len(cell.keys) == 1 else keys
        return tuple(
            python_column([_value_of(part[i], dtype) for part in parts], dtype)
            for i, dtype in enumerate(cell.keys)
        )

    return columns


def _value_of(key: object, dtype: pa.DataType) -> object:
    """Return the value of a canonical key."""
    if key is None or not pa.types.is_nested(dtype):
        return key
    assert isinstance(key, tuple)
    if pa.types.is_list(dtype):
        return [_value_of(k, dtype.value_type) for k in key]
    types = {field.name: field.type for field in dtype}
    return {name: _value_of(k, types[name]) for name, k in key}
