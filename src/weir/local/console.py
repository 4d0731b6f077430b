"""Keeps the first rows of outputs that are printed: those TO 'console:', and all with a limit."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from weir.events.batch import Batch, concat_batches, empty_batch, times
from weir.events.order import in_order
from weir.plan.program import Output
from weir.runtime.outputs import output_schema


class FirstRows:
    """Holds the first rows of each output, in the order in which a file would have them."""

    def __init__(self, outputs: Sequence[Output], limit: int) -> None:
        self._outputs, self._limit = outputs, limit
        self._rows = [empty_batch(output_schema(o).types) for o in outputs]

    def take(self, number: int, rows: Batch) -> None:
        """Take rows of an output, of which only those that may be among the first are kept."""
        plain = Batch(rows.vs, rows.ve, rows.columns)
        together = in_order(concat_batches([self._rows[number], plain]))
        self._rows[number] = together.slice(0, min(self._limit, len(together)))

    def table(self, number: int) -> pa.Table:
        """Return the first rows of an output: vs, ve, then the payload (bad rows have no times)."""
        output, rows = self._outputs[number], self._rows[number]
        shape = output_schema(output)
        names, columns = list(shape.names), list(rows.columns)
        if output.kind != "bad":
            names = ["vs", "ve", *names]
            columns = [times(rows.vs, shape.time), times(rows.ve, shape.time), *columns]
        return pa.Table.from_arrays(columns, names=names)
