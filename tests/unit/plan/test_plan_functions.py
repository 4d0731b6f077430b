"""The type rules of every built-in: results, casts, refusals."""

from decimal import Decimal

import pyarrow as pa
import pytest

from weir.errors import PlanError
from weir.events.types import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    INT,
    NULL,
    STRING,
    TIMESTAMP,
    parse_type,
)
from weir.plan.binding.binder import bind, schema_scope
from weir.plan.expressions import Call, Cast, Column, Expr, Literal
from weir.plan.fluent.terms import Term, call, case, col, lit
from weir.plan.functions import FUNCTIONS
from weir.plan.functions.coercion import castable, common_type, widens
from weir.plan.schema import Schema

COLUMNS = {
    "i": INT,
    "b": BIGINT,
    "f": DOUBLE,
    "s": STRING,
    "t": TIMESTAMP,
    "d": DATE,
    "bool": BOOLEAN,
    "bin": BINARY,
    "null": NULL,
    "dec": pa.decimal128(10, 2),
    "dec4": pa.decimal128(12, 4),
    "ints": pa.list_(BIGINT),
    "rec": pa.struct([("x", BIGINT), ("y", STRING)]),
    "wide": pa.struct([("x", DOUBLE), ("y", STRING)]),
    "other": pa.struct([("y", STRING), ("x", BIGINT)]),
}
SCOPE = schema_scope(Schema(tuple(COLUMNS.items()), BIGINT), "A")


def bound(term: Term) -> Expr:
    return bind(term.expr, SCOPE)


def arg_types(expr: Expr) -> list[pa.DataType]:
    return [child.type for child in expr.children]


D = pa.decimal128
i, b, f, s, t, d = (col(n) for n in ("i", "b", "f", "s", "t", "d"))
dec, dec4, null = col("dec"), col("dec4"), col("null")

