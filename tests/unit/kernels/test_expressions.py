"""Expressions, bound by the real binder, against values worked out in plain Python."""

import hashlib
import math
import pickle
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal as D

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weir.errors import OperatorFailed, PlanError, RunError
from weir.events.batch import OPEN, Batch
from weir.events.types import BIGINT, BINARY, BOOLEAN, DATE, DOUBLE, INT, STRING, TIMESTAMP
from weir.kernels.expressions.branches import LAZY
from weir.kernels.expressions.evaluator import BUILDERS, compile_expression
from weir.plan.binding.binder import bind, schema_scope
from weir.plan.expressions import Call, Case, Cast, Column, Expr, Literal, UserCall
from weir.plan.functions import FUNCTIONS
from weir.plan.schema import Schema
from weir.plan.usercode.functions import ScalarFunction


def lit(value: object) -> Expr:
    return value if isinstance(value, Expr) else Literal(value)


def call(name: str, *args: object) -> Call:
    return Call(name, tuple(lit(a) for a in args))


def run(expr: Expr, time: pa.DataType = BIGINT, **columns: pa.Array) -> pa.Array:
    """The values of an unbound expression over these columns; event i is [10 i, 10 i + 1)."""
    schema = Schema(tuple((n, c.type) for n, c in columns.items()), time)
    bound = bind(expr, schema_scope(schema))
    length = max((len(c) for c in columns.values()), default=1)
    vs = np.arange(length, dtype=np.int64) * 10
    batch = Batch(vs, vs + 1, tuple(columns.values()))
    evaluate = compile_expression(bound, schema)
    nothing = evaluate(batch.slice(0, 0))
    assert (len(nothing), nothing.type) == (0, bound.type)
    result = evaluate(batch)
    assert isinstance(result, pa.Array)
    assert result.type == bound.type, (result.type, bound.type)
    assert len(result) == length
    result.validate(full=True)
    return result


def values(expr: Expr, **columns: pa.Array) -> list[object]:
    return run(expr, **columns).to_pylist()


def same(a: object, b: object) -> bool:
    if isinstance(a, float) and isinstance(b, float):
        return a == b or (math.isnan(a) and math.isnan(b))
    return a == b and type(a) is type(b)


def check(expr: Expr, expected: list[object], **columns: pa.Array) -> None:
    got = values(expr, **columns)
    assert len(got) == len(expected)
    assert all(same(g, e) for g, e in zip(got, expected, strict=True)), f"{got} != {expected}"


x, y, s, b = Column("x"), Column("y"), Column("s"), Column("b")


def test_every_function_of_the_language_has_a_kernel():
    lazy = {name for name in LAZY if not name.startswith("py_")}
    assert set(FUNCTIONS) == set(BUILDERS) | lazy
    assert not lazy & set(BUILDERS)


# --- arithmetic ----------------------------------------------------------------------------

int64s = st.one_of(st.integers(-10, 10), st.integers(-(2**63), 2**63 - 1))
OPERATORS = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "floordiv": lambda a, b: a // b,
    "mod": lambda a, b: a % b,
}


@settings(max_examples=200, deadline=None)
@given(
    st.sampled_from(sorted(OPERATORS)),
    st.lists(st.tuples(st.one_of(st.none(), int64s), st.one_of(st.none(), int64s)), min_size=1),
)
def test_integer_arithmetic_is_exact_or_fails_on_the_first_bad_event(name, pairs):
    columns = {
        "x": pa.array([p[0] for p in pairs], BIGINT),
        "y": pa.array([p[1] for p in pairs], BIGINT),
    }
    expected: list[object] = []
    for row, (a, c) in enumerate(pairs):
        if a is None or c is None:
            expected.append(None)
            continue
        zero = name in ("floordiv", "mod") and c == 0
        result = 0 if zero else OPERATORS[name](a, c)
        if zero or not -(2**63) <= result < 2**63:
            with pytest.raises(RunError, match="zero" if zero else "overflow") as info:
                values(call(name, x, y), **columns)
            assert f"'vs': {10 * row}," in str(info.value)
            assert str(a) in str(info.value)
            return
        expected.append(result)
    check(call(name, x, y), expected, **columns)


def test_division_is_ieee():
    check(
        call("div", x, y),
        [math.inf, math.nan, -math.inf, 0.5, None],
        x=pa.array([1, 0, -1, 1, None], BIGINT),
        y=pa.array([0.0, 0.0, 0.0, 2.0, 1.0]),
    )
    check(call("floordiv", x, 2.0), [-2.0, 1.0], x=pa.array([-3.5, 3.5]))
    check(call("mod", x, 2.0), [0.5, math.nan], x=pa.array([-3.5, math.inf]))


def test_decimals_are_exact_up_to_38_digits():
    column = pa.array([D("1.25"), D("-0.05"), None], pa.decimal128(5, 2))
    check(call("add", x, D("0.1")), [D("1.35"), D("0.05"), None], x=column)
    check(call("mul", x, x), [D("1.5625"), D("0.0025"), None], x=column)
    check(call("neg", x), [D("-1.25"), D("0.05"), None], x=column)
    check(call("ceil", x), [D(2), D(0), None], x=column)
    check(call("floor", x), [D(1), D(-1), None], x=column)
    check(call("sign", x), [1, -1, None], x=column)
    big = pa.array([D(10**37), D(9 * 10**37)], pa.decimal128(38, 0))
    for name in ("add", "mul"):
        with pytest.raises(RunError, match="overflow"):
            values(call(name, x, x), x=big.slice(1))
    check(call("add", x, 1), [D(10**37 + 1), D(9 * 10**37 + 1)], x=big)
    check(call("mul", x, D(3)), [D(3 * 10**37)], x=big.slice(0, 1))


