"""Gives aggregates their types, and moves them out of expressions into an `Aggregate` node.

After binding, a kernel gets the following aggregates. Arguments are columns; an argument of type
NULL is a column of NULLs only.

    count_star                    nothing                          -> BIGINT
    count count_distinct          any                              -> BIGINT
    sum                           BIGINT | DOUBLE | DECIMAL(p,s)   -> the same | DECIMAL(38,s)
    avg                           BIGINT | DOUBLE | DECIMAL(p,s)   -> DOUBLE | DECIMAL(38,s+4)
    stddev variance quantile_cont BIGINT | DOUBLE | DECIMAL        -> DOUBLE
    min max quantile_disc         any                              -> the same
    first last                    any                              -> the same
    collect                       T                                -> LIST(T)
    user                          as the user's aggregate declares
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from decimal import Context, Decimal, InvalidOperation

import pyarrow as pa

from weir.errors import PlanError, Position
from weir.events.types import BIGINT, DOUBLE, INT, NULL, is_numeric, type_name
from weir.plan.aggregations import Aggregation
from weir.plan.binding.binder import (
    NameScope,
    bind,
    bind_condition,
    lookup,
    unknown,
    user_arguments,
)
from weir.plan.binding.partitioning import checked
from weir.plan.binding.projection import project
from weir.plan.expressions import AggregateCall, Call, Case, Column, Expr, Literal, walk
from weir.plan.functions import FUNCTIONS
from weir.plan.functions.aggregates import AGGREGATES
from weir.plan.functions.coercion import coerce, type_of
from weir.plan.functions.failures import can_fail
from weir.plan.operators import Aggregate, Node, schema
from weir.plan.usercode.functions import AggregateFunction, UserFunctions
from weir.plan.usercode.undeclared_state import LOST
from weir.plan.windows import CountWindow, Window

_FINEST_SHARE = Decimal("1e-18")
"""The smallest step of a quantile's p.

The kernels divide by the denominator of p, which must stay far below 2⁶³."""
_ENOUGH_DIGITS = Context(prec=40)  # independent of the precision that the calling program has set


def is_aggregate(expr: Expr, functions: UserFunctions) -> bool:
    """Tell whether this node itself is an aggregate; a user's may be written as a plain call."""
    if isinstance(expr, Call):
        is_scalar = expr.function in FUNCTIONS or expr.function in functions.scalars
        return not is_scalar and expr.function in functions.aggregates
    return isinstance(expr, AggregateCall)


def has_aggregate(expr: Expr, functions: UserFunctions) -> bool:
    return any(is_aggregate(e, functions) for e in walk(expr))


def bind_aggregate(call: Expr, scope: NameScope) -> tuple[AggregateCall, AggregateFunction | None]:
    """Return a typed aggregate with its canonical name, and the user's function if it is one."""
    if isinstance(call, Call):
        call = AggregateCall(call.function, call.args, position=call.position)
    assert isinstance(call, AggregateCall)
    if call.function in AGGREGATES and call.function in scope.functions.aggregates:
        raise PlanError(
            f"your aggregate `{call.function}` has the name of a built-in one",
            position=call.position,
            hint="give it another name",
        )
    call = _canonical(call)
    args = tuple(bind(a, scope.at("an aggregate")) for a in call.args)
    condition = None
    if call.filter is not None:
        condition = bind_condition(call.filter, scope.at("FILTER"))
    call = replace(call, args=args, filter=condition)
    if call.function in AGGREGATES:
        return _typed(call), None
    user = scope.functions.aggregates.get(call.function)
    if user is None:
        names = (*(n for n in AGGREGATES if n != "count_star"), *scope.functions.aggregates)
        raise unknown("aggregate", call.function, names, call.position)
    if (undeclared := user.undeclared) is not None:
        raise PlanError(
            f"{user.name}.{undeclared}: only what its methods return is kept; {LOST}",
            position=call.position,
            hint=f"keep `{undeclared.attribute}` in the state that zero makes and add returns",
        )
    cast = user_arguments(user.name, user.args, args, call.position)
    return replace(call, args=cast, type=user.result), user


