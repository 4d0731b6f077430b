"""Detects changes of a user's operator to attributes outside of its declared state.

A restart makes a new instance, so an undeclared attribute that a call has set or changed would be
lost. Planning finds most of them in the source (`plan/usercode/undeclared_state.py`); this module
finds the rest when the code runs. An attribute that is set is detected after every call. A list, a
dictionary or a user's object that is changed in place can only be detected by comparing all its
contents: that is done for the first `WATCHED_CALLS` of an operator, and up to `MOST_PARTS`.

Nothing here runs the user's code: attributes and elements are read without the methods that a class
may define for that.
"""

from __future__ import annotations

import inspect
from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import cached_property
from types import MemberDescriptorType
from typing import Any, TypeAlias

WATCHED_CALLS = MOST_PARTS = 1000
MadeAttributes: TypeAlias = Mapping[str, "tuple[object, list[object] | None]"]
"""The undeclared attributes of a new instance: each value and, while watched, its parts.

Only values that can be changed in place are watched."""
_MISSING = (object(), None)
_Elements: TypeAlias = Callable[[Any], list[object]]
_ELEMENTS: Mapping[type, _Elements] = {
    dict: lambda value: [*dict.keys(value), *dict.values(value)],
    list: lambda value: list(list.__iter__(value)),
    tuple: lambda value: list(tuple.__iter__(value)),
    set: lambda value: list(set.__iter__(value)),
    deque: lambda value: list(deque.__iter__(value)),
    bytearray: lambda value: [bytes(memoryview(value))],
}


class InstanceChanges:
    """Compares instances of one operator's class with their initial attributes."""

    def __init__(self, implementation: type, declared: Collection[str]) -> None:
        self._class = implementation
        computed = inspect.getmembers_static(
            implementation, lambda member: isinstance(member, cached_property)
        )
        self._ignored = frozenset((*declared, *(name for name, _ in computed)))
        """The attributes that are declared, and those that are computed from others."""
        self._slots = _slots(implementation)
        self._calls = 0
        self._shared = {name: self._parts(value) for name, value in self._class_values()}

    def initial_attributes(self, instance: object) -> MadeAttributes:
        """Return the undeclared attributes of a new instance."""
        watches = self._calls < WATCHED_CALLS
        return {
            name: (value, self._parts(value) if watches else None)
            for name, value in _attributes(instance, self._slots).items()
            if name not in self._ignored
        }

    def changed(self, instance: object, initial: MadeAttributes) -> tuple[str, str] | None:
        """Return the name of an attribute that has changed, and how; None if there is none."""
        present, ignored = _attributes(instance, self._slots), self._ignored
        for name, value in present.items():
            if name not in ignored and initial.get(name, _MISSING)[0] is not value:
                return name, "sets"
        for name in initial:
            if name not in present:
                return name, "deletes"
        if self._calls < WATCHED_CALLS:
            self._calls += 1
            return self._changed_inside(initial)
        return None

    def _changed_inside(self, initial: MadeAttributes) -> tuple[str, str] | None:
        for name, (value, parts) in initial.items():
            if parts is not None and not _is_same(parts, self._parts(value)):
                return name, "changes"
        for name, value in self._class_values():
            if not _is_same(self._shared.get(name), self._parts(value)):
                return name, "changes"
        return None

    def _class_values(self) -> Iterator[tuple[str, object]]:
        """Yield the values of the class itself that can be changed in place."""
        for owner in self._class.__mro__[:-1]:
            for name, value in list(owner.__dict__.items()):
                is_own = name not in self._ignored and not name.startswith("__")
                if is_own and _elements_of(value) is not None:
                    yield name, value

    def _parts(self, value: object) -> list[object] | None:
        """List everything in a value that can be changed in place.

        None means that it cannot be changed, or has too many parts."""
        parts: list[object] = []
        todo, seen = [value], set[int]()
        while todo:
            each = todo.pop()
            inside = self._inside(each)
            if inside is None:
                parts.append(each)
            elif id(each) not in seen:
                seen.add(id(each))
                parts += (type(each), len(inside))
                todo += inside
            if len(parts) + len(todo) > MOST_PARTS:
                return None
        return parts if seen else None

    def _inside(self, value: object) -> list[object] | None:
        """List the contents of a container or of a user's object; None for other values."""
        elements = _elements_of(value)
        inside = None if elements is None else elements(value)
        if type(value).__module__ == self._class.__module__ and not issubclass(type(value), type):
            attributes = _attributes(value, _slots(type(value)))
            inside = [*(inside or ()), *attributes.values()]
        return inside


def _elements_of(value: object) -> _Elements | None:
    return next((_ELEMENTS[kind] for kind in type(value).__mro__ if kind in _ELEMENTS), None)


def _slots(cls: type) -> Mapping[str, MemberDescriptorType]:
    return {
        name: member
        for owner in cls.__mro__[:-1]
        for name, member in owner.__dict__.items()
        if isinstance(member, MemberDescriptorType)
    }


def _attributes(
    instance: object, slots: Mapping[str, MemberDescriptorType]
) -> Mapping[str, object]:
    """Return the attributes of the instance itself."""
    try:
        own: Mapping[str, object] = object.__getattribute__(instance, "__dict__")
    except AttributeError:  # it has only slots
        own = {}
    return {**own, **_slot_values(instance, slots)} if slots else own


def _slot_values(
    instance: object, slots: Mapping[str, MemberDescriptorType]
) -> Mapping[str, object]:
    values: dict[str, object] = {}
    for name, member in slots.items():
        try:
            values[name] = member.__get__(instance)
        except AttributeError:  # nothing was assigned to it
            continue
    return values


def _is_same(before: list[object] | None, now: list[object] | None) -> bool:
    if before is None or now is None or len(before) != len(now):
        return before is now
    return all(a is b or _is_equal_plain(a, b) for a, b in zip(before, now, strict=True))


def _is_equal_plain(a: object, b: object) -> bool:
    return type(a) is type(b) and type(a) in (int, bytes) and a == b