def test_times_move_by_ticks():
    column = pa.array([5, None], TIMESTAMP)
    assert run(call("add", x, 7), x=column).cast(BIGINT).to_pylist() == [12, None]
    assert run(call("sub", x, 7), x=column).cast(BIGINT).to_pylist() == [-2, None]
    check(call("sub", x, y), [2, None], x=column, y=pa.array([3, 3], TIMESTAMP))
    with pytest.raises(RunError, match="overflow"):
        values(call("add", x, 2**63 - 1), x=column)


def test_failures_look_like_the_program():
    """Operators, not the names of functions; our types, not Arrow's."""
    huge, event = pa.array([1, 2**62]), r", on event {'vs': 10, 've': 11, 'x': "
    told = {
        call("mul", x, 4): rf"^overflow in {2**62} \* 4{event}{2**62}}}$",
        Cast(x, type=INT): rf"^cannot CAST {2**62} to INT{event}",
        Cast(x, type=pa.decimal128(5, 2)): rf"^cannot CAST {2**62}\.00 to DECIMAL\(5, 2\){event}",
    }
    for expr, message in told.items():
        with pytest.raises(RunError, match=message):
            values(expr, x=huge)
    most = pa.array([D(1), D(9 * 10**37)], pa.decimal128(38, 0))
    shown = rf"^overflow: {9 * 10**37} %s {9 * 10**37} does not fit DECIMAL\(38, 0\), on event"
    for name, sign in (("add", r"\+"), ("mul", r"\*")):
        with pytest.raises(RunError, match=shown % sign):
            values(call(name, x, x), x=most)
    with pytest.raises(RunError, match=r"^not an ISO 8601 time in TO_TIMESTAMP\('x'\), on event"):
        values(call("to_timestamp", x), x=pa.array(["x"]))


def test_unary_minus_and_abs_overflow():
    for name in ("neg", "abs"):
        check(call(name, x), [3, None], x=pa.array([-3, None], BIGINT))
        with pytest.raises(RunError, match="overflow"):
            values(call(name, x), x=pa.array([-(2**63)]))


def round_text(value: float, digits: int) -> float:
    from decimal import ROUND_HALF_UP, localcontext

    if not math.isfinite(value):
        return value
    with localcontext(prec=1000):
        return float(D(repr(value)).quantize(D(1).scaleb(-digits), ROUND_HALF_UP))


@settings(max_examples=300, deadline=None)
@given(
    st.lists(st.one_of(st.floats(), st.integers(-9999, 9999).map(lambda i: i / 1000)), min_size=1),
    st.integers(-3, 24),
)
def test_round_is_half_away_from_zero_of_the_decimal_text(numbers, digits):
    check(
        call("round", x, digits),
        [round_text(v, digits) for v in numbers],
        x=pa.array(numbers, DOUBLE),
    )


def test_round_of_other_numbers():
    # 1.005 * 100 is less than 100.5 in doubles: only the text knows that it is a half.
    check(call("round", x, 2), [1.01, -1.01, 2.68], x=pa.array([1.005, -1.005, 2.675]))
    check(call("round", x), [3.0, -3.0, 2.0], x=pa.array([2.5, -2.5, 2.4999]))
    check(call("round", x, -1), [20, -20, 10, None], x=pa.array([15, -15, 14, None], BIGINT))
    check(call("round", x, 1), [D("1.30"), D("-1.30")], x=pa.array([D("1.25"), D("-1.25")]))
    check(call("round", x, -2), [D("100.00")], x=pa.array([D("99.99")]))
    with pytest.raises(RunError, match="overflow"):
        values(call("round", x, -1), x=pa.array([2**63 - 1]))


@pytest.mark.parametrize("digits", [-21, -400, -100_000_000, -(2**63)])
def test_round_to_more_digits_than_a_number_has(digits):
    check(call("round", x, digits), [0, 0, 0, None], x=pa.array([1, 2**63 - 1, -(2**63), None]))
    check(call("round", x, digits), [D("0.00")], x=pa.array([D("99.99")]))
    if digits <= -400:
        check(call("round", x, digits), [0.0, -0.0], x=pa.array([1.7e308, -1.7e308]))


def test_real_functions():
    column = pa.array([4.0, -1.0, None])
    check(call("sqrt", x), [2.0, math.nan, None], x=column)
    check(call("ln", x), [math.log(4), math.nan, None], x=column)
    check(call("log10", x), [math.log10(4), math.nan, None], x=column)
    check(call("exp", x), [math.exp(4), math.exp(-1), None], x=column)
    check(call("power", x, 2), [16.0, 1.0, None], x=column)
    check(call("sign", x), [1.0, -1.0, None], x=column)
    check(call("ceil", x), [3.0, -2.0], x=pa.array([2.1, -2.9]))


