"""The contents of an object of the program, however deep, that a handler may reach through it.

Rules
1. A container holds its elements, a dict its keys and values; so do those of classes made of them.
2. An object holds its attributes, and what its class and the classes that this is made of give it,
   as far as they are the user's.
3. No code of the user's is run to find out. What leads back to itself is looked at once.
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

# What a class has, asked of `type` itself: a metaclass may answer for its classes.
class_mro: Any = type.__dict__["__mro__"].__get__
class_dict: Any = type.__dict__["__dict__"].__get__
class_module: Any = type.__dict__["__module__"].__get__


def is_users(function: FunctionType) -> bool:
    """Tell whether a function is the user's own, and no library's."""
    return _is_users_file(function.__code__.co_filename)


def _is_users_file(path: str) -> bool:
    if _INSTALLED & set(Path(path).parts):
        return False
    return not any(path.startswith(f"{own}/") for own in _OWN) and not path.startswith("<frozen")


def is_users_module(module: ModuleType) -> bool:
    """Tell whether a module is the user's own, and no library's."""
    held = instance_dict(module)
    path = held.get("__file__")
    is_main = held.get("__name__") == "__main__"
    return is_main or (isinstance(path, str) and _is_users_file(path))


def instance_dict(thing: object) -> dict[str, Any]:
    """Return the dict that holds an object's attributes; an empty one if it has none."""
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
    """Return what a container holds, without plain data; None if it is none."""
    parts: list[object]
    own = type(thing)  # `isinstance` would ask the object, which may say what it stands for
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
    """Tell whether a container has nothing but what it contains."""
    return type(thing) in _PLAIN_CONTAINERS


def inside(thing: object, *, libraries: bool = True) -> Iterator[object]:
    """Return a thing and all that lies in it, each once; without `libraries`, but for what objects
    of a library's classes hold."""
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
    own = type(thing)  # `isinstance` would ask the object, which may say what it stands for
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
    """Return what an object has in its `__dict__`, and if its class is the user's in its slots."""
    attributes = dict(instance_dict(thing))
    if is_users_class(type(thing)):
        for kind in class_mro(type(thing)):
            for name, member in class_dict(kind).items():
                if type(member) is MemberDescriptorType:
                    try:
                        attributes[name] = member.__get__(thing)
                    except AttributeError:  # nothing was assigned yet
                        continue
    return attributes


def is_users_class(kind: type) -> bool:
    """Tell whether a class is the user's own, and no library's."""
    name = class_module(kind)
    module = sys.modules.get(name) if type(name) is str else None
    if module is None or name == "__main__":
        return True  # of a file that was loaded, or of a notebook
    path = instance_dict(module).get("__file__")
    return isinstance(path, str) and _is_users_file(path)


def _members(kind: type) -> list[object]:
    """Return what a class gives to its objects, as far as it is the user's: functions that have a
    source, those of properties too, and values."""
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
    except PlanError:  # made by a decorator, as those of a dataclass
        return False
    return True
