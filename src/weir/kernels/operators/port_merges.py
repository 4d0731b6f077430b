"""Merges rows from the ports of other handlers into the cells of a row scan, one row at a time."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence

from weir.events.batch import Batch
from weir.kernels.expressions.user_calls import python_values
from weir.kernels.operators.slow_cells import (
    function_failure,
    merge_arguments,
    merge_condition,
    scan_failure,
)
from weir.kernels.structures.cells import CellTable
from weir.kernels.structures.live_cells import cell_key
from weir.plan.saved_states import saved_name
from weir.plan.schema import Schema
from weir.plan.states import CellFailure, StateMerge
from weir.plan.usercode.made_functions import plain_function

MergeRow = Callable[[int], None]
"""Runs a merge for the row of this number."""


class PortMerges:
    """The merges that the rows of one port do."""

    def __init__(
        self,
        merges: Sequence[StateMerge],
        keys: Sequence[str],
        rows: Schema,
        tables: Sequence[CellTable],
        port: int,
    ) -> None:
        self._merges, self._keys, self._schema = merges, keys, rows
        self._tables, self._port = tables, port
        self._functions = {
            saved_name(m.function): plain_function(m.function.function)
            for m in merges
            if m.function is not None
        }

    def prepared(self, batch: Batch) -> list[MergeRow]:
        """Return one function for each merge, which runs it for a row of this batch."""
        names = self._schema
        columns = [python_values(batch.columns[names.index(key)]) for key in self._keys]
        parts = list(zip(*columns, strict=True)) if columns else [()] * len(batch)
        keys = [cell_key(key) for key in parts]
        return [self._merge_row(merge, batch, keys) for merge in self._merges]

    def _merge_row(self, merge: StateMerge, batch: Batch, keys: Sequence[Hashable]) -> MergeRow:
        rows, times = self._schema, batch.vs.tolist()
        args, holds = merge_arguments(merge, batch, rows), merge_condition(merge, batch, rows)
        table, function = self._tables[merge.state], merge.function
        name = "" if function is None else saved_name(function)
        call = self._functions.get(name)

        def merge_row(row: int) -> None:
            if holds is not None and not holds[row]:
                return
            try:
                table.merge(keys[row], times[row], merge.kind, args[row], call, name)
            except CellFailure as failure:
                why, port = str(failure), self._port
                raise scan_failure(why, merge.at, rows, self._keys, batch, row, port) from None
            except BaseException as error:
                if function is None:
                    raise
                raise function_failure(function, error, batch, rows, row, self._port) from error

        return merge_row
