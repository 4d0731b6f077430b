"""Merge functions: which are ready-made merges, and what the others are called with."""

import itertools
import math

import pytest

from unit.handlers.expression_trees import tree_of
from weir.events.types import BIGINT, BOOLEAN, DOUBLE, INT, STRING
from weir.handlers.columns.column_values import Scope
from weir.handlers.planning.scan_merges import recognised
from weir.handlers.trees.scope import has_old
from weir.handlers.trees.values import Field, Python, Tree

TYPES = {"a": BIGINT, "b": BIGINT, "x": DOUBLE, "s": STRING, "p": BOOLEAN, "i": INT}
SCOPE = Scope(fields={n: (n, dtype) for n, dtype in TYPES.items()}, where="app.py", handler="h")


@pytest.mark.parametrize(
    ("source", "cell", "kind", "args"),
    [
        ("old + 1", BIGINT, "add", ["1"]),
        ("1 + old", BIGINT, "add", ["1"]),
        ("old + a", BIGINT, "add", ["a"]),
        ("old + a * b", BIGINT, "add", ["a * b"]),
        ("old + p", BIGINT, "add", ["p"]),
        ("old + i", INT, "add", ["i"]),
        ("old - 1", BIGINT, "add", ["-1"]),
        ("True", BOOLEAN, "set", ["True"]),
        ("a", BIGINT, "set", ["a"]),
        ("max(old, a)", BIGINT, "max", ["a"]),
        ("max(a, old)", BIGINT, "max", ["a"]),
        ("min(old, s)", STRING, "min", ["s"]),
        ("a if a > old else old", BIGINT, "max", ["a"]),
        ("old if a > old else a", BIGINT, "min", ["a"]),
        ("old if old >= a else a", BIGINT, "max", ["a"]),
        ("a if a <= old else old", BIGINT, "min", ["a"]),
        ("old + x", DOUBLE, "call", ["x"]),
        ("old + a", DOUBLE, "call", ["float(a)"]),
        ("old - a", BIGINT, "call", ["a"]),
        ("old * 2", BIGINT, "call", []),
        ("max(old, x)", DOUBLE, "call", ["x"]),
        ("x if x > old else old", DOUBLE, "call", ["x"]),
        ("max(old, x)", BIGINT, "call", ["x"]),
        ("max(old, a, b)", BIGINT, "call", ["a", "b"]),
        ("old + old", BIGINT, "call", []),
        ("old + s", STRING, "call", ["s"]),
        ("old + (a + b)", STRING, "call", ["a + b"]),
        ("old + 10 // a if a else old", BIGINT, "call", ["a"]),
        ("a + b if old else old + 1", BIGINT, "call", ["a", "b"]),
        ("old or a + b", BIGINT, "call", ["a", "b"]),
    ],
)
def test_merges(source: str, cell: object, kind: str, args: list[str]) -> None:
    found, given, function = recognised(tree_of(source), cell, SCOPE)
    assert found == kind
    assert given == tuple(map(tree_of, args))
    assert (function is not None) == (kind == "call")
    assert function is None or function.step == (
        "add_float" if args and "old + " in source and cell == DOUBLE else ""
    )


INTS = [0, 1, -1, 5, 2**53 + 1, -(2**62)]
FLOATS = [0.0, -0.0, 1.5, math.nan, math.inf, -1.0]


@pytest.mark.parametrize(
    "source",
    [
        "max(old, a)",
        "max(a, old)",
        "min(old, a)",
        "a if a > old else old",
        "old if a > old else a",
        "old if a < old else a",
        "a if old < a else old",
        "old if old <= a else a",
    ],
)
def test_what_counts_as_max_or_min_is(source: str) -> None:
    kind, _, _ = recognised(tree_of(source), BIGINT, SCOPE)
    for old, a in itertools.product(INTS, INTS):
        assert eval(source) == {"max": max, "min": min}[kind](old, a)


@pytest.mark.parametrize(
    "source",
    ["old + 10 // a if a else old", "max(old, a) - b", "old or a + b", "old * a + old * b"],
)
def test_functions_of_the_old_value(source: str) -> None:
    kind, args, made = recognised(tree_of(source), BIGINT, SCOPE)
    assert kind == "call" and made is not None and not any(map(has_old, args))
    for old, a, b in itertools.product(INTS, repeat=3):
        values = [eval(_text(arg), {"a": a, "b": b}) for arg in args]
        assert made.function(old, *values) == eval(source)


def _text(tree: Tree) -> str:
    return tree.name if isinstance(tree, Field) else "a + b"


def test_parts_without_a_type_are_given_as_leaves() -> None:
    unknown = Python(lambda a, b: a - b, (Field("a"), Field("b")))
    tree = tree_of("old * a")
    from weir.handlers.trees.values import Op

    kind, args, made = recognised(Op("sub", (tree, unknown)), BIGINT, SCOPE)
    assert (kind, args) == ("call", (Field("a"), Field("b")))
    assert made is not None and made.function(10, 3, 1) == 28
