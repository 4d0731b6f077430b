"""Refuses changes of default arguments in place, and uses of an order that replays do not repeat.

A default argument is one object for all calls: a change by a function would stay for the next
event. The order of a set differs between runs, so a set may only be used where order does not
matter: `in`, `len`, comparisons, operators and methods of sets, `sorted`, `min` and `max` without a
key.

A set is recognised where it is made, by the names that it is assigned to, as a global, as an
argument with such an annotation, where the user's functions return one or are called with one, and
in dicts and lists that have names. Sets in objects and in containers of containers are not
followed.
"""

from __future__ import annotations

import ast
import collections
import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from types import FunctionType, MethodType
from typing import Any, TypeAlias

from weir.handlers.reach.forbidden_calls import full_name
from weir.handlers.reach.object_contents import is_users
from weir.handlers.reach.static_attributes import DYNAMIC, attribute
from weir.handlers.reading.bindings import Scoped, argument_names, bound_names
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
"""Modules whose functions iterate over their arguments, except the functions below."""
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
"""Functions that do not depend on the order of their argument, unless they have a key."""
_SHOWING_METHODS = frozenset(("__iter__", "__str__", "__repr__", "__format__", "__reduce__"))
_TAKING_METHODS = frozenset(("join", "extend", "extendleft", "fromkeys", "format"))
"""Methods of other types that iterate over their argument."""
_VIEWS = frozenset(("keys", "items"))
_KINDS = (set, frozenset)
_DEEPEST = 10
"""The most steps that a set is followed."""
_SETS = frozenset(("union", "intersection", "difference", "symmetric_difference", "copy"))


Sourced: TypeAlias = Callable[[FunctionType], tuple[FunctionSource, Callable[[str], object]]]
"""Returns the source of a user's function, and a function that resolves its outer names."""


@dataclass(slots=True)
class SetFlow:
    """What functions do with sets, as far as it was needed."""

    sourced: Sourced
    giving: dict[FunctionType, bool] = field(default_factory=dict)
    """Whether a function returns a set."""
    taking: set[tuple[FunctionType, frozenset[str]]] = field(default_factory=set)
    """The functions that were checked with sets as these arguments."""


def check_changes(function: FunctionType, flow: SetFlow) -> None:
    """Raise ScriptError if a function has such code."""
    source, resolve = flow.sourced(function)
    _Check(source, resolve, flow).check()


@dataclass(slots=True)
class _Assigned:
    """The right sides of the assignments to one name."""

    values: list[ast.expr | None]


