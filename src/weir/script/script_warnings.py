"""Warnings for scripts that run but look wrong.

- A plain number in place of a duration, over TIMESTAMPs: it counts microseconds.
- LIMIT without ORDER BY: it limits the rows of each instant or window, not of the whole.
- A comparison with NULL, which is never true; a NULL in the list of IN.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
from sqlglot import exp

from weir.events.types import TIMESTAMP
from weir.plan.advice.plan_warnings import SHORT, plain_words
from weir.script.constants import StatementScope
from weir.script.cursor import offset_of
from weir.script.tree import QueryExpression, WithSyntax

_NO_DURATIONS = ("COUNT", "LIFETIME")
_STREAM_DURATIONS = ("delay", "lifetime", "idle")
_WINDOWS = ("TUMBLING", "HOPPING")


@dataclass(frozen=True, slots=True)
class Doubt:
    """A warning, and the place in the text that it is about."""

    message: str
    offset: int
    hint: str


def stream_doubts(tree: exp.Expr, time: pa.DataType, scope: StatementScope) -> Iterator[Doubt]:
    """Yield doubts about the options of a STREAM."""
    for option in tree.args["options"]:
        if time == TIMESTAMP and option.name.lower() in _STREAM_DURATIONS:
            yield from _plain_number(option.args["expression"], option.name.lower(), scope)


def query_doubts(tree: exp.Expr, time: pa.DataType, scope: StatementScope) -> Iterator[Doubt]:
    """Yield doubts about a query whose rows have lifetimes of this type."""
    for node in tree.walk(bfs=False):
        match node:
            case WithSyntax() if time == TIMESTAMP and node.this not in _NO_DURATIONS:
                for argument in node.expressions:
                    yield from _plain_number(argument, str(node.this), scope)
            case QueryExpression() if node.args.get("limit") is not None:
                yield from _unordered(node)
    yield from null_doubts(tree)


def null_doubts(tree: exp.Expr) -> Iterator[Doubt]:
    """Yield the comparisons with NULL in a query or an expression."""
    for node in tree.walk(bfs=False):
        match node:
            case exp.EQ() | exp.NEQ():
                yield from _null(node)
            case exp.In():
                yield from _null_in_list(node)


def _plain_number(node: exp.Expr, what: str, scope: StatementScope) -> Iterator[Doubt]:
    literal = node.this if isinstance(node, exp.Neg) else node
    digits = ""
    if isinstance(literal, exp.Literal) and not literal.is_string:
        digits = literal.name
    elif isinstance(literal, exp.Parameter) and literal.name in scope.parameters:
        digits = scope.parameters[literal.name].text
    if not digits.removeprefix("-").isdecimal():
        return
    number = -int(digits) if literal is not node else int(digits)
    if not 0 < abs(number) < SHORT:
        return
    message, hint = plain_words(what, number)
    yield Doubt(message, offset_of(node), hint)


def _unordered(node: exp.Expr) -> Iterator[Doubt]:
    limit = node.args["limit"]
    if node.args.get("order"):
        return
    lifetimes = [s.args.get("lifetime") for s in node.expressions if not s.args.get("named")]
    windowed = any(w is not None and w.this in _WINDOWS for w in lifetimes)
    number = limit.name
    yield Doubt(
        f"LIMIT {number} without ORDER BY keeps {number} rows of each "
        f"{'window' if windowed else 'instant'}, not {number} in all",
        offset_of(limit),
        f"for the first rows only, run with --limit {number}; for the largest of each window, "
        f"WITH TUMBLING(5m) ORDER BY x DESC LIMIT {number}",
    )


def _null(node: exp.Expr) -> Iterator[Doubt]:
    if any(isinstance(side, exp.Null) for side in (node.this, node.args["expression"])):
        sign, test = ("=", "IS NULL") if isinstance(node, exp.EQ) else ("<>", "IS NOT NULL")
        yield Doubt(f"`{sign} NULL` is never true", offset_of(node), f"write {test}")


def _null_in_list(node: exp.Expr) -> Iterator[Doubt]:
    if not any(isinstance(item, exp.Null) for item in node.expressions):
        return
    if isinstance(node.parent, exp.Not):
        message, hint = "`NOT IN (…, NULL)` is never true", "write x NOT IN (…) AND x IS NOT NULL"
    else:
        message, hint = "`IN (…, NULL)`: NULL equals nothing", "write x IN (…) OR x IS NULL"
    yield Doubt(message, offset_of(node), hint)
