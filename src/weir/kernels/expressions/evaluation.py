"""The contract and the types that the evaluator and the built-in functions share.

Contract
1. A *builder* gets a `Site` (types and constants of one call) and returns a function over Arrow
   data: arrays for columns, scalars for constants, at least one of them an array. The result is an
   array of the same length and of the site's type.
2. For a value that it cannot compute with, a function raises `RowFailure(row, why)` or any
   `pa.ArrowInvalid`; for the latter, the evaluator finds the row. Neither leaves the package:
   `compile_expression` turns them into an error that names the event.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from weir.errors import Position, ProgramPlace
from weir.events.batch import OPEN
from weir.events.python_lists import python_list
from weir.events.types import BIGINT, DATE, TIMESTAMP
from weir.events.value_text import format_dates, format_timestamps

Datum: TypeAlias = pa.Array | pa.Scalar
ArrayFunction = Callable[..., pa.Array]
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Site:
    """The types and constants of one call, known before the first row."""

    function: str
    type: pa.DataType
    arg_types: tuple[pa.DataType, ...]
    constants: tuple[pa.Scalar | None, ...]

    def constant(self, index: int) -> object:
        """Return the value of an argument that is always a literal."""
        scalar = self.constants[index]
        assert scalar is not None, f"{self.function}: argument {index + 1} is not a constant"
        value: object = scalar.as_py()
        return value


Builder = Callable[[Site], ArrayFunction]


@dataclass(frozen=True, slots=True)
class UserCode:
    """The line at which the user's own code failed.

    `place` points into it where code of the user raised."""

    function: str
    file: str
    line: int
    place: ProgramPlace | None = None


class RowFailure(Exception):
    """The expression cannot be computed for this row; `place` is where it stands in the program."""

    def __init__(
        self,
        row: int,
        why: str,
        user_code: UserCode | None = None,
        place: Position | None = None,
    ) -> None:
        super().__init__(why)
        self.row, self.why, self.user_code, self.place = row, why, user_code, place

    def moved_to(self, row: int) -> RowFailure:
        """Return the same failure, at this row of a larger batch."""
        moved = RowFailure(row, self.why, self.user_code, self.place)
        moved.__cause__ = self.__cause__
        return moved


def shown_value(scalar: pa.Scalar) -> object:
    """Return a value as messages show it: times as ISO 8601.

    >>> shown_value(pa.scalar([0], pa.list_(pa.timestamp("us", "UTC"))))
    ['1970-01-01T00:00:00Z']
    """
    dtype = scalar.type
    if not scalar.is_valid:
        return None
    if pa.types.is_timestamp(dtype) or pa.types.is_date32(dtype):
        write = format_dates if dtype == DATE else format_timestamps
        return write(pa.repeat(scalar, 1))[0].as_py().replace(".000000Z", "Z")
    if pa.types.is_list(dtype):
        return [shown_value(element) for element in scalar]
    if pa.types.is_struct(dtype):
        return {name: shown_value(value) for name, value in scalar.items()}
    return scalar.as_py()


def shown_python(value: object) -> object:
    """Return an argument of the user's code as messages show it."""
    match value:
        case datetime():
            return shown_value(pa.scalar(value, TIMESTAMP))
        case date():
            return value.isoformat()
        case list() | tuple():
            return [shown_python(element) for element in value]
        case dict():
            return {name: shown_python(element) for name, element in value.items()}
    return value


def shown_time(ticks: int, time: pa.DataType) -> object:
    """Return a bound of a lifetime as messages show it: a number or ISO 8601.

    An open end is None."""
    if ticks == OPEN:
        return None
    return ticks if time == BIGINT else shown_value(pa.scalar(ticks, time))


def plain(function: ArrayFunction) -> Builder:
    """Make a builder for a function that needs neither types nor constants."""
    return lambda site: function


def length_of(args: Sequence[Datum]) -> int:
    return next(len(a) for a in args if isinstance(a, pa.Array))


def as_array(datum: Datum, length: int) -> pa.Array:
    if isinstance(datum, pa.Array):
        return datum
    if not datum.is_valid or not length:  # Arrow cannot repeat a list zero times
        return pa.nulls(length, datum.type)
    return pa.repeat(datum, length)


def spread(function: ArrayFunction) -> ArrayFunction:
    """Make a function of arrays accept constants too, by repeating them."""

    def run(*args: Datum) -> pa.Array:
        length = length_of(args)
        return function(*(as_array(a, length) for a in args))

    return run


def valid_rows(*columns: pa.Array) -> Mask | None:
    """Return the mask of rows in which no column is NULL, or None if that is all rows."""
    masks = [np.asarray(c.is_valid()) for c in columns if c.null_count]
    return np.logical_and.reduce(masks) if masks else None


def with_nulls(values: npt.NDArray[np.generic], valid: Mask | None) -> pa.Array:
    return pa.array(values) if valid is None else pa.array(values, mask=~valid)


def numbers(column: pa.Array) -> npt.NDArray[np.generic]:
    """Return the values of a fixed-width column; the numbers in place of NULLs are arbitrary."""
    if column.null_count:
        column = pc.fill_null(column, 0)
    return np.asarray(column.to_numpy(zero_copy_only=False))


def fail_where(bad: Mask, valid: Mask | None, why: Callable[[int], str]) -> None:
    """Raise RowFailure for the first bad row that is not NULL."""
    if valid is not None:
        bad = bad & valid
    if bad.any():
        row = int(np.argmax(bad))
        raise RowFailure(row, why(row))


def by_value(function: ArrayFunction) -> Builder:
    """Make `function(array, *plain values)` accept columns for the plain values too.

    It is called once for each combination of values: such arguments are nearly always one constant.
    """

    def build(site: Site) -> ArrayFunction:
        def run(column: Datum, *params: Datum) -> pa.Array:
            if isinstance(column, pa.Array) and all(isinstance(p, pa.Scalar) for p in params):
                return function(column, *(p.as_py() for p in params))
            return _in_groups(function, (column, *params), site.type)

        return run

    return build


def _in_groups(function: ArrayFunction, args: Sequence[Datum], dtype: pa.DataType) -> pa.Array:
    length = length_of(args)
    column, *params = (as_array(a, length) for a in args)
    groups: dict[tuple[object, ...], list[int]] = {}
    for row, key in enumerate(zip(*(python_list(p) for p in params), strict=True)):
        if None not in key:
            groups.setdefault(key, []).append(row)
    parts = []
    for key, rows in groups.items():
        try:
            parts.append((rows, function(column.take(pa.array(rows)), *key)))
        except RowFailure as failure:
            raise failure.moved_to(rows[failure.row]) from None
    return assemble(length, dtype, parts)


def assemble(
    length: int,
    dtype: pa.DataType,
    parts: Sequence[tuple[Sequence[int] | npt.NDArray[np.intp], pa.Array]],
) -> pa.Array:
    """Assemble an array from parts, each with the values of some rows; other rows are NULL."""
    indices = np.full(length, -1, dtype=np.int64)
    start = 0
    for rows, values in parts:
        indices[rows] = np.arange(start, start + len(values))
        start += len(values)
    if not start:
        return pa.nulls(length, dtype)
    together = pa.concat_arrays([values.cast(dtype) for _, values in parts])
    return together.take(pa.array(indices, mask=indices < 0))