# --- comparison and logic ------------------------------------------------------------------

floats = st.one_of(
    st.none(),
    st.sampled_from([0.0, -0.0, math.nan, -math.nan, math.inf, -math.inf]),
    st.floats(-2, 2),
)


def key(value: float) -> tuple[int, float]:
    return (1, 0.0) if math.isnan(value) else (0, value + 0.0)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(floats, floats), min_size=1), floats)
def test_floats_compare_in_the_total_order(pairs, constant):
    left = pa.array([p[0] for p in pairs], DOUBLE)
    right = pa.array([p[1] for p in pairs], DOUBLE)
    for name in ("eq", "ne", "lt", "le", "gt", "ge"):
        compare = getattr(__import__("operator"), name)

        def expected(rows, compare=compare):
            return [None if a is None or c is None else compare(key(a), key(c)) for a, c in rows]

        check(call(name, x, y), expected(pairs), x=left, y=right)
        check(call(name, x, Literal(constant)), expected([(a, constant) for a, _ in pairs]), x=left)
        check(call(name, Literal(constant), x), expected([(constant, a) for a, _ in pairs]), x=left)


def test_strings_compare_by_utf8_bytes():
    texts = ["\U0001f600", "\uffff", "z", "é", ""]
    for a in texts:
        for c in texts:
            check(call("lt", x, c), [a.encode() < c.encode()], x=pa.array([a]))


def test_other_types_compare():
    check(call("gt", x, y), [False, True], x=pa.array([True, True]), y=pa.array([True, False]))
    check(call("eq", x, D("1.5")), [True, False], x=pa.array([D("1.50"), D("1.51")]))
    check(call("lt", x, y), [True], x=pa.array([1], DATE), y=pa.array([2], DATE))
    check(call("eq", x, y), [None], x=pa.nulls(1), y=pa.array([1]))
    check(call("eq", x, x), [None], x=pa.nulls(1))


@pytest.mark.parametrize("name", ["and", "or"])
def test_logic_is_three_valued(name):
    domain = [True, False, None]
    rows = [(a, c) for a in domain for c in domain]
    decisive = name == "or"

    def combine(a, c):
        if decisive in (a, c):
            return decisive
        return None if None in (a, c) else not decisive

    expected = [combine(a, c) for a, c in rows]
    columns = {"x": pa.array([r[0] for r in rows]), "y": pa.array([r[1] for r in rows])}
    check(call(name, x, y), expected, **columns)
    for constant in domain:
        check(call(name, x, constant), [combine(a, constant) for a, _ in rows], x=columns["x"])
    check(call(name, True, None), [combine(True, None)])
    check(call("not", x), [{True: False, False: True}.get(a) for a, _ in rows], x=columns["x"])


def test_in_is_three_valued():
    column = pa.array([1, 2, None], BIGINT)
    check(call("in", x, 1, 3), [True, False, None], x=column)
    check(call("in", x, 1, None), [True, None, None], x=column)
    check(call("in", x, y, 2), [None, True, None], x=column, y=pa.array([None, 5, 5], BIGINT))
    check(call("in", x, 0.0, math.nan), [True, True, False], x=pa.array([-0.0, -math.nan, 1.0]))
    check(call("in", s, "a", "b"), [True, False], s=pa.array(["b", "c"]))
    check(call("in", 2, x), [False, True, None], x=column)


def test_nullif_greatest_least_is_null():
    column = pa.array([1.0, math.nan, None, -0.0])
    check(call("nullif", x, math.nan), [1.0, None, None, -0.0], x=column)
    check(call("greatest", x, 0.5), [1.0, math.nan, 0.5, 0.5], x=column)
    check(call("least", x, 0.5), [0.5, 0.5, 0.5, -0.0], x=column)
    check(call("greatest", s, "é"), ["é", "é"], s=pa.array(["z", None]))
    check(
        call("least", x, y),
        [None, 3],
        x=pa.array([None, None], BIGINT),
        y=pa.array([None, 3], BIGINT),
    )
    check(call("is_null", x), [False, False, True, False], x=column)
    check(call("is_not_null", None), [False])


# --- guards --------------------------------------------------------------------------------

TEN_OVER = call("floordiv", 10, x)
ZEROES = {"x": pa.array([0, 2, None, 5], BIGINT)}


def test_a_case_branch_sees_only_rows_that_reach_it():
    guarded = Case(((call("eq", x, 0), lit(-1)), (call("gt", x, 4), lit(99))), TEN_OVER)
    check(guarded, [-1, 5, None, 99], **ZEROES)
    unguarded = Case(((call("eq", x, 2), lit(-1)),), TEN_OVER)
    with pytest.raises(RunError, match=r"zero.*'vs': 0, 've': 1, 'x': 0"):
        values(unguarded, **ZEROES)


def test_failures_inside_branches_name_the_right_event():
    column = pa.array([1, 2, 0, 5], BIGINT)
    expr = Case(((call("ge", x, 2), lit(0)),), TEN_OVER)
    with pytest.raises(RunError, match=r"'vs': 20, 've': 21, 'x': 0"):
        values(expr, x=column)


