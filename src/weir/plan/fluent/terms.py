"""The terms of the fluent API turn Python operators into unbound `Expr` trees.

A `Term` means the same as an expression of a script, and the same binder binds it when a stream
method takes it. Python values beside a term are literals: `col("v") > 3`, `col("k") == "x"`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, NoReturn, TypeAlias

import numpy as np

from weir.errors import PlanError
from weir.events.python_types import TypeText, written_type
from weir.events.types import DATE, TIMESTAMP
from weir.plan.advice.plan_warnings import warn_of_null
from weir.plan.advice.python_habits import TERM_HABITS, functions_as_habits, no_attribute
from weir.plan.durations import parse_duration
from weir.plan.expressions import AggregateCall, Call, Case, Cast, Column, Expr, Literal, UserCall
from weir.plan.fluent.runners import provided
from weir.plan.functions.aggregates import AGGREGATES
from weir.plan.render import render
from weir.plan.usercode.functions import AggregateFunction, ScalarFunction

Value: TypeAlias = (
    "Term | bool | int | float | str | bytes | Decimal | datetime | date | timedelta"
    " | np.generic | list[object] | tuple[object, ...] | None"
)
"""A term, or a constant."""
_AGGREGATES = frozenset(AGGREGATES) - {"count_star", "quantile_disc", "quantile_cont"}
"""Aggregates of one argument, which scripts call like functions."""
Condition: TypeAlias = "Term | str"
"""A term, or an expression as a script writes it."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Term:
    """An unfinished expression; `shown_as` and `descending` are used in lists of terms.

    >>> (col("v") + 1).as_("next").shown_as
    'next'
    """

    expr: Expr
    shown_as: str | None = None
    descending: bool = False
    aggregates: tuple[AggregateFunction, ...] = ()

    def __repr__(self) -> str:
        name = "" if self.shown_as is None else f" AS {self.shown_as}"
        return f"<{render(self.expr)}{name}{' DESC' if self.descending else ''}>"

    def __bool__(self) -> bool:
        raise TypeError(
            "a term has no truth value: write & | ~ instead of and, or, not, with each comparison "
            'in parentheses, (col("v") > 3) & (col("w") > 1); and .between(1, 3) for 1 < v < 3'
        )

    if not TYPE_CHECKING:  # hidden from type checkers, which still report unknown names

        def __getattr__(self, name: str) -> NoReturn:
            habits = {**functions_as_habits(name), **TERM_HABITS}
            raise no_attribute("a term", name, habits, vars(Term))

    def __getitem__(self, key: object) -> NoReturn:
        hint = 'a field of a STRUCT is col("s.f"), an element weir.call("element_at", col("l"), 1)'
        raise PlanError(f"a term has no [{key!r}]", hint=hint)

    def as_(self, name: str) -> Term:
        """Name this column in a select list."""
        return replace(self, shown_as=name)

    def desc(self) -> Term:
        """Sort the largest first, in `top`."""
        return replace(self, descending=True)

    def filter(self, condition: Condition) -> Term:
        """Aggregate only rows for which the condition holds: FILTER (WHERE …)."""
        if not isinstance(self.expr, AggregateCall):
            raise PlanError("FILTER belongs to an aggregate")
        return replace(self, expr=replace(self.expr, filter=as_condition(condition).expr))

    def cast(self, dtype: TypeText) -> Term:
        """Cast the value, as CAST; a value that does not fit ends the run."""
        return replace(self, expr=Cast(self.expr, type=written_type(dtype)))

    def try_cast(self, dtype: TypeText) -> Term:
        """Cast the value, as TRY_CAST; a value that does not fit becomes NULL."""
        return replace(self, expr=Cast(self.expr, lenient=True, type=written_type(dtype)))

    # --- operators -----------------------------------------------------------------------

    def __add__(self, other: Value) -> Term:
        return call("add", self, other)

    def __radd__(self, other: Value) -> Term:
        return call("add", other, self)

    def __sub__(self, other: Value) -> Term:
        return call("sub", self, other)

    def __rsub__(self, other: Value) -> Term:
        return call("sub", other, self)

    def __mul__(self, other: Value) -> Term:
        return call("mul", self, other)

    def __rmul__(self, other: Value) -> Term:
        return call("mul", other, self)

    def __truediv__(self, other: Value) -> Term:
        return call("div", self, other)

    def __rtruediv__(self, other: Value) -> Term:
        return call("div", other, self)

    def __floordiv__(self, other: Value) -> Term:
        return call("floordiv", self, other)

    def __rfloordiv__(self, other: Value) -> Term:
        return call("floordiv", other, self)

    def __mod__(self, other: Value) -> Term:
        return call("mod", self, other)

    def __rmod__(self, other: Value) -> Term:
        return call("mod", other, self)

    def __pow__(self, other: Value) -> Term:
        return call("power", self, other)

    def __rpow__(self, other: Value) -> Term:
        return call("power", other, self)

    def __abs__(self) -> Term:
        return call("abs", self)

    def __round__(self, digits: int = 0) -> Term:
        return call("round", self, digits)

    def __neg__(self) -> Term:
        return call("neg", self)

    def __and__(self, other: Value) -> Term:
        return call("and", self, other)

    def __rand__(self, other: Value) -> Term:
        return call("and", _truth(other, "&"), self)

    def __or__(self, other: Value) -> Term:
        return call("or", self, other)

    def __ror__(self, other: Value) -> Term:
        return call("or", _truth(other, "|"), self)

    def __invert__(self) -> Term:
        return call("not", self)

    # `==` and `!=` make terms, not truth values as they do for `object`.
    def __eq__(self, other: Value) -> Term:  # type: ignore[override]
        return _compared("eq", self, other)

    def __ne__(self, other: Value) -> Term:  # type: ignore[override]
        return _compared("ne", self, other)

    def __lt__(self, other: Value) -> Term:
        return call("lt", self, other)

    def __le__(self, other: Value) -> Term:
        return call("le", self, other)

    def __gt__(self, other: Value) -> Term:
        return call("gt", self, other)

    def __ge__(self, other: Value) -> Term:
        return call("ge", self, other)

    __hash__ = object.__hash__

    def is_null(self) -> Term:
        """Return whether the value is NULL."""
        return call("is_null", self)

    def is_not_null(self) -> Term:
        """Return whether the value is not NULL."""
        return call("is_not_null", self)

    def isin(self, *options: Value | Iterable[Value]) -> Term:
        """Return whether the value is one of these, as IN; they may be in a list or a set.

        >>> col("v").isin(1, 2), col("v").isin([1, 2])
        (<v IN (1, 2)>, <v IN (1, 2)>)
        """
        values = _options(options)
        return _compared("in", self, *values) if values else lit(False)

    def between(self, low: Value, high: Value) -> Term:
        """Return whether the value is between `low` and `high`, both included."""
        return (self >= low) & (self <= high)

    def like(self, pattern: str) -> Term:
        """Return whether the text matches the pattern, as LIKE.

        `%` matches any text, `_` any character. After a backslash, each stands for itself."""
        return call("like", self, pattern)

    # --- aggregates ----------------------------------------------------------------------

    def count(self) -> Term:
        """Count the values that are not NULL."""
        return self._aggregate("count")

    def count_distinct(self) -> Term:
        """Count the different values, as COUNT(DISTINCT …)."""
        return self._aggregate("count_distinct")

    def sum(self) -> Term:
        """Compute the sum of the values."""
        return self._aggregate("sum")

    def avg(self) -> Term:
        """Compute the mean of the values."""
        return self._aggregate("avg")

    def min(self) -> Term:
        """Return the smallest value."""
        return self._aggregate("min")

    def max(self) -> Term:
        """Return the largest value."""
        return self._aggregate("max")

    def stddev(self) -> Term:
        """Compute the standard deviation of the values."""
        return self._aggregate("stddev")

    def variance(self) -> Term:
        """Compute the variance of the values."""
        return self._aggregate("variance")

    def first(self) -> Term:
        """Return the first value in the total order."""
        return self._aggregate("first")

    def last(self) -> Term:
        """Return the last value in the total order."""
        return self._aggregate("last")

    def median(self) -> Term:
        """Compute the median, as MEDIAN."""
        return self._aggregate("median")

    def quantile_disc(self, p: str | float) -> Term:
        """Return value number ⌈p·n⌉; write `p` as text if its digits matter."""
        return self._aggregate("quantile_disc", str(p))

    def quantile_cont(self, p: str | float) -> Term:
        """Compute the quantile `p`; between two values, interpolate."""
        return self._aggregate("quantile_cont", str(p))

    def collect(self) -> Term:
        """Collect the values in the total order into a list, as COLLECT."""
        return self._aggregate("collect")

    def _aggregate(self, function: str, *params: str) -> Term:
        return replace(self, expr=AggregateCall(function, (self.expr,), params=params))


