"""Lays the arguments of a slice's requests end to end, for the compiled loop.

Each row of the table of requests has where the values of a request begin, the step from one row's
value to the next (0 for a constant, which is there once), and where its masks begin: that of a
condition, and that of NULLs (−1 where there is none).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from weir.events.batch import Int64s
from weir.kernels.structures.fast_cells_loops import ARGUMENTS, CONDITIONS, NULLS, STEP
from weir.kernels.structures.rows import valid_mask

RowMarks = npt.NDArray[np.bool_]


class FastArguments:
    """`FastArguments` collects the values and masks of requests."""

    def __init__(self) -> None:
        self._values: list[Int64s] = []
        self._masks: list[RowMarks] = []
        self._value_count = self._mask_count = 0

    def add(self, request: Int64s, values: Int64s, step: int) -> None:
        """Add the values that a request takes, one for each row of its port, or (`step` 0) one for
        all."""
        request[ARGUMENTS], request[STEP] = self._value_count, step
        self._values.append(values)
        self._value_count += len(values)

    def add_condition(self, request: Int64s, condition: pa.Array | None) -> RowMarks | None:
        """Add the condition under which rows make the request; return it as a mask."""
        if condition is None:
            return None
        holds = condition.fill_null(False).to_numpy(zero_copy_only=False)
        return self._add_mask(request, CONDITIONS, np.asarray(holds, dtype=np.bool_))

    def add_nulls(self, request: Int64s, column: pa.Array, rows: int) -> RowMarks | None:
        """Add for which rows the value is NULL; return it as a mask."""
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
        """Return all values and all masks."""
        values = self._values or [np.empty(0, dtype=np.int64)]
        masks = self._masks or [np.empty(0, dtype=np.bool_)]
        one = values[0] if len(values) == 1 else np.concatenate(values)
        mask = masks[0] if len(masks) == 1 else np.concatenate(masks)
        return one, mask.view(np.uint8)
