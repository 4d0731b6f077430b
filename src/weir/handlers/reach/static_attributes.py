"""Looks up attributes of the program's objects without running the user's code.

To look up an attribute, Python calls methods of classes: `__getattribute__`, `__getattr__`,
properties and other descriptors, also those of metaclasses. Here the dicts of an object and of its
classes are read instead, in Python's order. The result is DYNAMIC if only the user's code could
compute it.
"""

from __future__ import annotations

import functools
import weakref
from enum import EnumMeta
from types import (
    FunctionType,
    MethodType,
    ModuleType,
    WrapperDescriptorType,
)
from typing import Any

from weir.handlers.api.app import App
from weir.handlers.api.declarations import State
from weir.handlers.api.parameters import AppParam
from weir.handlers.reach.object_contents import (
    class_dict,
    class_module,
    class_mro,
    instance_dict,
    is_users_class,
    is_users_module,
)

DYNAMIC = object()
"""A value that analysis cannot know before the run, such as that of a local variable or property.
"""

_class_name: Any = class_dict(type)["__qualname__"].__get__
_PROXIES = (weakref.ProxyType, weakref.CallableProxyType)


class HiddenObject:
    """Wraps an object of the user's whose class must not be looked up: that would run its code."""

    def __init__(self, thing: object) -> None:
        self.thing = thing


_UNASKED = (App, State, AppParam, HiddenObject, *_PROXIES)


def attribute(thing: object, name: str) -> object:
    """Return `thing.name` if that needs no code of the user's; else DYNAMIC."""
    own = type(thing)
    if issubclass(own, _UNASKED):
        return DYNAMIC
    if own is ModuleType:
        return _of_module(thing, name)
    if issubclass(own, super):
        return _of_super(thing, name)
    if not _looks_up_plainly(own):
        return DYNAMIC
    if issubclass(own, type):
        return _of_class(thing, name)
    if class_module(own) == "builtins":
        return DYNAMIC
    base, member = _in_classes(class_mro(own), name)
    if base is not None and _is_data_descriptor(member):
        return _bound(base, member, thing, own)
    held = instance_dict(thing).get(name, DYNAMIC)
    if held is not DYNAMIC or base is None:
        return held
    return _bound(base, member, thing, own)


def static_attribute(thing: object, name: str) -> object:
    """Return what an object or its class has under a name; a property is not called.

    DYNAMIC if that is unknown.
    """
    own = type(thing)
    if issubclass(own, HiddenObject):
        return DYNAMIC
    if issubclass(own, type):
        _, member = _in_classes((*class_mro(thing), *class_mro(own)), name)
        return member
    base, member = _in_classes(class_mro(own), name)
    if base is not None and _is_data_descriptor(member):
        return member
    return instance_dict(thing).get(name, member)


def name_of(thing: object) -> str:
    """Return the name for messages of a function, a class, or an object (by its class)."""
    if isinstance(thing, HiddenObject):
        return name_of(type(thing.thing))
    if issubclass(type(thing), type):
        return str(_class_name(thing))
    name = attribute(thing, "__qualname__")
    if type(thing) is FunctionType or type(thing) is MethodType:
        name = thing.__qualname__
    return name if isinstance(name, str) else name_of(type(thing))


def is_iterator(thing: object) -> bool:
    """Tell whether an object is an iterator, by its class."""
    return _has(thing, "__iter__") and _has(thing, "__next__")


def getter_of(member: Any) -> object:
    """Return the function of a property; None if it is not a property."""
    if issubclass(type(member), property):
        return class_dict(property)["fget"].__get__(member)
    if issubclass(type(member), functools.cached_property):
        return instance_dict(member).get("func")
    return None


def hides_its_class(thing: object) -> bool:
    """Tell whether `isinstance` would run code of the user's on an object."""
    own = type(thing)
    base, _ = _in_classes(class_mro(own), "__class__")
    return issubclass(own, _PROXIES) or base is not object or not _looks_up_plainly(own)


def missing_in_module(module: object, name: str) -> tuple[str, str]:
    """Return why a module does not have an attribute before the run, and what to do."""
    held = instance_dict(module)
    shown = held.get("__name__")
    if "__getattr__" in held:
        why = f"`{name}` of the module `{shown}` is what its `__getattr__` gives at the time"
        return why, f"give it a name outside of the handler: {name} = {shown}.{name}"
    return f"the module `{shown}` has no `{name}`", ""


def _of_module(module: Any, name: str) -> object:
    held = instance_dict(module)
    if name in held or is_users_module(module):
        return held.get(name, DYNAMIC)
    return getattr(module, name, DYNAMIC)  # this may import it, which runs code of a library


def _of_class(cls: Any, name: str) -> object:
    meta = type(cls)
    meta_base, meta_found = _in_classes(class_mro(meta), name)
    if meta_base is not None and _is_data_descriptor(meta_found):
        return _bound(meta_base, meta_found, cls, meta)
    if issubclass(meta, EnumMeta):
        members = class_dict(cls).get("_member_map_", {})
        if name in members:
            member: object = members[name]
            return member
    base, found = _in_classes(class_mro(cls), name)
    if base is not None:
        return _bound(base, found, None, cls)
    return DYNAMIC if meta_base is None else _bound(meta_base, meta_found, cls, meta)


def _of_super(thing: object, name: str) -> object:
    start, of, kind = (
        super.__dict__[part].__get__(thing)
        for part in ("__thisclass__", "__self__", "__self_class__")
    )
    if kind is None:
        return DYNAMIC
    mro = class_mro(kind)
    after = next(n for n, cls in enumerate(mro, 1) if cls is start)
    base, found = _in_classes(mro[after:], name)
    return DYNAMIC if base is None else _bound(base, found, None if of is kind else of, kind)


def _looks_up_plainly(kind: type) -> bool:
    """Tell whether a class uses Python's own attribute lookup first."""
    _, found = _in_classes(class_mro(kind), "__getattribute__")
    return type(found) is WrapperDescriptorType


def _in_classes(classes: tuple[type, ...], name: str) -> tuple[type | None, object]:
    """Return the first class that has a name, and what it has there."""
    for kind in classes:
        held = class_dict(kind)
        if name in held:
            return kind, held[name]
    return None, DYNAMIC


def _has(thing: object, name: str) -> bool:
    return _in_classes(class_mro(type(thing)), name)[0] is not None


def _is_data_descriptor(found: object) -> bool:
    return _has(found, "__get__") and (_has(found, "__set__") or _has(found, "__delete__"))


def _bound(base: type, found: Any, thing: object, owner: object) -> object:
    """Return the value of a class's attribute on an object, or (None) on the class."""
    kind = type(found)
    _, getter = _in_classes(class_mro(kind), "__get__")
    if getter is DYNAMIC:
        return found
    if issubclass(kind, property | functools.cached_property):
        return found if thing is None and not is_users_class(kind) else DYNAMIC
    if kind is FunctionType:
        return found if thing is None else MethodType(found, thing)
    if kind is classmethod and type(found.__func__) is not FunctionType:
        return DYNAMIC
    is_library = not is_users_class(base) and not is_users_class(kind)
    is_partial = kind is functools.partialmethod and type(found.func) is FunctionType
    if type(getter) is WrapperDescriptorType or is_partial or is_library:
        try:
            return kind.__get__(found, thing, owner)  # a descriptor of CPython, or of a library
        except Exception:  # not assigned yet, or not for this object
            return DYNAMIC
    return DYNAMIC
