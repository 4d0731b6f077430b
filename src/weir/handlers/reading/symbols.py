"""What a name can stand for while a handler is run symbolically.

A `Symbol` is a tree (a value that depends on the event), or a thing that analysis knows: the event,
a state, a function, a module, a tuple of symbols. Accesses contain only trees; `as_tree` turns a
symbol into one if it can be data.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import TYPE_CHECKING, Any, TypeAlias

from weir.handlers.api.declarations import EventType, State
from weir.handlers.api.parameters import AppParam
from weir.handlers.reach.static_attributes import HiddenObject, hides_its_class
from weir.handlers.trees.operations import OPERATIONS
from weir.handlers.trees.values import Const, Op, Tree
from weir.plan.usercode.functions import ScalarFunction

if TYPE_CHECKING:
    from weir.handlers.reading.frames import Frame


@dataclass(frozen=True, slots=True)
class TheEvent:
    """The handler's argument."""

    event: EventType


@dataclass(frozen=True, slots=True)
class Known:
    """An object of the user's program: a state, the app, a function, a module …"""

    thing: object


@dataclass(frozen=True, slots=True)
class WrittenOut:
    """A tuple or list that is written out, with any symbols as parts."""

    kind: str
    """`tuple`, `list`, or `iterator`, which can be iterated over only once."""
    parts: tuple[Symbol, ...]


@dataclass(frozen=True, slots=True, eq=False)
class LocalFunction:
    """A lambda, or a function defined inside another."""

    node: ast.FunctionDef | ast.Lambda
    frame: Frame = field(repr=False)
    """The function around it; it sees that function's variables as they are when it is called."""
    defaults: Mapping[str, Symbol]

    @property
    def name(self) -> str:
        return self.node.name if isinstance(self.node, ast.FunctionDef) else "lambda"


@dataclass(frozen=True, slots=True)
class BoundMethod:
    """`a.name` before it is called."""

    of: Symbol
    name: str


@dataclass(frozen=True, slots=True)
class Unusable:
    """What a name stands for if analysis cannot use it; `why` says why.

    `choices` are the symbols that it may stand for, if they are known.
    """

    why: str
    choices: tuple[Symbol, ...] = ()


@dataclass(frozen=True, slots=True)
class OneOf:
    """One of several things that analysis knows; the event determines which one."""

    choices: tuple[Symbol, ...]


ITERATOR = "iterator"
ANY_VALUE = object()
"""The value of a parameter in an analysis that must not depend on the value."""
Symbol: TypeAlias = (
    "Tree | TheEvent | Known | WrittenOut | LocalFunction | BoundMethod | Unusable | OneOf"
)

_CALLED = (
    State,
    EventType,
    ModuleType,
    FunctionType,
    BuiltinFunctionType,
    MethodType,
    type,
    ScalarFunction,
)


def known(thing: object, line: int, params: Mapping[str, object]) -> Symbol:
    """Return the symbol for an object that a name in the program stands for."""
    from weir.handlers.api.app import App  # which knows nothing of analysis

    if hides_its_class(thing):
        return Known(HiddenObject(thing))
    if isinstance(thing, AppParam):
        value = params[thing._weir_name]
        return Unusable("any parameter") if value is ANY_VALUE else Const(value, line=line)
    if isinstance(thing, MethodType) and isinstance(thing.__self__, State | App):
        return BoundMethod(Known(thing.__self__), thing.__name__)
    if isinstance(thing, (*_CALLED, App)) or not _is_data(thing):
        return Known(thing)
    return Const(thing, line=line)


def _is_data(thing: object) -> bool:
    """Tell whether a thing is one of Python's own values, which may contain others."""
    return type(thing).__module__ in ("builtins", "re", "datetime", "decimal")


# --- operations; those on constants are done at once ----------------------------------------

_FOLDED: dict[str, Callable[..., Any]] = {
    **{name: o.function for name, o in OPERATIONS.items() if o.function is not None},
    "item": operator.getitem,
}
_PLAIN = (bool, int, float, str, bytes, type(None))
_LARGEST = 1 << 128
"""Analysis multiplies numbers below this; larger ones are left to the run."""


def op(name: str, *args: Tree, line: int = 0) -> Tree:
    """Make an operation; Python itself computes one on plain constants at once."""
    if name in _FOLDED and all(isinstance(a, Const) and _folds(name, a.value) for a in args):
        try:
            result = _FOLDED[name](*(a.value for a in args if isinstance(a, Const)))
        except Exception:  # fails at run time, if it is reached
            return Op(name, args, line=line)
        if type(result) in _PLAIN or name == "item":
            return Const(result, line=line)
    match name, args:
        case "if", (Const(value=value), then, otherwise):
            return then if value else otherwise
        case "if", (_, then, otherwise) if then is otherwise:
            return then
    return Op(name, args, line=line)


def _folds(name: str, value: object) -> bool:
    if name in ("mul", "mod"):  # texts and lists could grow
        return isinstance(value, int | float) and abs(value) < _LARGEST
    if type(value) in (tuple, list, dict, frozenset, range):
        return name in ("item", "in", "notin", "not", "eq", "ne")
    return type(value) in _PLAIN


def truth(tree: Tree) -> bool | None:
    """Return whether a tree is true, if that is known without an event, else None."""
    if isinstance(tree, Const):
        try:
            return bool(tree.value)
        except Exception:  # fails at run time, if it is reached
            return None
    match tree:
        case Op(name="not", args=(inner,)):
            inner_truth = truth(inner)
            return None if inner_truth is None else not inner_truth
        case Op(name="tuple" | "list", args=args):
            return bool(args)
    return None


def negated(tree: Tree, line: int = 0) -> Tree:
    """Return a tree that is true where this one is not."""
    match tree:
        case Op(name="not", args=(inner,)):
            return inner
    return op("not", tree, line=line or tree.line)


def as_tree(symbol: Symbol, line: int = 0) -> Tree | None:
    """Return a symbol as data, or None if it cannot be data."""
    if isinstance(symbol, Tree):
        return symbol
    if isinstance(symbol, WrittenOut) and symbol.kind != ITERATOR:
        parts = [as_tree(part, line) for part in symbol.parts]
        if all(part is not None for part in parts):
            return Op(symbol.kind, tuple(p for p in parts if p is not None), line=line)
    return None
