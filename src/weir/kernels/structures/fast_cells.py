"""Fast cells are numbers in matrices, by group; one compiled loop runs all requests in order.

Contract
1. `fast_kinds.py` decides which states are fast; `cells.py` has all others.
2. A cell has its value and, beside it, the time of its last merge (START: it was never merged
   into), and flags. A new group has to be `reset` before it is used.
3. An integer that exceeds its type fails at the merge that makes it; in a window, it fails at the
   read, since there the sums have 95 bits.
4. The arguments of a slice's requests are concatenated. Each row of the table of requests has where
   the values of a request begin, the step from one row's value to the next (0 for a constant, which
   is stored once), and where its two masks begin, of its condition and of its NULLs (−1 for none).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from weir.events.batch import START, Batch, Int64s
from weir.events.types import DOUBLE
from weir.kernels.structures.cells import value_range
from weir.kernels.structures.fast_cells_loops import (
    ANSWERS,
    ARGUMENTS,
    CONDITIONS,
    DEFAULT,
    DEFAULT_FLAGS,
    DEFERS,
    DOUBLES,
    FINE,
    HEAD,
    NULL,
    NULLS,
    STEP,
    WINDOW,
    drop_merges,
    push_merges,
    reset_cells,
    run_requests,
)
from weir.kernels.structures.fast_kinds import (
    FastKind,
    FastMerge,
    FastRead,
    default_column,
    from_bits,
    merge_op,
    read_op,
    to_bits,
)
from weir.kernels.structures.fast_stores import FastSums, FastWindows, StoredValues
from weir.kernels.structures.keys import each_once, grown
from weir.kernels.structures.requests import RequestProgram, Visits
from weir.kernels.structures.rows import valid_mask
from weir.plan.states import Cell

RowMarks = npt.NDArray[np.bool_]


class FastArguments:
    """Collects the values and masks of requests."""

    def __init__(self) -> None:
        self._values: list[Int64s] = []
        self._masks: list[RowMarks] = []
        self._value_count = self._mask_count = 0

    def add(self, request: Int64s, values: Int64s, step: int) -> None:
        """Add a request's values: one for each row of its port, or, if `step` is 0, one for all."""
        request[ARGUMENTS], request[STEP] = self._value_count, step
        self._values.append(values)
        self._value_count += len(values)

    def add_condition(self, request: Int64s, condition: pa.Array | None) -> RowMarks | None:
        """Add the mask of the rows that satisfy the request's condition, and return it."""
        if condition is None:
            return None
        holds = condition.fill_null(False).to_numpy(zero_copy_only=False)
        return self._add_mask(request, CONDITIONS, np.asarray(holds, dtype=np.bool_))

    def add_nulls(self, request: Int64s, column: pa.Array, rows: int) -> RowMarks | None:
        """Add the mask of the rows whose value is NULL, and return it."""
        if not column.null_count:
            return None
        null = ~valid_mask(column) if len(column) == rows else np.ones(rows, dtype=np.bool_)
        return self._add_mask(request, NULLS, null)

    def _add_mask(self, request: Int64s, at: int, mask: RowMarks) -> RowMarks:
        request[at] = self._mask_count
        self._masks.append(mask)
        self._mask_count += len(mask)
        return mask

    def flat(self) -> tuple[Int64s, npt.NDArray[np.uint8]]:
        """Return all values and all masks, each concatenated."""
        values = self._values or [np.empty(0, dtype=np.int64)]
        masks = self._masks or [np.empty(0, dtype=np.bool_)]
        one = values[0] if len(values) == 1 else np.concatenate(values)
        mask = masks[0] if len(masks) == 1 else np.concatenate(masks)
        return one, mask.view(np.uint8)


_NONE = np.empty(0, dtype=np.int64)


class FastFailure(Exception):
    """A request failed: in which way, the number of the request, and the row of its port."""

    def __init__(self, how: int, request: int, row: int) -> None:
        super().__init__(how)
        self.how, self.request, self.row = how, request, row


