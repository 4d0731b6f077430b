"""Values of the user's code are taken exactly or refused: the table of the guide, row by row."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from enum import IntEnum, StrEnum
from fractions import Fraction

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from weir.events.types import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    INT,
    STRING,
    TIMESTAMP,
    parse_type,
)
from weir.kernels.expressions.evaluation import RowFailure
from weir.kernels.expressions.user_values import Misfit, is_plain, plain_value, shown, typed_array
from weir.plan.usercode.functions import describe


class Colour(IntEnum):
    RED = 3


class Word(StrEnum):
    YES = "yes"


class Liar(int):
    """An int that says something else when it is asked."""

    def __int__(self) -> int:
        return 99

    __index__ = __int__


class Unshowable:
    def __repr__(self) -> str:
        raise ValueError("no")


class Own(BaseException):
    def __str__(self) -> str:
        raise Own


class Rude:
    def __repr__(self) -> str:
        raise Own


class OtherClass:
    """Its class cannot be asked for."""

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        raise RuntimeError("no")


EAST = timezone(timedelta(hours=2))
MONEY = parse_type("DECIMAL(5, 2)")
LISTS = parse_type("LIST(BIGINT)")
STRUCTS = parse_type("STRUCT(a BIGINT, b LIST(DOUBLE))")
NOON = datetime(2020, 1, 1, 12, tzinfo=UTC)

TAKEN: list[tuple[pa.DataType, object, object]] = [
    (BIGINT, 7, 7), (BIGINT, np.int8(7), 7), (BIGINT, np.uint64(7), 7), (BIGINT, Colour.RED, 3),
    (BIGINT, Liar(5), 5), (BIGINT, -(2**63), -(2**63)), (BIGINT, None, None),
    (INT, 2**31 - 1, 2**31 - 1), (INT, np.int64(7), 7),
    (DOUBLE, 1.5, 1.5), (DOUBLE, np.float32(0.5), 0.5), (DOUBLE, np.float64(0.1), 0.1),
    (DOUBLE, 7, 7.0), (DOUBLE, 2**60, float(2**60)), (DOUBLE, np.int64(7), 7.0),
    (DOUBLE, -(2**1023 + 2**1000), -(2.0**1023 + 2.0**1000)),
    (DOUBLE, int(sys.float_info.max), sys.float_info.max),
    (DOUBLE, math.inf, math.inf),
    (BOOLEAN, True, True), (BOOLEAN, np.bool_(False), False),
    (STRING, "ü", "ü"), (STRING, Word.YES, "yes"), (STRING, np.str_("a"), "a"),
    (BINARY, b"\xff", b"\xff"), (BINARY, bytearray(b"a"), b"a"), (BINARY, memoryview(b"ab"), b"ab"),
    (DATE, date(2020, 1, 2), date(2020, 1, 2)),
    (TIMESTAMP, NOON, NOON), (TIMESTAMP, datetime(2020, 1, 1, 14, tzinfo=EAST), NOON),
    (TIMESTAMP, 1577880000000000, NOON), (TIMESTAMP, pd.Timestamp(NOON), NOON),
    (MONEY, Decimal("1.5"), Decimal("1.50")), (MONEY, 7, Decimal("7.00")),
    (LISTS, [1, None], [1, None]), (LISTS, (1, 2), [1, 2]), (LISTS, np.array([1, 2]), [1, 2]),
    (LISTS, [np.int32(1)], [1]), (LISTS, [], []),
    (STRUCTS, {"b": [1], "a": 2}, {"a": 2, "b": [1.0]}),
]  # fmt: skip

REFUSED: list[tuple[pa.DataType, object]] = [
    (BIGINT, 1.5), (BIGINT, 1.0), (BIGINT, True), (BIGINT, np.bool_(True)), (BIGINT, 2**63),
    (BIGINT, np.uint64(2**63)), (BIGINT, "7"), (BIGINT, Decimal(7)), (BIGINT, math.nan),
    (BIGINT, np.float64(1)), (BIGINT, Fraction(7)), (BIGINT, np.timedelta64(7, "s")),
    (BIGINT, pd.NA), (BIGINT, pd.NaT), (BIGINT, 10**6000), (BIGINT, Unshowable()),
    (BIGINT, OtherClass()), (BIGINT, (v for v in [1])), (BIGINT, np.array(7)), (BIGINT, [7]),
    (INT, 2**31), (INT, np.int64(-(2**31) - 1)),
    (DOUBLE, 2**53 + 1), (DOUBLE, 10**400), (DOUBLE, 2**1024), (DOUBLE, -(2**1024) + 1),
    (DOUBLE, 2**1023 + 1), (BIGINT, Rude()), (DOUBLE, True), (DOUBLE, "1.5"), (DOUBLE, Decimal(1)),
    (DOUBLE, np.longdouble(1)), (DOUBLE, 1j),
    (BOOLEAN, 1), (BOOLEAN, 0.0), (BOOLEAN, "true"), (BOOLEAN, np.int8(1)),
    (STRING, b"a"), (STRING, 7), (STRING, "\ud800"), (STRING, Unshowable()),
    (BINARY, "a"), (BINARY, 7), (BINARY, [1]), (BINARY, np.array([1], np.uint8)),
    (DATE, NOON), (DATE, datetime(2020, 1, 1)), (DATE, 7), (DATE, "2020-01-01"),
    (DATE, np.datetime64("2020-01-01")),
    (TIMESTAMP, datetime(2020, 1, 1)), (TIMESTAMP, date(2020, 1, 1)), (TIMESTAMP, 1.5),
    (TIMESTAMP, True), (TIMESTAMP, np.datetime64("2020-01-01")), (TIMESTAMP, pd.NaT),
    (TIMESTAMP, pd.Timestamp("2020-01-01T00:00:00.000000001Z")), (TIMESTAMP, 2**63),
    (MONEY, Decimal("1.005")), (MONEY, Decimal("1000")), (MONEY, 1.5), (MONEY, Decimal("NaN")),
    (MONEY, 1000), (MONEY, True),
    (LISTS, {1, 2}), (LISTS, [1.5]), (LISTS, [True]), (LISTS, "12"), (LISTS, {1: 2}),
    (LISTS, (v for v in [1])), (LISTS, np.array([1.5])), (LISTS, np.array([[1]])), (LISTS, 1),
    (STRUCTS, {"a": 1}), (STRUCTS, {"a": 1, "b": [], "c": 1}), (STRUCTS, [("a", 1), ("b", [])]),
    (STRUCTS, {"a": 1.5, "b": []}), (STRUCTS, {"a": 1, "b": [True]}), (STRUCTS, (1, [])),
]  # fmt: skip


def _name(value: object) -> str:
    # An address is another in every process, and tests must have the same names in all.
    return "memory" if isinstance(value, memoryview) else str(value)


@pytest.mark.parametrize(("dtype", "value", "wanted"), TAKEN, ids=_name)
def test_what_is_taken(dtype: pa.DataType, value: object, wanted: object) -> None:
    for values in ([value], [None, value, value], [value, wanted]):
        found = typed_array(values, dtype)
        assert found.type == dtype
        assert found.to_pylist() == [None if v is None else wanted for v in values]
    plain = plain_value(value, dtype)
    assert plain == wanted and type(plain) is type(wanted)
    assert plain is None or is_plain([plain], dtype)


@pytest.mark.parametrize(("dtype", "value"), REFUSED, ids=lambda v: type(v).__name__)
def test_what_is_refused(dtype: pa.DataType, value: object) -> None:
    good = next(v for t, v, _ in TAKEN if t == dtype)
    with pytest.raises(RowFailure) as failure:
        typed_array([None, good, value, value], dtype)
    assert failure.value.row == 2
    assert f"({type(value).__name__})" in failure.value.why and len(failure.value.why) < 1000
    with pytest.raises(Misfit):
        plain_value(value, dtype)


def test_reasons_are_told() -> None:
    def why(value: object, dtype: pa.DataType) -> str:
        with pytest.raises(RowFailure) as failure:
            typed_array([value], dtype)
        return failure.value.why

    assert why(1.5, BIGINT) == "BIGINT, not 1.5 (float)"
    assert why(2**63, BIGINT).endswith("9223372036854775808 (int), which has more than 64 bits")
    assert why(2**53 + 1, DOUBLE).endswith(", which no DOUBLE is exactly")
    assert why(datetime(2020, 1, 1), TIMESTAMP).endswith("(datetime), which has no time zone")
    assert why([1, 1.5], LISTS).endswith(": an element must be BIGINT, not 1.5 (float)")
    assert why({"a": 1, "b": ["x"]}, STRUCTS).endswith(
        ": 'b' must be LIST(DOUBLE), not ['x'] (list): an element must be DOUBLE, not 'x' (str)"
    )
    assert why({"a": 1}, STRUCTS).endswith(": its keys must be 'a', 'b'")


def test_what_cannot_be_shown() -> None:
    assert shown(Rude()) == "a value that cannot be shown (Rude)"
    assert describe(Own()) == "Own, whose text cannot be shown"


def test_long_values_are_shortened() -> None:
    for value in (
        "x" * 10**6,
        list(range(10**5)),
        dict.fromkeys(range(1000), "y" * 1000),
        10**5000,
    ):
        assert len(shown(value)) < 5000


def test_plain_is_what_arrow_gives_back() -> None:
    columns: Sequence[tuple[pa.DataType, list[object]]] = [
        (BIGINT, [1, None]),
        (DOUBLE, [0.5]),
        (TIMESTAMP, [NOON]),
        (LISTS, [[1], None, []]),
        (STRUCTS, [{"a": 1, "b": None}, None]),
        (MONEY, [Decimal("1.50")]),
        (DATE, [date.min]),
    ]
    for dtype, values in columns:
        assert is_plain(values, dtype)
        assert is_plain(pa.array(values, dtype).to_pylist(), dtype)
    assert not is_plain([(1,)], LISTS) and not is_plain([[True]], LISTS)
    assert not is_plain([{"b": None, "a": 1}], STRUCTS)
    assert not is_plain([NOON.astimezone(EAST)], TIMESTAMP)
