"""Expressions: precedence, every form, canonical names, constants."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import pyarrow as pa
import pytest

from weir.errors import ScriptError
from weir.events.types import BIGINT, BOOLEAN, DATE, DOUBLE, NULL, STRING, TIMESTAMP
from weir.plan.expressions import AggregateCall, Call, Case, Cast, Column, Expr, Literal
from weir.plan.functions import FUNCTIONS, is_called

Parse: TypeAlias = Callable[[str], Expr]

A, B, C = Column("a"), Column("b"), Column("c")
AGGREGATES = "sum avg min max stddev variance first last median collect count"
NOTHING = Literal(None, type=NULL)


def n(value: int) -> Literal:
    return Literal(value, type=BIGINT)


def s(value: str) -> Literal:
    return Literal(value, type=STRING)


def call(name: str, *args: Expr) -> Call:
    return Call(name, args)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("a + b", "add"),
        ("a - b", "sub"),
        ("a * b", "mul"),
        ("a / b", "div"),
        ("a // b", "floordiv"),
        ("a % b", "mod"),
        ("a || b", "concat"),
        ("a = b", "eq"),
        ("a == b", "eq"),
        ("a <> b", "ne"),
        ("a != b", "ne"),
        ("a < b", "lt"),
        ("a <= b", "le"),
        ("a > b", "gt"),
        ("a >= b", "ge"),
        ("a AND b", "and"),
        ("a or b", "or"),
        ("a LIKE b", "like"),
        ("a RLIKE b", "rlike"),
    ],
)
def test_operators(expr: Parse, text: str, name: str) -> None:
    assert expr(text) == call(name, A, B)


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("a OR b AND c", "a OR (b AND c)"),
        ("NOT a = b AND c", "(NOT (a = b)) AND c"),
        ("NOT NOT a", "NOT (NOT a)"),
        ("a = b || c", "a = (b || c)"),
        ("a || b + c", "a || (b + c)"),
        ("a + b * c", "a + (b * c)"),
        ("a - b - c", "(a - b) - c"),
        ("a / b * c", "(a / b) * c"),
        ("a // b % c", "(a // b) % c"),
        ("-a * b", "(-a) * b"),
        ("a < b = c", "(a < b) = c"),
        ("a = b IS NULL", "(a = b) IS NULL"),
        ("a BETWEEN b AND c AND b", "(a BETWEEN b AND c) AND b"),
        ("a BETWEEN b + 1 AND c || b", "a BETWEEN (b + 1) AND (c || b)"),
        ("NOT a IN (b)", "a NOT IN (b)"),
        ("NOT a IS NULL", "a IS NOT NULL"),
    ],
)
def test_precedence(expr: Parse, text: str, same: str) -> None:
    assert expr(text) == expr(same)


def test_predicates(expr: Parse) -> None:
    both = call("and", call("ge", A, B), call("le", A, C))
    assert expr("a BETWEEN b AND c") == both
    assert expr("a NOT BETWEEN b AND c") == call("not", both)
    assert expr("a IN (1, b)") == call("in", A, n(1), B)
    assert expr("a NOT IN (1)") == call("not", call("in", A, n(1)))
    assert expr("a IS NULL") == call("is_null", A)
    assert expr("a IS NOT NULL") == call("is_not_null", A)
    assert expr("a NOT LIKE 'x%'") == call("not", call("like", A, s("x%")))
    assert expr("a NOT RLIKE 'x'") == call("not", call("rlike", A, s("x")))
    assert expr("NOT a") == call("not", A)


def test_case(expr: Parse) -> None:
    assert expr("CASE WHEN a THEN 1 WHEN b THEN 2 ELSE 3 END") == Case(((A, n(1)), (B, n(2))), n(3))
    assert expr("CASE a WHEN b THEN c END") == Case(((call("eq", A, B), C),), NOTHING)


def test_casts(expr: Parse) -> None:
    assert expr("CAST(a AS BIGINT)") == Cast(A, type=BIGINT)
    assert expr("TRY_CAST(a AS DECIMAL(10, 2))") == Cast(A, lenient=True, type=pa.decimal128(10, 2))
    assert expr("CAST(a AS ARRAY<ARRAY<STRING>>)") == Cast(A, type=pa.list_(pa.list_(STRING)))
    struct = pa.struct([("x", BIGINT), ("y", pa.list_(DATE))])
    assert expr("CAST(a AS STRUCT(x BIGINT, y LIST(DATE)))") == Cast(A, type=struct)


@pytest.mark.parametrize(
    ("text", "value", "dtype"),
    [
        ("1", 1, BIGINT),
        ("-1", -1, BIGINT),
        ("9223372036854775807", 2**63 - 1, BIGINT),
        ("-9223372036854775808", -(2**63), BIGINT),
        ("1.5", 1.5, DOUBLE),
        ("-1.5", -1.5, DOUBLE),
        ("1e3", 1000.0, DOUBLE),
        ("2.5E-1", 0.25, DOUBLE),
        ("'it''s'", "it's", STRING),
        (r"'\d+'", r"\d+", STRING),
        ("NULL", None, NULL),
        ("true", True, BOOLEAN),
        ("FALSE", False, BOOLEAN),
        ("250ms", 250_000, BIGINT),
        ("5s", 5_000_000, BIGINT),
        ("-5s", -5_000_000, BIGINT),
        ("2m", 120_000_000, BIGINT),
        ("1h", 3_600_000_000, BIGINT),
        ("7d", 604_800_000_000, BIGINT),
        ("@k", 3, BIGINT),
        ("TIMESTAMP '1970-01-01T00:00:01Z'", 1_000_000, TIMESTAMP),
        ("TIMESTAMP '1970-01-01 00:00:00.000007'", 7, TIMESTAMP),
        ("TIMESTAMP '1970-01-01T01:00:00+01:00'", 0, TIMESTAMP),
        ("DATE '1970-01-11'", 10, DATE),
        ("[1, 2]", (1, 2), pa.list_(BIGINT)),
        ("ARRAY[1, 2.5, NULL]", (1.0, 2.5, None), pa.list_(DOUBLE)),
        ("[]", (), pa.list_(NULL)),
    ],
)
def test_constants(expr: Parse, text: str, value: object, dtype: pa.DataType) -> None:
    found = expr(text)
    assert found == Literal(value, type=dtype)
    assert isinstance(found, Literal) and type(found.value) is type(value)


def test_names(expr: Parse) -> None:
    assert expr("A.b.c") == Column("A.b.c")
    assert expr('"A".`x y`') == Column("A.x y")
    assert expr("größe") == Column("größe")
    assert expr("ıs + ıs") == call("add", Column("ıs"), Column("ıs"))
    assert expr("timestamp") == Column("timestamp")
    field = call("field", call("field", call("element_at", A, n(1)), s("x")), s("y"))
    assert expr("ELEMENT_AT(a, 1).x.y") == field
    assert expr("(a).x") == Column("a.x")


@pytest.mark.parametrize("name", sorted(filter(is_called, FUNCTIONS)))
def test_functions_ignore_case(expr: Parse, name: str) -> None:
    assert expr(f"{name.upper()}(a, b)") == call(name, A, B)


def test_user_functions_keep_their_name(expr: Parse) -> None:
    assert expr("fraudScore(a)") == call("fraudScore", A)
    assert expr("now()") == call("now")
    assert expr("spread(a)") == AggregateCall("spread", (A,))
    assert expr("spread(a) FILTER (WHERE b)") == AggregateCall("spread", (A,), B)


def test_units_of_time(expr: Parse) -> None:
    assert expr("EXTRACT(HOUR FROM a)") == call("extract", s("hour"), A)
    assert expr("EXTRACT('Hour', a)") == call("extract", s("hour"), A)
    assert expr("DATE_TRUNC('DAY', a)") == call("date_trunc", s("day"), A)
    assert expr("DATE_ADD(a, 1, 'MONTH')") == call("date_add", A, n(1), s("month"))


def test_substring(expr: Parse) -> None:
    assert expr("SUBSTRING(a FROM 2 FOR 3)") == expr("SUBSTRING(a, 2, 3)")
    assert expr("SUBSTRING(a FROM 2)") == call("substring", A, n(2))


def test_explode(expr: Parse) -> None:
    assert expr("EXPLODE(a)") == call("explode", A)


@pytest.mark.parametrize("name", AGGREGATES.split())
def test_aggregates(expr: Parse, name: str) -> None:
    assert expr(f"{name.upper()}(a)") == AggregateCall(name, (A,))
    assert expr(f"{name}(a) FILTER (WHERE b)") == AggregateCall(name, (A,), B)


def test_counts_and_quantiles(expr: Parse) -> None:
    assert expr("COUNT(*)") == AggregateCall("count_star", ())
    assert expr("COUNT(*) FILTER (WHERE a)") == AggregateCall("count_star", (), A)
    assert expr("COUNT(DISTINCT a)") == AggregateCall("count", (A,), distinct=True)
    assert expr("QUANTILE_DISC(a, 0.10)") == AggregateCall("quantile_disc", (A,), params=("0.10",))
    assert expr("QUANTILE_CONT(a, @p)") == AggregateCall("quantile_cont", (A,), params=("0.90",))


def test_a_long_chain(expr: Parse) -> None:
    found: Expr = expr(" + ".join(["a"] * 199))
    depth = 0
    while isinstance(found, Call):
        found, depth = found.args[0], depth + 1
    assert depth == 198
    with pytest.raises(ScriptError, match="more than 200 parts of an expression") as refused:
        expr(" + ".join(["a"] * 5000))
    assert refused.value.column > 600, "where it becomes too long"
