"""Slow cells are Python objects, by group; their requests run one by one (`cells.py`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from weir.errors import EventFailed, OperatorFailed
from weir.events.batch import Batch, Int64s
from weir.events.python_lists import python_column
from weir.garbage import collecting_later
from weir.kernels.aggregates.group_failures import key_text
from weir.kernels.expressions.evaluation import shown_value
from weir.kernels.expressions.failed_events import event_at, failed_row
from weir.kernels.expressions.user_calls import check_not_interrupted, failing_line, python_values
from weir.kernels.structures.cells import CellTable
from weir.kernels.structures.requests import RequestProgram, Visits
from weir.kernels.structures.saved_cells import cell_rows, load_cells
from weir.plan.saved_states import SavedCall, saved_name
from weir.plan.schema import Schema
from weir.plan.states import (
    MERGE_TRAITS,
    Cell,
    CellFailure,
    HandlerPlace,
    MergeFunction,
    StateMerge,
    StateRead,
)
from weir.plan.usercode.functions import describe
from weir.plan.usercode.made_functions import plain_function


@dataclass(frozen=True, slots=True)
class _MergeRows:
    """A merge, with what each row of a slice brings to it."""

    merge: StateMerge
    args: list[tuple[object, ...]]
    holds: list[bool] | None


class SlowCells:
    """Holds the cells of a scan's states that are not fast."""

    def __init__(
        self,
        states: Mapping[int, Cell],
        inputs: Sequence[Schema],
        keys: Sequence[Sequence[str]],
        merges: Sequence[tuple[int, StateMerge]],
        reads: Sequence[StateRead],
    ) -> None:
        """Make cells of these states, which have numbers; each merge comes with its port."""
        self._tables = {state: CellTable(cell) for state, cell in states.items()}
        self._inputs, self._keys = inputs, keys
        self._merges, self._reads = merges, reads
        self._functions: dict[int, dict[str, Callable[..., object]]] = {}
        self._made_of: dict[tuple[int, str], MergeFunction] = {}
        for _, m in merges:
            if m.function:
                name = saved_name(m.function)
                self._functions.setdefault(m.state, {})[name] = plain_function(m.function.function)
                self._made_of[m.state, name] = m.function

    def __bool__(self) -> bool:
        return bool(self._tables)

    @property
    def held_in_windows(self) -> int:
        return sum(len(t) for t in self._tables.values() if t.cell.last is not None)

    # --- requests ----------------------------------------------------------------------------

    def run(
        self,
        programs: Sequence[RequestProgram],
        visits: Visits,
        slices: Sequence[Batch],
        groups: Sequence[Int64s],
        right_from: int,
    ) -> dict[int, pa.Array]:
        """Run all requests in order; return the answers of the reads, by the reads' numbers."""
        first = len(self._merges)
        merges = {
            i: _MergeRows(
                m,
                merge_arguments(m, slices[port], self._inputs[port]),
                merge_condition(m, slices[port], self._inputs[port]),
            )
            for i, (port, m) in enumerate(self._merges)
            if m.state in self._tables
        }
        reads = {first + i: r for i, r in enumerate(self._reads) if r.state in self._tables}
        answers = {n: [self._tables[r.state].default] * len(slices[0]) for n, r in reads.items()}
        mine = [[n for n in p.requests if n in merges or n in reads] for p in programs]
        times = [batch.vs.tolist() for batch in slices]
        numbers = [g.tolist() for g in groups]
        with collecting_later():
            for program, row in visits.each():
                port = programs[program].port
                for n in mine[program]:
                    group, time = numbers[port][row], times[port][row]
                    if n in merges:
                        self._merge(merges[n], group, time, port, slices[port], row)
                    elif group >= 0 and time >= right_from:
                        answers[n][row] = self._read(reads[n], group, time, slices[0], row)
        return {
            n: python_column(answers[n], self._tables[r.state].cell.type) for n, r in reads.items()
        }

    def _merge(
        self, merge_rows: _MergeRows, group: int, time: int, port: int, batch: Batch, row: int
    ) -> None:
        if merge_rows.holds is not None and not merge_rows.holds[row]:
            return
        merge, function = merge_rows.merge, merge_rows.merge.function
        name = saved_name(function) if function else ""
        call = self._functions[merge.state][name] if function else None
        try:
            table = self._tables[merge.state]
            table.merge(group, time, merge.kind, merge_rows.args[row], call, name)
        except CellFailure as failure:
            raise self._failed(failure, merge.at, port, batch, row) from None
        except BaseException as error:
            if function is None:
                raise
            rows = self._inputs[port]
            raise function_failure(function, error, batch, rows, row, port) from error

    def _read(self, read: StateRead, group: int, time: int, batch: Batch, row: int) -> object:
        try:
            return self._tables[read.state].get(group, time)
        except CellFailure as failure:
            if read.defers:
                return None
            raise self._failed(failure, self._blamed(failure, read), 0, batch, row) from None
        except BaseException as error:
            # A window calls the functions of its merges when it is read.
            merge = self._tables[read.state].folded
            function = None if merge is None else self._made_of.get((read.state, merge.name))
            if function is None:
                raise
            raise function_failure(function, error, batch, self._inputs[0], row, 0) from error

    def _blamed(self, failure: CellFailure, read: StateRead) -> HandlerPlace | None:
        """Return the place of the merge that failed when a window was read.

        Return None if it could be one of several."""
        kinds = [m.at for _, m in self._merges if (m.state, m.kind) == (read.state, failure.merge)]
        return kinds[0] if len(set(kinds)) == 1 else read.at

    def _failed(
        self, failure: CellFailure, at: HandlerPlace | None, port: int, batch: Batch, row: int
    ) -> EventFailed:
        rows, keys = self._inputs[port], self._keys[port]
        return scan_failure(str(failure), at, rows, keys, batch, row, port)

    # --- keeping -----------------------------------------------------------------------------

    def drop(self, live: Int64s, time: int) -> npt.NDArray[np.bool_]:
        """Drop cells that every read from this time on would see as the default.

        Return which groups still have a cell."""
        held: set[object] = set()
        for table in self._tables.values():
            table.drop(time)
            held.update(table)
        return np.array([group in held for group in live.tolist()], dtype=np.bool_)

    def rows(self, state: int, calls: Sequence[SavedCall]) -> tuple[Int64s, Batch]:
        """Return the saved cells of a state, without their keys, and the group of each row."""
        table = self._tables[state]
        rows = cell_rows(table, lambda groups: (pa.array(groups, pa.int64()),), calls)
        groups = np.asarray(rows.columns[0], dtype=np.int64)
        return groups, Batch(rows.vs, rows.ve, rows.columns[1:])

    def load(self, state: int, groups: Int64s, rows: Batch, names: Sequence[str]) -> None:
        functions = self._functions.get(state, {})
        load_cells(self._tables[state], groups.tolist(), rows, names, functions)


