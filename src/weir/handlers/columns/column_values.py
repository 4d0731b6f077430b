"""Turns a handler's values into columns of the plan with the same meaning as in CPython.

Contract
1. `column_of` gives the value where the guard is true, NULL elsewhere. Where the guard is not true,
   the value is not computed, so it cannot fail there.
2. A value becomes a column expression if it can (`vectors.py`). CPython computes row by row the
   rows on which the expression fails (`py_rows`), and all rows of values that cannot be column
   expressions. So an error is CPython's, with the user's line.
3. If only a part of an `and`, `or`, `not` or `if` is a column expression, the parts are split: the
   part that runs row by row runs only for the rows that reach it.
4. A value becomes one of the column's type unchanged, with these exceptions: a bool becomes an int,
   an int a DOUBLE that is exactly equal, a tuple a list, ticks a TIMESTAMP.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import pyarrow as pa

from weir.errors import PlanError
from weir.events.types import BIGINT, BOOLEAN, DOUBLE, INT, NULL, TIMESTAMP, type_name
from weir.handlers.columns.python_code import TreeFunction, folded
from weir.handlers.columns.vector_parts import (
    chosen,
    converted,
    is_small,
    is_vectorised_call,
    literal,
    negated,
    words,
)
from weir.handlers.columns.vectors import Vectors
from weir.handlers.trees.scope import (
    NotAColumn,
    Scope,
    at,
    first_line,
    from_below,
    is_leaf,
    leaf_column,
    leaf_type,
    leaves,
    remembered,
)
from weir.handlers.trees.static_types import as_number, static_type, type_of
from weir.handlers.trees.values import Attribute, Const, Method, Op, Python, Tree
from weir.plan.expressions import Call, Cast, Column, Expr, Literal, UserCall
from weir.plan.usercode.functions import ScalarFunction

__all__ = ["Scope", "column_of", "row_function", "truth_of", "type_of", "why_row_by_row"]


def column_of(
    tree: Tree,
    scope: Scope,
    target: pa.DataType | None = None,
    guard: Tree | None = None,
    name: str = "",
) -> Expr:
    """Return the value as a column; NULL where the guard is not true.

    The column has the type `target`, or the value's own. `name` is what messages call the value, as
    "the field `score` of spam".
    """
    if isinstance(tree, Op) and tree.name == "tried":
        value = column_of(tree.args[0], scope, target)
        return Call("py_tried", (value,), type=value.type)
    dtype = _column_type(tree, scope, target, name)
    tree = lowered(tree, scope)
    if guard is None:
        return _value(tree, scope, dtype)
    guard = lowered(guard, scope)
    nothing = Literal(None, type=dtype)
    if is_leaf(tree) or isinstance(tree, Const):
        return chosen(_truth(guard, scope), _value(tree, scope, dtype), nothing)
    if not scope.vectorise:
        return _rows((tree,), scope, dtype, guard)
    try:
        test = Vectors(scope).truth(guard)
        value = converted(Vectors(scope).vector(tree), dtype, tree)
    except NotAColumn:
        return chosen(_truth(guard, scope), _value(tree, scope, dtype), nothing)
    return _or_rows(chosen(test, value, nothing), _rows((tree,), scope, dtype, guard))


def truth_of(tree: Tree, scope: Scope) -> Expr:
    """Return Python's truth of the value: a BOOLEAN that is never NULL."""
    return _truth(lowered(tree, scope), scope)


def why_row_by_row(tree: Tree, scope: Scope, *, condition: bool = False) -> str:
    """Return why the value runs row by row: the construct and the reason; '' if it does not.

    With `condition`, it is about the truth of the value.
    """
    if not scope.vectorise:
        return "vectorisation is off"
    tree = lowered(tree, scope)
    try:
        if condition:
            Vectors(scope).truth(tree)
        else:
            Vectors(scope).vector(tree)
    except NotAColumn as reason:
        return f"line {reason.line}: {reason.why}" if reason.line else reason.why
    return ""