class _Check:
    def __init__(
        self,
        source: FunctionSource,
        resolve: Callable[[str], object],
        flow: SetFlow,
        sets: frozenset[str] = frozenset(),
    ) -> None:
        self._source, self._resolve, self._flow = source, resolve, flow
        self._bound = bound_names(source.node)
        self._assigned = _assignments(source.node)
        self._set_arguments = _set_arguments(source.node.args) | sets
        self._mutable = _mutable_defaults(source.node.args)
        defined = (n for n in ast.walk(source.node) if n is not source.node)
        self._inner = {n.name: n for n in defined if isinstance(n, ast.FunctionDef)}
        """The functions inside this function."""
        self._put = _put_in(source.node)

    def check(self) -> None:
        for node in ast.walk(self._source.node):
            match node:
                case ast.Call(func=ast.Attribute(value=value, attr="pop"), args=[]):
                    self._refuse_order(value)  # it takes an arbitrary element of a set
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
            if isinstance(node, ast.Call):
                self._hand_over(node)

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
                "keep what a handler remembers in a state: app.state(…)",
            )

    # --- orders ---------------------------------------------------------------------------

    def _used_in_order(self, node: ast.AST) -> Iterable[ast.expr]:
        """Return the values whose order a node would show if they are sets."""
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
        """Return the arguments that a called function iterates over."""
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
        """Return the object of the program that an expression stands for; else DYNAMIC."""
        match node:
            case ast.Name(id=name) if name not in self._bound and name not in self._assigned:
                return self._resolve(name)
            case ast.Attribute(value=of, attr=name):
                thing = self._thing(of)
                return DYNAMIC if thing is DYNAMIC else attribute(thing, name)
        return DYNAMIC

    def _hand_over(self, call: ast.Call) -> None:
        """Check a user's function that is called with sets."""
        function, skipped = _users_function(self._thing(call.func))
        if function is None:
            return
        source, resolve = self._flow.sourced(function)
        plain = [a.arg for a in (*source.node.args.posonlyargs, *source.node.args.args)][skipped:]
        pairs = [*zip(plain, call.args, strict=False), *((k.arg, k.value) for k in call.keywords)]
        names = argument_names(source.node.args)
        sets = frozenset(n for n, value in pairs if n in names and self._is_set(value))
        if sets and (function, sets) not in self._flow.taking:
            self._flow.taking.add((function, sets))
            _Check(source, resolve, self._flow, sets).check()

    def _gives_set(self, callee: ast.expr, depth: int) -> bool:
        """Tell whether a user's function returns a set."""
        if isinstance(callee, ast.Name) and callee.id in self._inner:
            return self._returns_set(self._inner[callee.id], depth)
        if isinstance(callee, ast.Name) and callee.id in self._assigned:
            values = self._assigned[callee.id].values
            return any(
                isinstance(v, ast.Lambda) and self._is_set(v.body, depth + 1) for v in values
            )
        function, _ = _users_function(self._thing(callee))
        if function is None:
            return False
        giving = self._flow.giving
        if function not in giving:
            giving[function] = False  # for functions that call each other
            source, resolve = self._flow.sourced(function)
            giving[function] = _Check(source, resolve, self._flow)._returns_set(source.node, 0)
        return giving[function]

    def _returns_set(self, node: Scoped, depth: int) -> bool:
        if isinstance(node, ast.Lambda):
            return self._is_set(node.body, depth + 1)
        if not isinstance(node, ast.FunctionDef):
            return False
        if _is_set_type(node.returns):
            return True
        values = [n.value for n in _own_nodes(node) if isinstance(n, ast.Return) and n.value]
        yields = any(isinstance(n, ast.Yield | ast.YieldFrom) for n in _own_nodes(node))
        return not yields and any(self._is_set(value, depth + 1) for value in values)

    def _refuse_order(self, over: ast.expr) -> None:
        if self._is_set(over):
            raise self._source.file.error(
                f"`{ast.unparse(over)[:40]}` is a set: its order differs between runs",
                over,
                "sorted(…) gives it an order",
            )

    def _is_set(self, value: ast.expr, depth: int = 0) -> bool:
        if depth > _DEEPEST:
            return False
        match value:
            case ast.Set() | ast.SetComp():
                return True
            case ast.Call(func=ast.Name(id="set" | "frozenset")):
                return True
            case ast.Call(func=ast.Attribute(value=inner, attr=name)) if name in _SETS:
                return self._is_set(inner, depth + 1)
            case ast.Call(func=ast.Attribute(value=inner, attr="get" | "pop" | "setdefault")):
                return self._holds_sets(inner, depth + 1)
            case ast.Subscript(value=inner, slice=index) if not isinstance(index, ast.Slice):
                return self._holds_sets(inner, depth + 1)
            case ast.Call(func=callee) if self._gives_set(callee, depth):
                return True
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

    def _holds_sets(self, value: ast.expr, depth: int) -> bool:
        """Tell whether a dict or a list contains sets."""
        match value:
            case ast.Dict(values=parts) | ast.List(elts=parts) | ast.Tuple(elts=parts):
                return any(self._is_set(part, depth) for part in parts)
            case ast.DictComp(value=part) | ast.ListComp(elt=part):
                return self._is_set(part, depth)
            case ast.Call(func=made, args=[ast.Name(id="set" | "frozenset"), *_]):
                return self._thing(made) is collections.defaultdict
            case ast.Name(id=name) if name in self._assigned:
                values = [v for v in self._assigned[name].values if v is not None]
                put = self._put.get(name, ())
                return any(self._is_set(part, depth) for part in put) or (
                    depth <= _DEEPEST and any(self._holds_sets(v, depth + 1) for v in values)
                )
        thing = self._thing(value)
        held = thing.values() if type(thing) is dict else thing
        return type(thing) in (dict, list, tuple) and any(isinstance(v, _KINDS) for v in held)


def _is_view(value: ast.expr) -> bool:
    """Tell whether a value is `d.keys()` or `d.items()`, whose operators return sets."""
    match value:
        case ast.Call(func=ast.Attribute(attr=name), args=[], keywords=[]):
            return name in _VIEWS
    return False


def _unpacked(target: ast.expr, value: ast.expr) -> list[ast.expr]:
    """Return the values that an assignment unpacks in order."""
    if not isinstance(target, ast.Tuple | ast.List):
        return []
    if isinstance(value, ast.Tuple | ast.List) and len(value.elts) == len(target.elts):
        pairs = zip(target.elts, value.elts, strict=True)
        return [over for one, part in pairs for over in _unpacked(one, part)]
    return [value]


def _set_arguments(arguments: ast.arguments) -> frozenset[str]:
    """Return the parameters that are annotated as sets."""
    every = (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)
    return frozenset(a.arg for a in every if _is_set_type(a.annotation))


