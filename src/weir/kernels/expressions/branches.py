"""Evaluates AND, OR, COALESCE and CASE, which do not evaluate every part for every row.

A part is first run on the whole batch, and only the values of the rows that reach it are used. That
is fast, and right as long as nothing fails. If something fails, or if the part calls the user's
code, it is run only on the rows that reach it; a failure there is a failure of the program.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from weir.events.batch import Batch
from weir.events.order import RowIndices
from weir.events.types import BOOLEAN
from weir.kernels.expressions.evaluation import Datum, Mask, RowFailure, as_array, assemble

_ASKED = 1024
"""The size of the slices that are computed row by row after one of their rows failed."""


@dataclass(frozen=True, slots=True)
class Part:
    """A compiled expression; `run` returns a scalar exactly if `constant` is one.

    `columns` are the indices of the columns that it reads; `calls_user` is whether it runs the
    user's code.
    """

    run: Callable[[Batch], Datum]
    type: pa.DataType
    constant: pa.Scalar | None = None
    columns: frozenset[int] = frozenset()
    calls_user: bool = False

    def array(self, batch: Batch) -> pa.Array:
        return as_array(self.run(batch), len(batch))


def constant_part(scalar: pa.Scalar) -> Part:
    return Part(lambda batch: scalar, scalar.type, constant=scalar)


def made_of(parts: Sequence[Part], run: Callable[[Batch], Datum], dtype: pa.DataType) -> Part:
    """Make a part that combines parts, and so reads all columns that they read."""
    columns: frozenset[int] = frozenset().union(*(p.columns for p in parts))
    return Part(run, dtype, columns=columns, calls_user=any(p.calls_user for p in parts))


def _connective(name: str, parts: Sequence[Part]) -> Part:
    """Make a part for three-valued AND or OR; the left side decides which rows reach the right."""
    combine = pc.and_kleene if name == "and" else pc.or_kleene
    deciding = name == "or"

    def run(batch: Batch) -> Datum:
        result = parts[0].run(batch)
        for part in parts[1:]:
            value = _tried(part, batch)
            if value is None:
                left = as_array(result, len(batch))
                decided = _true_rows(left if deciding else pc.invert(left))
                value = _on_rows(part, batch, np.flatnonzero(~decided))
            result = combine(result, value)
        return result

    if all(p.constant is not None for p in parts):
        scalar = parts[0].constant
        for part in parts[1:]:
            scalar = combine(scalar, part.constant)
        return constant_part(scalar)
    return made_of(parts, run, BOOLEAN)


def _coalesce(parts: Sequence[Part], dtype: pa.DataType) -> Part:
    """Make a part for the first value that is not NULL.

    Rows reach an argument if all arguments before it are NULL."""
    parts = [p for p in parts if p.constant is None or p.constant.is_valid]
    for index, part in enumerate(parts):
        if part.constant is not None:
            parts = parts[: index + 1]
            break
    if not parts:
        return constant_part(pa.scalar(None, dtype))
    if len(parts) == 1:
        return parts[0]

    def run(batch: Batch) -> Datum:
        result = parts[0].run(batch)
        for part in parts[1:]:
            if not result.null_count:
                break
            value = _tried(part, batch)
            if value is None:
                value = _on_rows(part, batch, np.flatnonzero(np.asarray(result.is_null())))
            result = pc.coalesce(result, value)
        return result

    return made_of(parts, run, dtype)


def case(branches: Sequence[tuple[Part, Part]], otherwise: Part, dtype: pa.DataType) -> Part:
    """Make a part for CASE: the value of the first branch whose condition is true."""
    branches, otherwise = _without_constants(branches, otherwise)
    if not branches:
        return otherwise
    parts = [*(p for branch in branches for p in branch), otherwise]
    calls_user = any(p.calls_user for p in parts)

    def run(batch: Batch) -> Datum:
        if not calls_user:
            try:
                return _whole(branches, otherwise, batch)
            except RowFailure:
                pass  # perhaps on rows that do not reach it
        return _by_branch(branches, otherwise, batch, dtype)

    return made_of(parts, run, dtype)


def _or_row_by_row(vector: Part, rows: Part) -> Part:
    """Make a part with the values of `vector`; in slices where that fails, with those of `rows`.

    Both compute the same. Failures of `rows` are the program's; failures of `vector` are ignored.
    """
    if vector.constant is not None:
        return vector

    def run(batch: Batch) -> Datum:
        try:
            return vector.run(batch)
        except RowFailure:
            if len(batch) <= _ASKED:
                return rows.run(batch)
        return pa.concat_arrays(list(_slices(vector, rows, batch)))

    # Python's own operations have no side effects: they may be tried on rows that do not reach
    # them.
    return replace(made_of([vector, rows], run, rows.type), calls_user=vector.calls_user)


def _or_null(part: Part) -> Part:
    """Make a part that is NULL on rows where the given part fails."""
    if part.constant is not None:
        return part

    def run(batch: Batch) -> Datum:
        try:
            return part.array(batch)
        except RowFailure:
            if len(batch) == 1:
                return pa.nulls(1, part.type)
        half = len(batch) // 2
        parts = [run(batch.slice(0, half)), run(batch.slice(half, len(batch)))]
        return pa.concat_arrays([as_array(p, 0) for p in parts])

    return made_of([part], run, part.type)


def _slices(vector: Part, rows: Part, batch: Batch) -> Iterator[pa.Array]:
    for start in range(0, len(batch), _ASKED):
        part = batch.slice(start, min(start + _ASKED, len(batch)))
        try:
            yield as_array(vector.run(part), len(part))
            continue
        except RowFailure:
            pass
        try:
            yield as_array(rows.run(part), len(part))
        except RowFailure as failure:
            raise failure.moved_to(start + failure.row) from failure.__cause__


def _without_constants(
    branches: Sequence[tuple[Part, Part]], otherwise: Part
) -> tuple[Sequence[tuple[Part, Part]], Part]:
    open_branches: list[tuple[Part, Part]] = []
    for condition, value in branches:
        if condition.constant is None:
            open_branches.append((condition, value))
        elif condition.constant.as_py():
            return open_branches, value
    return open_branches, otherwise


def _whole(branches: Sequence[tuple[Part, Part]], otherwise: Part, batch: Batch) -> pa.Array:
    result = otherwise.run(batch)
    for condition, value in reversed(branches):
        holds = condition.run(batch)
        if holds.null_count:
            holds = pc.fill_null(holds, False)
        result = pc.if_else(holds, value.run(batch), result)
    return result


def _by_branch(
    branches: Sequence[tuple[Part, Part]], otherwise: Part, batch: Batch, dtype: pa.DataType
) -> pa.Array:
    left = np.arange(len(batch), dtype=np.intp)
    pieces: list[tuple[RowIndices, pa.Array]] = []
    for condition, value in branches:
        holds = _true_rows(_values(condition, batch, left))
        reached = left[holds]
        pieces.append((reached, _values(value, batch, reached)))
        left = left[~holds]
    pieces.append((left, _values(otherwise, batch, left)))
    return assemble(len(batch), dtype, pieces)


# --- parts of batches ----------------------------------------------------------------------


def _tried(part: Part, batch: Batch) -> Datum | None:
    """Return the part's values for all rows, or None if it must run only on rows that reach it."""
    if part.calls_user:
        return None
    try:
        return part.run(batch)
    except RowFailure:
        return None