def row_function(
    trees: Sequence[Tree], types: Sequence[pa.DataType], scope: Scope, guard: Tree | None = None
) -> tuple[Expr, tuple[Expr, ...]]:
    """Return an expression that computes several values row by row, in one function, as a STRUCT.

    Return also, for each value, the expression that takes it out of a column `rows` with that
    STRUCT. A part that several values need is computed once. The STRUCT is NULL where the guard is
    not true.
    """
    whole = pa.struct([(f"v{i}", dtype) for i, dtype in enumerate(types)])
    low = tuple(lowered(t, scope) for t in trees)
    under = None if guard is None else lowered(guard, scope)
    shapes = tuple(_shape(t, scope, dtype) for t, dtype in zip(low, types, strict=True))
    names = tuple(f"v{i}" for i in range(len(low)))
    struct = Op(
        "dict",
        tuple(
            part
            for pair in zip(
                map(Const, names),
                (
                    t if s is None else Python(s, (t,), line=t.line)
                    for t, s in zip(low, shapes, strict=True)
                ),
                strict=True,
            )
            for part in pair
        ),
    )
    members = tuple(
        Call("field", (Column("rows", type=whole), literal(n, 0)), type=dtype)
        for n, dtype in zip(names, types, strict=True)
    )
    return _rows((struct,), scope, whole, under), members


def lowered(tree: Tree, scope: Scope, old: pa.DataType | None = None) -> Tree:
    """Return the value with struct fields read by key, and constants folded.

    A STRUCT is a dict in Python.
    """

    def again(part: Tree) -> Tree:
        return remembered(scope, ("lowered", old), part, lambda: fresh(part))

    def fresh(part: Tree) -> Tree:
        match part:
            case Op():
                return folded(replace(part, args=tuple(map(again, part.args))))
            case Method():
                keywords = tuple((n, again(v)) for n, v in part.keywords)
                args = tuple(map(again, part.args))
                return replace(part, of=again(part.of), args=args, keywords=keywords)
            case Python():
                keywords = tuple((n, again(v)) for n, v in part.keywords)
                return replace(part, args=tuple(map(again, part.args)), keywords=keywords)
            case Attribute():
                of = again(part.of)
                dtype = static_type(of, scope, old)
                if dtype is not None and pa.types.is_struct(dtype):
                    return Op("item", (of, Const(part.name)), line=part.line)
                return replace(part, of=of)
        return part

    from_below(tree, scope, ("lowered", old), again)
    return again(tree)


# --- types ---------------------------------------------------------------------------------


def _column_type(tree: Tree, scope: Scope, target: pa.DataType | None, name: str) -> pa.DataType:
    own_type = type_of(tree, scope)
    what = name or f"the value {words(tree)}"
    where = at(scope, first_line(tree))
    if target is None:
        if own_type is None:
            raise PlanError(
                f"{where}: the type of {what} is not known",
                hint="declare it, as in app.emits('spam', 'score DOUBLE'), or annotate the result "
                "of the function that gives it",
            )
        return own_type
    static = static_type(tree, scope)
    if static is not None and not _fits(static, target):
        raise PlanError(
            f"{where}: {what} is {type_name(static)}; expected {type_name(target)}",
            hint="declare the type that it has, or convert the value",
        )
    return target


def _fits(source: pa.DataType, target: pa.DataType) -> bool:
    """Tell whether some values of one type can become values of the other."""
    if source in (target, NULL):
        return True
    if pa.types.is_list(source) and pa.types.is_list(target):
        return _fits(source.value_type, target.value_type)
    if pa.types.is_decimal(target):
        return source in (BIGINT, INT) or pa.types.is_decimal(source)
    if target == TIMESTAMP:
        return bool(source == BIGINT)
    if pa.types.is_struct(target):
        return bool(pa.types.is_struct(source))
    return as_number(source) == BIGINT and target in (BIGINT, INT, DOUBLE)


def _whole(value: object) -> object:
    """Return a bool as an int, for a column of ints or floats; other values as they are."""
    return int(value) if isinstance(value, bool) else value


def _shape(tree: Tree, scope: Scope, dtype: pa.DataType) -> Callable[[object], object] | None:
    own_type = static_type(tree, scope)
    if dtype in (BIGINT, INT, DOUBLE) and (own_type is None or own_type == BOOLEAN):
        return _whole
    return None


# --- columns and rows ----------------------------------------------------------------------


