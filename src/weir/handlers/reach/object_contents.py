"""The contents, at any depth, of an object that a handler may reach through it.

Rules
1. A container holds its elements, a dict its keys and values. That includes subclasses of
   containers.
2. An object holds its attributes, and the members of its class and base classes that are the
   user's.
3. None of the user's code is run to find out. An object in a cycle is visited once.
"""

from __future__ import annotations

import functools
import sys
import sysconfig
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from types import (
    FunctionType,
    GetSetDescriptorType,
    MappingProxyType,
    MemberDescriptorType,
    MethodType,
    ModuleType,
)
from typing import Any

import weir
from weir.errors import PlanError
from weir.handlers.api.app import App
from weir.handlers.api.declarations import EventType, State
from weir.handlers.api.parameters import AppParam
from weir.handlers.reading.sources import source_of
from weir.plan.usercode.functions import ScalarFunction

_INSTALLED = frozenset(("site-packages", "dist-packages"))
_OWN = (sysconfig.get_path("stdlib"), str(Path(weir.__file__).parent))
_DATA = (bool, int, float, complex, str, bytes, type(None))
_CONTAINERS = (tuple, list, set, frozenset, deque)
_PLAIN_CONTAINERS = frozenset((dict, MappingProxyType, *_CONTAINERS))
_ENDS = (ModuleType, EventType, State, AppParam, *_DATA)

# Reads a class's attributes through `type`: its metaclass may override the lookup.
class_mro: Any = type.__dict__["__mro__"].__get__
class_dict: Any = type.__dict__["__dict__"].__get__
class_module: Any = type.__dict__["__module__"].__get__


def is_users(function: FunctionType) -> bool:
    """Tell whether a function is the user's own, not a library's."""
    return _is_users_file(function.__code__.co_filename)


def _is_users_file(path: str) -> bool:
    if _INSTALLED & set(Path(path).parts):
        return False
    return not any(path.startswith(f"{own}/") for own in _OWN) and not path.startswith("<frozen")


def is_users_module(module: ModuleType) -> bool:
    """Tell whether a module is the user's own, not a library's."""
    held = instance_dict(module)
    path = held.get("__file__")
    is_main = held.get("__name__") == "__main__"
    return is_main or (isinstance(path, str) and _is_users_file(path))


def instance_dict(thing: object) -> dict[str, Any]:
    """Return the dict of an object's attributes; an empty one if it has none."""
    for kind in class_mro(type(thing)):
        member = class_dict(kind).get("__dict__")
        if type(member) is GetSetDescriptorType or type(member) is MemberDescriptorType:
            try:
                held = member.__get__(thing)
            except AttributeError:
                return {}
            return held if type(held) is dict else {}
    return {}


def contained(thing: object) -> list[object] | None:
    """Return a container's elements, without plain data; None if it is not a container."""
    parts: list[object]
    own = type(thing)  # `isinstance` would ask the object, which may claim another class
    if issubclass(own, dict):
        parts = [*dict.keys(thing), *dict.values(thing)]  # type: ignore[arg-type]
    elif issubclass(own, MappingProxyType):
        parts = [*MappingProxyType.keys(thing), *MappingProxyType.values(thing)]  # type: ignore[arg-type]
    else:
        kind = next((kind for kind in _CONTAINERS if issubclass(own, kind)), None)
        if kind is None:
            return None
        parts = list(kind.__iter__(thing))  # type: ignore[arg-type]
    return [part for part in parts if type(part) not in _DATA]


def is_plain_container(thing: object) -> bool:
    """Tell whether a container has no attributes in addition to its elements."""
    return type(thing) in _PLAIN_CONTAINERS


def inside(thing: object, *, libraries: bool = True) -> Iterator[object]:
    """Yield a thing and everything inside it, each once.

    Without `libraries`, the attributes of objects of library classes are skipped.
    """
    seen: dict[int, object] = {}
    waiting = [thing]
    while waiting:
        one = waiting.pop()
        if id(one) not in seen:
            seen[id(one)] = one
            yield one
            waiting += reversed([p for p in _parts(one, libraries) if type(p) not in _DATA])


def _parts(thing: Any, libraries: bool) -> list[object]:
    if is_plain_container(thing):
        return contained(thing) or []
    own = type(thing)  # `isinstance` would ask the object, which may claim another class
    if issubclass(own, _ENDS):
        return []
    if issubclass(own, App):
        return list(thing.states.values())
    if issubclass(own, MethodType):
        return [thing.__func__, thing.__self__]
    if issubclass(own, functools.partial):
        return [thing.func, *thing.args, *thing.keywords.values()]
    if issubclass(own, ScalarFunction):
        return [thing.function]
    if issubclass(own, type):
        return _members(thing)
    held = attributes_of(thing)
    if "__wrapped__" in held:
        return [held["__wrapped__"]]
    if own is FunctionType:
        return []
    parts = contained(thing) or []
    if is_users_class(own):
        return [*parts, *held.values(), own]
    return [*parts, *held.values()] if libraries else parts


def attributes_of(thing: object) -> dict[str, object]:
    """Return the attributes in an object's `__dict__`; also in slots if its class is the user's."""
    attributes = dict(instance_dict(thing))
    if is_users_class(type(thing)):
        for kind in class_mro(type(thing)):
            for name, member in class_dict(kind).items():
                if type(member) is MemberDescriptorType:
                    try:
                        attributes[name] = member.__get__(thing)
                    except AttributeError:  # not assigned yet
                        continue
    return attributes


def is_users_class(kind: type) -> bool:
    """Tell whether a class is the user's own, not a library's."""
    name = class_module(kind)
    module = sys.modules.get(name) if type(name) is str else None
    if module is None or name == "__main__":
        return True  # from a loaded file, or from a notebook
    path = instance_dict(module).get("__file__")
    return isinstance(path, str) and _is_users_file(path)


def _members(kind: type) -> list[object]:
    """Return what a class gives to its objects, as far as it is the user's.

    These are functions with a source, also of properties, and values.
    """
    functions: list[object] = []
    for base in filter(is_users_class, class_mro(kind)):
        for name, part in class_dict(base).items():
            own = type(part)
            if issubclass(own, staticmethod | classmethod):
                functions.append(part.__func__)
            elif issubclass(own, property):
                functions += (part.fget, part.fset, part.fdel)
            elif issubclass(own, functools.cached_property):
                functions.append(part.func)
            elif own is FunctionType or not name.startswith("__"):
                functions.append(part)
    return [part for part in functions if type(part) is not FunctionType or _is_read(part)]


def _is_read(function: FunctionType) -> bool:
    """Tell whether a function is the user's and has a source."""
    if not is_users(function):
        return False
    try:
        source_of(function)
    except PlanError:  # made by a decorator, such as the methods of a dataclass
        return False
    return True
