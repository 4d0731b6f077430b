"""A moment keeps counts, sums and squares of one column as lanes that can be added and subtracted.

Contract
1. A moment turns rows into int64 lanes: `encode` writes each row's share into a matrix. The sum of
   any rows' shares (and any difference of such sums) is exactly the moment of those rows.
2. `lane_names` are stable: they are the names of a snapshot's columns. When a float moment meets an
   exponent that its limbs do not cover, it widens, and old lanes move to where their names are now.
3. Results are the exact value, rounded once; they are NULL if there are no values.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import ROUND_HALF_EVEN, Context, Decimal
from fractions import Fraction
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from weir.events.batch import Int64s
from weir.events.hashing import decimal_words
from weir.events.types import is_integer, type_name
from weir.kernels.aggregates import exact_loops
from weir.kernels.aggregates.exact import exact_sum, nearest, nearest_root
from weir.kernels.expressions.evaluation import Mask, RowFailure
from weir.kernels.structures.rows import raw_values


class Moment(Protocol):
    """Turns the values of a column into lanes, and sums of lanes into results."""

    @property
    def lane_names(self) -> list[str]: ...
    def fit(self, column: pa.Array | None, counted: Mask) -> bool:
        """Make room for these values; return whether the lanes changed."""
        ...

    def widen(self, low: int, high: int, special: bool) -> bool:
        """Make room for sums with limbs from `low` up to `high`, and for NaN and infinities."""
        ...

    def encode(self, column: pa.Array | None, counted: Mask, lanes: Int64s, at: int) -> None: ...
    def result(self, function: str, lanes: Int64s, dtype: pa.DataType) -> pa.Array: ...
    def load(self, names: list[str]) -> None:
        """Switch to the lanes of a snapshot."""
        ...


def make_moment(dtype: pa.DataType | None, squares: bool) -> Moment:
    if dtype is None:
        return CountMoment()
    if dtype == pa.float64():
        return FloatMoment(squares)
    if pa.types.is_decimal(dtype):
        return DecimalMoment(dtype, squares)
    if is_integer(dtype) or pa.types.is_null(dtype):
        return IntegerMoment(squares)
    return CountMoment()


class _FixedLanes:
    """The methods of moments whose lanes never change."""

    lane_names: list[str]

    def fit(self, column: pa.Array | None, counted: Mask) -> bool:
        return False

    def widen(self, low: int, high: int, special: bool) -> bool:
        return False

    def load(self, names: list[str]) -> None:
        pass


class CountMoment(_FixedLanes):
    """Counts rows, in one lane."""

    def __init__(self) -> None:
        self.lane_names = ["n"]

    def encode(self, column: pa.Array | None, counted: Mask, lanes: Int64s, at: int) -> None:
        lanes[:, at] = counted

    def result(self, function: str, lanes: Int64s, dtype: pa.DataType) -> pa.Array:
        return pa.array(np.ascontiguousarray(lanes[:, 0]))


class IntegerMoment(_FixedLanes):
    """Lanes for n, the sum (two of 32 bits) and the sum of squares (four)."""

    def __init__(self, squares: bool) -> None:
        self._squares = squares
        self.lane_names = ["n", "sum0", "sum1", *(f"square{i}" for i in range(4 * squares))]

    def encode(self, column: pa.Array | None, counted: Mask, lanes: Int64s, at: int) -> None:
        lanes[:, at] = counted
        if column is None or pa.types.is_null(column.type):
            return
        values = np.where(counted, raw_values(column).astype(np.int64), 0)
        lanes[:, at + 1] = values & 0xFFFFFFFF
        lanes[:, at + 2] = values >> 32
        if self._squares:
            self._encode_squares(values, lanes, at + 3)

    @staticmethod
    def _encode_squares(values: Int64s, lanes: Int64s, at: int) -> None:
        # |−2⁶³| fits only an unsigned integer.
        size = np.where(values < 0, np.uint64(0) - values.view(np.uint64), values.view(np.uint64))
        mask, bits = np.uint64(0xFFFFFFFF), np.uint64(32)
        high, low = size >> bits, size & mask
        middle = np.uint64(2) * high * low
        lanes[:, at] = low * low & mask
        lanes[:, at + 1] = (low * low >> bits) + (middle & mask)
        lanes[:, at + 2] = (middle >> bits) + (high * high & mask)
        lanes[:, at + 3] = high * high >> bits

    def result(self, function: str, lanes: Int64s, dtype: pa.DataType) -> pa.Array:
        n = lanes[:, 0]
        match function:
            case "count":
                return pa.array(np.ascontiguousarray(n))
            case "sum":
                return self._sum(lanes, n)
            case "avg":
                return self._average(lanes, n)
            case _:
                return _variance(function, lanes, n, self._exact_moments)

    @staticmethod
    def _carried(lanes: Int64s) -> tuple[Int64s, Int64s]:
        """Return the sum's high part (signed) and its low 32 bits."""
        return lanes[:, 2] + (lanes[:, 1] >> 32), lanes[:, 1] & 0xFFFFFFFF

    def _sum(self, lanes: Int64s, n: Int64s) -> pa.Array:
        high, low = self._carried(lanes)
        beyond = (high < -(2**31)) | (high >= 2**31)
        if beyond.any():
            row = int(np.argmax(beyond))
            total = (int(high[row]) << 32) + int(low[row])
            why = f"integer overflow: a SUM does not fit BIGINT: it is {total}"
            raise RowFailure(row, f"{why}; cast to DECIMAL or DOUBLE")
        return pa.array((high << 32) | low, mask=n == 0)

    def _average(self, lanes: Int64s, n: Int64s) -> pa.Array:
        high, low = self._carried(lanes)
        divisor = np.maximum(n, 1)
        small = (np.abs(high) < 2**20) & (n < 2**53)
        with np.errstate(over="ignore"):
            result = ((high << 32) | low) / divisor  # exact operands, so the result is rounded once
        for row in np.flatnonzero(~small):
            # Rare: sums beyond 2⁵² are divided as Python's integers, which round once.
            result[row] = ((int(high[row]) << 32) + int(low[row])) / int(divisor[row])
        return pa.array(result, mask=n == 0)

    @staticmethod
    def _exact_moments(lanes: Int64s) -> tuple[Fraction, Fraction]:
        return Fraction(exact_sum(lanes[1:3], 0)), Fraction(exact_sum(lanes[3:7], 0))