def _value(tree: Tree, scope: Scope, dtype: pa.DataType) -> Expr:
    """Return the value as a column of the type."""
    if is_leaf(tree) and leaf_type(tree, scope) == dtype:
        return leaf_column(tree, scope)
    if scope.vectorise or isinstance(tree, Const):
        try:
            vector = converted(Vectors(scope).vector(tree), dtype, tree)
        except NotAColumn:
            pass
        else:
            return _or_rows(vector, _rows((tree,), scope, dtype))
    match tree:
        case Op(name="if", args=(test, then, otherwise)) if scope.vectorise:
            values = (_value(t, scope, dtype) for t in (then, otherwise))
            return chosen(_truth(test, scope), *values)
        case Op(name="not") if scope.vectorise and dtype == BOOLEAN:
            return _truth(tree, scope)
        case Op(name="and" | "or", args=args) if scope.vectorise and _all_bools(args, scope):
            return _truth(tree, scope)
    return _rows((tree,), scope, dtype)


def _all_bools(trees: tuple[Tree, ...], scope: Scope) -> bool:
    """Tell whether all are comparisons or other operations whose value is True or False."""
    return all(
        (isinstance(t, Op) and t.name in _TESTS)
        or (isinstance(t, Op) and t.name in ("and", "or") and _all_bools(t.args, scope))
        for t in trees
    )


_TESTS = frozenset(["not", "eq", "ne", "lt", "le", "gt", "ge", "is", "isnot", "in", "notin"])


def _truth(tree: Tree, scope: Scope) -> Expr:
    if isinstance(tree, Const):
        return Literal(bool(tree.value), type=BOOLEAN)
    asked = Python(bool, (tree,), line=tree.line)
    if not scope.vectorise:
        return _rows((asked,), scope, BOOLEAN)
    try:
        vector = Vectors(scope).truth(tree)
    except NotAColumn:
        pass
    else:
        return _or_rows(vector, _rows((asked,), scope, BOOLEAN))
    match tree:
        case Op(name="not", args=(arg,)):
            return negated(_truth(arg, scope))
        case Op(name="and" | "or" as name, args=args):
            return _grouped(name, args, scope)
        case Op(name="if", args=args):
            test, then, otherwise = (_truth(a, scope) for a in args)
            return chosen(test, then, otherwise)
    return _rows((asked,), scope, BOOLEAN)


def _grouped(name: str, args: tuple[Tree, ...], scope: Scope) -> Expr:
    """Return AND or OR of truths; neighbouring column expressions stay together."""
    vectors = Vectors(scope)
    groups: list[list[Tree]] = []
    before = False
    for arg in args:
        try:
            vectors.truth(arg)
            is_vector = True
        except NotAColumn:
            is_vector = False
        if groups and is_vector and before:
            groups[-1].append(arg)
        else:
            groups.append([arg])
        before = is_vector
    parts = [
        _truth(g[0] if len(g) == 1 else Op(name, tuple(g), line=g[0].line), scope) for g in groups
    ]
    return parts[0] if len(parts) == 1 else Call(name, tuple(parts), type=BOOLEAN)


def _or_rows(vector: Expr, rows: Expr) -> Expr:
    if isinstance(vector, Column | Literal):
        return vector
    if isinstance(vector, Cast) and isinstance(vector.arg, Column) and vector.type == BIGINT:
        return vector  # INT, BOOLEAN and times always fit
    if not is_small(vector):
        return rows
    return Call("py_rows", (vector, rows), type=vector.type)


def _rows(
    trees: tuple[Tree, ...], scope: Scope, dtype: pa.DataType, guard: Tree | None = None
) -> Expr:
    """Return a call of the function that computes one value row by row."""
    (tree,) = trees
    parameters = leaves((tree,) if guard is None else (guard, tree), is_vectorised_call)
    shape = _shape(tree, scope, dtype)
    function = TreeFunction(scope.handler, scope.where, parameters, (tree,), guard, (shape,))
    args = tuple(_parameter(p, scope) for p in parameters)
    types = tuple(a.type for a in args)
    return UserCall(ScalarFunction(scope.handler, function, types, dtype), args, type=dtype)


def _parameter(tree: Tree, scope: Scope) -> Expr:
    """Return the column of a leaf, or a call of a function of whole columns."""
    if not is_vectorised_call(tree):
        return leaf_column(tree, scope)
    assert isinstance(tree, Python) and isinstance(tree.function, ScalarFunction)
    function = tree.function
    args = (column_of(a, scope, t) for a, t in zip(tree.args, function.args, strict=True))
    return UserCall(function, tuple(args), type=function.result)
