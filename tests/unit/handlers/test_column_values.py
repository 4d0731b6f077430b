"""Guards, types, calls of whole columns, and how functions that were made travel."""

import pickle

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark import cloudpickle

from unit.handlers.expression_trees import tree_of
from weir.errors import OperatorFailed, PlanError
from weir.events.batch import Batch
from weir.events.types import BIGINT, BOOLEAN, DOUBLE, INT, STRING, TIMESTAMP
from weir.handlers.columns.column_values import (
    Scope,
    column_of,
    row_function,
    truth_of,
    type_of,
    why_row_by_row,
)
from weir.handlers.columns.python_code import TreeFunction
from weir.handlers.reading.comprehensions import EachElement
from weir.handlers.trees.values import Const, Field, Instant, Op, Python, Tree
from weir.kernels.expressions.evaluator import compile_expression
from weir.plan.expressions import Call, Column, Expr, UserCall, walk
from weir.plan.render import render
from weir.plan.schema import Schema
from weir.plan.usercode.code_fingerprint import value_text
from weir.plan.usercode.functions import ScalarFunction

POINT = pa.struct([("u", BIGINT), ("v", STRING)])
TYPES = {"a": BIGINT, "b": BIGINT, "x": DOUBLE, "s": STRING, "p": BOOLEAN, "r": POINT}
SCOPE = Scope(fields={n: (n, dtype) for n, dtype in TYPES.items()}, where="app.py", handler="judge")
PLAIN = Scope(fields=SCOPE.fields, where="app.py", handler="judge", vectorise=False)
BOTH = pytest.mark.parametrize("scope", [SCOPE, PLAIN], ids=["columns", "rows"])


def run(expr: Expr, time: pa.DataType = BIGINT, **columns: list[object]) -> list[object]:
    schema = Schema(tuple((n, TYPES[n]) for n in columns), time)
    arrays = tuple(pa.array(values, TYPES[n]) for n, values in columns.items())
    vs = np.arange(len(arrays[0]), dtype=np.int64)
    found = compile_expression(expr, schema)(Batch(vs, vs + 1, arrays))
    assert found.type == expr.type
    return found.to_pylist()


# --- guards --------------------------------------------------------------------------------


@BOTH
@pytest.mark.parametrize("guard", ["a != 0", "a", "bool(a)", "a and True", "not a == 0"])
def test_a_value_is_computed_only_where_its_guard_is_true(guard: str, scope: Scope) -> None:
    expr = column_of(tree_of("10 // a"), scope, guard=tree_of(guard))
    assert run(expr, a=[0, 5, -3, 0]) == [None, 2, -4, None]


@BOTH
def test_a_guard_that_fails_is_a_failure(scope: Scope) -> None:
    expr = column_of(tree_of("a"), scope, guard=tree_of("a > 0"))
    with pytest.raises(OperatorFailed, match="TypeError"):
        run(expr, a=[1, None])


@BOTH
def test_guards_of_parts_that_are_no_columns(scope: Scope) -> None:
    calls: list[object] = []

    def risky(a: object) -> bool:
        calls.append(a)
        return 10 // a > 1  # type: ignore[operator]

    guard = Op("and", (tree_of("a != 0"), Python(risky, (Field("a"),))))
    assert run(column_of(tree_of("a + 1"), scope, guard=guard), a=[0, 5, 20]) == [None, 6, None]
    assert run(truth_of(guard, scope), a=[0, 5, 20]) == [False, True, False]
    assert 0 not in calls
    either = Op("if", (tree_of("a == 0"), Const(False), Python(risky, (Field("a"),))))
    assert run(truth_of(either, scope), a=[0, 5, 20]) == [False, True, False]
    assert 0 not in calls