def _true_rows(condition: pa.Array) -> Mask:
    if condition.null_count:
        condition = pc.fill_null(condition, False)
    return np.asarray(condition)


def _on_rows(part: Part, batch: Batch, rows: RowIndices) -> pa.Array:
    """Return the part's values at these rows, NULL elsewhere."""
    return assemble(len(batch), part.type, [(rows, _values(part, batch, rows))])


def _values(part: Part, batch: Batch, rows: RowIndices) -> pa.Array:
    if len(rows) == len(batch):
        return part.array(batch)
    if not len(rows):
        return pa.nulls(0, part.type)
    indices = pa.array(rows)
    # Columns that the part does not read stay as they are.
    columns = tuple(
        c.take(indices) if index in part.columns else c for index, c in enumerate(batch.columns)
    )
    try:
        return part.array(Batch(batch.vs[rows], batch.ve[rows], columns))
    except RowFailure as failure:
        raise failure.moved_to(int(rows[failure.row])) from failure.__cause__


LAZY: Mapping[str, Callable[[Sequence[Part], pa.DataType], Part]] = {
    "and": lambda parts, _: _connective("and", parts),
    "or": lambda parts, _: _connective("or", parts),
    "coalesce": _coalesce,
    "py_rows": lambda parts, _: _or_row_by_row(*parts),
    "py_tried": lambda parts, _: _or_null(*parts),
}
"""The functions that evaluate an argument only on the rows that reach it."""