def _canonical(call: AggregateCall) -> AggregateCall:
    function = call.function
    if call.distinct:
        if function != "count":
            raise PlanError(f"{function.upper()} takes no DISTINCT", position=call.position)
        return replace(call, function="count_distinct", distinct=False)
    if function == "count" and not call.args:
        return replace(call, function="count_star")
    if function == "median":
        return replace(call, function="quantile_cont", params=("0.5",))
    if function in AGGREGATES and AGGREGATES[function].has_share:
        return _quantile(call)
    return call


def _quantile(call: AggregateCall) -> AggregateCall:
    args, params = call.args, call.params
    if not params and len(args) == 2 and isinstance(args[1], Literal):
        params = (str(args[1].value),)
        args = args[:1]
    try:
        (share,) = (Decimal(p) for p in params)
        fits = 0 <= share <= 1
    except (ValueError, InvalidOperation):
        fits = False
    if not fits:
        name = call.function.upper()
        raise PlanError(
            f"{name}(x, p) takes a number p from 0 to 1, written out", position=call.position
        )
    if share.quantize(_FINEST_SHARE, context=_ENOUGH_DIGITS) != share:
        raise PlanError(
            f"the p of {call.function.upper()} has more than 18 decimals: {params[0]}",
            position=call.position,
            hint="round it; 18 decimals are enough for any number of rows",
        )
    return replace(call, args=args, params=params)


def _typed(call: AggregateCall) -> AggregateCall:
    arity = 0 if call.function == "count_star" else 1
    if len(call.args) != arity:
        raise PlanError(
            f"{call.function.upper()} takes {arity} argument(s), not {len(call.args)}",
            position=call.position,
        )
    if not arity:
        return replace(call, type=BIGINT)
    arg = _argument(call)
    return replace(call, args=(arg,), type=AGGREGATES[call.function].result(type_of(arg)))


def _argument(call: AggregateCall) -> Expr:
    arg = call.args[0]
    dtype = type_of(arg)
    if AGGREGATES[call.function].of_numbers:
        if dtype == NULL:
            return coerce(arg, BIGINT if call.function == "sum" else DOUBLE)
        if not is_numeric(dtype):
            raise _refused(call, dtype)
        return coerce(arg, BIGINT) if dtype == INT else arg
    return arg


def _refused(call: AggregateCall, dtype: pa.DataType) -> PlanError:
    name = "MEDIAN or QUANTILE_CONT" if call.function == "quantile_cont" else call.function.upper()
    return PlanError(f"{name} does not take {type_name(dtype)}", position=call.position)


def _where_counted(arg: Expr, condition: Expr | None) -> Expr:
    """Return an argument that cannot fail on rows that FILTER leaves out."""
    if condition is None or not can_fail(arg):
        return arg
    dtype = type_of(arg)
    return Case(((condition, arg),), coerce(Literal(None, type=NULL), dtype), type=dtype)


