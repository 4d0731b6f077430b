"""The oracle against every case with a known answer, and its own arithmetic."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

import pyarrow as pa
import pytest

from oracle import OPEN, OracleError, Row, canonical, evaluate
from oracle.aggregates import quantile_cont, quantile_disc, square_root, total
from oracle.cases import Case, oracle_items, read_cases
from oracle.rows import in_order, value_key
from weir.errors import PlanError, ScriptError
from weir.plan.operators import schema
from weir.plan.program import Program
from weir.script.program import parse_program

CASES = list(read_cases())


def evaluated(program: Program, case: Case) -> list[Row]:
    inputs = {
        source.name: oracle_items(case.inputs[source.name], dict(schema(source).columns))
        for source in program.sources
    }
    return evaluate(dict(program.streams)["Out"], inputs)


def test_no_case_is_lost() -> None:
    assert len(CASES) == 693


@pytest.mark.parametrize("case", [c for c in CASES if c.error is None], ids=lambda c: c.id)
def test_known_answers(case: Case) -> None:
    program = parse_program(case.text)
    names = schema(dict(program.streams)["Out"]).names
    wanted = [
        Row(r["vs"], OPEN if r["ve"] is None else r["ve"], {n: r[n] for n in names})
        for r in case.expected or []
    ]
    assert canonical(evaluated(program, case)) == canonical(wanted)


@pytest.mark.parametrize("case", [c for c in CASES if c.error is not None], ids=lambda c: c.id)
def test_known_errors(case: Case) -> None:
    with pytest.raises((ScriptError, PlanError, OracleError)) as error:
        evaluated(parse_program(case.text), case)
    assert str(case.error).lower() in str(error.value).lower()


# --- its own parts -------------------------------------------------------------------------


def test_the_total_order() -> None:
    values = [math.nan, math.inf, 1, -0.0, -math.inf, None]
    assert sorted(values, key=value_key) == values[::-1]
    assert value_key(-0.0) == value_key(0.0)
    assert value_key(math.nan) == value_key(-math.nan)
    assert value_key("z") < value_key("é") < value_key("\ue000") < value_key("\U0001f30a")


def test_rows_without_an_origin_come_last() -> None:
    bare, later, first = Row(1, 2, {}), Row(1, 2, {}, (0, 0, 7)), Row(1, 9, {}, (0, 0, 3))
    assert in_order([bare, later, first]) == [first, later, bare]


@pytest.mark.parametrize(
    ("values", "wanted"),
    [
        ([1e300, 1.5, -1e300], 1.5),
        ([1.7976931348623157e308] * 2, math.inf),
        ([1.7976931348623157e308] * 2 + [-1.7976931348623157e308], 1.7976931348623157e308),
        ([math.inf, 1.0], math.inf),
        ([0.1] * 10, 1.0),
    ],
)
def test_float_sums_are_rounded_once(values: list[float], wanted: float) -> None:
    assert total(values, pa.float64()) == wanted


def test_integer_sums_are_judged_in_the_end() -> None:
    assert total([2**63 - 1, 1, -1], pa.int64()) == 2**63 - 1
    with pytest.raises(OracleError, match="overflow"):
        total([2**63 - 1, 1], pa.int64())


def test_decimal_sums_stay_decimal() -> None:
    assert total([Decimal("0.10"), Decimal("0.25")], pa.decimal128(38, 2)) == Decimal("0.35")


@pytest.mark.parametrize("square", [Fraction(2), Fraction(10**600), Fraction(1, 3), Fraction(9, 4)])
def test_roots_are_rounded_once(square: Fraction) -> None:
    root = square_root(square)
    low, high = math.nextafter(root, 0), math.nextafter(root, math.inf)
    assert ((Fraction(low) + Fraction(root)) / 2) ** 2 < square
    assert square < ((Fraction(high) + Fraction(root)) / 2) ** 2


def test_quantiles() -> None:
    assert quantile_disc([30, 10, 20], Fraction("0.5")) == 20
    assert quantile_disc([30, 10, 20], Fraction(0)) == 10
    assert quantile_disc([30, 10, 20], Fraction("0.67")) == 30
    assert quantile_cont([30, 10, 20], Fraction("0.25")) == 15.0
