"""Expressions and operators in words: for `explain` and for messages.

Expressions look as in a script, with the casts that the binder put in.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

from weir.events.types import type_name
from weir.plan.expressions import Call, Case, Cast, Column, Expr, Literal, UserCall
from weir.plan.holds import duration
from weir.plan.nodes import (
    MAX_RECORD,
    Aggregate,
    Aggregation,
    AlterLifetime,
    Apply,
    Chop,
    ClipDuration,
    CountWindow,
    Duration,
    Explode,
    Extend,
    Filter,
    HopLifetime,
    Hopping,
    Join,
    LifetimeChange,
    Node,
    PartialAggregate,
    Partition,
    PointAtEnd,
    Project,
    Quantize,
    Session,
    SetLifetime,
    Shift,
    Source,
    Top,
    Window,
)
from weir.plan.sizes import size_text

# How tightly an operator binds; what binds less tightly inside it gets parentheses.
_OR, _AND, _NOT, _COMPARE, _SUM, _PRODUCT, _SIGN, _WHOLE = range(8)
_INFIX = {
    "or": ("OR", _OR),
    "and": ("AND", _AND),
    "eq": ("=", _COMPARE),
    "ne": ("<>", _COMPARE),
    "lt": ("<", _COMPARE),
    "le": ("<=", _COMPARE),
    "gt": (">", _COMPARE),
    "ge": (">=", _COMPARE),
    "like": ("LIKE", _COMPARE),
    "rlike": ("RLIKE", _COMPARE),
    "add": ("+", _SUM),
    "sub": ("-", _SUM),
    "concat": ("||", _SUM),
    "mul": ("*", _PRODUCT),
    "div": ("/", _PRODUCT),
    "floordiv": ("//", _PRODUCT),
    "mod": ("%", _PRODUCT),
}
_CHAINED = ("or", "and", "concat")


def render(expr: Expr) -> str:
    """The expression as a script writes it.

    >>> from weir.events.types import BIGINT
    >>> v = Column("v", type=BIGINT)
    >>> render(Call("mul", (Call("add", (v, Literal(1))), v)))
    '(v + 1) * v'
    """
    return _render(expr)[0]


def _render(expr: Expr) -> tuple[str, int]:
    """The text, and how tightly it binds."""
    match expr:
        case Column():
            return expr.name, _WHOLE
        case Literal():
            return render_value(expr.value), _WHOLE
        case Call():
            return _call(expr)
        case Cast():
            name = "TRY_CAST" if expr.lenient else "CAST"
            target = "?" if expr.type is None else type_name(expr.type)
            return f"{name}({render(expr.arg)} AS {target})", _WHOLE
        case Case():
            branches = "".join(f" WHEN {render(c)} THEN {render(v)}" for c, v in expr.branches)
            return f"CASE{branches} ELSE {render(expr.otherwise)} END", _WHOLE
        case UserCall():
            return f"{expr.function.name}({_listed(expr.args)})", _WHOLE
        case _:
            return repr(expr), _WHOLE


def _call(call: Call) -> tuple[str, int]:
    name, args = call.function, call.args
    match name:
        case "not":
            return f"NOT {_inside(args[0], _NOT)}", _NOT
        case "neg":
            return f"-{_inside(args[0], _SIGN + 1)}", _SIGN
        case "is_null" | "is_not_null":
            test = "IS NULL" if name == "is_null" else "IS NOT NULL"
            return f"{_inside(args[0], _SUM)} {test}", _COMPARE
        case "in":
            return f"{_inside(args[0], _SUM)} IN ({_listed(args[1:])})", _COMPARE
        case "field" if isinstance(args[1], Literal):
            return f"{_inside(args[0], _WHOLE)}.{args[1].value}", _WHOLE
        case "extract" if isinstance(args[0], Literal):
            return f"EXTRACT({args[0].value} FROM {render(args[1])})", _WHOLE
    if name in _INFIX and len(args) > 1:
        return _infix(call)
    return f"{name.upper()}({_listed(args)})", _WHOLE


def _infix(call: Call) -> tuple[str, int]:
    sign, binds = _INFIX[call.function]
    # a - (b - c) keeps its parentheses, a AND (b AND c) does not need them.
    inner = binds if call.function in _CHAINED else binds + 1
    first = _inside(call.args[0], binds if binds != _COMPARE else binds + 1)
    return f" {sign} ".join([first, *(_inside(a, inner) for a in call.args[1:])]), binds


def _inside(expr: Expr, least: int) -> str:
    text, binds = _render(expr)
    return text if binds >= least else f"({text})"


def _listed(exprs: Sequence[Expr]) -> str:
    return ", ".join(map(render, exprs))


def render_value(value: object) -> str:
    """A constant as a script writes it."""
    match value:
        case None:
            return "NULL"
        case bool():
            return str(value).upper()
        case str():
            return "'" + value.replace("'", "''") + "'"
        case bytes():
            return f"X'{value.hex()}'"
        case Decimal():
            return format(value, "f")
        case tuple() | list():
            return f"[{', '.join(map(render_value, value))}]"
    return str(value)


# --- operators -----------------------------------------------------------------------------


def render_detail(node: Node) -> str:
    """What an operator does, behind its name; empty where the name says it all."""
    match node:
        case Source():
            return f"{node.name} FROM '{node.path}' {_source_options(node)}"
        case Project():
            return ", ".join(_item(n, e) for n, e in node.columns) or "no columns"
        case Filter():
            return render(node.predicate)
        case Explode():
            return node.column
        case AlterLifetime():
            return _change(node.change)
        case Chop():
            return f"every {duration(node.period)}{_offset(node.offset)}"
        case Aggregate() | PartialAggregate():
            return _aggregate(node)
        case Top():
            return _top(node)
        case Join():
            return _join(node)
        case Apply():
            return _apply(node)
        case Partition(strategy=strategy) if strategy:
            return f"recovers by {strategy}"
        case Partition():
            return f"BY {', '.join(node.keys)} INTO {node.count} AS '{node.uid}'"
        case _:
            return ""


def _item(name: str, expr: Expr) -> str:
    text = render(expr)
    return name if text == name else f"{text} AS {name}"


def _source_options(source: Source) -> str:
    options = source.options
    parts = [f"vs = {options.vs}"]
    if options.ve is not None:
        parts.append(f"ve = {options.ve}")
    elif options.lifetime is not None:
        parts.append(f"lifetime = {duration(options.lifetime)}")
    if options.delay:
        parts.append(f"delay = {duration(options.delay)}")
    if options.late != "fail":
        parts.append(f"late = '{options.late}'")
    if options.idle is not None:
        parts.append(f"idle = {duration(options.idle)}")
    if options.bad != "fail":
        parts.append(f"bad = '{options.bad}'")
    if options.max_record != MAX_RECORD:
        parts.append(f"max_record = '{size_text(options.max_record)}'")
    return f"({', '.join(parts)})"


def _offset(offset: int) -> str:
    return f", offset {duration(offset)}" if offset else ""


def _change(change: LifetimeChange) -> str:
    match change:
        case Duration(ticks) | Shift(ticks) | Extend(ticks) | ClipDuration(ticks):
            names = {Duration: "DURATION", Shift: "SHIFT", Extend: "EXTEND"}
            return f"{names.get(type(change), 'CLIP_DURATION')}({duration(ticks)})"
        case SetLifetime(shift, end):
            start = f"vs {'+' if shift > 0 else '-'} {duration(abs(shift))}" if shift else "vs"
            return f"LIFETIME({start}, {render(end)})"
        case Quantize(size, hop, offset) | HopLifetime(size, hop, offset):
            name = "QUANTIZE" if isinstance(change, Quantize) else "HOP_LIFETIME"
            return f"{name}({duration(size)}, {duration(hop)}{_offset(offset)})"
        case _:
            return "POINT_AT_END" if isinstance(change, PointAtEnd) else "POINT"


def render_window(window: Window) -> str:
    match window:
        case Hopping(size, hop, offset) if size == hop:
            return f"TUMBLING({duration(size)}{_offset(offset)})"
        case Hopping(size, hop, offset):
            return f"HOPPING({duration(size)}, {duration(hop)}{_offset(offset)})"
        case Session(timeout):
            return f"SESSION({duration(timeout)})"
        case CountWindow(n, step):
            return f"COUNT({n}{f', {step}' if step != n else ''})"
        case _:
            return "SNAPSHOT"


def _aggregate(node: Aggregate | PartialAggregate) -> str:
    parts = [", ".join(f"{_aggregation(a)} AS {n}" for n, a in node.aggregates)]
    parts.append(f"BY {', '.join(node.keys)}" if node.keys else "")
    return " ".join([p for p in parts if p] + [f"WITH {render_window(node.window)}"])


def _aggregation(aggregation: Aggregation) -> str:
    arguments = ", ".join((*aggregation.args, *aggregation.params))
    match aggregation.function:
        case "count_star":
            text = "COUNT(*)"
        case "count_distinct":
            text = f"COUNT(DISTINCT {arguments})"
        case "user" if aggregation.user is not None:
            text = f"{aggregation.user.name}({arguments})"
        case name:
            text = f"{name.upper()}({arguments})"
    return text if aggregation.filter is None else f"{text} FILTER ({aggregation.filter})"


def _top(node: Top) -> str:
    order = ", ".join(f"{name} DESC" if down else name for name, down in node.order)
    by = f"ORDER BY {order} " if order else ""
    ties = " WITH TIES" if node.ties else ""
    return f"{by}LIMIT {node.limit}{ties} of each {node.scope}"


def _join(node: Join) -> str:
    on = [f"{a} = {b}" for a, b in node.keys]
    if node.condition is not None:
        on.append(_inside(node.condition, _AND))
    return f"{node.kind.upper().replace('_', ' ')} ON {' AND '.join(on) or 'TRUE'}"


def _apply(node: Apply) -> str:
    call = node.call
    keys = [", ".join(k) for k in node.keys if k]
    on = f" ON {' = '.join(dict.fromkeys(keys))}" if keys else ""
    return f"{call.operator.name}({', '.join(map(render_value, call.args))}){on}"
