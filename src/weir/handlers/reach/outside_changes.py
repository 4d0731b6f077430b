"""Refuses default arguments that are changed in place, and orders that no replay repeats.

A default argument is one object for all calls: what a function puts into it would stay for the next
event. A set has no order that a second run would repeat, so nothing goes through one.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass

from weir.handlers.reading.bindings import bound_names
from weir.handlers.reading.sources import FunctionSource

MUTATORS = frozenset((
    "append", "extend", "insert", "remove", "pop", "clear", "sort", "reverse", "add", "discard",
    "update", "setdefault", "popitem", "appendleft", "popleft", "extendleft", "rotate",
    "intersection_update", "difference_update", "symmetric_difference_update", "__setitem__",
))  # fmt: skip
"""The methods of Python's lists, dicts, sets and deques that change them."""

_IN_ORDER = frozenset((
    "list", "tuple", "iter", "next", "enumerate", "zip", "map", "filter", "reversed", "str",
    "repr", "dict",
))  # fmt: skip
_SETS = frozenset(("union", "intersection", "difference", "symmetric_difference", "copy"))


def check_changes(source: FunctionSource, resolve: Callable[[str], object]) -> None:
    """Raise ScriptError for such code in a function."""
    _Check(source, resolve).check()


@dataclass(slots=True)
class _Assigned:
    """What the assignments to one name have on their right sides."""

    values: list[ast.expr | None]


class _Check:
    def __init__(self, source: FunctionSource, resolve: Callable[[str], object]) -> None:
        self._source, self._resolve = source, resolve
        self._bound = bound_names(source.node)
        self._assigned = _assignments(source.node)
        self._mutable = _mutable_defaults(source.node.args)

    def check(self) -> None:
        for node in ast.walk(self._source.node):
            match node:
                case ast.Call(func=ast.Attribute(value=value, attr="pop"), args=[]):
                    self._refuse_order(value)  # which element of a set it takes is chance
                    self._refuse_change(value, node)
                case ast.Call(func=ast.Attribute(value=value, attr=name)) if name in MUTATORS:
                    self._refuse_change(value, node)
                case (
                    ast.Attribute(value=value, ctx=ast.Store() | ast.Del())
                    | ast.Subscript(value=value, ctx=ast.Store() | ast.Del())
                ):
                    self._refuse_change(value, node)
                case ast.For(iter=over) | ast.comprehension(iter=over) | ast.Starred(value=over):
                    self._refuse_order(over)
                case ast.Call(func=ast.Name(id=name), args=args) if name in _IN_ORDER:
                    for arg in args:
                        if self._resolve(name) is not None and name not in self._bound:
                            self._refuse_order(arg)
                case ast.Call(func=ast.Attribute(attr="join"), args=[arg]):
                    self._refuse_order(arg)

    # --- changes --------------------------------------------------------------------------

    def _refuse_change(self, value: ast.expr, node: ast.AST) -> None:
        while isinstance(value, ast.Attribute | ast.Subscript):
            value = value.value
        if not isinstance(value, ast.Name) or value.id in self._assigned:
            return
        if value.id in self._mutable:
            raise self._source.file.error(
                f"`{value.id}` is a default argument, which is changed in place",
                node,
                "what a handler remembers lies in states: app.state(…)",
            )

    # --- orders ---------------------------------------------------------------------------

    def _refuse_order(self, over: ast.expr) -> None:
        if self._is_set(over):
            raise self._source.file.error(
                f"`{ast.unparse(over)[:40]}` is a set: its order differs between runs",
                over,
                "sorted(…) gives it an order",
            )

    def _is_set(self, value: ast.expr, depth: int = 0) -> bool:
        if depth > 10:
            return False
        match value:
            case ast.Set() | ast.SetComp():
                return True
            case ast.Call(func=ast.Name(id="set" | "frozenset")):
                return True
            case ast.Call(func=ast.Attribute(value=inner, attr=name)) if name in _SETS:
                return self._is_set(inner, depth + 1)
            case ast.BinOp(left=a, right=b, op=ast.BitOr() | ast.BitAnd() | ast.BitXor()):
                return self._is_set(a, depth + 1) or self._is_set(b, depth + 1)
            case ast.BinOp(left=a, op=ast.Sub()):
                return self._is_set(a, depth + 1)
            case ast.Name(id=name) if name in self._assigned:
                values = self._assigned[name].values
                return any(v is not None and self._is_set(v, depth + 1) for v in values)
            case ast.Name(id=name) if name not in self._bound:
                return isinstance(self._resolve(name), set | frozenset)
        return False


def _assignments(node: ast.AST) -> dict[str, _Assigned]:
    """Return what is assigned to each name; None where that is no single expression."""
    found: dict[str, _Assigned] = {}

    def note(name: str, value: ast.expr | None) -> None:
        found.setdefault(name, _Assigned([])).values.append(value)

    for inner in ast.walk(node):
        match inner:
            case ast.Assign(targets=targets, value=value):
                for target in targets:
                    if isinstance(target, ast.Name):
                        note(target.id, value)
                    else:
                        names = (n for n in ast.walk(target) if isinstance(n, ast.Name))
                        for name in (n for n in names if isinstance(n.ctx, ast.Store)):
                            note(name.id, None)
            case (
                ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value)
                | ast.NamedExpr(target=ast.Name(id=name), value=value)
            ):
                note(name, value)
            case ast.For(target=target) | ast.comprehension(target=target):
                for name_node in (n for n in ast.walk(target) if isinstance(n, ast.Name)):
                    note(name_node.id, None)
            case ast.withitem(optional_vars=ast.Name(id=name)):
                note(name, None)
    return found


def _mutable_defaults(arguments: ast.arguments) -> set[str]:
    """Return the parameters whose default can be changed."""
    plain = [*arguments.posonlyargs, *arguments.args]
    pairs = [*zip(plain[len(plain) - len(arguments.defaults) :], arguments.defaults, strict=True)]
    pairs += [(a, d) for a, d in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True) if d]
    changeable = (ast.List, ast.Dict, ast.Set, ast.Call, ast.ListComp, ast.DictComp, ast.SetComp)
    return {a.arg for a, d in pairs if isinstance(d, changeable)}
