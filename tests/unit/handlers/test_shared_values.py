"""Values whose parts are shared: small as they are, huge when they are written out."""

import pickle
import time
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from weir.events.batch import Batch
from weir.events.types import BIGINT
from weir.handlers.columns.column_values import Scope, column_of, truth_of, type_of, why_row_by_row
from weir.handlers.columns.python_code import TreeFunction
from weir.handlers.trees.values import Const, Field, Op, Python, Tree
from weir.kernels.expressions.evaluator import compile_expression
from weir.plan.expressions import UserCall, walk
from weir.plan.schema import Schema
from weir.plan.usercode.code_fingerprint import value_text

SCOPE = Scope(fields={"a": ("a", BIGINT)}, where="app.py", handler="judge")


def score(rules: int) -> Tree:
    """score = 0; if a > 0: score += 1; if a > 1: score += 2 …"""
    total: Tree = Const(0)
    for n in range(rules):
        test = Op("gt", (Field("a"), Const(n)))
        total = Op("if", (test, Op("add", (total, Const(n + 1))), total))
    return total


def test_a_score_of_many_rules() -> None:
    before = time.process_time()
    tree = score(60)
    assert tree == score(60) and hash(tree) == hash(score(60))
    assert tree != score(61)
    assert pickle.loads(pickle.dumps(tree)) == tree
    assert type_of(tree, SCOPE) == BIGINT
    expr = column_of(tree, SCOPE, guard=Op("gt", (tree, Const(2))))
    truth_of(Op("gt", (tree, Const(5))), SCOPE)
    schema = Schema((("a", BIGINT),), BIGINT)
    vs = np.arange(4, dtype=np.int64)
    batch = Batch(vs, vs + 1, (pa.array([0, 1, 2, 100]),))
    found = compile_expression(expr, schema)(batch)
    assert found.to_pylist() == [None, None, 3, sum(range(1, 61))]
    assert time.process_time() - before < 5


def chain(kind: str, length: int) -> Tree:
    tree: Tree = Const(0)
    for n in range(length):
        test = Op("eq", (Field("a"), Const(n)))
        match kind:
            case "elif":
                tree = Op("if", (test, Const(2 * n), tree))
            case "rules":
                tree = Op("if", (test, Op("add", (tree, Const(n))), tree))
            case "sum":
                tree = Op("add", (tree, Op("mul", (Field("a"), Const(n)))))
            case "and":
                tree = Op("and", (Op("ne", (Field("a"), Const(n + 100))), tree))
    return tree


@pytest.mark.parametrize("kind", ["elif", "rules", "sum", "and"])
@pytest.mark.parametrize("length", [20, 200])
@pytest.mark.parametrize("vectorise", [True, False])
def test_long_chains(kind: str, length: int, vectorise: bool) -> None:
    tree = chain(kind, length)
    scope = replace(SCOPE, vectorise=vectorise)
    assert tree == chain(kind, length)
    assert pickle.loads(pickle.dumps(tree)) == tree
    assert (why_row_by_row(tree, scope, condition=True) == "") == vectorise
    expr = column_of(tree, scope, BIGINT)
    made = next(e.function.function for e in walk(expr) if isinstance(e, UserCall))
    is_same = value_text(made) == value_text(pickle.loads(pickle.dumps(made)))
    assert is_same  # the texts are too long to be shown
    wanted = {
        "elif": [0, 4, 0],
        "rules": [0, 2, 0],
        "sum": [0, length * (length - 1), -(length * (length - 1) // 2)],
        "and": [0, 0, 0],
    }
    vs = np.arange(3, dtype=np.int64)
    batch = Batch(vs, vs + 1, (pa.array([0, 2, -1]),))
    found = compile_expression(expr, Schema((("a", BIGINT),), BIGINT))(batch)
    assert found.to_pylist() == wanted[kind]


def test_what_is_shared_is_computed_once() -> None:
    calls: list[int] = []

    def costly(a: int) -> int:
        calls.append(a)
        return a * 2

    once = Python(costly, (Field("a"),))
    trees = (Op("add", (once, Const(1))), Op("if", (Op("gt", (once, Const(3))), once, Const(0))))
    function = TreeFunction("f", "app.py", (Field("a"),), trees, Op("ne", (once, Const(0))))
    assert function.make()(2) == (5, 4)
    assert function.make()(0) == (None, None)
    assert calls == [2, 0]
    results: list[object] = []
    function.make_loop()(results.append, [(1,), (3,)])
    assert results == [(3, 0), (7, 6)] and calls == [2, 0, 1, 3]


def test_what_a_branch_alone_needs_is_computed_there() -> None:
    half = Op("truediv", (Const(10), Field("a")))
    tree = Op("if", (Op("ne", (Field("a"), Const(0))), Op("add", (half, half)), Const(0.0)))
    function = TreeFunction("f", "app.py", (Field("a"),), (tree,))
    assert (function.make()(0), function.make()(5)) == (0.0, 4.0)