def test_and_or_coalesce_guard_their_right_sides():
    nonzero = call("ne", x, 0)
    check(call("and", nonzero, call("gt", TEN_OVER, 3)), [False, True, None, False], **ZEROES)
    check(
        call("or", call("eq", x, 0), call("gt", TEN_OVER, 3)), [True, True, None, False], **ZEROES
    )
    # Only the row whose first argument is NULL reaches the division.
    check(
        call("coalesce", y, TEN_OVER),
        [1, 5, 3, 2],
        y=pa.array([1, None, 3, None], BIGINT),
        **ZEROES,
    )
    with pytest.raises(RunError, match=r"zero.*'vs': 0"):
        values(call("and", call("eq", x, 0), call("gt", TEN_OVER, 3)), **ZEROES)


def test_case_conditions_and_constants():
    cond = call("gt", x, 1)
    check(Case(((cond, lit("big")),), lit(None)), [None, "big", None], x=pa.array([1, 2, None]))
    check(Case(((lit(True), x), (cond, lit(5))), lit(0)), [1, 2], x=pa.array([1, 2]))
    check(Case(((lit(False), x), (lit(None), x)), lit(0)), [0, 0], x=pa.array([1, 2]))
    check(call("coalesce", None, x, 7, y), [1, 7], x=pa.array([1, None]), y=pa.array([0, 0]))


def test_constants_are_folded_but_fail_only_on_an_event():
    expr = call("floordiv", 1, 0)
    schema = Schema((("x", BIGINT),), BIGINT)
    compiled = compile_expression(bind(expr, schema_scope(schema)), schema)
    none = np.empty(0, np.int64)
    assert compiled(Batch(none, none, (pa.array([], BIGINT),))).to_pylist() == []
    with pytest.raises(RunError, match="zero"):
        values(expr, x=pa.array([1]))
    check(call("add", 2, call("mul", 3, 4)), [14, 14], x=pa.array([0, 0]))


# --- lifetime, casts -----------------------------------------------------------------------


def test_the_lifetime_is_a_column_and_an_open_end_is_null():
    schema = Schema((), TIMESTAMP)
    batch = Batch(np.array([1, 2]), np.array([OPEN, 9]), ())
    for name, expected in (("vs", [1, 2]), ("ve", [None, 9])):
        bound = bind(Column(name), schema_scope(schema))
        result = compile_expression(bound, schema)(batch)
        assert result.type == TIMESTAMP
        assert result.cast(BIGINT).to_pylist() == expected


CASTS = [
    (pa.array([1, None], INT), BIGINT, [1, None]),
    (pa.array([2**31 - 1, 2**31], BIGINT), INT, [2**31 - 1, ...]),
    (pa.array([2**53 + 1]), DOUBLE, [float(2**53)]),
    (
        pa.array([1.9, -1.9, math.nan, 2.0**63, -(2.0**63), None]),
        BIGINT,
        [1, -1, ..., ..., -(2**63), None],
    ),
    (
        pa.array(["12", "+7", "-0", "0x1F", " 1", "", "9223372036854775808", None]),
        BIGINT,
        [12, 7, 0, ..., ..., ..., ..., None],
    ),
    (
        pa.array(["1.5", "-inf", "NaN", "Infinity", "1e3", "x", "1.5 ", "-1e309", "1e-400"]),
        DOUBLE,
        [1.5, -math.inf, math.nan, math.inf, 1000.0, ..., ..., ..., 0.0],
    ),
    (pa.array(["TRUE", "false", "1", "yes"]), BOOLEAN, [True, False, True, ...]),
    (pa.array([0, 5]), BOOLEAN, [False, True]),
    (pa.array([True, False]), DOUBLE, [1.0, 0.0]),
    (pa.array([True, None]), STRING, ["true", None]),
    (pa.array([1.5, math.nan, -math.inf, 1e20]), STRING, ["1.5", "NaN", "-Infinity", "1e+20"]),
    (pa.array([-5]), STRING, ["-5"]),
    (pa.array([1, 999, 1000], BIGINT), pa.decimal128(5, 2), [D("1.00"), D("999.00"), ...]),
    (
        pa.array([2.675, 0.1, math.nan, 1000.0]),
        pa.decimal128(5, 2),
        [D("2.68"), D("0.10"), ..., ...],
    ),
    (pa.array([D("1.255"), D("-1.255")]), pa.decimal128(5, 2), [D("1.26"), D("-1.26")]),
    (pa.array([D("999.99")]), pa.decimal128(4, 1), [...]),
    (
        pa.array(["1.255", "1e2", "abc", "1e9999"]),
        pa.decimal128(6, 2),
        [D("1.26"), D("100.00"), ..., ...],
    ),
    (pa.array([D("-1.75"), D("9223372036854775808")]), BIGINT, [-1, ...]),
    (pa.array([D("1.25")]), DOUBLE, [1.25]),
    (pa.array([D("0.0000000001"), D("5")]), STRING, ["0.0000000001", "5.0000000000"]),
    (
        pa.array(
            [
                "2020-01-02T03:04:05.5Z",
                "2020-01-02T03:04:05+01:00",
                "2020-01-02",
                "02.01.2020",
                None,
            ]
        ),
        TIMESTAMP,
        [
            datetime(2020, 1, 2, 3, 4, 5, 500000, UTC),
            datetime(2020, 1, 2, 2, 4, 5, 0, UTC),
            datetime(2020, 1, 2, tzinfo=UTC),
            ...,
            None,
        ],
    ),
    (pa.array([1577934245500000], TIMESTAMP), STRING, ["2020-01-02T03:04:05.500000Z"]),
    (pa.array([7], BIGINT), TIMESTAMP, [datetime(1970, 1, 1, 0, 0, 0, 7, UTC)]),
    (pa.array([7], TIMESTAMP), BIGINT, [7]),
    (pa.array([-1], TIMESTAMP), DATE, [date(1969, 12, 31)]),
    (pa.array([1], DATE), TIMESTAMP, [datetime(1970, 1, 2, tzinfo=UTC)]),
    (pa.array(["2020-02-29", "2021-02-29"]), DATE, [date(2020, 2, 29), ...]),
    (pa.array([1], DATE), STRING, ["1970-01-02"]),
    (pa.array(["é"]), BINARY, ["é".encode()]),
    (pa.array([b"\xff", b"a"]), STRING, [..., "a"]),
    (
        pa.array([["1"], ["x", "2"], None, []], pa.list_(STRING)),
        pa.list_(BIGINT),
        [[1], ..., None, []],
    ),
    (pa.nulls(2), STRING, [None, None]),
]


