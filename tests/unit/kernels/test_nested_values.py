"""LIST and STRUCT values are compared, joined, ordered and aggregated as grouping knows them:
NULL inside is a value, the least; NULL outside makes a comparison NULL."""

from __future__ import annotations

import json
import math
import operator
from collections.abc import Callable
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from weir import testing
from weir.errors import RunError
from weir.events.batch import Batch
from weir.events.types import BIGINT, DOUBLE, INT, STRING
from weir.kernels.expressions.evaluator import compile_expression
from weir.plan.binding.binder import bind, schema_scope
from weir.plan.fluent.terms import Term, call, col
from weir.plan.schema import Schema

x, y = col("x"), col("y")
RECORD = pa.struct([("a", STRING), ("b", pa.list_(BIGINT))])

# Each in order: NULL first, shorter lists first, NaN last.
ORDERED = [
    pa.array(
        [[], [None], [None, 0.0], [-math.inf], [0.0], [0.0, None], [0.0, 1.0], [math.nan]],
        pa.list_(DOUBLE),
    ),
    pa.array([[], [""], ["a"], ["a", "a"], ["ab"], ["é"]], pa.list_(STRING)),
    pa.array(
        [
            {"a": None, "b": None},
            {"a": None, "b": [2]},
            {"a": "a", "b": []},
            {"a": "a", "b": [None]},
            {"a": "b", "b": None},
        ],
        RECORD,
    ),
    pa.array(
        [[None], [{"d": Decimal("-1.5")}], [{"d": Decimal(1)}]],
        pa.list_(pa.struct([("d", pa.decimal128(38, 2))])),
    ),
]


def values(term: Term, **columns: pa.Array) -> list[object]:
    schema = Schema(tuple((n, c.type) for n, c in columns.items()), BIGINT)
    evaluate = compile_expression(bind(term.expr, schema_scope(schema)), schema)
    vs = np.arange(len(columns["x"]))
    batch = Batch(vs, vs + 1, tuple(columns.values()))
    assert len(evaluate(batch.slice(0, 0))) == 0
    found: list[object] = evaluate(batch).to_pylist()
    return found


# --- operators and functions ---------------------------------------------------------------

COMPARISONS: list[Callable[[object, object], Term]] = [
    operator.eq,
    operator.ne,
    operator.lt,
    operator.le,
    operator.gt,
    operator.ge,
]


@pytest.mark.parametrize("ordered", ORDERED, ids=lambda column: str(column.type))
def test_operators_know_the_total_order(ordered: pa.Array) -> None:
    pairs = [(i, j) for i in range(len(ordered)) for j in range(len(ordered))]
    columns = {name: ordered.take(pa.array([p[k] for p in pairs])) for k, name in enumerate("xy")}
    for test in COMPARISONS:
        assert values(test(x, y), **columns) == [test(i, j) for i, j in pairs]
    for name, choose in (("greatest", max), ("least", min)):
        wanted = ordered.take(pa.array([choose(p) for p in pairs])).to_pylist()
        assert repr(values(call(name, x, y), **columns)) == repr(wanted)


LISTS = pa.array([[0.0, None], [math.nan], [], None, [1.0]], pa.list_(DOUBLE))
OTHERS = pa.array([[-0.0, None], [-math.nan], None, None, [1.0, None]], pa.list_(DOUBLE))


def test_three_values_outside_only() -> None:
    assert values(x == y, x=LISTS, y=OTHERS) == [True, True, None, None, False]
    assert values(x != y, x=LISTS, y=OTHERS) == [False, False, None, None, True]
    assert values(x == (0, None), x=LISTS) == [True, False, False, None, False]
    assert values(x.isin((1,), y), x=LISTS, y=OTHERS) == [True, True, None, None, True]
    assert values(x.isin((), None), x=LISTS) == [None, None, True, None, None]
    wanted = [None, [math.nan], [], None, [1.0]]
    assert repr(values(call("nullif", x, (0.0, None)), x=LISTS)) == repr(wanted)