def test_a_batch_in_which_few_rows_are_pythons() -> None:
    many: list[object] = list(range(5000))
    many[4000] = 2**62
    expr = column_of(tree_of("a * 4 // 8"), SCOPE)
    assert run(expr, a=many) == [v * 4 // 8 for v in many]  # type: ignore[operator]
    many[4500] = None
    with pytest.raises(OperatorFailed, match=r"judge \(app.py:1\) .*'vs': 4500.*TypeError"):
        run(expr, a=many)


# --- types ---------------------------------------------------------------------------------


@BOTH
@pytest.mark.parametrize(
    ("source", "wanted", "values"),
    [
        ("a", DOUBLE, [3.0, None]),
        ("a > 1", BIGINT, [1, 0]),
        ("p", DOUBLE, [1.0, 0.0]),
        ("a", INT, [3, None]),
        ("a if p else 0.5", DOUBLE, [3.0, 0.5]),
        ("a if p else False", BIGINT, [3, 0]),
        ("None", STRING, [None, None]),
        ("(a, b)", pa.list_(BIGINT), [[3, 1], [None, 1]]),
        ("[s, s]", pa.list_(STRING), [["x", "x"], ["y", "y"]]),
    ],
)
def test_values_become_values_of_the_wanted_type(
    source: str, wanted: pa.DataType, values: list[object], scope: Scope
) -> None:
    given = {"a": [3, None], "b": [1, 1], "p": [True, False], "s": ["x", "y"]}
    source = source.replace("a > 1", "(a or 0) > 1")
    assert run(column_of(tree_of(source), scope, wanted), **given) == values


@BOTH
def test_what_does_not_fit_is_an_error(scope: Scope) -> None:
    for source, wanted in (("a", DOUBLE), ("a", INT), ("a * 2", BIGINT), ("a + a", DOUBLE)):
        with pytest.raises(OperatorFailed, match="a value must be"):
            run(column_of(tree_of(source), scope, wanted), a=[2**62 + 1])


def test_what_can_never_fit_is_refused() -> None:
    with pytest.raises(PlanError, match=r"judge \(app.py:1\).*field `n`.*DOUBLE.*BIGINT"):
        column_of(tree_of("x * 2"), SCOPE, BIGINT, name="the field `n`")
    with pytest.raises(PlanError, match="STRING"):
        column_of(tree_of("s"), SCOPE, DOUBLE)


def test_a_type_that_is_not_known_is_asked_for() -> None:
    with pytest.raises(PlanError, match=r"judge \(app.py:1\).*not known") as caught:
        column_of(Python(lambda a: a, (Field("a", line=1),), line=1), SCOPE)
    assert "app.emits" in caught.value.hint


@BOTH
def test_fields_of_structs(scope: Scope) -> None:
    rows: list[object] = [{"u": 1, "v": "x"}, {"u": None, "v": "y"}]
    assert run(column_of(tree_of("r.v + '!'"), scope), r=rows) == ["x!", "y!"]
    assert run(column_of(tree_of("r['u']"), scope), r=rows) == [1, None]
    with pytest.raises(OperatorFailed, match="TypeError"):
        run(column_of(tree_of("r.v"), scope), r=[None])


def test_times_are_ticks() -> None:
    scope = Scope(fields=SCOPE.fields, time=TIMESTAMP)
    assert type_of(Instant("vs"), scope) == BIGINT
    assert run(column_of(tree_of("ve - vs + vs"), scope), TIMESTAMP, a=[1, 2]) == [1, 2]


# --- functions -----------------------------------------------------------------------------


def test_a_vectorised_function_gets_whole_columns() -> None:
    sizes: list[int] = []

    def double(column: pa.Array) -> pa.Array:
        sizes.append(len(column))
        return pc.multiply(column, 2)

    function = ScalarFunction("double", double, (BIGINT,), BIGINT, vectorised=True)
    call = Python(function, (Field("a"),))
    tree = Op("gt", (call, Const(3)))
    assert why_row_by_row(tree, SCOPE) == ""
    assert run(truth_of(tree, SCOPE), a=[1, 2]) == [False, True]
    mixed = Op("pow", (call, Field("b")))  # which Python computes, of the function's column
    assert run(column_of(mixed, SCOPE, BIGINT), a=[1, 2], b=[2, 3]) == [4, 64]
    assert set(sizes) == {2}


def test_several_values_of_one_function() -> None:
    calls: list[object] = []

    def costly(a: int) -> int:
        calls.append(a)
        return a * 2

    once = Python(costly, (Field("a"),), result=BIGINT)
    trees: tuple[Tree, ...] = (Op("add", (once, Const(1))), Op("gt", (once, Const(2))))
    expr, (first, second) = row_function(trees, (BIGINT, BOOLEAN), SCOPE, tree_of("a > 0"))
    found = run(expr, a=[1, 2, 0])
    assert found == [{"v0": 3, "v1": False}, {"v0": 5, "v1": True}, None]
    assert calls == [1, 2]
    assert (first.type, second.type) == (BIGINT, BOOLEAN)
    assert first == Call(
        "field",
        (Column("rows", type=expr.type), first.args[1]),
        type=BIGINT,  # type: ignore[attr-defined]
    )


def made(expr: Expr) -> ScalarFunction:
    return next(e.function for e in walk(expr) if isinstance(e, UserCall))


def test_equal_values_are_one_function() -> None:
    one, other = (column_of(tree_of("a ** b"), SCOPE, BIGINT) for _ in range(2))
    assert one == other and hash(one) == hash(other)
    assert one != column_of(tree_of("a ** b + 1"), SCOPE, BIGINT)
    assert column_of(tree_of("s * 1"), SCOPE, STRING) != column_of(
        tree_of("s * True"), SCOPE, STRING
    )


def test_functions_travel() -> None:
    factor = 3
    helper = Python(lambda a: a * factor, (Field("a"),))
    function = made(column_of(Op("add", (helper, Const(1))), SCOPE, BIGINT))
    again = pickle.loads(cloudpickle.dumps(function))
    assert again(2) == 7
    plain = made(column_of(tree_of("a ** b"), SCOPE, BIGINT))
    assert pickle.loads(pickle.dumps(plain)) == plain
    assert pickle.loads(pickle.dumps(plain))(2, 5) == 32


def test_fingerprints_tell_what_is_computed_and_not_where() -> None:
    one = made(column_of(tree_of("a ** 2 + b"), SCOPE, BIGINT))
    moved = made(column_of(tree_of("(\n\na ** 2 + b)"), SCOPE, BIGINT))
    other = made(column_of(tree_of("a ** 2 + b + 1"), SCOPE, BIGINT))
    assert value_text(one) == value_text(moved) != value_text(other)


def test_the_line_is_the_failing_one() -> None:
    source = "(\n a ** b +\n (10 //\n  (a - a)))"
    with pytest.raises(OperatorFailed, match="ZeroDivisionError") as caught:
        run(column_of(tree_of(source), SCOPE, BIGINT), a=[1], b=[2])
    assert (caught.value.file, caught.value.line) == ("app.py", 3)


# --- words ---------------------------------------------------------------------------------


def test_explain_shows_the_source() -> None:
    assert render(truth_of(tree_of("a > 2 * b and x < 0.5"), SCOPE)) == "a > 2 * b AND x < 0.5"


@pytest.mark.parametrize(
    ("source", "why"),
    [
        ("a ** b", "`**`"),
        ("s.title()", "`.title(…)`"),
        ("f'{x:.2f}'", "f-string"),
        ("sorted(s)", "`sorted`"),
        ("s - 1", "STRING"),
    ],
)
def test_why_it_runs_row_by_row(source: str, why: str) -> None:
    said = why_row_by_row(tree_of(source), SCOPE)
    assert said.startswith("line 1: ") and why in said


def test_conditions_are_truths() -> None:
    tree = tree_of("a or s")
    assert why_row_by_row(tree, SCOPE) != ""
    assert why_row_by_row(tree, SCOPE, condition=True) == ""
    assert run(truth_of(tree, SCOPE), a=[0, 1, 0], s=["", "", "x"]) == [False, True, True]


# --- lines ---------------------------------------------------------------------------------


def test_equal_functions_keep_their_own_lines() -> None:
    for line in (3, 7):
        value = Op("floordiv", (Const(10), Field("a")), line=line)
        each = EachElement("judge", "app.py", "list", (Field("x"), Field("a")), (), (value,))
        called = Python(each, (Field("xs"), Field("a")), line=1)
        function = TreeFunction("judge", "app.py", (Field("a"),), (value,))
        caller = TreeFunction("judge", "app.py", (Field("xs"), Field("a")), (called,))
        for failing, args in ((function, (0,)), (caller, ([1], 0))):
            with pytest.raises(ZeroDivisionError) as caught:
                failing(*args)
            assert caught.traceback[-1].lineno + 1 == line