def _is_set_type(annotation: ast.expr | None) -> bool:
    match annotation:
        case ast.Name(id="set" | "frozenset"):
            return True
        case ast.Subscript(value=ast.Name(id="set" | "frozenset")):
            return True
    return False


def _users_function(thing: Any) -> tuple[FunctionType | None, int]:
    """Return the user's function that is called, and how many arguments are already bound."""
    if type(thing) is functools._lru_cache_wrapper:
        thing = thing.__wrapped__
    if type(thing) is FunctionType and is_users(thing):
        return thing, 0
    if type(thing) is MethodType and type(thing.__func__) is FunctionType:
        return (thing.__func__, 1) if is_users(thing.__func__) else (None, 0)
    return None, 0


def _own_nodes(function: ast.FunctionDef) -> Iterator[ast.AST]:
    """Yield the nodes of a function, without those of functions inside it."""
    waiting: list[ast.AST] = [*function.body]
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef):
            waiting += ast.iter_child_nodes(node)


def _assignments(node: ast.AST) -> dict[str, _Assigned]:
    """Return the values that are assigned to each name; None where that is not an expression."""
    assigned: dict[str, _Assigned] = {}

    def note(name: str, value: ast.expr | None) -> None:
        assigned.setdefault(name, _Assigned([])).values.append(value)

    for inner in ast.walk(node):
        match inner:
            case ast.Assign(targets=targets, value=value):
                for target in targets:
                    for name, part in _named(target, value):
                        note(name, part)
            case (
                ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value)
                | ast.NamedExpr(target=ast.Name(id=name), value=value)
            ):
                note(name, value)
            case ast.For(target=target, iter=over) | ast.comprehension(target=target, iter=over):
                for name, part in _named(target, _element(over)):
                    note(name, part)
            case ast.withitem(optional_vars=ast.Name(id=name)):
                note(name, None)
    return assigned


def _named(target: ast.expr, value: ast.expr | None) -> Iterator[tuple[str, ast.expr | None]]:
    """Yield the names of a target, each with its value if that is an expression."""
    match target, value:
        case ast.Name(id=name), _:
            yield name, value
        case ast.Tuple(elts=targets) | ast.List(elts=targets), ast.Tuple() | ast.List() if (
            isinstance(value, ast.Tuple | ast.List) and len(value.elts) == len(targets)
        ):
            for one, part in zip(targets, value.elts, strict=True):
                yield from _named(one, part)
        case _:
            names = (n for n in ast.walk(target) if isinstance(n, ast.Name))
            for name_node in (n for n in names if isinstance(n.ctx, ast.Store)):
                yield name_node.id, None


def _element(over: ast.expr) -> ast.expr | None:
    """Return an expression for any element of what a loop iterates over, or None."""
    match over:
        case ast.Call(func=ast.Name(id="sorted" | "list" | "tuple" | "reversed"), args=[inner, *_]):
            return _element(inner)
        case ast.Call(func=ast.Attribute(value=of, attr="values"), args=[]):
            return ast.Subscript(of, ast.Constant(None), ast.Load())
        case ast.Call(func=ast.Attribute(value=of, attr="items"), args=[]):
            held = ast.Subscript(of, ast.Constant(None), ast.Load())
            return ast.Tuple([ast.Constant(None), held], ast.Load())
        case ast.Name():
            return ast.Subscript(over, ast.Constant(None), ast.Load())
    return None


def _put_in(node: ast.AST) -> dict[str, list[ast.expr]]:
    """Return the values that are put into containers, by the container's name."""
    put: dict[str, list[ast.expr]] = {}
    for inner in ast.walk(node):
        match inner:
            case ast.Call(
                func=ast.Attribute(value=ast.Name(id=name), attr="setdefault" | "append"),
                args=[*_, value],
            ):
                put.setdefault(name, []).append(value)
            case ast.Assign(targets=[ast.Subscript(value=ast.Name(id=name))], value=value):
                put.setdefault(name, []).append(value)
    return put


def _mutable_defaults(arguments: ast.arguments) -> set[str]:
    """Return the parameters whose default can be changed."""
    plain = [*arguments.posonlyargs, *arguments.args]
    pairs = [*zip(plain[len(plain) - len(arguments.defaults) :], arguments.defaults, strict=True)]
    pairs += [(a, d) for a, d in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True) if d]
    changeable = (ast.List, ast.Dict, ast.Set, ast.Call, ast.ListComp, ast.DictComp, ast.SetComp)
    return {a.arg for a, d in pairs if isinstance(d, changeable)}