@pytest.mark.parametrize("case", CASTS, ids=lambda c: f"{c[0].type} to {c[1]}")
def test_cast_gives_the_value_or_fails_and_try_cast_gives_null(case):
    column, target, expected = case
    check(Cast(x, lenient=True, type=target), [None if e is ... else e for e in expected], x=column)
    for row, value in enumerate(expected):
        if value is ...:
            with pytest.raises(RunError, match=r"'vs': 0") as info:
                values(Cast(x, type=target), x=column.slice(row, 1))
            assert "CAST" in str(info.value)
        else:
            check(Cast(x, type=target), [value], x=column.slice(row, 1))


def test_a_value_as_large_as_the_memory_leaves_room_for_its_event():
    huge = pa.array(["x" * 100_000])
    with pytest.raises(RunError, match=r"cannot CAST 'x+…, on event {'vs': 0, ") as info:
        values(Cast(x, type=BIGINT), x=huge)
    assert len(str(info.value)) < 9000


def test_a_failing_cast_names_its_event():
    with pytest.raises(
        RunError, match=r"cannot CAST 'x' to BIGINT, on event {'vs': 20, 've': 21, 'x': 'x'}"
    ):
        values(Cast(x, type=BIGINT), x=pa.array(["1", "2", "x", "y"]))


# --- text ----------------------------------------------------------------------------------

TEXTS = pa.array(["Häuser am See", "", None, "a,b,,c"])


def each(function):
    return [None if t is None else function(t) for t in TEXTS.to_pylist()]


def test_simple_text_functions():
    check(call("length", s), each(len), s=TEXTS)
    check(call("length", Cast(s, type=BINARY)), each(lambda t: len(t.encode())), s=TEXTS)
    check(call("lower", s), each(str.lower), s=TEXTS)
    check(call("upper", s), each(str.upper), s=TEXTS)
    check(call("reverse", s), each(lambda t: t[::-1]), s=TEXTS)
    check(call("concat", s, "-", s), each(lambda t: f"{t}-{t}"), s=TEXTS)
    check(call("replace", s, ",", "--"), each(lambda t: t.replace(",", "--")), s=TEXTS)
    check(call("replace", s, "", "--"), each(lambda t: t), s=TEXTS)
    check(call("split", s, ","), each(lambda t: t.split(",")), s=TEXTS)
    check(call("split", s, ""), each(list), s=TEXTS)
    check(call("starts_with", s, "H"), each(lambda t: t.startswith("H")), s=TEXTS)
    check(call("ends_with", s, "c"), each(lambda t: t.endswith("c")), s=TEXTS)
    check(call("contains", s, "am"), each(lambda t: "am" in t), s=TEXTS)
    blanks = pa.array(["  a\t ", None])
    check(call("trim", s), ["a\t", None], s=blanks)
    check(call("ltrim", s), ["a\t ", None], s=blanks)
    check(call("rtrim", s), ["  a\t", None], s=blanks)


def substring(text: str, start: int, length: int | None = None) -> str:
    first = start if start >= 0 else len(text) + start + 1
    stop = len(text) + 1 if length is None else first + length
    return "".join(c for number, c in enumerate(text, start=1) if first <= number < stop)


@pytest.mark.parametrize("start", [-20, -3, -1, 0, 1, 2, 20])
@pytest.mark.parametrize("length", [None, -1, 0, 1, 3, 18, 30])
def test_substring(start, length):
    args = (s, start) if length is None else (s, start, length)
    check(call("substring", *args), each(lambda t: substring(t, start, length)), s=TEXTS)


def test_text_functions_take_columns_for_their_parameters():
    texts, starts = pa.array(["abc", "abc", None, "xyz"]), pa.array([1, 3, 1, None], BIGINT)
    check(call("substring", s, x, 1), ["a", "c", None, None], s=texts, x=starts)
    check(call("substring", "hello", x), ["hello", "llo", "hello", None], x=starts)
    check(
        call("contains", s, y),
        [True, False, None, None],
        s=texts,
        y=pa.array(["b", "x", "a", None], STRING),
    )
    check(call("lpad", s, x, "*"), ["a", "abc", None, None], s=texts, x=starts)


