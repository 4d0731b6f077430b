"""A function's record is true: its signature, its line in the docs, its promise not to fail."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from decimal import Decimal
from itertools import product
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from weir.errors import PlanError
from weir.events.batch import Batch
from weir.events.types import BIGINT, BINARY, BOOLEAN, DATE, DOUBLE, INT, STRING, TIMESTAMP
from weir.kernels.expressions.evaluator import compile_expression
from weir.plan.expressions import Call, Column, Expr, Literal
from weir.plan.functions import FUNCTIONS, typed
from weir.plan.functions.aggregates import AGGREGATES, BuiltInAggregate
from weir.plan.functions.built_in import BuiltIn
from weir.plan.functions.failures import can_fail
from weir.plan.schema import Schema

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "language.md"
DECIMAL = pa.decimal128(10, 2)
TYPES = {
    "STRING": (STRING,),
    "BINARY": (BINARY,),
    "BIGINT": (BIGINT,),
    "DOUBLE": (DOUBLE,),
    "NUMBER": (INT, BIGINT, DOUBLE, DECIMAL),
    "TIME": (TIMESTAMP, DATE),
}
RESULTS = {
    "BIGINT": BIGINT,
    "BOOLEAN": BOOLEAN,
    "DOUBLE": DOUBLE,
    "LIST(STRING)": pa.list_(STRING),
    "STRING": STRING,
    "TIMESTAMP": TIMESTAMP,
}
CONSTANTS = {"digits": 1, "format": "%Y", "group": 1, "pattern": "a(b)?", "unit": "month"}
EXTREMES = {
    INT: [0, -1, 2**31 - 1, -(2**31)],
    BIGINT: [0, -1, 2**63 - 1, -(2**63)],
    DOUBLE: [0.0, -0.0, 1e308, -1e308, 5e-324, float("nan"), float("inf"), float("-inf")],
    DECIMAL: [Decimal("0.00"), Decimal("99999999.99"), Decimal("-99999999.99")],
    STRING: ["", " ", "a", "AbAB", "ß\u0130\U0001f600", "(", "\\", "\0", "9" * 40],
    BINARY: [b"", b"\0", b"\xff" * 9],
    TIMESTAMP: [0, 2**62, -(2**62)],
    DATE: [0, 2**31 - 1, -(2**31)],
    pa.list_(BIGINT): [[], [None], [1, None, 2**63 - 1]],
    pa.list_(STRING): [[], [None], ["", "a"]],
}


def arguments(function: BuiltIn) -> list[tuple[str, str]]:
    """The name and the type of each argument in the signature, up to a `…`."""
    inside = function.signature.partition("(")[2].removesuffix(")")
    written = [a.strip() for a in re.sub(r" ?\[,", ",", inside).replace("]", "").split(",")]
    return [tuple(a.split(" ", 1)) for a in written if a != "…"]


def types(written: str, shared: pa.DataType) -> tuple[pa.DataType, ...]:
    some = {"T": (shared,), "LIST(T)": (pa.list_(shared),)}
    return tuple(t for word in written.split(" or ") for t in some.get(word) or TYPES[word])


def calls(function: BuiltIn) -> Iterator[Call]:
    """A call for each number of arguments, and for all types that they may have."""
    described = arguments(function)
    required = function.signature.partition("[")[0].count(",") + 1
    for count in range(min(required, len(described)), len(described) + 1):
        for shared in (BIGINT, STRING):
            choices = [types(written, shared) for _, written in described[:count]]
            for chosen in product(*choices):
                if function.name != "to_timestamp" or count == 1 or chosen[0] == STRING:
                    yield Call(function.name, tuple(map(argument, described, chosen)))


def argument(described: tuple[str, str], dtype: pa.DataType) -> Expr:
    name = described[0]
    if name.startswith("'"):
        return Literal(CONSTANTS[name.strip("'")], type=dtype)
    return Column(name, type=dtype)


CALLED = [f for f in FUNCTIONS.values() if f.is_called]
NAMES = [f.name for f in CALLED]


@pytest.mark.parametrize("function", CALLED, ids=NAMES)
def test_a_signature_is_that_of_the_rule(function: BuiltIn) -> None:
    accepted = 0
    for call in calls(function):
        result = typed(call).type
        accepted += 1
        gives = re.match(r"LIST\(STRING\)|[A-Z]+", function.meaning)
        if gives:
            assert result == RESULTS.get(gives[0], result)
        if function.meaning.startswith("the type of") and not pa.types.is_decimal(result):
            assert result == next(a.type for a in call.args if isinstance(a, Column))
    assert accepted
    with pytest.raises(PlanError):
        typed(Call(function.name, ()))
    if "…" not in function.signature:
        with pytest.raises(PlanError):
            typed(Call(function.name, (*call.args, Literal("x", type=STRING))))


@pytest.mark.parametrize("function", CALLED, ids=NAMES)
def test_what_cannot_fail_takes_all_values(function: BuiltIn) -> None:
    for call in map(typed, calls_that_bind(function)):
        if not can_fail(call):
            columns = {c.name: c.type for c in call.args if isinstance(c, Column)}
            rows = list(product(*([None, *EXTREMES[t]] for t in columns.values())))
            payload = [
                pa.array([row[i] for row in rows], type=dtype)
                for i, dtype in enumerate(columns.values())
            ]
            times = np.arange(len(rows))
            batch = Batch(times, times + 1, tuple(payload))
            schema = Schema(tuple(columns.items()), BIGINT)
            values = compile_expression(call, schema)(batch)
            assert values.type == call.type
            assert len(values) == len(rows)


def calls_that_bind(function: BuiltIn) -> Iterator[Call]:
    for call in calls(function):
        casts = typed(call).args
        if all(isinstance(a, Column | Literal) for a in casts):
            yield call


@pytest.mark.parametrize("aggregate", AGGREGATES.values(), ids=AGGREGATES)
def test_an_aggregate_gives_what_its_line_says(aggregate: BuiltInAggregate) -> None:
    assert ("NUMBER" in aggregate.signature) is aggregate.of_numbers
    assert ("'p'" in aggregate.signature) is aggregate.has_share
    argument_type = BIGINT if aggregate.of_numbers else STRING
    own = {"T": argument_type, "LIST(T)": pa.list_(argument_type)}
    written = re.match(r"LIST\(T\)|[A-Z]+", aggregate.meaning)
    assert written is not None
    assert aggregate.result(argument_type) == (own.get(written[0]) or RESULTS[written[0]])


def test_names_are_used_once() -> None:
    others = [name for f in FUNCTIONS.values() for name in f.other_names]
    assert len(others) == len(set(others))
    assert not set(others) & set(NAMES)


def lines(functions: Sequence[BuiltIn | BuiltInAggregate]) -> str:
    texts = [(f.signature, f.meaning) for f in functions]
    return "\n".join(f"| `{a}` | {b} |".replace("||", r"\|\|") for a, b in texts)


def test_the_page_has_every_record() -> None:
    """The tables of the page are these records, in this order: copy them from the failure."""
    page = PAGE.read_text(encoding="utf-8")
    written_as_calls = [f for f in FUNCTIONS.values() if re.match(r"[A-Z_0-9]+\(", f.signature)]
    operators = [f for f in FUNCTIONS.values() if f not in written_as_calls]
    for table in map(lines, (operators, written_as_calls, [*AGGREGATES.values()])):
        if table not in page:
            pytest.fail(f"expected in {PAGE.name}:\n{table}", pytrace=False)


def test_the_page_has_every_other_name() -> None:
    page = PAGE.read_text(encoding="utf-8").partition("### What other dialects write")[2]
    for function in FUNCTIONS.values():
        for name in function.other_names:
            assert re.search(rf"`{name.upper()}\b", page), name