def col(name: str) -> Term:
    """Refer to a column, `A.k` in joins; `vs` and `ve` are the lifetime.

    >>> col("v") > 3
    <v > 3>
    """
    _check_text(name, "a column's name")
    return Term(Column(name))


def expr(text: str) -> Term:
    """Make a term from an expression in text, as in a script.

    >>> expr("lower(k) || '!'")
    <LOWER(k) || '!'>
    """
    _check_text(text, "an expression")
    parsed = provided("expression")(text)
    assert isinstance(parsed, Expr)
    return Term(parsed)


def as_condition(value: object) -> Term:
    """Return a condition as a term; it may be text."""
    return _written(value, "a condition", 'col("v") > 3', "v > 3")


def as_aggregate(value: object) -> Term:
    """Return an aggregate as a term; it may be text."""
    return _written(value, "an aggregate", 'col("v").sum()', "SUM(v)")


def _written(value: object, what: str, term: str, text: str) -> Term:
    if isinstance(value, str):
        return expr(value)
    if not isinstance(value, Term):
        hint = f'expected a term, such as {term}, or a text: "{text}"'
        raise PlanError(f"{_shown(value)} is not {what}", hint=hint)
    return value


def lit(value: Value) -> Term:
    """Make a constant.

    >>> lit(1), lit(datetime(2026, 3, 1))
    (<1>, <CAST('2026-03-01T00:00:00' AS TIMESTAMP)>)
    """
    match value:
        case Term():
            return value
        case datetime():
            return Term(Cast(Literal(value.isoformat()), type=TIMESTAMP))
        case date():
            return Term(Cast(Literal(value.isoformat()), type=DATE))
        case timedelta():
            return Term(Literal(parse_duration(value)))
        case np.bool_() | np.integer() | np.floating():
            return Term(Literal(value.item()))
        case None | bool() | int() | float() | str() | bytes() | Decimal() | list() | tuple():
            return Term(Literal(value))
    raise PlanError(f"{_shown(value)} is not a constant", hint='col("name") names a column')