def test_split_part():
    for ordinal in (1, 2, 3, 4, 5, -1, -4, -5):
        index = ordinal - 1 if ordinal > 0 else ordinal

        def part(text, index=index):
            parts = text.split(",")
            return parts[index] if -len(parts) <= index < len(parts) else ""

        check(call("split_part", s, ",", ordinal), each(part), s=TEXTS)
    with pytest.raises(RunError, match="from 1"):
        values(call("split_part", s, ",", 0), s=TEXTS)


@pytest.mark.parametrize("fill", ["*", "ab", ""])
@pytest.mark.parametrize("width", [0, 3, 15])
def test_padding(width, fill):
    def filling(text):
        return (fill * 20)[: max(width - len(text), 0)]

    check(call("lpad", s, width, fill), each(lambda t: (filling(t) + t)[:width]), s=TEXTS)
    check(call("rpad", s, width, fill), each(lambda t: (t + filling(t))[:width]), s=TEXTS)


@pytest.mark.parametrize("name", ["lpad", "rpad"])
@pytest.mark.parametrize("fill", ["*", "ab", "€"])
def test_padding_to_a_huge_width_fails_at_its_row(name, fill):
    widths = pa.array([1, None, 2**62, 2**24 + 1], BIGINT)
    with pytest.raises(RunError, match=r"4611686018427387904 characters.*'vs': 20"):
        values(call(name, s, x, fill), s=pa.array(["a", "a", "a", "a"]), x=widths)
    with pytest.raises(RunError, match="more than 16777216 bytes"):
        values(call(name, s, 2**24 + 1, fill), s=pa.array(["a"]))
    check(call(name, s, 2**62, fill), [None], s=pa.array([None], STRING))
    check(call(name, s, 2**62, ""), ["a"], s=pa.array(["a"]))
    (wide,) = values(call(name, s, 2**22, fill), s=pa.array(["a"]))
    assert len(wide) == 2**22


def test_patterns():
    texts = pa.array(["a%b", "axb", "a\nb", "xaxbx", None])
    check(call("like", s, "a_b"), [True, True, True, False, None], s=texts)
    check(call("like", s, r"a\%b"), [True, False, False, False, None], s=texts)
    check(call("like", s, "%x%"), [False, True, False, True, None], s=texts)
    check(call("like", s, r"\a%"), [True, True, True, False, None], s=texts)
    check(call("like", s, r"%\b"), [True, True, True, False, None], s=texts)
    check(call("like", s, r"%\%\b"), [True, False, False, False, None], s=texts)
    check(call("like", s, r"\a\x\b"), [False, True, False, False, None], s=texts)
    odd = pa.array(["\\", "\\\\", "a\\", "", "a.\n\0 é"])
    check(call("like", s, r"\\"), [True, False, False, False, False], s=odd)
    check(call("like", s, r"%\\"), [True, True, True, False, False], s=odd)
    check(call("like", s, "\\a\\.\\\n\\\0\\ \\é"), [False, False, False, False, True], s=odd)
    for pattern in ("\\", "a\\", "\\\\\\"):
        with pytest.raises(PlanError, match="ends within an escape"):
            values(call("like", s, pattern), s=texts)
    check(call("rlike", s, "a.b"), [True, True, False, True, None], s=texts)
    check(call("regexp_extract", s, r"a(.)b"), ["a%b", "axb", "", "axb", None], s=texts)
    check(call("regexp_extract", s, r"(?:a)([^(])(b)", 1), ["%", "x", "\n", "x", None], s=texts)
    check(call("regexp_extract", s, r"(?P<n>a)[\](x](b)", 2), ["", "b", "", "b", None], s=texts)
    check(call("regexp_replace", s, "[ab]", "-"), ["-%-", "-x-", "-\n-", "x-x-x", None], s=texts)
    check(call("regexp_replace", s, "a(.)", r"\1a"), ["%ab", "xab", "a\nb", "xxabx", None], s=texts)
    with pytest.raises(PlanError, match="regular expression"):
        values(call("rlike", s, "(a"), s=texts)
    with pytest.raises(PlanError, match="group"):
        values(call("regexp_extract", s, "(a)", 2), s=texts)


# --- time ----------------------------------------------------------------------------------

MOMENTS = [
    datetime(2024, 2, 29, 23, 59, 59, 999999, UTC),
    datetime(1969, 12, 31, 1, 2, 3, 4, UTC),
    datetime(2021, 1, 3, 0, 0, 0, 0, UTC),
    None,
]
TIMES = pa.array(MOMENTS, TIMESTAMP)


def moments(function):
    return [None if m is None else function(m) for m in MOMENTS]


def test_messages_show_times_that_python_has_no_date_for():
    far = pa.array([2**62], TIMESTAMP)
    with pytest.raises(RunError, match="overflow"):
        values(call("add", x, 2**62), x=far)
    with pytest.raises(OperatorFailed):
        values(user(half, Cast(x, type=TIMESTAMP), types=(TIMESTAMP,)), x=far)


