"""The binder resolves names and types, so that an operator can evaluate an expression.

Contract
1. `bind(expr, scope)` returns the same tree with every node typed, every `Column` naming a column
   of the scope's input, and casts where operands meet (`coercion.py`).
2. An error is a PlanError with the position of the part that is wrong.
3. A scope resolves names. Bare `vs` and `ve` are the input's own lifetime unless the scope defines
   them otherwise. `A.k` is found by its qualifier, `k` only if a single input has it.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, replace
from decimal import Decimal

import pyarrow as pa

from weir.errors import PlanError, Position
from weir.events.types import BOOLEAN, STRING, is_numeric, type_name
from weir.plan.advice.other_dialects import function_hint
from weir.plan.expressions import AggregateCall, Call, Case, Cast, Column, Expr, Literal, UserCall
from weir.plan.functions import FUNCTIONS, is_called, typed
from weir.plan.functions.coercion import (
    castable,
    coerce,
    common_type_of,
    literal_type,
    type_of,
    widens,
)
from weir.plan.functions.times import DATE_UNITS, TIME_UNITS
from weir.plan.names import WINDOW_COLUMNS
from weir.plan.schema import Schema
from weir.plan.usercode.functions import NO_FUNCTIONS, UserFunctions

_NO_NAME = re.compile(r"[^\w.]")
"""A character that plain column names do not contain."""
_MOST_NAMES = 120
"""How many characters of names a hint lists."""


@dataclass(frozen=True, slots=True)
class Visible:
    """A name that expressions may use, and the bound expression that it stands for."""

    qualifier: str | None
    name: str
    expr: Expr

    @property
    def full(self) -> str:
        return self.name if self.qualifier is None else f"{self.qualifier}.{self.name}"


@dataclass(frozen=True, slots=True)
class NameScope:
    """What an expression may read, and the clause that contains it (for messages).

    `visible` are the payload columns in the order in which `*` lists them; `times` are the
    lifetimes. `replaced` comes first and gets the expression as written: if it returns a
    replacement (for aggregates and group keys above a window), that is final. `aliases` are used
    only for names that nothing else has.
    """

    visible: tuple[Visible, ...]
    times: tuple[Visible, ...]
    clause: str = "this expression"
    functions: UserFunctions = NO_FUNCTIONS
    aliases: tuple[Visible, ...] = ()
    replaced: Callable[[Expr], Expr | None] | None = None

    def at(self, clause: str) -> NameScope:
        return replace(self, clause=clause)


def schema_scope(
    schema: Schema, qualifier: str | None = None, functions: UserFunctions = NO_FUNCTIONS
) -> NameScope:
    """Return the scope of a single input: its columns, bare and qualified, and its lifetime."""
    columns = tuple(Visible(qualifier, n, Column(n, type=t)) for n, t in schema.columns)
    times = lifetime(schema.time)
    if qualifier is not None:
        times += tuple(Visible(qualifier, t.name, t.expr) for t in times)
    return NameScope(columns, times, functions=functions)


def lifetime(time: pa.DataType, names: tuple[str, str] = ("vs", "ve")) -> tuple[Visible, ...]:
    """Return the operator's own lifetime, under its two bare names."""
    pairs = zip(names, ("vs", "ve"), strict=True)
    return tuple(Visible(None, n, Column(end, type=time)) for n, end in pairs)


