"""A cell scan runs the requests of a slice in order, and keeps the cells of a scan's states.

State scans and final states share it: keys as numbers of groups, cells that are fast
(`fast_cells.py`) or Python objects (`slow_cells.py`), snapshots, and the saved cells from which a
run continues. States are independent: each sees its own requests in order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from weir.errors import EventFailed
from weir.events.batch import OPEN, START, Batch, Int64s
from weir.events.types import type_name
from weir.kernels.kernel import Tables, rows_table, table_rows
from weir.kernels.operators.slow_cells import SlowCells, scan_failure
from weir.kernels.structures.cell_groups import CellGroups
from weir.kernels.structures.cells import Sweeps, into_null
from weir.kernels.structures.fast_cells import FastCells, FastFailure
from weir.kernels.structures.fast_cells_loops import NULL_ARGUMENT, NULL_CELL
from weir.kernels.structures.fast_kinds import FastKind, FastMerge, FastRead, fast_kind, merge_step
from weir.kernels.structures.fast_saved import fast_rows, load_fast
from weir.kernels.structures.key_hashes import Hashes
from weir.kernels.structures.requests import (
    RequestProgram,
    StateRequest,
    ordered_visits,
    request_programs,
)
from weir.kernels.structures.saved_cells import check_restored, first_request
from weir.plan.saved_states import argument_type, saved_calls, state_schema
from weir.plan.schema import Schema
from weir.plan.states import Cell, StateMerge, StateRead

_NOBODY = np.empty(0, dtype=np.int64)


class CellScan:
    """Keeps cells by group, and merges and reads them in the order of requests."""

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
        """Make a scan; `restored` maps each port that brings saved cells to its state."""
        self._inputs, self._depth, self._states = inputs, depth, states
        self._key_names, self._restored = keys, restored
        self._keys = [[s.index(k) for k in ks] for s, ks in zip(inputs, keys, strict=True)]
        self._groups = CellGroups([inputs[0].type_of(name) for name in keys[0]])
        self._merges = [(port, m) for port, of_port in enumerate(merges) for m in of_port]
        self._reads = list(reads)
        self._calls = [
            saved_calls([[m for m in ms if m.state == s] for ms in merges], inputs)
            for s in range(len(states))
        ]
        kinds = [self._kind(s) for s in range(len(states))]
        fast = [s for s, kind in enumerate(kinds) if kind is not None]
        self._fast_number = {s: number for number, s in enumerate(fast)}
        self._fast = FastCells([(states[s], kind) for s, kind in enumerate(kinds) if kind])
        self._slow = SlowCells(
            {s: cell for s, cell in enumerate(states) if kinds[s] is None},
            inputs,
            keys,
            self._merges,
            self._reads,
        )
        self._programs: tuple[RequestProgram, ...] = ()
        self._sweeps = Sweeps(states)
        self._first = OPEN
        """The time of the first request."""
        self._ends = any(c.last is not None or c.expires is not None for c in states)

    def _kind(self, state: int) -> FastKind | None:
        mine = [(p, m) for p, m in self._merges if m.state == state]
        return fast_kind(
            self._states[state],
            [(m, [argument_type(arg, self._inputs[p]) for arg in m.args]) for p, m in mine],
        )

    @property
    def state_rows(self) -> int:
        return len(self._groups) + self._fast.windows.held + self._slow.held_in_windows

    # --- requests ----------------------------------------------------------------------------

    def run(self, slices: Sequence[Batch], right_from: int = START) -> list[pa.Array]:
        """Run all requests of these rows; return a column of answers for each read.

        Windows are not folded for rows before `right_from`, which are not needed.
        """
        self._first = min(self._first, first_request(slices, self._restored))
        for port, state in self._restored.items():
            if len(slices[port]):
                check_restored(self._states[state], slices[port], self._first)
                self._restore(state, slices[port], self._inputs[port].names, self._keys[port])
        if not self._programs:
            self._plan(slices)
        groups = self._groups_of(slices)
        visits = ordered_visits(self._programs, slices, self._depth)
        try:
            answers = self._fast.run(visits, slices, groups, right_from)
        except FastFailure as failure:
            raise self._named(failure, slices) from None
        if self._slow:
            answers |= self._slow.run(self._programs, visits, slices, groups, right_from)
        return [answers[len(self._merges) + i] for i in range(len(self._reads))]

    def _plan(self, slices: Sequence[Batch]) -> None:
        merges = [
            StateRequest(port, m.block, m.order, i) for i, (port, m) in enumerate(self._merges)
        ]
        first = len(merges)
        reads = [StateRequest(0, r.block, r.order, first + i) for i, r in enumerate(self._reads)]
        nested = [len(batch.origin) > self._depth for batch in slices]
        self._programs = request_programs([*merges, *reads], nested)
        requests: dict[int, FastMerge | FastRead] = {}
        for i, (port, m) in enumerate(self._merges):
            if m.state in self._fast_number:
                rows = self._inputs[port]
                condition = None if m.condition is None else rows.index(m.condition)
                state = self._fast_number[m.state]
                (arg,) = m.args
                column = constant = None
                if isinstance(arg, str):
                    column = rows.index(arg)
                else:
                    constant = pa.array([arg.value], arg.type)
                requests[i] = FastMerge(state, merge_step(m), port, column, condition, constant)
        for i, read in enumerate(self._reads):
            if read.state in self._fast_number:
                requests[first + i] = FastRead(self._fast_number[read.state], read.defers)
        self._fast.plan(self._programs, requests)

    def _groups_of(self, slices: Sequence[Batch]) -> list[Int64s]:
        """Return the groups of all rows.

        Rows that merge create their groups; other rows may have none."""
        result = [_NOBODY] * len(slices)
        later: list[tuple[int, Hashes, Int64s]] = []
        for port, batch in enumerate(slices):
            merges = [m for p, m in self._merges if p == port]
            if not len(batch) or (port and not merges):
                continue
            keys = [batch.columns[i] for i in self._keys[port]]
            hashes = self._groups.hashes(keys, len(batch))
            merging = self._merging(batch, port, merges)
            if merging is None or merging.all():
                result[port] = self._groups.encode(keys, hashes)
                continue
            rows, others = np.flatnonzero(merging), np.flatnonzero(~merging)
            result[port] = np.empty(len(batch), dtype=np.int64)
            result[port][rows] = self._groups.encode(keys, hashes, rows)
            later.append((port, hashes, others))
        for port, (first, second), others in later:  # after all rows that may create groups
            result[port][others] = self._groups.find((first[others], second[others]))
        self._fast.reset(self._groups.take_fresh(), self._groups.capacity)
        return result

    def _merging(
        self, batch: Batch, port: int, merges: Sequence[StateMerge]
    ) -> npt.NDArray[np.bool_] | None:
        """Return the mask of the rows that merge something, or None if all do."""
        mask = np.zeros(len(batch), dtype=np.bool_)
        for merge in merges:
            if merge.condition is None:
                return None
            column = batch.columns[self._inputs[port].index(merge.condition)]
            mask |= column.fill_null(False).to_numpy(zero_copy_only=False)
        return mask

    def _named(self, failure: FastFailure, slices: Sequence[Batch]) -> EventFailed:
        merging = failure.request < len(self._merges)
        port, kind, state = 0, "reading", -1
        if merging:
            port, merge = self._merges[failure.request]
            kind, state, at = merge.kind, merge.state, merge.at
        else:
            read = self._reads[failure.request - len(self._merges)]
            state, at = read.state, read.at
        cell = self._states[state]
        if failure.how == NULL_ARGUMENT:
            why = f"{kind} of NULL into a cell of {cell.state}"
        elif failure.how == NULL_CELL:
            why = f"{kind} {into_null(cell)}"
        else:
            why = f"overflow: {kind} state {cell.state} gives a value beyond {type_name(cell.type)}"
        rows, keys = self._inputs[port], self._key_names[port]
        return scan_failure(why, at, rows, keys, slices[port], failure.row, port)

    # --- keeping -----------------------------------------------------------------------------

    def forget(self, time: int) -> None:
        """Call `drop` if it is worth it."""
        if self._sweeps.is_due(self.state_rows, time):
            self.drop(time)

    def drop(self, time: int) -> None:
        """Drop cells that every read from this time on would see as the default."""
        if not self._ends:
            return
        live = self._groups.live()
        self._fast.drop(live, time)
        held = self._slow.drop(live, time)
        for state in self._fast_number.values():
            held |= self._fast.merged(state, live)
        self._groups.release(live[~held])
        self._sweeps.done(self.state_rows, time)

    def rows_of(self, state: int) -> Batch:
        """Return the cells of a state as rows."""
        if state in self._fast_number:
            live = self._groups.live()
            groups, rows = fast_rows(self._fast, self._fast_number[state], live)
        else:
            groups, rows = self._slow.rows(state, self._calls[state])
        return Batch(rows.vs, rows.ve, (*self._groups.keys(groups), *rows.columns))

    def snapshot(self) -> Tables:
        return {
            f"state{s}": rows_table(self.rows_of(s), self._saved_names(s))
            for s in range(len(self._states))
        }

    def load(self, tables: Mapping[str, pa.Table]) -> None:
        for s, cell in enumerate(self._states):
            rows, _ = table_rows(tables[f"state{s}"])
            self._restore(s, rows, self._saved_names(s), range(len(cell.keys)))

    def _saved_names(self, state: int) -> list[str]:
        return [name for name, _ in state_schema(self._states[state], self._calls[state])]

    def _restore(self, state: int, rows: Batch, names: Sequence[str], keys: Sequence[int]) -> None:
        columns = [rows.columns[i] for i in keys]
        groups = self._groups.encode(columns, self._groups.hashes(columns, len(rows)))
        self._fast.reset(self._groups.take_fresh(), self._groups.capacity)
        if state in self._fast_number:
            load_fast(self._fast, self._fast_number[state], groups, rows, names)
        else:
            self._slow.load(state, groups, rows, names)
