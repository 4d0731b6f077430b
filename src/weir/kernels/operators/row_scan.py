"""A row scan runs handlers row by row: their code reads and merges cells as it goes.

Rows of all ports are taken in order of (vs, the event's origin, block, element, order). Cells lie
in dicts, by key; a key's values are compared as groups are. Values that the code is handed are
immutable. What the code gives back for the reader's rows is converted to the types of the effects,
exactly or not at all.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence

import pyarrow as pa

from weir.errors import OperatorFailed
from weir.events.batch import OPEN, START, Batch
from weir.events.collecting import collecting_later
from weir.events.frozen_values import freezer
from weir.events.python_lists import python_column, python_list
from weir.events.types import DOUBLE
from weir.kernels.expressions.evaluation import RowFailure, UserCode
from weir.kernels.expressions.failed_events import event_at, failed_row
from weir.kernels.expressions.user_calls import (
    check_not_interrupted,
    failing_line,
    handler_line,
    python_values,
)
from weir.kernels.expressions.user_values import Misfit, settler, typed_array
from weir.kernels.kernel import Tables, rows_table, table_rows
from weir.kernels.structures.cell_windows import canonical_key
from weir.kernels.structures.cells import CellTable, Function
from weir.kernels.structures.exact_doubles import ExactDouble
from weir.kernels.structures.requests import (
    StateRequest,
    ordered_visits,
    request_programs,
)
from weir.kernels.structures.saved_cells import (
    cell_rows,
    check_restored,
    first_request,
    load_cells,
)
from weir.plan.made_functions import plain_function
from weir.plan.operators import RowScan, schema
from weir.plan.saved_states import saved_name, state_schema, window_calls
from weir.plan.states import Cell, CellFailure, MergeKind
from weir.plan.user_code import describe

RowValues = tuple[object, ...]


class RowCells:
    """`RowCells` are the cells that a row's code touches, at the row's time."""

    def __init__(self, states: Sequence[Cell]) -> None:
        self.tables = [CellTable(cell, timed=False) for cell in states]
        self._defaults = [table.default for table in self.tables]
        self.now = START
        self._plain = [not any(map(_needs_care, cell.keys)) for cell in states]
        self._checks = [[settler(dtype) for dtype in cell.keys] for cell in states]
        # Most states have neither windows nor ends: their values are looked at right here.
        self._lasting = [
            table.values if plain and table.cell.last is None is table.cell.expires else None
            for table, plain in zip(self.tables, self._plain, strict=True)
        ]

    def get(self, state: int, key: RowValues) -> object:
        values = self._lasting[state]
        if values is not None:
            value = values.get(key, self._defaults[state])
            return value.rounded() if type(value) is ExactDouble else value
        found = key if self._plain[state] else canonical_key(key)
        return self.tables[state].get(found, self.now)

    def merge(
        self,
        state: int,
        key: RowValues,
        kind: MergeKind,
        args: RowValues,
        function: Function | None = None,
        name: str = "",
    ) -> None:
        table = self.tables[state]
        found = key if self._plain[state] else canonical_key(key)
        if found not in table:
            self._check_key(state, key)
        table.merge(found, self.now, kind, args, function, name)

    def _check_key(self, state: int, key: RowValues) -> None:
        cell, checks = self.tables[state].cell, self._checks[state]
        if len(key) != len(checks):
            raise CellFailure(f"a key of {cell.state} has {len(checks)} parts, not {len(key)}")
        for value, check in zip(key, checks, strict=True):
            try:
                check(value)
            except Misfit as misfit:
                raise CellFailure(f"a key of {cell.state} must be {misfit}") from None


class RowScanKernel:
    """A `RowScanKernel` runs `RowScan` (see `kernel.Kernel`)."""

    right_from = START

    def __init__(self, node: RowScan) -> None:
        self._node = node
        self._inputs = [schema(i) for i in node.inputs]
        self._restored = {port: state for state, port in enumerate(node.restored) if port >= 0}
        self._first = OPEN
        """The time of the first row."""
        self._cells = RowCells(node.states)
        self._run = node.code.make()
        self._calls = [window_calls(node.calls, state) for state in range(len(node.states))]
        called = (call.function for call in node.calls)
        self._functions = {saved_name(f): plain_function(f.function) for f in called}
        ports = [p for p in range(len(node.inputs)) if p not in self._restored]
        self._programs = request_programs(
            [StateRequest(port, *node.places[port], port) for port in ports],
            [True] * len(node.inputs),
        )
        self._taken = [
            [self._inputs[port].index(name) for name in names]
            for port, names in enumerate(node.columns)
        ]

    @property
    def state_rows(self) -> int:
        return sum(map(len, self._cells.tables))

    def step(self, slices: Sequence[Batch], cti: int) -> tuple[Batch, int]:
        self._first = min(self._first, first_request(slices, self._restored))
        for port, state in self._restored.items():
            check_restored(self._node.states[state], slices[port], self._first)
            self._restore(state, slices[port], self._inputs[port].names, self._node.keys[port])
        with collecting_later():
            effects = self._effects(slices)
            if cti != OPEN:
                for table in self._cells.tables:
                    table.sweep(cti)
            return self._batch(slices[0], effects), cti

    def _effects(self, slices: Sequence[Batch]) -> list[Sequence[object]]:
        """Run the code on all rows in order; return what it gives for the reader's."""
        visits = ordered_visits(self._programs, slices, self._node.depth)
        effects: list[Sequence[object]] = []
        port = row = 0
        run, cells = self._run, self._cells
        try:
            if visits.only >= 0 and self._programs[visits.only].port == 0:
                for vs, ve, values in self._rows(0, slices[0]):
                    cells.now = vs
                    effects.append(run(0, vs, ve, values, cells))
                    row += 1
                return effects
            rows = [list(self._rows(p, batch)) for p, batch in enumerate(slices)]
            effects = [()] * len(slices[0])
            for program, row in visits.each():
                port = self._programs[program].port
                vs, ve, values = rows[port][row]
                cells.now = vs
                had = run(port, vs, ve, values, cells)
                if port == 0:
                    effects[row] = had
        except BaseException as error:
            raise self._failed(error, port, slices[port], row) from error
        return effects

    def _rows(self, port: int, batch: Batch) -> Iterable[tuple[int, int | None, RowValues]]:
        ends: list[int | None] = batch.ve.tolist()
        if (batch.ve == OPEN).any():
            ends = [None if ve == OPEN else ve for ve in ends]
        return zip(batch.vs.tolist(), ends, self._values(port, batch), strict=True)

    def _values(self, port: int, batch: Batch) -> list[RowValues]:
        columns = []
        for index in self._taken[port]:
            column = batch.columns[index]
            freeze, values = freezer(column.type), python_values(column)
            columns.append(values if freeze is None else [freeze(v) for v in values])
        return list(zip(*columns, strict=True)) if columns else [()] * len(batch)

    def _batch(self, rows: Batch, effects: Sequence[Sequence[object]]) -> Batch:
        columns = []
        for number, (name, dtype) in enumerate(self._node.effects):
            try:
                columns.append(typed_array([had[number] for had in effects], dtype))
            except RowFailure as failure:
                raise self._misfit(number, name, failure, rows) from None
        return Batch(rows.vs, rows.ve, (*rows.columns, *columns), rows.origin)

    # --- failures ----------------------------------------------------------------------------

    def _failed(self, error: BaseException, port: int, batch: Batch, row: int) -> OperatorFailed:
        check_not_interrupted(error, self._run)
        if isinstance(error, CellFailure) and error.at is not None:
            place = error.at.place
            failed_at = UserCode(error.at.handler, place.file, place[0], place)
        else:
            failed_at = handler_line(self._node.code.name, self._run, error)
        why = str(error) if isinstance(error, CellFailure) else describe(error)
        return self._error(failed_at, why, port, batch, row)

    def _misfit(self, number: int, name: str, failure: RowFailure, rows: Batch) -> OperatorFailed:
        places = self._node.code.places
        failed_at = failing_line(self._node.code.name, self._run, None)
        if places:
            place = places[number].place
            failed_at = UserCode(places[number].handler, place.file, place[0], place)
            name = f"what is emitted as `{name.partition('.')[2]}`"
        return self._error(failed_at, f"{name} must be {failure.why}", 0, rows, failure.row)

    def _error(
        self, failed_at: UserCode, why: str, port: int, batch: Batch, row: int
    ) -> OperatorFailed:
        return OperatorFailed(
            function=failed_at.function, file=failed_at.file, line=failed_at.line, cause=why,
            event=event_at(batch, self._inputs[port], row), place=failed_at.place,
            row=failed_row(batch, row, port),
        )  # fmt: skip

    # --- snapshots ---------------------------------------------------------------------------

    def snapshot(self) -> Tables:
        return {
            f"state{i}": rows_table(
                cell_rows(table, _key_columns(table.cell), self._calls[i]), self._saved_names(i)
            )
            for i, table in enumerate(self._cells.tables)
        }

    def load(self, tables: Mapping[str, pa.Table]) -> None:
        for i, table in enumerate(self._cells.tables):
            rows, _ = table_rows(tables[f"state{i}"])
            names = self._saved_names(i)
            self._restore(i, rows, names, names[: len(table.cell.keys)])

    def _saved_names(self, state: int) -> list[str]:
        return [n for n, _ in state_schema(self._node.states[state], self._calls[state])]

    def _restore(self, state: int, rows: Batch, names: Sequence[str], keys: Sequence[str]) -> None:
        columns = [python_list(rows.columns[names.index(key)]) for key in keys]
        found: list[Hashable] = [
            canonical_key(k) for k in (zip(*columns, strict=True) if columns else [()] * len(rows))
        ]
        load_cells(self._cells.tables[state], found, rows, names, self._functions)


def _needs_care(dtype: pa.DataType) -> bool:
    """Tell whether values of this type must be made canonical to be compared as keys are."""
    return bool(dtype == DOUBLE or pa.types.is_nested(dtype))


def _key_columns(cell: Cell) -> Callable[[Sequence[Hashable]], tuple[pa.Array, ...]]:
    def columns(keys: Sequence[Hashable]) -> tuple[pa.Array, ...]:
        return tuple(
            python_column([_value_of(k[i], dtype) for k in keys], dtype)  # type: ignore[index]
            for i, dtype in enumerate(cell.keys)
        )

    return columns


def _value_of(key: object, dtype: pa.DataType) -> object:
    """Return the value that a canonical key stands for."""
    if key is None or not pa.types.is_nested(dtype):
        return key
    assert isinstance(key, tuple)
    if pa.types.is_list(dtype):
        return [_value_of(k, dtype.value_type) for k in key]
    types = {field.name: field.type for field in dtype}
    return {name: _value_of(k, types[name]) for name, k in key}