def bind(expr: Expr, scope: NameScope) -> Expr:
    """Return the expression with names resolved and types set.

    >>> scope = schema_scope(Schema((("v", pa.int64()),), pa.int64()))
    >>> bind(Call("gt", (Column("v"), Literal(1))), scope).type
    DataType(bool)
    """
    if scope.replaced is not None and (replacement := scope.replaced(expr)) is not None:
        return replace(replacement, position=expr.position)
    match expr:
        case Column():
            return _column(expr, scope)
        case Literal():
            return expr if expr.type is not None else replace(expr, type=literal_type(expr))
        case Cast():
            return _cast(expr, scope)
        case Case():
            return _case(expr, scope)
        case Call(function="neg", args=(Literal(value=int() | float() | Decimal() as value),)) if (
            not isinstance(value, bool)
        ):
            # -9223372036854775808 is a BIGINT, although the number after the minus is not.
            return bind(Literal(-value, position=expr.position), scope)
        case Call():
            return _call(expr, scope)
        case UserCall():
            return _user_call(expr, tuple(bind(a, scope) for a in expr.args))
        case AggregateCall():
            raise PlanError(
                f"an aggregate cannot stand in {scope.clause}",
                position=expr.position,
                hint="HAVING filters by aggregates" if scope.clause == "WHERE" else "",
                python=".having(…) filters by them" if scope.clause == "WHERE" else "",
            )
    raise AssertionError(f"not an expression: {expr!r}")


def bind_condition(expr: Expr, scope: NameScope) -> Expr:
    """Bind an expression that must be BOOLEAN."""
    bound = bind(expr, scope)
    if not widens(type_of(bound), BOOLEAN):
        raise PlanError(
            f"{scope.clause} must be BOOLEAN, not {type_name(type_of(bound))}",
            position=expr.position,
            hint="compare it with something, as in x <> 0" if is_numeric(type_of(bound)) else "",
        )
    return coerce(bound, BOOLEAN)


# --- names ---------------------------------------------------------------------------------


def _column(column: Column, scope: NameScope) -> Expr:
    expr = lookup(column.name, scope, column.position)
    if expr is not None:
        return replace(expr, position=column.position)
    if column.name in WINDOW_COLUMNS:
        raise PlanError(
            f"`{column.name}` cannot stand in {scope.clause}: there are no windows before it",
            position=column.position,
        )
    if column.name in ("vs", "ve"):  # in a join, there is no lifetime before the join's rows exist
        inputs = [f"`{n}`" for n in _names(scope) if n.endswith(f".{column.name}")]
        raise PlanError(
            f"`{column.name}` of the result cannot stand in {scope.clause}",
            position=column.position,
            hint=f"write {' or '.join(inputs)}" if inputs else "",
        )
    otherwise = function_hint(column.name)
    if not otherwise and column.name.lower() in (*DATE_UNITS, *TIME_UNITS):
        otherwise = f"a unit of time stands in quotes: '{column.name.lower()}'"
    raise unknown("column", column.name, _names(scope), column.position, otherwise=otherwise)


def lookup(name: str, scope: NameScope, position: Position | None = None) -> Expr | None:
    """Resolve a name: to a lifetime, a column, a field of a STRUCT column, or an alias."""
    for candidates in (scope.times, scope.visible, scope.aliases):
        matches = _matching(name, candidates)
        if len(matches) > 1 and any(v.expr != matches[0].expr for v in matches):
            both = " or ".join(f"`{v.full}`" for v in matches)
            raise PlanError(f"`{name}` is ambiguous: it may be {both}", position=position)
        if matches:
            return matches[0].expr
    return _struct_field(name, scope, position)


def _matching(name: str, candidates: tuple[Visible, ...]) -> list[Visible]:
    exact = [v for v in candidates if v.full == name]
    if exact or name in ("vs", "ve"):  # bare `vs` never means that of a joined input
        return exact
    return [v for v in candidates if v.name == name]


def _struct_field(name: str, scope: NameScope, position: Position | None) -> Expr | None:
    prefix, dot, field = name.rpartition(".")
    struct = lookup(prefix, scope, position) if dot else None
    if struct is None or not pa.types.is_struct(type_of(struct)):
        return None
    return typed(Call("field", (struct, Literal(field, type=STRING)), position=position))


def _names(scope: NameScope) -> list[str]:
    visible = (*scope.visible, *scope.times, *scope.aliases)
    return list(dict.fromkeys(n for v in visible for n in (v.name, v.full)))