TYPES = [
    (i + i, BIGINT, [BIGINT, BIGINT]),
    (i * b, BIGINT, [BIGINT, BIGINT]),
    (i - f, DOUBLE, [DOUBLE, DOUBLE]),
    (null + i, BIGINT, [BIGINT, BIGINT]),
    (null + null, BIGINT, [BIGINT, BIGINT]),
    (dec + dec4, D(13, 4), [D(12, 4), D(12, 4)]),
    (dec + b, D(22, 2), [D(21, 2), D(21, 2)]),
    (dec * f, DOUBLE, [DOUBLE, DOUBLE]),
    (dec * dec4, D(23, 6), [D(10, 2), D(12, 4)]),
    (dec * 2, D(12, 2), [D(10, 2), D(1, 0)]),
    (dec / dec, DOUBLE, [DOUBLE, DOUBLE]),
    (i / i, DOUBLE, [DOUBLE, DOUBLE]),
    (i // 2, BIGINT, [BIGINT, BIGINT]),
    (f % 2, DOUBLE, [DOUBLE, DOUBLE]),
    (t + 5, TIMESTAMP, [TIMESTAMP, BIGINT]),
    (5 + t, TIMESTAMP, [TIMESTAMP, BIGINT]),
    (t - i, TIMESTAMP, [TIMESTAMP, BIGINT]),
    (t - t, BIGINT, [TIMESTAMP, TIMESTAMP]),
    (-i, INT, [INT]),
    (call("abs", dec), D(10, 2), [D(10, 2)]),
    (call("sign", dec), BIGINT, [D(10, 2)]),
    (call("sign", f), DOUBLE, [DOUBLE]),
    (call("round", dec, 1), D(11, 2), [D(10, 2), BIGINT]),
    (call("round", f), DOUBLE, [DOUBLE]),
    (call("floor", dec), D(9, 0), [D(10, 2)]),
    (call("ceil", i), INT, [INT]),
    (call("sqrt", i), DOUBLE, [DOUBLE]),
    (call("power", dec, 2), DOUBLE, [DOUBLE, DOUBLE]),
    (call("greatest", i, f), DOUBLE, [DOUBLE, DOUBLE]),
    (call("concat", s, null), STRING, [STRING, STRING]),
    (i == f, BOOLEAN, [DOUBLE, DOUBLE]),
    (dec < 3, BOOLEAN, [D(21, 2), D(21, 2)]),
    (s != null, BOOLEAN, [STRING, STRING]),
    (b.isin(1, 2.5), BOOLEAN, [DOUBLE, DOUBLE, DOUBLE]),
    (col("bool") & null, BOOLEAN, [BOOLEAN, BOOLEAN]),
    (~col("bool"), BOOLEAN, [BOOLEAN]),
    (col("rec").is_null(), BOOLEAN, [COLUMNS["rec"]]),
    (s.like("a%"), BOOLEAN, [STRING, STRING]),
    (call("coalesce", i, b), BIGINT, [BIGINT, BIGINT]),
    (call("nullif", i, 0), BIGINT, [BIGINT, BIGINT]),
    (call("length", col("bin")), BIGINT, [BINARY]),
    (call("substring", s, i), STRING, [STRING, BIGINT]),
    (call("split", s, ","), pa.list_(STRING), [STRING, STRING]),
    (call("regexp_extract", s, "a+"), STRING, [STRING, STRING, BIGINT]),
    (call("lpad", s, 5), STRING, [STRING, BIGINT, STRING]),
    (call("date_trunc", "hour", t), TIMESTAMP, [STRING, TIMESTAMP]),
    (call("date_trunc", "month", d), DATE, [STRING, DATE]),
    (call("extract", "epoch", t), BIGINT, [STRING, TIMESTAMP]),
    (call("date_add", d, 1), DATE, [DATE, BIGINT, STRING]),
    (call("date_add", t, i, "hour"), TIMESTAMP, [TIMESTAMP, BIGINT, STRING]),
    (call("to_timestamp", s), TIMESTAMP, [STRING]),
    (call("to_timestamp", i), TIMESTAMP, [BIGINT]),
    (call("to_timestamp", s, "%Y"), TIMESTAMP, [STRING, STRING]),
    (call("array_length", col("ints")), BIGINT, [pa.list_(BIGINT)]),
    (call("array_contains", col("ints"), f), BOOLEAN, [pa.list_(DOUBLE), DOUBLE]),
    (col("ints") < lit([1.5]), BOOLEAN, [pa.list_(DOUBLE), pa.list_(DOUBLE)]),
    (col("rec") == col("wide"), BOOLEAN, [COLUMNS["wide"], COLUMNS["wide"]]),
    (col("rec").isin(col("rec"), null), BOOLEAN, [COLUMNS["rec"]] * 3),
    (call("greatest", col("rec")), COLUMNS["rec"], [COLUMNS["rec"]]),
    (call("nullif", col("ints"), null), pa.list_(BIGINT), [pa.list_(BIGINT)] * 2),
    (call("element_at", col("ints"), i), BIGINT, [pa.list_(BIGINT), BIGINT]),
    (call("md5", s), STRING, [STRING]),
    (call("xxhash64", col("bin")), BIGINT, [BINARY]),
    (call("field", col("rec"), "y"), STRING, [COLUMNS["rec"], STRING]),
]


@pytest.mark.parametrize(("term", "result", "args"), TYPES)
def test_type_and_casts(term: Term, result: pa.DataType, args: list[pa.DataType]) -> None:
    expr = bound(term)
    assert expr.type == result
    assert arg_types(expr) == args


REFUSED = [
    (s + 1, "takes numbers, not STRING and BIGINT"),
    (s == 1, "do not go together"),
    (t > s, "do not go together"),
    (t + 1.5, "does not take TIMESTAMP and DOUBLE"),
    (t * 2, "does not take"),
    (dec % 2, "DECIMAL"),
    (d - 1, "takes numbers"),
    (b & col("bool"), "must be BOOLEAN, not BIGINT"),
    (call("lower", i), "must be STRING, not INT"),
    (call("lower"), "takes 1 argument"),
    (call("array_length"), "takes 1 argument"),
    (call("substring", s, 1, 2, 3), "takes 2 to 3"),
    (s.like(s), "must be a constant"),
    (call("date_trunc", "fortnight", t), "unknown unit 'fortnight'"),
    (call("date_trunc", "hour", d), "unknown unit 'hour'"),
    (col("rec") == col("ints"), "do not go together"),
    (col("rec") == col("other"), "do not go together"),
    (call("array_contains", col("ints"), s), "do not go together"),
    (call("field", col("rec"), "z"), "no field `z`"),
    (call("explode", col("ints")), "select list"),
    (lit(2**63), "fits no type"),
    (lit("half \ud83d of a character"), "fits no type"),
    (lit(Decimal("NaN")), "fits no type"),
    (case((i, 1)), "BOOLEAN"),
    (case((i > 0, 1), otherwise="x"), "CASE have types BIGINT, STRING"),
    (b.cast("LIST(BIGINT)"), "cannot CAST BIGINT to LIST"),
    (d.cast("DOUBLE"), "cannot CAST"),
]


@pytest.mark.parametrize(("term", "message"), REFUSED)
def test_refused(term: Term, message: str) -> None:
    with pytest.raises(PlanError, match=message.replace("(", r"\(")):
        bound(term)


def test_every_function_of_the_language_is_there() -> None:
    language = """add sub mul div floordiv mod neg concat eq ne lt le gt ge and or not is_null
    is_not_null in like rlike coalesce nullif abs round floor ceil sqrt power exp ln log10 sign
    greatest least length lower upper trim ltrim rtrim substring replace split split_part
    starts_with ends_with contains regexp_extract regexp_replace lpad rpad reverse date_trunc
    extract date_add to_timestamp array_length array_contains element_at md5 sha256 xxhash64
    field truncated_mod formatted_time"""
    assert set(FUNCTIONS) == set(language.split())


def test_literals_fold_and_columns_are_cast() -> None:
    expr = bound(i < 2.5)
    assert expr == Call(
        "lt",
        (Cast(Column("i", type=INT), type=DOUBLE), Literal(2.5, type=DOUBLE)),
        type=BOOLEAN,
    )
    folded = bound(f > 1).children[1]
    assert folded == Literal(1.0, type=DOUBLE)
    assert isinstance(folded.value, float)
    assert bound(dec > 1).children[1].value == Decimal(1)


def test_the_smallest_bigint_is_a_literal() -> None:
    assert bound(-lit(2**63)) == Literal(-(2**63), type=BIGINT)
    with pytest.raises(PlanError):
        bound(-lit(True))


def test_case_shares_one_type() -> None:
    expr = bound(case((i > 0, i), (i < 0, f), otherwise=None))
    assert expr.type == DOUBLE
    assert [v.type for _, v in expr.branches] == [DOUBLE, DOUBLE]
    assert expr.otherwise == Literal(None, type=DOUBLE)


def test_common_types() -> None:
    assert common_type(D(10, 2), D(38, 0)) == D(38, 2)
    assert common_type(pa.list_(INT), pa.list_(DOUBLE)) == pa.list_(DOUBLE)
    assert common_type(STRING, BINARY) is None
    record, other = pa.struct([("a", INT), ("b", NULL)]), pa.struct([("a", BIGINT), ("b", STRING)])
    assert common_type(record, other) == other
    assert common_type(record, pa.struct([("b", NULL), ("a", INT)])) is None
    assert common_type(record, pa.struct([("a", STRING), ("b", NULL)])) is None
    assert castable(other, pa.struct([("a", STRING), ("b", DATE)]))
    assert not castable(other, pa.struct([("a", DATE), ("b", DATE)]))
    assert widens(INT, D(10, 0))
    assert not widens(BIGINT, D(10, 0))
    assert not widens(DOUBLE, BIGINT)
    assert castable(DOUBLE, BIGINT)


@pytest.mark.parametrize(
    ("text", "dtype"),
    [
        ("bigint", BIGINT),
        ("DECIMAL(10,2)", D(10, 2)),
        ("DECIMAL(5)", D(5, 0)),
        ("ARRAY<STRING>", pa.list_(STRING)),
        (
            "STRUCT(a BIGINT, b LIST(DECIMAL(4, 1)))",
            pa.struct([("a", BIGINT), ("b", pa.list_(D(4, 1)))]),
        ),
    ],
)
def test_parse_type(text: str, dtype: pa.DataType) -> None:
    assert parse_type(text) == dtype


@pytest.mark.parametrize(
    "text",
    [
        "",
        "BIGINTS",
        "LIST",
        "LIST(",
        "LIST(BIGINT>",
        "DECIMAL(39,0)",
        "DECIMAL(2,3)",
        "STRUCT()",
        "STRUCT(a BIGINT, a INT)",
        "BIGINT BIGINT",
        "DECIMAL(x)",
    ],
)
def test_parse_type_refuses(text: str) -> None:
    with pytest.raises(PlanError, match="unknown type"):
        parse_type(text)
