"""Finds all objects that the user's code can reach, without running it.

Rules
1. A function reaches the globals that its code (and the code inside it) names, its closure, its
   defaults and its attributes. Of a reached module, it reaches the attributes that any reached code
   names.
2. A container reaches its elements, an object its attributes and its class, a class its members,
   bases and metaclass. A bound method, in C too, reaches its object, a partial its function and
   arguments.
3. Modules and classes of libraries are not searched, but the contents of their objects are.
4. Handles (states, the app, event types, parameters) are reached and lead nowhere.
5. None of the user's code is run: no property, no `__getattr__`, no `__iter__`.

So ordinary code cannot reach an object that is not found here. (`gc`, `sys.modules`, frames and the
like are refused by name in `forbidden_calls.py`.)
"""

from __future__ import annotations

import dis
import functools
from collections import deque
from collections.abc import Iterator
from types import (
    BuiltinFunctionType,
    CellType,
    CodeType,
    FunctionType,
    MappingProxyType,
    MemberDescriptorType,
    MethodType,
    MethodWrapperType,
    ModuleType,
)
from typing import TYPE_CHECKING, Any

import numpy as np

from weir.handlers.api.declarations import EventType, State
from weir.handlers.api.parameters import AppParam
from weir.handlers.reach.object_contents import (
    class_dict,
    class_mro,
    instance_dict,
    is_users,
    is_users_class,
    is_users_module,
)
from weir.plan.usercode.functions import AggregateFunction, OperatorFunction, ScalarFunction

if TYPE_CHECKING:
    pass

_DATA = (bool, int, float, complex, str, bytes, type(None), CodeType)
_CONTAINERS = (tuple, list, set, frozenset, deque)
_ATTRIBUTE_STEPS = frozenset(
    (
        "LOAD_ATTR",
        "LOAD_METHOD",
        "STORE_ATTR",
        "DELETE_ATTR",
        "LOAD_SUPER_ATTR",
        "IMPORT_NAME",
        "IMPORT_FROM",
    )
)
"""The bytecode instructions of CPython that name attributes and modules."""
_USER_FUNCTIONS = (ScalarFunction, AggregateFunction, OperatorFunction)


def reachable(*roots: object) -> Iterator[object]:
    """Yield these things and all that they reach, each once."""
    walk = _ObjectWalk(roots)
    return iter(walk.reached.values())


def holders(*roots: object) -> Iterator[object]:
    """Yield the holders of reached things.

    These are the things themselves, the dicts of their attributes and globals, and cells of
    closures.
    """
    seen = set()
    for thing in reachable(*roots):
        parts = [thing]
        if type(thing) is FunctionType:
            if is_users(thing):
                parts.append(thing.__globals__)
            parts += [cell for cell in thing.__closure__ or () if _content(cell)]
            parts.append(thing.__kwdefaults__)
        elif type(thing) is not ModuleType:
            parts.append(instance_dict(thing) or None)
        for part in parts:
            if part is not None and id(part) not in seen:
                seen.add(id(part))
                yield part


def handles_reached(*roots: object) -> tuple[frozenset[str], bool]:
    """Return the names of the states that some code reaches, and whether it reaches the app."""
    from weir.handlers.api.app import App

    states = set()
    has_app = False
    thing: Any
    for thing in reachable(*roots):
        if issubclass(type(thing), State):
            states.add(thing.name)
        has_app = has_app or issubclass(type(thing), App)
    return frozenset(states), has_app


