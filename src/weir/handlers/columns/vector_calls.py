"""Translates calls of built-in functions and methods to column expressions (`vectors.py`)."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import pyarrow as pa

from weir.events.types import BIGINT, BOOLEAN, DOUBLE, INT, STRING
from weir.handlers.columns.patterns import ascii_pattern
from weir.handlers.columns.vector_parts import converted, function_name, is_vectorised_call, literal
from weir.handlers.trees.scope import NotAColumn
from weir.handlers.trees.values import Const, Method, Op, Python, Tree
from weir.plan.expressions import Call, Expr, Literal, UserCall
from weir.plan.usercode.functions import ScalarFunction
from weir.plan.usercode.made_functions import MadeFunction

if TYPE_CHECKING:
    from weir.handlers.columns.vectors import Vectors

_WITHOUT_ARGUMENTS = {
    "lower": STRING,
    "upper": STRING,
    "casefold": STRING,
    "isdigit": BOOLEAN,
    "isalpha": BOOLEAN,
    "isalnum": BOOLEAN,
    "isspace": BOOLEAN,
    "isupper": BOOLEAN,
    "islower": BOOLEAN,
    "isascii": BOOLEAN,
    "isdecimal": BOOLEAN,
    "isnumeric": BOOLEAN,
}
_OF_DOUBLES: Mapping[Callable[..., object], tuple[str, pa.DataType]] = {
    math.isnan: ("py_isnan", BOOLEAN),
    math.isinf: ("py_isinf", BOOLEAN),
    math.isfinite: ("py_isfinite", BOOLEAN),
    math.sqrt: ("py_sqrt", DOUBLE),
    math.fabs: ("py_abs", DOUBLE),
}
_SEARCHES = ("search", "match", "fullmatch")
_MOST_DIGITS = 15


def method(tree: Method, to: Vectors) -> Expr:
    """Translate a call of a method."""
    name = tree.name
    value = to.vector(tree.of)
    if value.type != STRING or tree.keywords:
        raise NotAColumn(tree.line, f"`.{name}(…)` is Python's")
    constants = [a.value if isinstance(a, Const) else None for a in tree.args]
    if name in _WITHOUT_ARGUMENTS and not constants:
        return Call(f"py_{name}", (value,), type=_WITHOUT_ARGUMENTS[name])
    match name, constants:
        case (("strip" | "lstrip" | "rstrip"), []):
            return Call(f"py_{name}", (value,), type=STRING)
        case (("strip" | "lstrip" | "rstrip"), [str() as characters]):
            return Call(f"py_{name}", (value, literal(characters, tree.line)), type=STRING)
        case (("startswith" | "endswith"), [str() as text]):
            return Call(f"py_{name}", (value, literal(text, tree.line)), type=BOOLEAN)
        case (("startswith" | "endswith"), [tuple() as texts]) if texts:
            return _any_end(f"py_{name}", value, texts, tree)
        case (("find" | "count"), [str() as text]):
            return Call(f"py_{name}", (value, literal(text, tree.line)), type=BIGINT)
        case "replace", [str() as old, str() as new]:
            args = (value, literal(old, tree.line), literal(new, tree.line))
            return Call("py_replace", args, type=STRING)
        case "split", [str() as separator] if separator:
            return Call("py_split", (value, literal(separator, tree.line)), type=pa.list_(STRING))
    raise NotAColumn(tree.line, f"`.{name}(…)`, called so, is Python's")


def _any_end(name: str, value: Expr, texts: tuple[object, ...], tree: Method) -> Expr:
    if not all(isinstance(t, str) for t in texts):
        raise NotAColumn(tree.line, f"`.{tree.name}(…)` takes texts")
    tests = [Call(name, (value, literal(t, tree.line)), type=BOOLEAN) for t in texts]
    return tests[0] if len(tests) == 1 else Call("or", tuple(tests), type=BOOLEAN)


def called(tree: Python, to: Vectors) -> Expr:
    """Translate a call of a function."""
    function, args = tree.function, tree.args
    if is_vectorised_call(tree) and isinstance(function, ScalarFunction):
        typed_args = zip(args, function.args, strict=True)
        columns = tuple(converted(to.vector(a), dtype, a) for a, dtype in typed_args)
        return UserCall(function, columns, type=function.result)
    if isinstance(function, MadeFunction):
        raise NotAColumn(tree.line, "a comprehension is computed row by row")
    if tree.keywords or isinstance(function, ScalarFunction):
        raise NotAColumn(tree.line, f"`{function_name(function)}` is called row by row")
    if function is bool and len(args) == 1:
        return to.truth(args[0])
    if function is len and len(args) == 1:
        return _length(tree, to)
    if function is abs and len(args) == 1:
        value = to.number(args[0])
        return Call("py_abs", (value,), type=value.type)
    if function is round and args:
        return _rounded(tree, to)
    if function is float and len(args) == 1:
        value = to.number(args[0])
        name = "py_pos" if value.type == DOUBLE else "py_float"
        return Call(name, (value,), type=DOUBLE)
    if function is int and len(args) == 1:
        value = to.number(args[0])
        name = "py_pos" if value.type == BIGINT else "py_int"
        return Call(name, (value,), type=BIGINT)
    if function is str and len(args) == 1:
        return to.vector(Op("format", (args[0], Const("s"), Const("")), line=tree.line))
    if (function is min or function is max) and len(args) > 1:
        return _extreme(tree, to)
    if function in _OF_DOUBLES and len(args) == 1:
        name, dtype = _OF_DOUBLES[function]
        return Call(name, (_double(args[0], to),), type=dtype)
    if function in (math.floor, math.ceil, math.trunc) and len(args) == 1:
        value = to.number(args[0])
        name = "py_pos" if value.type == BIGINT else f"py_{function.__name__}"
        return Call(name, (value,), type=BIGINT)
    raise NotAColumn(tree.line, f"`{function_name(function)}` is called row by row")


def _double(tree: Tree, to: Vectors) -> Expr:
    value = to.number(tree)
    return value if value.type == DOUBLE else Call("py_float", (value,), type=DOUBLE)


def _length(tree: Python, to: Vectors) -> Expr:
    value = to.vector(tree.args[0])
    assert value.type is not None
    if value.type == STRING or pa.types.is_list(value.type):
        return Call("py_len", (value,), type=BIGINT)
    raise NotAColumn(tree.line, "`len` of such a value is Python's")


def _rounded(tree: Python, to: Vectors) -> Expr:
    value = to.number(tree.args[0])
    digits = tree.args[1] if len(tree.args) == 2 else Const(None)
    if not isinstance(digits, Const) or len(tree.args) > 2:
        raise NotAColumn(tree.line, "`round` to digits that are not a constant is Python's")
    if digits.value is None:
        # An int that is rounded is itself; `+` of it fails where it is None.
        name = "py_pos" if value.type == BIGINT else "py_round"
        return Call(name, (value,), type=BIGINT)
    if type(digits.value) is not int or not 0 <= digits.value <= _MOST_DIGITS:
        raise NotAColumn(tree.line, f"`round` to other than 0 to {_MOST_DIGITS} digits is Python's")
    if value.type == BIGINT:
        return Call("py_pos", (value,), type=BIGINT)
    return Call("py_round_digits", (value, literal(digits.value, tree.line)), type=DOUBLE)


def _extreme(tree: Python, to: Vectors) -> Expr:
    """Translate min and max as Python computes them, with equal values and NaN.

    Of equal values the first is kept; so is the first of two values when one is a NaN.
    """
    if any(to.static(a) not in (BIGINT, INT, DOUBLE, STRING) for a in tree.args):
        raise NotAColumn(tree.line, f"`{function_name(tree.function)}` of such values is Python's")
    values = [to.vector(a) for a in tree.args]
    if len({v.type for v in values}) > 1:
        raise NotAColumn(tree.line, "the least or largest may be an int or a float")
    name = "py_max" if tree.function is max else "py_min"
    result = values[0]
    for value in values[1:]:
        result = Call(name, (result, value), type=result.type)
    return result


# --- patterns ------------------------------------------------------------------------------


def match_test(tree: Tree, to: Vectors) -> Expr | None:
    """Translate the test for a match where the value is a match object; else return None."""
    match tree:
        case Method(of=Const(value=re.Pattern() as pattern), name=name, args=(text,), keywords=()):
            pass
        case Python(function=function, args=(text,), keywords=()) if isinstance(
            getattr(function, "__self__", None), re.Pattern
        ):
            pattern, name = function.__self__, function.__name__  # type: ignore[attr-defined]
        case Python(
            function=function, args=(Const(value=str() as source), text, *rest), keywords=keywords
        ) if getattr(function, "__module__", "") == "re":
            name, flags = function.__name__, _flags(rest, keywords)
            if flags is None:
                return None
            try:
                pattern = re.compile(source, flags)
            except re.error:
                return None
        case Python(
            function=function, args=(Const(value=re.Pattern() as pattern), text), keywords=()
        ) if getattr(function, "__module__", "") == "re":
            name = function.__name__
        case _:
            return None
    if name not in _SEARCHES:
        return None
    written, needle = ascii_pattern(pattern, name, tree.line)
    value = to.vector(text)
    if value.type != STRING:
        raise NotAColumn(tree.line, "a pattern is looked for in a str")
    source, flags = pattern.pattern, pattern.flags
    literals = (Literal(written, type=STRING), Literal(source, type=STRING))
    how = (Literal(flags, type=BIGINT), Literal(name, type=STRING), Literal(needle, type=STRING))
    return Call("py_matches", (value, *literals, *how), type=BOOLEAN)


def _flags(rest: list[Tree], keywords: tuple[tuple[str, Tree], ...]) -> int | None:
    values = [*rest, *(value for name, value in keywords if name == "flags")]
    if len(values) != len(rest) + len(keywords) or len(values) > 1:
        return None
    if not values:
        return 0
    flags = values[0].value if isinstance(values[0], Const) else None
    return int(flags) if isinstance(flags, int) else None