class FloatMoment:
    """Lanes for n, the limbs of the sum and the limbs of the squares.

    Once it has seen a NaN or an infinity, it also has lanes that count NaN, +∞ and −∞.
    """

    def __init__(self, squares: bool) -> None:
        self._squares = squares
        self._low = self._high = 0
        self._special = False

    @property
    def lane_names(self) -> list[str]:
        names = ["n", *(("nan", "inf", "-inf") if self._special else ())]
        names += [f"limb{i}" for i in range(self._low, self._high)]
        if self._squares:
            names += [f"square{i}" for i in range(2 * self._low, 2 * self._high)]
        return names

    def load(self, names: list[str]) -> None:
        limbs = [int(name[4:]) for name in names if name.startswith("limb")]
        self._low, self._high = (min(limbs), max(limbs) + 1) if limbs else (0, 0)
        self._special = "nan" in names

    def fit(self, column: pa.Array | None, counted: Mask) -> bool:
        return self.widen(*exact_loops.limb_range(raw_values(column), counted))

    def widen(self, low: int, high: int, special: bool) -> bool:
        before = (self._low, self._high, self._special)
        if high:
            self._low = min(self._low, low) if self._high else low
            self._high = max(self._high, high)
        self._special = self._special or special
        return before != (self._low, self._high, self._special)

    def encode(self, column: pa.Array | None, counted: Mask, lanes: Int64s, at: int) -> None:
        bits = raw_values(column)
        lanes[:, at] = counted
        if self._special:
            exact_loops.encode_specials(bits, counted, lanes, at + 1)
        start = at + self._sum_at
        if self._high:
            exact_loops.encode_sums(bits, counted, lanes, start, self._low)
            if self._squares:
                squares_at = start + self._high - self._low
                exact_loops.encode_squares(bits, counted, lanes, squares_at, 2 * self._low)

    @property
    def _sum_at(self) -> int:
        return 4 if self._special else 1

    def result(self, function: str, lanes: Int64s, dtype: pa.DataType) -> pa.Array:
        n = lanes[:, 0]
        match function:
            case "count":
                return pa.array(np.ascontiguousarray(n))
            case "sum":
                values = self._rounded(lanes, np.ones(len(n), dtype=np.int64))
            case "avg":
                values = self._rounded(lanes, np.maximum(n, 1))
            case _:
                specials = lanes[:, 1:4].sum(axis=1) if self._special else np.zeros_like(n)
                return _variance(function, lanes, n, self._exact_moments, specials)
        return pa.array(values, mask=n == 0)

    def _rounded(self, lanes: Int64s, divisors: Int64s) -> npt.NDArray[np.float64]:
        limbs = np.ascontiguousarray(lanes[:, self._sum_at : self._sum_at + self._high - self._low])
        too_many = lanes[:, 0] >= exact_loops.MAX_VALUES
        if too_many.any():
            why = f"{exact_loops.MAX_VALUES:,} DOUBLE values or more: their exact sum is not kept"
            raise RowFailure(int(np.argmax(too_many)), f"{why}; take smaller windows or groups")
        values: npt.NDArray[np.float64]
        unit = exact_loops.VALUE_UNIT
        values, left_over = exact_loops.round_quotient(limbs, self._low, unit, divisors)
        for row in np.flatnonzero(left_over):
            # Rare: only quotients below 2⁻¹⁰²² are left to Python's integers.
            total = Fraction(exact_sum(limbs[row], self._low), 2**-unit)
            values[row] = nearest(total / int(divisors[row]))
        if self._special:
            nan, plus, minus = (lanes[:, i] > 0 for i in (1, 2, 3))
            values[plus] = np.inf
            values[minus] = -np.inf
            values[nan | (plus & minus)] = np.nan
        return values

    def _exact_moments(self, lanes: Int64s) -> tuple[Fraction, Fraction]:
        start, width = self._sum_at, self._high - self._low
        limbs, squares = lanes[start : start + width], lanes[start + width :]
        return (
            Fraction(exact_sum(limbs, self._low), 2**-exact_loops.VALUE_UNIT),
            Fraction(exact_sum(squares, 2 * self._low), 2**-exact_loops.SQUARE_UNIT),
        )


