"""Reads expressions that Python programs write as text: `a.where("Amount > 3")`.

Errors point into the text. The result is not part of a script, so it has no positions.
"""

from __future__ import annotations

from dataclasses import replace

from weir.plan.advice.plan_warnings import warn
from weir.plan.expressions import AggregateCall, Call, Case, Cast, Expr, UserCall
from weir.script.constants import StatementScope
from weir.script.dialect import parse_expression
from weir.script.expression_translation import expression
from weir.script.script_warnings import null_doubts
from weir.script.source import ProgramSource


def read_expression(text: str) -> Expr:
    """Parse an expression in the language of scripts; raise ScriptError for anything else.

    >>> from weir.plan.render import render
    >>> render(read_expression("lower(k) = 'x' and v between 1 and 3"))
    "LOWER(k) = 'x' AND v >= 1 AND v <= 3"
    """
    source = ProgramSource(text)
    tree = parse_expression(source)
    parsed = _unplaced(expression(tree, StatementScope(source)))
    for doubt in null_doubts(tree):
        warn(str(source.error(doubt.message, doubt.offset, doubt.hint)))
    return parsed


def _unplaced(expr: Expr) -> Expr:
    """Return the expression without positions."""
    match expr:
        case Call() | UserCall():
            expr = replace(expr, args=tuple(map(_unplaced, expr.args)))
        case AggregateCall():
            filter = None if expr.filter is None else _unplaced(expr.filter)
            expr = replace(expr, args=tuple(map(_unplaced, expr.args)), filter=filter)
        case Cast():
            expr = replace(expr, arg=_unplaced(expr.arg))
        case Case():
            branches = tuple((_unplaced(c), _unplaced(v)) for c, v in expr.branches)
            expr = replace(expr, branches=branches, otherwise=_unplaced(expr.otherwise))
    return replace(expr, position=None)