class FastCells:
    """Holds the cells of all fast states of a scan."""

    def __init__(self, states: Sequence[tuple[Cell, FastKind]]) -> None:
        self.states = [cell for cell, _ in states]
        self.kinds = [kind for _, kind in states]
        self.cells = np.zeros((0, 2 * len(states)), dtype=np.int64)
        self.flags = np.zeros((0, len(states)), dtype=np.uint8)
        windows = [s for s, kind in enumerate(self.kinds) if kind == "window"]
        self.windows, self.sums = FastWindows(len(windows)), FastSums()
        self.values = {
            s: StoredValues(cell) for s, (cell, kind) in enumerate(states) if kind == "handle"
        }
        rows = [_state_row(cell, kind) for cell, kind in states]
        self.table = np.array(rows, dtype=np.int64).reshape(len(states), 11)
        self.table[windows, WINDOW] = np.arange(len(windows))
        for state, kind in enumerate(self.kinds):
            if kind == "sum" or self.table[state, DOUBLES]:
                default = self.table[state : state + 1, DEFAULT].copy()
                self.sums.fit_values(state, default, np.ones(1, dtype=np.bool_), self.table)
        self._requests: list[tuple[int, FastMerge | FastRead]] = []
        """The requests of all programs, one program after the other, with their numbers."""
        self._plan = np.zeros((0, 8), dtype=np.int64)
        self._programs = np.zeros((0, 3), dtype=np.int64)
        self._ports: list[int] = []

    def plan(
        self, programs: Sequence[RequestProgram], requests: Mapping[int, FastMerge | FastRead]
    ) -> None:
        """Set which programs visit rows; `requests` are those to fast states, by their number."""
        self._programs = np.zeros((len(programs), 3), dtype=np.int64)
        self._ports = [program.port for program in programs]
        for number, program in enumerate(programs):
            mine = [(n, requests[n]) for n in program.requests if n in requests]
            start = len(self._requests)
            self._programs[number, :2] = start, start + len(mine)
            self._requests += mine
        self._plan = np.full((len(self._requests), 8), -1, dtype=np.int64)
        for row, (_, request) in zip(self._plan, self._requests, strict=True):
            row[:2] = self._op(request), request.state
            row[DEFERS] = isinstance(request, FastRead) and request.defers

    def _op(self, request: FastMerge | FastRead) -> int:
        kind = self.kinds[request.state]
        if isinstance(request, FastRead):
            return read_op(kind)
        return merge_op(request.step, self.states[request.state], kind)

    # --- groups ------------------------------------------------------------------------------

    def reset(self, groups: Int64s, capacity: int) -> None:
        """Make room for the groups below `capacity`; give these groups cells without merges."""
        self.cells = grown(self.cells, capacity)
        self.flags = grown(self.flags, capacity)
        self.windows.grow(capacity)
        self.sums.grow(capacity)
        for values in self.values.values():
            values.grow(capacity)
        reset_cells(groups, self.table, self.cells, self.flags, self.sums.limbs, self.windows.heads)

    def merged(self, state: int, groups: Int64s) -> npt.NDArray[np.bool_]:
        """Return which of these groups have a cell of this state."""
        if self.kinds[state] == "window":
            held: npt.NDArray[np.bool_] = self.windows.heads[groups, self._window(state), HEAD] >= 0
            return held
        merged: npt.NDArray[np.bool_] = self.cells[groups, 2 * state + 1] != START
        return merged

    def _window(self, state: int) -> int:
        return int(self.table[state, WINDOW])

    def drop(self, groups: Int64s, time: int) -> None:
        """Forget cells of these groups that are the default for every read from this time on."""
        for state, cell in enumerate(self.states):
            if cell.last is not None:
                drop_merges(
                    groups,
                    state,
                    time - cell.last,
                    self.table,
                    self.sums.limbs,
                    self.windows.heads,
                    self.windows.pool,
                    self.windows.free,
                )
            elif cell.expires is not None:
                times = self.cells[groups, 2 * state + 1]
                gone = groups[(times != START) & (times <= time - cell.expires)]
                self.cells[gone, 2 * state] = self.table[state, DEFAULT]
                self.cells[gone, 2 * state + 1] = START
                self.flags[gone, state] = self.table[state, DEFAULT_FLAGS]
                if state in self.values:
                    self.values[state].forget(gone)

    def push(self, state: int, groups: Int64s, times: Int64s, values: Int64s) -> None:
        """Append merges, in order of time, to the windows of their groups in a state."""
        if self.table[state, DOUBLES]:
            everything = np.ones(len(values), dtype=np.bool_)
            self.sums.fit_values(state, values, everything, self.table)
        self.windows.make_room(len(groups))
        push_merges(
            groups,
            state,
            times,
            values,
            self.table,
            self.sums.limbs,
            self.windows.heads,
            self.windows.pool,
            self.windows.free,
        )

    # --- requests ----------------------------------------------------------------------------

    def run(
        self, visits: Visits, slices: Sequence[Batch], groups: Sequence[Int64s], right_from: int
    ) -> dict[int, pa.Array]:
        """Run all requests in order; return the answers of the reads, by the reads' numbers."""
        table, programs = self._plan.copy(), self._programs.copy()
        starts = np.cumsum([0, *(len(g) for g in groups)])
        vs = [b.vs if len(g) else g for b, g in zip(slices, groups, strict=True)]
        programs[:, 2] = starts[self._ports]
        args, masks = self._arguments(slices, table)
        rows, reads = len(slices[0]), 0
        for row, (_, request) in zip(table, self._requests, strict=True):
            if isinstance(request, FastRead):
                row[ANSWERS], reads = rows * reads, reads + 1
        answers = np.empty(rows * reads, dtype=np.int64)
        flags = np.empty(rows * reads, dtype=np.uint8)
        failed = np.zeros(2, dtype=np.int64)
        how = run_requests(
            visits.only,
            visits.programs,
            visits.rows,
            visits.count,
            programs,
            table,
            self.table,
            args,
            args.view(np.float64),
            masks,
            _joined(groups),
            _joined(vs),
            self.cells,
            self.cells.view(np.float64),
            self.flags,
            self.sums.limbs,
            self.sums.digits,
            self.windows.heads,
            self.windows.pool,
            self.windows.free,
            answers,
            answers.view(np.float64),
            flags,
            right_from,
            failed,
        )
        if how != FINE:
            raise FastFailure(how, self._requests[int(failed[0])][0], int(failed[1]))
        columns = {}
        for row, (number, request) in zip(table, self._requests, strict=True):
            if isinstance(request, FastRead):
                mine = slice(row[ANSWERS], row[ANSWERS] + rows)
                columns[number] = self.answers(request.state, answers[mine], flags[mine])
        self._settle(groups)
        return columns

    def _arguments(
        self, slices: Sequence[Batch], table: Int64s
    ) -> tuple[Int64s, npt.NDArray[np.uint8]]:
        arguments, pushes = FastArguments(), 0
        for row, (_, request) in zip(table, self._requests, strict=True):
            if not isinstance(request, FastMerge) or not len(slices[request.port]):
                continue
            columns, step = slices[request.port].columns, 1
            if request.argument is None:
                assert request.constant is not None
                column, step = request.constant, 0
            else:
                column = columns[request.argument]
            condition = None if request.condition is None else columns[request.condition]
            counted = arguments.add_condition(row, condition)
            if request.state in self.values:
                arguments.add(row, self.values[request.state].bring(column), step)
                continue
            bits = to_bits(column)
            arguments.add(row, bits, step)
            null = arguments.add_nulls(row, column, len(slices[request.port]))
            if self.kinds[request.state] == "window":
                pushes += len(slices[request.port])
            if self.kinds[request.state] == "sum" or self.table[request.state, DOUBLES]:
                mask = np.ones(len(bits), dtype=np.bool_)
                mask = mask if counted is None or not step else counted
                mask = mask if null is None else mask & ~null[: len(bits)]
                self.sums.fit_values(request.state, bits, mask, self.table)
        self.windows.make_room(pushes)
        return arguments.flat()

    def answers(self, state: int, bits: Int64s, flags: npt.NDArray[np.uint8]) -> pa.Array:
        """Return the values of cells as a column."""
        if state in self.values:
            return self.values[state].answers(bits)
        return from_bits(bits, flags != 0, self.states[state].type)

    def _settle(self, groups: Sequence[Int64s]) -> None:
        """Store the new values of this slice."""
        for state, values in self.values.items():
            merges = (r for _, r in self._requests if isinstance(r, FastMerge))
            ports = {r.port for r in merges if r.state == state}
            touched = each_once(np.concatenate([_NONE, *(groups[port] for port in ports)]))
            touched = touched[touched >= 0]
            handles = values.settle(touched, self.cells[touched, 2 * state])
            self.cells[touched, 2 * state] = handles


def _state_row(cell: Cell, kind: FastKind) -> tuple[int, ...]:
    """Return a state's row in the compiled loop's table; limbs and windows are numbered later."""
    bits, flags = -1, 0  # for a handle: no value is stored
    if kind != "handle":
        default = default_column(cell)
        flags = NULL if default.null_count else 0
        bits = 0 if flags else int(to_bits(default)[0])
    expires = -1 if cell.expires is None else cell.expires
    doubles = kind == "window" and cell.type == DOUBLE
    return bits, flags, expires, *value_range(cell.type), cell.last or 0, 0, 0, 0, -1, int(doubles)


def _joined(parts: Sequence[Int64s]) -> Int64s:
    """Concatenate the parts; usually, one of them has all rows."""
    filled = [part for part in parts if len(part)]
    if len(filled) == 1:
        return filled[0]
    return np.concatenate(filled) if filled else _NONE
