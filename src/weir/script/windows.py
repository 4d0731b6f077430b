"""Translates a WITH clause to a window or a lifetime change of the plan.

The builder checks the numbers (a positive hop, …), since the fluent API makes the same clauses.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from sqlglot import exp

from weir.plan.binding.query import ChopChange, LifetimeClause, StitchChange, WithClause
from weir.plan.lifetime_changes import (
    ClipDuration,
    Duration,
    Extend,
    HopLifetime,
    Point,
    PointAtEnd,
    Quantize,
    Shift,
)
from weir.plan.windows import CountWindow, Hopping, Session, SnapshotWindow
from weir.script.constants import StatementScope, integer, ticks
from weir.script.expression_translation import expression
from weir.script.source import did_you_mean

Make: TypeAlias = Callable[..., WithClause]


@dataclass(frozen=True, slots=True)
class _Form:
    """A `_Form` is one word after WITH: its arguments' names, how many of them are required, its
    maker."""

    arguments: tuple[str, ...]
    required: int
    make: Make
    read: Callable[[exp.Expr, StatementScope, str], object] = ticks

    def usage(self, name: str) -> str:
        needed, more = self.arguments[: self.required], self.arguments[self.required :]
        inner = ", ".join(needed) + "".join(f" [, {m}]" for m in more)
        return f"{name}({inner})" if inner else name


def _tumbling(size: int, offset: int = 0) -> WithClause:
    return Hopping(size, size, offset)


def _count(n: int, step: int | None = None) -> WithClause:
    return CountWindow(n, n if step is None else step)


def _expression(node: exp.Expr, scope: StatementScope, _what: str) -> object:
    return expression(node, scope)


_FORMS = {
    "TUMBLING": _Form(("size", "offset"), 1, _tumbling),
    "HOPPING": _Form(("size", "hop", "offset"), 2, Hopping),
    "SESSION": _Form(("timeout",), 1, Session),
    "SNAPSHOT": _Form((), 0, SnapshotWindow),
    "COUNT": _Form(("n", "step"), 1, _count, integer),
    "DURATION": _Form(("d",), 1, Duration),
    "SHIFT": _Form(("d",), 1, Shift),
    "EXTEND": _Form(("d",), 1, Extend),
    "CLIP_DURATION": _Form(("d",), 1, ClipDuration),
    "POINT": _Form((), 0, Point),
    "POINT_AT_END": _Form((), 0, PointAtEnd),
    "CHOP": _Form(("period", "offset"), 1, ChopChange),
    "QUANTIZE": _Form(("size", "hop", "offset"), 2, Quantize),
    "HOP_LIFETIME": _Form(("size", "hop", "offset"), 2, HopLifetime),
    "STITCH": _Form((), 0, StitchChange),
    "LIFETIME": _Form(("start", "end"), 2, LifetimeClause, _expression),
}


def with_clause(node: exp.Expr, scope: StatementScope) -> WithClause:
    """Make the window or lifetime change of a parsed WITH."""
    name, arguments = str(node.this), node.expressions
    form = _FORMS.get(name)
    if form is None:
        hint = did_you_mean(name, _FORMS) or f"one of {', '.join(_FORMS)}"
        raise scope.error(f"unknown window or lifetime `{name}` after WITH", node, hint)
    if not form.required <= len(arguments) <= len(form.arguments):
        raise scope.error(
            f"{name} has {len(arguments)} argument(s)",
            node,
            f"write {form.usage(name)}",
        )
    names = zip(arguments, form.arguments, strict=False)
    return form.make(*(form.read(a, scope, f"the {what} of {name}") for a, what in names))
