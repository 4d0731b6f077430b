"""Building blocks of the column expressions of values."""

from __future__ import annotations

import pyarrow as pa

from weir.events.types import BIGINT, BOOLEAN, DOUBLE, INT, NULL, TIMESTAMP, type_name
from weir.handlers.trees.operations import OPERATIONS
from weir.handlers.trees.scope import NotAColumn, first_line, is_leaf
from weir.handlers.trees.static_types import const_type
from weir.handlers.trees.values import (
    Attribute,
    Const,
    Element,
    Field,
    Instant,
    Method,
    Old,
    Op,
    Python,
    ReadValue,
    Tree,
)
from weir.plan.expressions import Call, Case, Cast, Expr, Literal
from weir.plan.limits import MOST_PARTS
from weir.plan.usercode.functions import ScalarFunction

_SIGNS = {
    "item": "[…]",
    "slice": "[…:…]",
    "tuple": "(…, …)",
    "list": "[…]",
    "set": "{…}",
    "dict": "{…: …}",
    "format": "f'{…}'",
    "join": "f'…'",
}
_INT64 = 1 << 63
_MOST_NODES = 500
"""The most nodes of a column expression; a larger value repeats parts, and runs row by row."""
_MAY_BE_NULL = frozenset(("py_field", "py_item"))


def sign_of(name: str) -> str:
    """Return Python's sign for an operation."""
    return OPERATIONS[name].sign if name in OPERATIONS else _SIGNS.get(name, name)


def words(tree: Tree) -> str:
    """Write a value for messages, shortened."""
    match tree:
        case Field(name=name) | Instant(name=name):
            return f"`e.{name}`"
        case ReadValue():
            return "what a read gives"
        case Element():
            return "the loop's variable"
        case Old():
            return "the old value"
        case Const(value=value):
            text = repr(value)
            return f"`{text if len(text) <= 40 else text[:40] + '…'}`"
        case Op(name=name):
            return f"`{sign_of(name)}`"
        case Attribute(name=name):
            return f"`.{name}`"
        case Method(name=name):
            return f"`.{name}(…)`"
        case Python(function=function):
            return f"`{function_name(function)}(…)`"
    return type(tree).__name__


def function_name(function: object) -> str:
    """Return the name of a function for messages."""
    name = getattr(function, "__qualname__", None) or getattr(function, "name", None)
    return name if isinstance(name, str) else type(function).__name__


def literal(value: object, line: int) -> Literal:
    """Return a constant as a literal; NotAColumn where the language has no such value."""
    dtype = const_type(value)
    if dtype is None or isinstance(value, tuple | list):
        raise NotAColumn(line, f"{words(Const(value))} is not a value of a column")
    if isinstance(value, int) and not -_INT64 <= value < _INT64:
        raise NotAColumn(line, "the number has more than 64 bits")
    if isinstance(value, str) and not fits_utf8(value):
        raise NotAColumn(line, "the text has half of a surrogate pair")
    return Literal(value, type=dtype)


def fits_utf8(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def chosen(test: Expr, then: Expr, otherwise: Expr) -> Expr:
    """Return a CASE of two values of one type; nested ones are joined into one."""
    if isinstance(otherwise, Case) and otherwise.type == then.type:
        return Case(((test, then), *otherwise.branches), otherwise.otherwise, type=then.type)
    return Case(((test, then),), otherwise, type=then.type)


def converted(value: Expr, dtype: pa.DataType, tree: Tree) -> Expr:
    """Return a column expression converted to a type.

    It may fail for values that do not fit.
    """
    if value.type == dtype:
        return value
    if value.type == NULL:
        return Literal(None, type=dtype)
    if value.type == BOOLEAN and dtype in (BIGINT, INT, DOUBLE):
        return Cast(value, type=dtype)
    if value.type == BIGINT and dtype == DOUBLE:
        return Call("py_exact_float", (value,), type=DOUBLE)
    if value.type == BIGINT and dtype in (INT, TIMESTAMP):
        return Cast(value, type=dtype)
    raise NotAColumn(first_line(tree), f"Python makes it {type_name(dtype)}")


def is_vectorised_call(tree: Tree) -> bool:
    """Tell whether the value is a call of a `@weir.udf` on whole columns."""
    if not isinstance(tree, Python) or not isinstance(tree.function, ScalarFunction):
        return False
    return tree.function.vectorised and len(tree.args) == len(tree.function.args)


def as_int(value: Expr) -> Expr:
    """Return a BOOLEAN as the int that Python computes with."""
    if isinstance(value, Literal):
        return Literal(int(bool(value.value)), type=BIGINT)
    return Cast(value, type=BIGINT)


def negated(test: Expr) -> Expr:
    """Return the opposite of a truth, which is never NULL."""
    if isinstance(test, Call) and test.function == "not":
        return test.args[0]
    return Call("not", (test,), type=BOOLEAN)


def never_null(value: Expr) -> bool:
    """Tell whether a BOOLEAN is certain to be true or false."""
    if isinstance(value, Literal):
        return value.value is not None
    if not isinstance(value, Call) or value.function in _MAY_BE_NULL:
        return False
    if value.function in ("and", "or", "not"):
        return all(map(never_null, value.args))
    return value.function.startswith("py_") or value.function in ("is_null", "is_not_null")


def is_plain(tree: Tree) -> bool:
    """Tell whether a value needs no computation: it is a constant or a column."""
    return isinstance(tree, Const) or is_leaf(tree)


def options_of(within: Tree) -> tuple[Tree, ...] | None:
    """Return the elements of a tuple, list or set that is written out, or None."""
    match within:
        case Op(name="tuple" | "list", args=args):
            return args
        case Op(name="set", args=args) if all(isinstance(a, Const) for a in args):
            return args
        case Const(value=tuple() | list() | set() | frozenset() as value):
            return tuple(Const(v, line=within.line) for v in _in_order(value))
    return None


def _in_order(value: object) -> list[object]:
    """Return the elements of a value; sets get an order that is the same in all processes."""
    assert isinstance(value, tuple | list | set | frozenset)
    if isinstance(value, tuple | list):
        return list(value)
    return sorted(value, key=lambda v: (type(v).__name__, repr(v)))


def is_small(expr: Expr) -> bool:
    """Tell whether an expression is small enough for a plan when it is written out."""
    measured: dict[int, tuple[int, int]] = {}
    stack = [expr]
    while stack:
        part = stack[-1]
        missing = [child for child in part.children if id(child) not in measured]
        if missing:
            stack += missing
            continue
        stack.pop()
        below = [measured[id(child)] for child in part.children]
        size = 1 + sum(size for size, _ in below)
        measured[id(part)] = size, 1 + max((depth for _, depth in below), default=0)
    size, depth = measured[id(expr)]
    return size <= _MOST_NODES and depth <= MOST_PARTS // 2