class DecimalMoment(_FixedLanes):
    """Lanes for n, the unscaled sum (four of 32 bits) and the squares (eight)."""

    def __init__(self, dtype: pa.DataType, squares: bool) -> None:
        self._scale = dtype.scale
        self._squares = squares
        self.lane_names = ["n", *(f"sum{i}" for i in range(4))]
        self.lane_names += [f"square{i}" for i in range(9 * squares)]

    def encode(self, column: pa.Array | None, counted: Mask, lanes: Int64s, at: int) -> None:
        words = np.where(counted[:, None], decimal_words(column), 0)
        lanes[:, at] = counted
        lanes[:, at + 1] = words[:, 0] & 0xFFFFFFFF
        lanes[:, at + 2] = (words[:, 0] >> 32) & 0xFFFFFFFF
        lanes[:, at + 3] = words[:, 1] & 0xFFFFFFFF
        lanes[:, at + 4] = words[:, 1] >> 32
        if self._squares:
            for row, (low, high) in enumerate(words.tolist()):
                # Squares of 127-bit numbers as Python's integers, since NumPy has no integers that
                # wide.
                square = ((high << 64) + (low & (2**64 - 1))) ** 2
                for i in range(9):
                    lanes[row, at + 5 + i] = (square >> (32 * i)) & 0xFFFFFFFF

    def result(self, function: str, lanes: Int64s, dtype: pa.DataType) -> pa.Array:
        n = lanes[:, 0]
        if function == "count":
            return pa.array(np.ascontiguousarray(n))
        if function in ("stddev", "variance"):
            return _variance(function, lanes, n, self._exact_moments)
        # Row by row: Arrow has no 256-bit division, and Python's integers round exactly once.
        values = [
            self._decimal(function, lanes, row, int(count), dtype) if count else None
            for row, count in enumerate(n)
        ]
        return pa.array(values, dtype)

    def _decimal(
        self, function: str, lanes: Int64s, row: int, n: int, dtype: pa.DataType
    ) -> Decimal:
        total = exact_sum(lanes[row, 1:5], 0)
        if function == "avg":
            scaled = total * 10 ** (dtype.scale - self._scale)
            total, rest = divmod(scaled, n)
            if 2 * rest > n or (2 * rest == n and total & 1):
                total += 1
        if abs(total) >= 10**dtype.precision:
            value = Decimal(total).scaleb(-dtype.scale, Context(prec=len(str(total))))
            why = f"overflow: a {function.upper()} does not fit {type_name(dtype)}: it is {value}"
            raise RowFailure(row, f"{why}; cast to fewer decimals or to DOUBLE")
        context = Context(prec=dtype.precision, rounding=ROUND_HALF_EVEN)
        return Decimal(total).scaleb(-dtype.scale, context)

    def _exact_moments(self, lanes: Int64s) -> tuple[Fraction, Fraction]:
        unit = 10**self._scale
        total, squares = exact_sum(lanes[1:5], 0), exact_sum(lanes[5:14], 0)
        return Fraction(total, unit), Fraction(squares, unit * unit)


def _variance(
    function: str,
    lanes: Int64s,
    n: Int64s,
    moments: Callable[[Int64s], tuple[Fraction, Fraction]],
    specials: Int64s | None = None,
) -> pa.Array:
    """Compute the sample variance, or its root, by exact fractions.

    It works row by row, since numerator and denominator need hundreds of bits before the one
    rounding.
    """
    rounding = nearest_root if function == "stddev" else nearest
    values: list[float | None] = []
    for row, count in enumerate(n.tolist()):
        if count < 2:
            values.append(None)
        elif specials is not None and specials[row]:
            values.append(float("nan"))
        else:
            total, squares = moments(lanes[row])
            values.append(rounding((squares - total * total / count) / (count - 1)))
    return pa.array(values, pa.float64())