class _ObjectWalk:
    """Goes from thing to thing until there is nothing new."""

    def __init__(self, roots: tuple[object, ...]) -> None:
        self.reached: dict[int, object] = {}
        self._names: set[str] = set()
        """The names that visited code uses, as globals or attributes."""
        self._modules: list[tuple[ModuleType, set[str]]] = []
        """The user's modules that were visited, with the names that were looked up in them."""
        waiting = list(roots)
        while waiting:
            while waiting:
                thing = waiting.pop()
                if type(thing) in _DATA or id(thing) in self.reached:
                    continue
                self.reached[id(thing)] = thing
                waiting += self._parts(thing)
            for module, seen in self._modules:
                new = (self._names & vars(module).keys()) - seen
                seen |= new
                waiting += [vars(module)[name] for name in new]

    def _parts(self, thing: Any) -> list[object]:
        from weir.handlers.api.app import App

        own = type(thing)  # `isinstance` would ask the object, which may claim another class
        if issubclass(own, App | State | EventType | AppParam | np.ndarray):
            return []
        if own is BuiltinFunctionType or own is MethodWrapperType:  # as `[].append`, `it.__next__`
            held = thing.__self__
            return [] if held is None or issubclass(type(held), ModuleType) else [held]
        if own is ModuleType:
            if is_users_module(thing):
                self._modules.append((thing, set()))
            return []
        if own is FunctionType:
            return self._of_function(thing)
        if own is MethodType:
            return [thing.__func__, thing.__self__]
        if issubclass(own, functools.partial):
            return [thing.func, thing.args, thing.keywords, thing.__dict__]
        if own in (staticmethod, classmethod):
            return [thing.__func__]
        if own is property:
            return [thing.fget, thing.fset, thing.fdel]
        if own is CellType:
            return _content(thing)
        if issubclass(own, type):
            return self._of_class(thing)
        if issubclass(own, _USER_FUNCTIONS):
            return [getattr(thing, "function", None) or getattr(thing, "implementation", None)]
        return [*_elements(thing), *_attributes(thing), *([own] if is_users_class(own) else [])]

    def _of_function(self, function: FunctionType) -> list[object]:
        parts: list[object] = [
            *(function.__closure__ or ()),
            *(function.__defaults__ or ()),
            function.__kwdefaults__,
        ]
        parts += function.__dict__.values()
        if is_users(function):
            self._names |= _code_names(function.__code__)
            parts += [value for _, value in named_globals(function)]
        return parts

    def _of_class(self, cls: type) -> list[object]:
        if not is_users_class(cls):
            return []
        self._names |= class_dict(cls).keys()
        return [*class_dict(cls).values(), *class_mro(cls)[1:], type(cls)]


def named_globals(function: FunctionType) -> list[tuple[str, object]]:
    """Return the globals that a function's code names, with their values."""
    globals_ = function.__globals__
    names = sorted(_global_names(function.__code__))
    return [(name, globals_[name]) for name in names if name in globals_]


@functools.lru_cache(maxsize=4096)
def _global_names(code: CodeType) -> frozenset[str]:
    """Return the names that code looks up as variables, without names of attributes."""
    names = {
        str(step.argval)
        for step in dis.get_instructions(code)
        if step.opcode in dis.hasname and step.opname not in _ATTRIBUTE_STEPS
    }
    inner = (part for part in code.co_consts if isinstance(part, CodeType))
    return frozenset(names.union(*map(_global_names, inner)))


def _code_names(code: CodeType) -> set[str]:
    names = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            names |= _code_names(constant)
    return names


def _content(cell: CellType) -> list[object]:
    try:
        return [cell.cell_contents]
    except ValueError:  # not assigned yet
        return []


def _elements(thing: Any) -> list[object]:
    own = type(thing)
    if issubclass(own, dict):
        return [*dict.keys(thing), *dict.values(thing)]
    if issubclass(own, MappingProxyType):
        return [*MappingProxyType.keys(thing), *MappingProxyType.values(thing)]
    kind = next((kind for kind in _CONTAINERS if issubclass(own, kind)), None)
    return [] if kind is None else list(kind.__iter__(thing))


def _attributes(thing: Any) -> list[object]:
    """Return the attributes in an object's `__dict__` and its slots."""
    parts = list(instance_dict(thing).values())
    for kind in class_mro(type(thing)):
        if is_users_class(kind):
            for member in class_dict(kind).values():
                if type(member) is MemberDescriptorType:
                    try:
                        parts.append(member.__get__(thing))
                    except AttributeError:  # not assigned yet
                        continue
    return parts