class Aggregator:
    """Collects what the expressions above a window need, then makes the `Aggregate`.

    Invariant: every column that `scope` has returned is in the node that `node` makes; equal keys,
    arguments and aggregates are one column. The select list, HAVING and ORDER BY are bound in
    `scope`: there, aggregates and keys become columns, and `vs` / `ve` is the window.
    """

    def __init__(self, node: Node, scope: NameScope, keys: Sequence[Expr], window: Window) -> None:
        self._input, self._inside, self._window = node, scope, window
        self._keys: list[tuple[str, Expr]] = []
        self._columns: list[tuple[str, Expr]] = []
        self._results: list[tuple[str, AggregateCall, AggregateFunction | None]] = []
        self._aliases: dict[str, Expr] = {}
        for key in keys:
            self._add_key(key)
        self.scope = NameScope(
            (), (), clause="SELECT", functions=scope.functions, replaced=self._replace
        )

    @property
    def keys(self) -> list[Expr]:
        """The keys of the groups."""
        return [key for _, key in self._keys]

    def name_results(self, columns: Mapping[str, Expr]) -> None:
        """Add the names of the selected columns to the scope, for HAVING and ORDER BY."""
        self._aliases.update(columns)

    def node(self, position: Position | None = None) -> Node:
        """Make the aggregate, over one projection of the input to keys and arguments."""
        aggregates = [(n, self._aggregation(c, u)) for n, c, u in self._results]
        ordered = isinstance(self._window, CountWindow) or any(a.sees_order for _, a in aggregates)
        columns = self._columns
        if ordered:
            # The payload breaks ties of the order, so it must be what the user sees.
            seen = [
                (v.expr.name, v.expr) for v in self._inside.visible if isinstance(v.expr, Column)
            ]
            columns = seen + [c for c in columns if c[0] not in dict(seen)]
        keys = tuple(name for name, _ in self._keys)
        below = project(self._input, columns)
        return checked(Aggregate(below, keys, tuple(aggregates), self._window), position)

    def _add_key(self, key: Expr) -> None:
        if all(key != other for _, other in self._keys):
            self._keys.append((self._column(key, "$k"), key))

    def _column(self, expr: Expr, prefix: str = "$x") -> str:
        """Return the column below the aggregate for a bound expression."""
        for name, other in self._columns:
            if other == expr:
                return name
        plain = isinstance(expr, Column) and expr.name not in ("vs", "ve")
        name = expr.name if plain and isinstance(expr, Column) else f"{prefix}{len(self._columns)}"
        self._columns.append((name, expr))
        return name

    def _aggregation(self, call: AggregateCall, user: AggregateFunction | None) -> Aggregation:
        return Aggregation(
            "user" if user else call.function,
            tuple(self._column(_where_counted(a, call.filter)) for a in call.args),
            type_of(call),
            None if call.filter is None else self._column(call.filter),
            call.params,
            user,
            position=call.position,
        )

    def _replace(self, expr: Expr) -> Expr | None:
        if is_aggregate(expr, self._inside.functions):
            return self._result(expr)
        if isinstance(expr, Column):
            return self._named(expr)
        computed = any(not isinstance(key, Column) for _, key in self._keys)
        if computed and not isinstance(expr, Literal):
            return self._computed_key(expr)
        return None

    def _result(self, expr: Expr) -> Expr:
        call, user = bind_aggregate(expr, self._inside)
        for name, other, _ in self._results:
            if other == call:
                return Column(name, type=other.type)
        name = f"$a{len(self._results)}"
        self._results.append((name, call, user))
        return Column(name, type=call.type)

    def _named(self, column: Column) -> Expr:
        end = {"vs": "vs", "window_start": "vs", "ve": "ve", "window_end": "ve"}.get(column.name)
        if end is not None:
            return Column(end, type=schema(self._input).time)
        if column.name in self._aliases and lookup(column.name, self._inside) is None:
            return self._aliases[column.name]
        above = self._above(bind(column, self._inside))
        if above is None:
            raise PlanError(
                f"column `{column.name}` is neither in GROUP BY nor in an aggregate",
                position=column.position,
                hint=f"add it to GROUP BY, or take LAST({column.name}) or MAX({column.name})",
                python=f"add it to group_by, or take col({column.name!r}).last() or .max()",
            )
        return above

    def _above(self, bound: Expr) -> Expr | None:
        """Return a key, or a field of a key, as a column above the aggregate; else None."""
        for name, key in self._keys:
            if key == bound:
                return Column(name, type=key.type)
        if isinstance(bound, Call) and bound.function == "field":
            struct = self._above(bound.args[0])
            return None if struct is None else replace(bound, args=(struct, bound.args[1]))
        return None

    def _computed_key(self, expr: Expr) -> Expr | None:
        if any(is_aggregate(e, self._inside.functions) for e in walk(expr)):
            return None
        try:
            return self._above(bind(expr, self._inside))
        except PlanError:  # not an expression of the input: the error will come from its parts
            return None