def test_lists_that_contain_nested_values() -> None:
    lists = pa.array([[[1], None], [[1]], [[]], None], pa.list_(pa.list_(BIGINT)))
    assert values(call("array_contains", x, (1,)), x=lists) == [True, True, False, None]
    assert values(call("array_contains", x, ()), x=lists) == [None, False, True, None]
    structs = pa.array([[{"a": None}], [{"a": 1}, {"a": 2}], []])
    wanted = pa.array([{"a": None}, {"a": 2}, {"a": 2}])
    assert values(call("array_contains", x, y), x=structs, y=wanted) == [True, True, False]


def test_structs_widen_field_by_field() -> None:
    narrow = pa.struct([("a", INT), ("b", STRING)])
    wide = pa.struct([("a", DOUBLE), ("b", STRING)])
    rows = [{"a": 1, "b": "x"}, None, {"a": None, "b": None}]
    others = [{"a": 1.0, "b": "x"}, {"a": 1.0, "b": "x"}, {"a": None, "b": None}]
    columns = {"x": pa.array(rows, narrow), "y": pa.array(others, wide)}
    assert values(x == y, **columns) == [True, None, True]
    turned = x.cast("STRUCT(a STRING, b BIGINT)")
    assert values(turned, x=pa.array([None, {"a": 1, "b": "2"}], narrow)) == [
        None,
        {"a": "1", "b": 2},
    ]
    with pytest.raises(RunError, match="cannot CAST 'x' to BIGINT"):
        values(turned, x=columns["x"])


# --- queries -------------------------------------------------------------------------------

STREAMS = """
STREAM A (vs BIGINT, ve BIGINT, n BIGINT, x LIST(DOUBLE), s STRUCT(a STRING, b LIST(BIGINT)))
  FROM 'a.jsonl' WITH (vs = vs, ve = ve);
STREAM B (vs BIGINT, ve BIGINT, m BIGINT, y LIST(BIGINT), t STRUCT(a STRING, b LIST(INT)))
  FROM 'b.jsonl' WITH (vs = vs, ve = ve);
"""
A = [
    {"n": 1, "x": [1.0, None], "s": {"a": "k", "b": [1]}},
    {"n": 2, "x": [1.0], "s": {"a": "k", "b": None}},
    {"n": 3, "x": None, "s": None},
    {"n": 4, "x": [-0.0], "s": {"a": None, "b": [1, 2]}},
    {"n": 5, "x": [0.0, 5.0], "s": {"a": "k", "b": [1]}},
    {"n": 6, "x": [], "s": {"a": "j", "b": []}},
]
B = [
    {"m": 1, "y": [1, None], "t": {"a": "k", "b": [1]}},
    {"m": 2, "y": [0], "t": {"a": "k", "b": None}},
    {"m": 3, "y": None, "t": None},
]


def rows_of(query: str, *names: str, **how: int) -> list[list[object]]:
    inputs = {n: [[{"vs": 0, "ve": 100} | row for row in rows]] for n, rows in (("A", A), ("B", B))}
    found = testing.run(f"{STREAMS} Out = {query};", inputs, **how).rows
    return sorted([row[name] for name in names] for row in found)


HOW = [{}, {"cut": 1, "parallelism": 3}, {"cut": 2, "snapshot_at": 4}]


@pytest.mark.parametrize("how", HOW, ids=json.dumps)
def test_joins(how: dict[str, int]) -> None:
    lists = "SELECT n, m FROM A INNER JOIN B ON A.x = B.y"
    assert rows_of(lists, "n", "m", **how) == [[1, 1], [4, 2]]
    structs = "SELECT n, m FROM A INNER JOIN B ON A.s = B.t"
    assert rows_of(structs, "n", "m", **how) == [[1, 1], [2, 2], [5, 1]]
    anti = "SELECT n FROM A LEFT ANTI JOIN B ON A.s = B.t"
    assert rows_of(anti, "n", **how) == [[3], [4], [6]]
    theta = "SELECT n, m FROM A INNER JOIN B ON A.n = B.m AND A.x > B.y"
    assert rows_of(theta, "n", "m", **how) == [[2, 2]]