def unknown(
    what: str,
    name: str,
    names: Iterable[str],
    position: Position | None = None,
    hint: str = "",
    *,
    otherwise: str = "",
) -> PlanError:
    """Return the error for an unknown name.

    Without another hint, it suggests the most similar name; if there is none, the hint is
    `otherwise`."""
    if not hint and position is None and _NO_NAME.search(name):
        hint = f"weir.expr({name!r}) is an expression"  # in Python: most likely it is an expression
    elif not hint:
        by_lower = {n.lower(): n for n in names}
        close = difflib.get_close_matches(name.lower(), by_lower, n=1, cutoff=0.6)
        hint = f"did you mean `{by_lower[close[0]]}`?" if close else otherwise
        if not hint and position is None:  # a script's error already shows the line, and its STREAM
            hint = _those_there(by_lower.values())
    return PlanError(f"unknown {what} `{name}`", position=position, hint=hint)


def _those_there(names: Collection[str]) -> str:
    """List the names, if they are few; list `A.k` only if `k` is not among them."""
    shown = ", ".join(n for n in names if "." not in n or n.rpartition(".")[2] not in names)
    return f"there are {shown}" if shown and len(shown) <= _MOST_NAMES else ""


# --- types ---------------------------------------------------------------------------------


def _cast(cast: Cast, scope: NameScope) -> Expr:
    arg = bind(cast.arg, scope)
    if not castable(type_of(arg), type_of(cast)):
        source, target = type_name(type_of(arg)), type_name(type_of(cast))
        raise PlanError(f"cannot CAST {source} to {target}", position=cast.position)
    return replace(cast, arg=arg)


def _case(case: Case, scope: NameScope) -> Expr:
    conditions = [bind_condition(c, scope.at("the condition of WHEN")) for c, _ in case.branches]
    values = [bind(v, scope) for v in (*(v for _, v in case.branches), case.otherwise)]
    shared = common_type_of(type_of(v) for v in values)
    if shared is None:
        names = ", ".join(dict.fromkeys(type_name(type_of(v)) for v in values))
        raise PlanError(
            f"the branches of CASE have types {names}",
            position=case.position,
            hint="CAST some of them, so that all have one type",
            python="cast some of them, so that all have one type: .cast('DOUBLE')",
        )
    cast = [coerce(v, shared) for v in values]
    branches = tuple(zip(conditions, cast[:-1], strict=True))
    return replace(case, branches=branches, otherwise=cast[-1], type=shared)


def _call(call: Call, scope: NameScope) -> Expr:
    if call.function == "explode":
        raise PlanError("EXPLODE stands alone in a select list", position=call.position)
    if call.function not in FUNCTIONS and call.function not in scope.functions.scalars:
        if call.function in scope.functions.aggregates:
            return bind(AggregateCall(call.function, call.args, position=call.position), scope)
        built_in = filter(is_called, FUNCTIONS)
        names = (*built_in, *scope.functions.scalars, *scope.functions.aggregates)
        raise unknown("function", call.function, names, call.position, function_hint(call.function))
    args = tuple(bind(a, scope) for a in call.args)
    if call.function in FUNCTIONS:
        return typed(replace(call, args=args))
    function = scope.functions.scalars[call.function]
    return _user_call(UserCall(function, args, position=call.position), args)


def _user_call(call: UserCall, args: tuple[Expr, ...]) -> Expr:
    name, types = call.function.name, call.function.args
    cast = user_arguments(name, types, args, call.position)
    return replace(call, args=cast, type=call.function.result)


def user_arguments(
    name: str, types: tuple[pa.DataType, ...], args: tuple[Expr, ...], position: Position | None
) -> tuple[Expr, ...]:
    """Return the arguments of the user's function, cast to the types that it declares."""
    if len(args) != len(types):
        raise PlanError(
            f"{name} takes {len(types)} argument(s), not {len(args)}", position=position
        )
    for number, (arg, target) in enumerate(zip(args, types, strict=True), start=1):
        if not widens(type_of(arg), target):
            raise PlanError(
                f"{name}: argument {number} must be {type_name(target)}, "
                f"not {type_name(type_of(arg))}",
                position=arg.position or position,
            )
    return tuple(coerce(a, t) for a, t in zip(args, types, strict=True))