def test_extract():
    fields = {
        "year": lambda m: m.year,
        "quarter": lambda m: (m.month + 2) // 3,
        "month": lambda m: m.month,
        "week": lambda m: m.isocalendar().week,
        "day": lambda m: m.day,
        "dow": lambda m: m.isoweekday() % 7,
        "doy": lambda m: m.timetuple().tm_yday,
        "hour": lambda m: m.hour,
        "minute": lambda m: m.minute,
        "second": lambda m: m.second,
        "millisecond": lambda m: m.microsecond // 1000,
        "microsecond": lambda m: m.microsecond,
        "epoch": lambda m: math.floor(m.timestamp()),
    }
    for unit, field in fields.items():
        check(call("extract", unit, x), moments(field), x=TIMES)
    check(call("extract", "dow", x), [4], x=pa.array([0], DATE))


def test_date_trunc():
    from datetime import timedelta

    floors = {
        "year": lambda m: m.replace(month=1, day=1, hour=0, minute=0, second=0, microsecond=0),
        "quarter": lambda m: m.replace(
            month=(m.month - 1) // 3 * 3 + 1, day=1, hour=0, minute=0, second=0, microsecond=0
        ),
        "month": lambda m: m.replace(day=1, hour=0, minute=0, second=0, microsecond=0),
        "week": lambda m: (
            m.replace(hour=0, minute=0, second=0, microsecond=0) - timedelta(days=m.weekday())
        ),
        "day": lambda m: m.replace(hour=0, minute=0, second=0, microsecond=0),
        "hour": lambda m: m.replace(minute=0, second=0, microsecond=0),
        "minute": lambda m: m.replace(second=0, microsecond=0),
        "second": lambda m: m.replace(microsecond=0),
        "millisecond": lambda m: m.replace(microsecond=m.microsecond // 1000 * 1000),
        "microsecond": lambda m: m,
    }
    for unit, floor in floors.items():
        check(call("date_trunc", unit, x), moments(floor), x=TIMES)
    check(call("date_trunc", "month", x), [date(2020, 2, 1)], x=pa.array([date(2020, 2, 9)]))
    check(call("date_trunc", "week", x), [date(2021, 1, 4)], x=pa.array([date(2021, 1, 10)]))


def test_date_add():
    check(
        call("date_add", x, 1, "month"),
        [
            datetime(2024, 3, 29, 23, 59, 59, 999999, UTC),
            datetime(1970, 1, 31, 1, 2, 3, 4, UTC),
            datetime(2021, 2, 3, tzinfo=UTC),
            None,
        ],
        x=TIMES,
    )
    check(
        call("date_add", x, -1, "year"),
        [datetime(2023, 2, 28, 23, 59, 59, 999999, UTC)],
        x=TIMES.slice(0, 1),
    )
    check(
        call("date_add", x, y, "quarter"),
        [date(2020, 11, 30), None],
        x=pa.array([date(2021, 5, 31)] * 2),
        y=pa.array([-2, None], BIGINT),
    )
    check(call("date_add", x, 2), [date(2020, 3, 1)], x=pa.array([date(2020, 2, 28)]))
    check(
        call("date_add", x, -1, "microsecond"),
        [datetime(2021, 1, 2, 23, 59, 59, 999999, UTC)],
        x=TIMES.slice(2, 1),
    )
    for unit in ("day", "month"):
        with pytest.raises(RunError, match="overflow"):
            values(call("date_add", x, 2**62, unit), x=TIMES)


def test_to_timestamp():
    check(call("to_timestamp", x), [datetime(1970, 1, 1, 0, 0, 0, 5, UTC)], x=pa.array([5]))
    check(
        call("to_timestamp", s),
        [datetime(2020, 1, 1, 9, tzinfo=UTC)],
        s=pa.array(["2020-01-01T10:00:00+01:00"]),
    )
    check(
        call("to_timestamp", s, "%d.%m.%Y %H:%M:%S.%f"),
        [datetime(2020, 3, 4, 5, 6, 7, 800000, UTC), None],
        s=pa.array(["04.03.2020 05:06:07.8", None]),
    )
    for args in ((s,), (s, "%Y")):
        with pytest.raises(RunError, match="'vs': 10"):
            values(
                call("to_timestamp", *args),
                s=pa.array(["2020", "x"]) if len(args) == 2 else pa.array(["2020-01-01", "x"]),
            )


# --- lists, structs, hashes ----------------------------------------------------------------


def test_lists():
    lists = pa.array([[9], [1, 2, None], [], None, [3, 1]], pa.list_(BIGINT)).slice(1)
    check(call("array_length", x), [3, 0, None, 2], x=lists)
    check(call("array_contains", x, 1), [True, False, None, True], x=lists)
    check(call("array_contains", x, 9), [None, False, None, False], x=lists)
    check(
        call("array_contains", x, y),
        [True, None, None, True],
        x=lists,
        y=pa.array([2, None, 1, 3], BIGINT),
    )
    check(call("element_at", x, 1), [1, None, None, 3], x=lists)
    check(call("element_at", x, -2), [2, None, None, 3], x=lists)
    check(call("element_at", x, 0), [None] * 4, x=lists)
    check(call("element_at", x, 4), [None] * 4, x=lists)
    nan = pa.array([[math.nan]])
    check(call("array_contains", x, -math.nan), [True], x=nan)


def test_struct_fields():
    structs = pa.array([{"a": 1, "b": "x"}, None, {"a": None, "b": "y"}])
    check(Column("x.a"), [1, None, None], x=structs)
    check(Column("x.b"), ["x", None, "y"], x=structs)


# Published vectors of XXH64 with seed 0.
XXH64 = {
    b"": 0xEF46DB3751D8E999,
    b"a": 0xD24EC4F1A98C6E5B,
    b"abc": 0x44BC2CF5AD770999,
    b"Nobody inspects the spammish repetition": 0xFBCEA83C8A378BF1,
}


def test_hashes():
    texts = [k.decode() for k in XXH64]
    columns = {"s": pa.array([None, *texts, None]).slice(1)}
    signed = [h - 2**64 if h >= 2**63 else h for h in XXH64.values()]
    check(call("xxhash64", s), [*signed, None], **columns)
    check(call("md5", s), [*(hashlib.md5(t.encode()).hexdigest() for t in texts), None], **columns)
    check(
        call("sha256", Cast(s, type=BINARY)),
        [*(hashlib.sha256(t.encode()).hexdigest() for t in texts), None],
        **columns,
    )


# --- the user's own functions --------------------------------------------------------------


def half(value):
    if value == 3:
        raise ValueError("three is odd")
    return None if value is None else value // 2


def user(function, *args, result=BIGINT, vectorised=False, types=None):
    types = types or (BIGINT,) * len(args)
    return UserCall(ScalarFunction(function.__name__, function, types, result, vectorised), args)


def test_row_wise_functions():
    check(user(half, x), [1, None, 4], x=pa.array([2, None, 8]))
    with pytest.raises(OperatorFailed) as info:
        values(user(half, x), x=pa.array([2, 3, 4]))
    error = info.value
    assert error.function == "half"
    assert error.file == __file__
    assert error.line == half.__code__.co_firstlineno + 2
    assert error.event == {"vs": 10, "ve": 11, "x": 3}
    assert error.cause == "ValueError: three is odd"
    assert str(pickle.loads(pickle.dumps(error))) == str(error)


def test_the_wrong_type_is_a_failure_of_the_function():
    with pytest.raises(OperatorFailed, match=r"must return STRING, not 4") as info:
        values(user(half, x, result=STRING), x=pa.array([None, 8]))
    assert info.value.event == {"vs": 10, "ve": 11, "x": 8}
    with pytest.raises(OperatorFailed, match="must return STRING, not BIGINT"):
        values(user(lambda c: c, x, result=STRING, vectorised=True), x=pa.array([8]))
    with pytest.raises(OperatorFailed, match="0 values for 1 rows"):
        values(user(lambda c: c.slice(1), x, vectorised=True), x=pa.array([8]))


def test_vectorised_functions():
    check(user(pc.negate, x, vectorised=True), [-2, None], x=pa.array([2, None]))

    def picky(column):
        if 3 in column.to_pylist():
            raise ValueError("three")
        return column

    with pytest.raises(OperatorFailed, match="three") as info:
        values(user(picky, x, vectorised=True), x=pa.array([1, 2, 3, 4, 3]))
    assert info.value.event == {"vs": 20, "ve": 21, "x": 3}
    assert info.value.line == picky.__code__.co_firstlineno + 2


def test_user_functions_run_only_on_rows_that_reach_them():
    guard = call("ne", x, 3)
    column = pa.array([2, 3, 8])
    check(Case(((guard, user(half, x)),), lit(0)), [1, 0, 4], x=column)
    check(call("and", guard, call("gt", user(half, x), 1)), [False, False, True], x=column)
    check(call("coalesce", call("nullif", x, 8), user(half, x)), [2, 3, 4], x=column)
    with pytest.raises(OperatorFailed) as info:
        values(Case(((guard, lit(0)),), user(half, x)), x=column)
    assert info.value.event == {"vs": 10, "ve": 11, "x": 3}


def test_functions_of_nothing():
    check(user(lambda: 7), [7, 7], x=pa.array([1, 2]))


# --- cuts ----------------------------------------------------------------------------------


@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(floats, st.one_of(st.none(), int64s)), min_size=1), st.data())
def test_a_slice_of_a_batch_gives_a_slice_of_the_values(rows, data):
    schema = Schema((("x", DOUBLE), ("y", BIGINT)), BIGINT)
    expr = Case(
        (
            (call("gt", x, 0.5), call("mod", y, 7)),
            (call("is_null", x), call("length", Cast(y, type=STRING))),
        ),
        call("coalesce", call("nullif", y, 0), 5),
    )
    compiled = compile_expression(bind(expr, schema_scope(schema)), schema)
    vs = np.arange(len(rows), dtype=np.int64)
    batch = Batch(
        vs, vs + 1, (pa.array([r[0] for r in rows], DOUBLE), pa.array([r[1] for r in rows], BIGINT))
    )
    cut = data.draw(st.integers(0, len(rows)))
    parts = [batch.slice(0, cut), batch.slice(cut, len(rows))]
    assert [v for p in parts for v in compiled(p).to_pylist()] == compiled(batch).to_pylist()


def test_positions_do_not_matter():
    assert replace(lit(1), position=(1, 2)) == lit(1)