@pytest.mark.parametrize("how", HOW, ids=json.dumps)
@pytest.mark.parametrize("dtype", ["LIST(DECIMAL(5, 2))", "STRUCT(a LIST(DECIMAL(5, 2)))"])
def test_rows_without_a_match_have_no_list(dtype: str, how: dict[str, int]) -> None:
    text = f"""
        STREAM A (vs BIGINT, k BIGINT) FROM 'a.jsonl';
        STREAM B (vs BIGINT, k BIGINT, x {dtype}) FROM 'b.jsonl';
        Out = SELECT A.k AS k, B.x AS x FROM A LEFT OUTER JOIN B ON A.k = B.k;
    """
    found = testing.run(text, {"A": [{"vs": 1, "k": 1}], "B": []}, **how).rows
    assert found == [{"vs": 1, "ve": 2, "k": 1, "x": None}]


@pytest.mark.parametrize("how", HOW, ids=json.dumps)
def test_lists_of_nulls_alone(how: dict[str, int]) -> None:
    text = """
        STREAM A (vs BIGINT, ve BIGINT, k BIGINT) FROM 'a.jsonl';
        N = SELECT k, [NULL] AS x, vs AS s FROM A;
        Out = SELECT N.x AS x, M.s AS s FROM N INNER JOIN N AS M ON N.k = M.k;
    """
    inputs = {"A": [{"vs": i, "ve": i + 2, "k": 1} for i in range(4)]}
    found = testing.run(text, inputs, **how).rows
    assert sorted((row["vs"], row["s"]) for row in found) == [
        (0, 0),
        *((i, s) for i in (1, 2, 3) for s in (i - 1, i, i)),
    ]
    assert all(row["x"] == [None] for row in found)


@pytest.mark.parametrize("how", HOW, ids=json.dumps)
@pytest.mark.parametrize("window", ["TUMBLING(200)", "HOPPING(200, 100)", "SESSION(200)"])
def test_aggregates(window: str, how: dict[str, int]) -> None:
    query = f"""SELECT MIN(x) AS a, MAX(x) AS b, QUANTILE_DISC(x, 0.5) AS c,
                       MIN(s) AS d, MAX(s) AS e FROM A WITH {window}"""
    (found,) = {json.dumps(r) for r in rows_of(query, *"abcde", **how)}
    wanted = [[], [1.0, None], [0.0, 5.0], A[3]["s"], A[4]["s"]]
    assert found == json.dumps(wanted)


def test_equal_values_come_out_as_one() -> None:
    """MIN is 0 for −0 too, as of plain doubles, whichever of the two was first."""
    (row,) = rows_of("SELECT MIN(x) AS a FROM A WHERE n = 4 WITH TUMBLING(200)", "a")
    assert repr(row) == "[[0.0]]"


@pytest.mark.parametrize("how", HOW, ids=json.dumps)
@pytest.mark.parametrize(
    ("order", "wanted"),
    [
        ("x LIMIT 2", [3, 6]),
        ("x DESC LIMIT 2", [1, 2]),
        ("s LIMIT 2", [3, 4]),
        ("s DESC, x LIMIT 1", [5]),
        ("s DESC LIMIT 1 WITH TIES", [1, 5]),
    ],
)
def test_order_by(order: str, wanted: list[int], how: dict[str, int]) -> None:
    instant = f"SELECT n FROM A ORDER BY {order}"
    window = f"SELECT n FROM A GROUP BY n, x, s WITH TUMBLING(200) ORDER BY {order}"
    for query in (instant, window):
        assert rows_of(query, "n", **how) == [[n] for n in wanted]
