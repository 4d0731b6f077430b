"""Refuses what changes values in place that are not the handler's own, and orders that no replay
repeats.

The event, what states give and default arguments are values of somebody else: to change one never
changes a state. A set has no order that a second run would repeat, so nothing goes through one.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache

from weir.handlers.bindings import argument_names, bound_names
from weir.handlers.sources import FunctionNode, FunctionSource

MUTATORS = frozenset((
    "append", "extend", "insert", "remove", "pop", "clear", "sort", "reverse", "add", "discard",
    "update", "setdefault", "popitem", "appendleft", "popleft", "extendleft", "rotate",
    "intersection_update", "difference_update", "symmetric_difference_update", "__setitem__",
))  # fmt: skip
"""The methods of Python's lists, dicts, sets and deques that change them."""

IN_PLACE = frozenset((
    "_heapq.heappush", "_heapq.heappop", "_heapq.heapify", "_heapq.heapreplace",
    "_heapq.heappushpop", "_bisect.insort_left", "_bisect.insort_right", "_operator.setitem",
    "_operator.delitem", "_operator.iadd", "_operator.iconcat", "builtins.setattr",
    "builtins.delattr", "builtins.next",
))  # fmt: skip
"""Functions of Python's library that change their first argument."""

_IN_ORDER = frozenset((
    "list", "tuple", "iter", "next", "enumerate", "zip", "map", "filter", "reversed", "str",
    "repr", "dict",
))  # fmt: skip
_SETS = frozenset(("union", "intersection", "difference", "symmetric_difference", "copy"))


def check_changes(
    source: FunctionSource,
    resolve: Callable[[str], object],
    is_state: Callable[[object], bool],
    *,
    event: bool,
) -> None:
    """Raise ScriptError for such code in a function; `event`: its first argument is the event."""
    _Check(source, resolve, is_state, event).check()


@dataclass(slots=True)
class _Assigned:
    """What the assignments to one name have on their right sides."""

    values: list[ast.expr | None]


class _Check:
    def __init__(
        self,
        source: FunctionSource,
        resolve: Callable[[str], object],
        is_state: Callable[[object], bool],
        event: bool,
    ) -> None:
        self._source, self._resolve, self._is_state = source, resolve, is_state
        arguments = source.node.args
        names = argument_names(arguments)
        self._event = names[0] if event else ""
        self._bound = bound_names(source.node)
        self._assigned = _assignments(source.node)
        self._mutable = _mutable_defaults(arguments)
        self._olds = set(self._merge_arguments())

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
        owner = self._owner(value)
        if not owner:
            return
        shown = ast.unparse(value)
        shown = shown if len(shown) < 40 else f"{shown[:37]}…"
        hint = "values are immutable: make a new one, and merge or set that"
        if owner == "a default argument":
            hint = "what a handler remembers lies in states: app.state(…)"
        message = f"`{shown}` is {owner}, which is changed in place"
        raise self._source.file.error(message, node, hint)

    def _owner(self, value: ast.expr, depth: int = 0) -> str:
        """Say whose value an expression is, if it is not the function's own."""
        if depth > 10:
            return ""
        match value:
            case ast.Name(id=name):
                return self._owner_of_name(name, depth)
            case ast.Attribute(value=inner) | ast.Subscript(value=inner):
                owner = self._owner(inner, depth + 1)
                return "a value of the event" if owner == "the event" else owner
            case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="get")):
                if name not in self._bound and self._is_state(self._resolve(name)):
                    return f"a value of the state `{name}`"
            case ast.IfExp(body=body, orelse=orelse):
                return self._owner(body, depth + 1) or self._owner(orelse, depth + 1)
        return ""

    def _owner_of_name(self, name: str, depth: int) -> str:
        if name == self._event and name not in self._assigned:
            return "the event"
        if name in self._olds and name not in self._assigned:
            return "the old value of a state"
        if name in self._mutable and name not in self._assigned:
            return "a default argument"
        values = self._assigned[name].values if name in self._assigned else []
        owners = {self._owner(v, depth + 1) if v is not None else "" for v in values}
        return owners.pop() if len(owners) == 1 else ""

    def _merge_arguments(self) -> Iterator[str]:
        """Return the names that functions of merges have for the old value."""
        for node in ast.walk(self._source.node):
            match node:
                case ast.Call(
                    func=ast.Attribute(value=ast.Name(id=state), attr="merge"),
                    args=[_, ast.Lambda(args=ast.arguments(args=[ast.arg(arg=name)]))],
                ) if state not in self._bound and self._is_state(self._resolve(state)):
                    yield name

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


def changed_arguments(node: FunctionNode) -> frozenset[str]:
    """Return the parameters whose values a function changes in place."""
    names = set(argument_names(node.args)) - set(_assignments(node))
    return _changed_names(node) & names


def changed_around(node: FunctionNode) -> frozenset[str]:
    """Return the variables of others whose values a function changes in place."""
    return _changed_names(node) - bound_names(node)


def is_shared(definition: ast.AST, name: str) -> bool:
    """Tell whether a variable's value may be that of another variable too, or part of it."""
    for node in ast.walk(definition):
        match node:
            case ast.Tuple(elts=parts, ctx=ast.Load()) | ast.List(elts=parts, ctx=ast.Load()):
                pass
            case ast.Dict(values=parts) | ast.BoolOp(values=parts):
                pass
            case ast.Assign(targets=[ast.Name()], value=value) | ast.NamedExpr(value=value):
                parts = [value]
            case ast.AnnAssign(value=ast.expr() as value) | ast.Lambda(body=value):
                parts = [value]
            case ast.IfExp(body=body, orelse=orelse):
                parts = [body, orelse]
            case _:
                continue
        if any(isinstance(part, ast.Name) and part.id == name for part in parts):
            return True
    return False


@lru_cache(maxsize=1000)
def _changed_names(node: FunctionNode) -> frozenset[str]:
    """Return the names whose values a function changes in place."""
    found: set[str] = set()
    for inner in ast.walk(node):
        match inner:
            case ast.Call(func=ast.Attribute(value=value, attr=name)) if name in MUTATORS:
                found |= root_name(value)
            case (
                ast.Attribute(value=value, ctx=ast.Store() | ast.Del())
                | ast.Subscript(value=value, ctx=ast.Store() | ast.Del())
            ):
                found |= root_name(value)
    return frozenset(found)


def root_name(value: ast.expr) -> set[str]:
    """Return the name that `a.b[0].c` begins with, if it does."""
    while isinstance(value, ast.Attribute | ast.Subscript):
        value = value.value
    return {value.id} if isinstance(value, ast.Name) else set()


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
