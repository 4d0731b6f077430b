"""A tiny interpreter of bound expressions: one row at a time, NULL is None.

AND, OR, CASE, COALESCE and the like see NULLs; every other function of a NULL is NULL.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

import pyarrow as pa

from oracle.functions import STRICT, convert, fitting
from oracle.rows import OPEN, Row, value_key
from weir.plan.expressions import Call, Case, Cast, Column, Expr, Literal, UserCall
from weir.plan.usercode.functions import ScalarFunction

Scope = Mapping[str, object]


def scope(row: Row) -> Scope:
    """What an expression over a row can read: the payload and the lifetime."""
    return {**row.payload, "vs": row.vs, "ve": None if row.ve == OPEN else row.ve}


def evaluate_expression(expr: Expr, values: Scope) -> object:
    match expr:
        case Column(name=name):
            return values[name]
        case Literal(value=value):
            return value
        case Case(branches=branches, otherwise=otherwise):
            for condition, value in branches:
                if evaluate_expression(condition, values) is True:
                    return evaluate_expression(value, values)
            return evaluate_expression(otherwise, values)
        case Cast(arg=arg, lenient=lenient):
            return convert(evaluate_expression(arg, values), expr.type, lenient=lenient)
        case UserCall(function=function, args=args):
            return _user_call(function, [evaluate_expression(a, values) for a in args])
        case Call(function=name, args=args):
            # A generator: what AND, OR and COALESCE do not reach is not evaluated.
            return fitting(_call(name, (evaluate_expression(a, values) for a in args)), expr.type)
    raise NotImplementedError(expr)


def _call(name: str, args: Iterable[object]) -> object:
    if name in _OF_NULLS:
        return _OF_NULLS[name](args)
    given = list(args)
    return None if any(a is None for a in given) else STRICT[name](*given)


def _user_call(function: ScalarFunction, args: list[object]) -> object:
    if not function.vectorised:
        return function.function(*args)
    arrays = [pa.array([a], t) for a, t in zip(args, function.args, strict=True)]
    return pa.array(function.function(*arrays), function.result)[0].as_py()


def _decided_by(decisive: bool) -> Callable[[Iterable[object]], bool | None]:
    def connect(args: Iterable[object]) -> bool | None:
        unknown = False
        for arg in args:
            if arg is decisive:
                return decisive
            unknown = unknown or arg is None
        return None if unknown else not decisive

    return connect


def _nullif(args: Iterable[object]) -> object:
    value, other = args
    return None if _call("eq", [value, other]) is True else value


def _in(args: Iterable[object]) -> object:
    value, *options = args
    return _call("or", [_call("eq", [value, option]) for option in options])


def _present(args: Iterable[object]) -> Iterator[object]:
    return (a for a in args if a is not None)


_OF_NULLS: dict[str, Callable[[Iterable[object]], object]] = {
    "and": _decided_by(False),
    "or": _decided_by(True),
    "is_null": lambda args: next(iter(args)) is None,
    "is_not_null": lambda args: next(iter(args)) is not None,
    "coalesce": lambda args: next(_present(args), None),
    "nullif": _nullif,
    "in": _in,
    "greatest": lambda args: max(_present(args), key=value_key, default=None),
    "least": lambda args: min(_present(args), key=value_key, default=None),
}