def merge_arguments(merge: StateMerge, batch: Batch, rows: Schema) -> list[tuple[object, ...]]:
    """Return what each row brings to a merge, as Python values; for `top_k`, k comes last."""
    columns = [
        python_values(batch.columns[rows.index(arg)])
        if isinstance(arg, str)
        else python_values(pa.array([arg.value], arg.type)) * len(batch)
        for arg in merge.args
    ]
    if MERGE_TRAITS[merge.kind].has_k:
        columns.append([merge.k] * len(batch))
    return list(zip(*columns, strict=True)) if columns else [()] * len(batch)


def merge_condition(merge: StateMerge, batch: Batch, rows: Schema) -> list[bool] | None:
    """Return for each row whether it merges, or None if all do."""
    if merge.condition is None:
        return None
    holds: list[bool] = batch.columns[rows.index(merge.condition)].to_pylist()
    return holds


def function_failure(
    function: MergeFunction, error: BaseException, batch: Batch, rows: Schema, row: int, port: int
) -> OperatorFailed:
    """Return the error for a merge's function that failed on a row."""
    check_not_interrupted(error, function.function)
    failed_at = failing_line(function.name, function.function, error)
    return OperatorFailed(
        function=function.name,
        file=failed_at.file,
        line=failed_at.line,
        event=event_at(batch, rows, row),
        cause=describe(error),
        place=failed_at.place,
        row=failed_row(batch, row, port),
    )


def scan_failure(
    why: str,
    at: HandlerPlace | None,
    rows: Schema,
    keys: Sequence[str],
    batch: Batch,
    row: int,
    port: int,
) -> EventFailed:
    """Return the error for a cell that cannot be computed.

    It names the key, the event and, if there is one, the handler."""
    values = {name: shown_value(batch.columns[rows.index(name)][row]) for name in keys}
    why = f"{why}, at {key_text(values)}" if keys else why
    event, failed = event_at(batch, rows, row), failed_row(batch, row, port)
    if at is None:
        return EventFailed(why, event=event, row=failed)
    return OperatorFailed(
        function=at.handler,
        file=at.place.file,
        line=at.place[0],
        event=event,
        cause=why,
        place=at.place,
        row=failed,
    )
