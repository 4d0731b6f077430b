"""Refuses default arguments that are changed in place, and orders that no replay repeats.

A default argument is one object for all calls: what a function puts into it would stay for the next
event. A set has no order that a second run would repeat, so it is used where order does not matter:
`in`, `len`, comparisons, operators and methods of sets, `sorted`, `min` and `max` without a key.

A set is seen where it is made, by the names that it is assigned to, as a global, and as an argument
that is annotated as one. What functions return and containers hold is not followed.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from weir.handlers.reach.forbidden_calls import full_name
from weir.handlers.reach.static_attributes import DYNAMIC, attribute
from weir.handlers.reading.bindings import bound_names
from weir.handlers.reading.sources import FunctionSource

MUTATORS = frozenset(
    (
        "append",
        "extend",
        "insert",
        "remove",
        "pop",
        "clear",
        "sort",
        "reverse",
        "add",
        "discard",
        "update",
        "setdefault",
        "popitem",
        "appendleft",
        "popleft",
        "extendleft",
        "rotate",
        "intersection_update",
        "difference_update",
        "symmetric_difference_update",
        "__setitem__",
    )
)
"""The methods of Python's lists, dicts, sets and deques that change them."""

_BY_ORDER = frozenset(
    (
        "builtins",
        "itertools",
        "collections",
        "_collections",
        "functools",
        "_functools",
        "heapq",
        "_heapq",
        "numpy",
        "array",
        "json",
        "pprint",
    )
)
"""Modules whose functions go through what they are called with, but for these."""
_WITHOUT_ORDER: tuple[object, ...] = (
    len,
    any,
    all,
    sum,
    set,
    frozenset,
    bool,
    isinstance,
    type,
    getattr,
    hasattr,
    functools.partial,
)
_BY_KEY: tuple[object, ...] = (sorted, min, max)
"""Without a key, the order of what they are called with does not matter."""
_SHOWING_METHODS = frozenset(("__iter__", "__str__", "__repr__", "__format__", "__reduce__"))
_TAKING_METHODS = frozenset(("join", "extend", "extendleft", "fromkeys"))
"""Methods of others that go through their argument."""
_VIEWS = frozenset(("keys", "items"))
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
        self._set_arguments = _set_arguments(source.node.args)
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
            for over in self._used_in_order(node):
                self._refuse_order(over)

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

    def _used_in_order(self, node: ast.AST) -> Iterable[ast.expr]:
        """Return the values whose order a node shows, if they are sets."""
        match node:
            case ast.For(iter=over) | ast.AsyncFor(iter=over) | ast.comprehension(iter=over):
                return [over]
            case (
                ast.Starred(value=over) | ast.YieldFrom(value=over) | ast.FormattedValue(value=over)
            ):
                return [over]
            case ast.Attribute(value=over, attr=name) if name in _SHOWING_METHODS:
                return [over]
            case ast.BinOp(op=ast.Mod(), right=right):
                return right.elts if isinstance(right, ast.Tuple) else [right]
            case ast.Assign(targets=targets, value=value):
                return [over for target in targets for over in _unpacked(target, value)]
            case ast.Call(args=[_, *_]):
                return self._taken_in_order(node)
        return []

    def _taken_in_order(self, call: ast.Call) -> Sequence[ast.expr]:
        """Return the arguments that what is called goes through, one after another."""
        callee = self._thing(call.func)
        if any(callee is function for function in _WITHOUT_ORDER):
            return []
        if any(callee is function for function in _BY_KEY):
            has_key = any(keyword.arg in ("key", None) for keyword in call.keywords)
            return call.args if has_key and len(call.args) == 1 else []
        if callee is next:
            return call.args[:1]
        if callee is functools.reduce:
            return call.args[1:2]
        if callee is DYNAMIC:
            is_method = isinstance(call.func, ast.Attribute) and call.func.attr in _TAKING_METHODS
            return call.args if is_method else []
        if issubclass(type(callee), type) and issubclass(callee, BaseException):
            return []
        module = (full_name(callee) or "").partition(".")[0]
        return call.args if module in _BY_ORDER else []

    def _thing(self, node: ast.expr) -> Any:
        """Return the object of the program that some code stands for; else DYNAMIC."""
        match node:
            case ast.Name(id=name) if name not in self._bound and name not in self._assigned:
                return self._resolve(name)
            case ast.Attribute(value=of, attr=name):
                thing = self._thing(of)
                return DYNAMIC if thing is DYNAMIC else attribute(thing, name)
        return DYNAMIC

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
                is_set = self._is_set(a, depth + 1) or self._is_set(b, depth + 1)
                return is_set or _is_view(a) or _is_view(b)
            case ast.BinOp(left=a, op=ast.Sub()):
                return self._is_set(a, depth + 1) or _is_view(a)
            case ast.IfExp(body=a, orelse=b):
                return self._is_set(a, depth + 1) or self._is_set(b, depth + 1)
            case ast.BoolOp(values=either):
                return any(self._is_set(v, depth + 1) for v in either)
            case ast.NamedExpr(value=inner):
                return self._is_set(inner, depth + 1)
            case ast.Name(id=name) if name in self._assigned:
                values = self._assigned[name].values
                return any(v is not None and self._is_set(v, depth + 1) for v in values)
            case ast.Name(id=name) if name in self._bound:
                return name in self._set_arguments
            case ast.Name() | ast.Attribute():
                return issubclass(type(self._thing(value)), set | frozenset)
        return False


def _is_view(value: ast.expr) -> bool:
    """Tell whether a value is `d.keys()` or `d.items()`, which operators make sets of."""
    match value:
        case ast.Call(func=ast.Attribute(attr=name), args=[], keywords=[]):
            return name in _VIEWS
    return False


def _unpacked(target: ast.expr, value: ast.expr) -> list[ast.expr]:
    """Return the values that an assignment takes apart by their order."""
    if not isinstance(target, ast.Tuple | ast.List):
        return []
    if isinstance(value, ast.Tuple | ast.List) and len(value.elts) == len(target.elts):
        pairs = zip(target.elts, value.elts, strict=True)
        return [over for one, part in pairs for over in _unpacked(one, part)]
    return [value]


def _set_arguments(arguments: ast.arguments) -> frozenset[str]:
    """Return the arguments that are said to be sets."""
    every = (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)
    names = set()
    for argument in every:
        match argument.annotation:
            case (
                ast.Name(id="set" | "frozenset")
                | ast.Subscript(value=ast.Name(id="set" | "frozenset"))
            ):
                names.add(argument.arg)
    return frozenset(names)


def _assignments(node: ast.AST) -> dict[str, _Assigned]:
    """Return what is assigned to each name; None where that is no single expression."""
    assigned: dict[str, _Assigned] = {}

    def note(name: str, value: ast.expr | None) -> None:
        assigned.setdefault(name, _Assigned([])).values.append(value)

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
    return assigned


def _mutable_defaults(arguments: ast.arguments) -> set[str]:
    """Return the parameters whose default can be changed."""
    plain = [*arguments.posonlyargs, *arguments.args]
    pairs = [*zip(plain[len(plain) - len(arguments.defaults) :], arguments.defaults, strict=True)]
    pairs += [(a, d) for a, d in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True) if d]
    changeable = (ast.List, ast.Dict, ast.Set, ast.Call, ast.ListComp, ast.DictComp, ast.SetComp)
    return {a.arg for a, d in pairs if isinstance(d, changeable)}