def _truth(value: Value, sign: str) -> Value:
    """Return a truth value; raise PlanError for others, such as the 3 in `3 & col("w")`.

    That is what Python computes first in `col("v") > 3 & …`."""
    if isinstance(value, bool | np.bool_ | None):
        return value
    raise PlanError(
        f"`{sign}` joins conditions, and {_shown(value)} is not one",
        hint=f'each comparison stands in parentheses: (col("v") > 3) {sign} (col("w") > 1)',
    )


def _compared(function: str, *args: Value) -> Term:
    comparison = call(function, *args)
    assert isinstance(comparison.expr, Call)
    if Literal(None) in comparison.expr.args:
        warn_of_null(function)
    return comparison


def _options(options: tuple[Value | Iterable[Value], ...]) -> list[Value]:
    match options:
        case (set() | frozenset() as values,):
            return sorted(values, key=repr)  # one order, so one plan in every process
        case (Iterable() as values,) if not isinstance(values, str | bytes):
            return list(values)
    return list(options)  # type: ignore[arg-type]


def _check_text(value: object, what: str) -> None:
    if not isinstance(value, str):
        raise PlanError(f"{what} must be a text, not {_shown(value)}")


def _shown(value: object) -> str:
    """Return a value of the wrong kind as text, with its type, shortened."""
    text = repr(value)
    return f"{text if len(text) < 60 else text[:60] + '…'} ({type(value).__name__})"


def count() -> Term:
    """Count rows, as COUNT(*).

    >>> count().filter(col("v") > 3).expr.function
    'count_star'
    """
    return Term(AggregateCall("count_star", ()))


def explode(values: Term | str) -> Term:
    """Make one row for each element of a list, as EXPLODE(list).

    >>> explode("tags").as_("tag").shown_as
    'tag'
    """
    return call("explode", col(values) if isinstance(values, str) else values)


def call(function: str | ScalarFunction | AggregateFunction, *args: Value) -> Term:
    """Call a built-in function by its name in a script, or the user's own.

    >>> call("lower", col("k")).expr.function
    'lower'
    """
    value: object = function
    if not isinstance(value, str | ScalarFunction | AggregateFunction):
        hint = (
            'expected a built-in name, such as "lower", or yours with @weir.udf or @weir.aggregate'
        )
        raise PlanError(f"{_shown(value)} is not a function that a program can call", hint=hint)
    terms = [lit(a) for a in args]
    exprs = tuple(t.expr for t in terms)
    carried = _carried(terms)
    if isinstance(function, ScalarFunction):
        return Term(UserCall(function, exprs), aggregates=carried)
    if isinstance(function, AggregateFunction):
        return Term(AggregateCall(function.name, exprs), aggregates=(*carried, function))
    if len(terms) == 1 and function.lower() in _AGGREGATES:
        return replace(terms[0], expr=AggregateCall(function.lower(), exprs))
    return Term(Call(function.lower(), exprs), aggregates=carried)


def case(*branches: tuple[Condition, Value], otherwise: Value = None) -> Term:
    """Choose a value: CASE WHEN condition THEN value … ELSE otherwise END.

    >>> case((col("v") > 3, "big"), otherwise="small").expr.otherwise.value
    'small'
    """
    values: tuple[object, ...] = branches
    if not all(isinstance(branch, tuple) and len(branch) == 2 for branch in values):
        hint = 'as in case((col("v") > 3, "large"), otherwise="small")'
        raise PlanError("a branch of case is a pair of condition and value", hint=hint)
    pairs = [(as_condition(condition), lit(value)) for condition, value in branches]
    default = lit(otherwise)
    carried = _carried([*(t for pair in pairs for t in pair), default])
    exprs = tuple((c.expr, v.expr) for c, v in pairs)
    return Term(Case(exprs, default.expr), aggregates=carried)


def _carried(terms: Iterable[Term]) -> tuple[AggregateFunction, ...]:
    # An `AggregateCall` has only the name of the user's function; the term must carry the function.
    return tuple(dict.fromkeys(f for t in terms for f in t.aggregates))
