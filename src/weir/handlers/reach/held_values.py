"""What the names in a handler's text may stand for, as far as states are concerned.

Only these matter: states, their methods, functions and objects that may lead to states, and
containers of such things. A value may be data, or one of these things (`Held.things`), or contain
them at any depth (`Held.parts`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import BuiltinMethodType, FunctionType, MethodType
from typing import Any, NamedTuple, TypeAlias

from weir.handlers.api.app import App
from weir.handlers.api.declarations import State
from weir.handlers.api.parameters import AppParam
from weir.handlers.reach.code_reach import Resolve
from weir.handlers.reach.object_contents import contained, inside, is_plain_container, is_users
from weir.handlers.reach.static_attributes import DYNAMIC, attribute, getter_of, static_attribute
from weir.handlers.reading.bindings import Scoped

_PLAIN = (bool, int, float, complex, str, bytes, type(None), AppParam, App)


@dataclass(eq=False, slots=True)
class NamePlace:
    """A function or a comprehension at one of its calls, with what its names hold."""

    names: frozenset[str]
    resolve: Resolve
    parent: NamePlace | None
    """The place around it in the source."""
    held: dict[str, Held] = field(default_factory=dict)
    looked_at: set[str] = field(default_factory=set)
    """The names that were looked up in this walk."""

    def home(self, name: str) -> NamePlace | None:
        if name in self.names:
            return self
        return None if self.parent is None else self.parent.home(name)


@dataclass(frozen=True, slots=True)
class ProgramObject:
    """An object that exists before the run."""

    number: int
    thing: object = field(compare=False)


@dataclass(frozen=True, slots=True)
class StateMethod:
    """A method of a state, such as `state.get` or `state.add`."""

    state: State
    name: str


@dataclass(frozen=True, slots=True)
class InnerFunction:
    """A function or lambda inside another function."""

    node: Scoped
    place: NamePlace


Holdable: TypeAlias = "State | FunctionType | ProgramObject | StateMethod | InnerFunction"
_NONE: frozenset[Holdable] = frozenset()


class Held(NamedTuple):
    """What a value may be, and what it may contain at any depth."""

    things: frozenset[Holdable] = _NONE
    parts: frozenset[Holdable] = _NONE

    def taken_out(self) -> Held:
        return Held(self.parts, self.parts)


NOTHING = Held()


class StateUses(NamedTuple):
    """The names of the states that a function reads, and of those that it writes."""

    reads: frozenset[str]
    writes: frozenset[str]


def either(*held: Held) -> Held:
    return Held(_NONE.union(*(h.things for h in held)), _NONE.union(*(h.parts for h in held)))


def made_of(*held: Held) -> Held:
    return Held(_NONE, _NONE.union(*(h.things | h.parts for h in held)))


def held_of(thing: object) -> Held:
    """Return what an object of the program is, and its contents if it is a container."""
    waiting = contained(thing)
    if waiting is None:
        return Held(_itself(thing))
    parts: set[Holdable] = set()
    seen = {id(thing)}
    while waiting:
        part = waiting.pop()
        if id(part) not in seen:
            seen.add(id(part))
            waiting += contained(part) or ()
            parts |= _itself(part)
    return Held(_itself(thing), frozenset(parts))


def _itself(thing: Any) -> frozenset[Holdable]:
    own = type(thing)
    if thing is DYNAMIC or issubclass(own, _PLAIN) or is_plain_container(thing):
        return _NONE
    if issubclass(own, State) or (own is FunctionType and is_users(thing)):
        return frozenset((thing,))
    if own is MethodType and issubclass(type(thing.__self__), State):
        return frozenset((StateMethod(thing.__self__, thing.__name__),))
    return frozenset((ProgramObject(id(thing), thing),))


def parts_of(thing: object) -> Held:
    """Return the contents of an object whose attributes cannot be determined."""
    parts = (held_of(i) for i in inside(thing) if issubclass(type(i), State | FunctionType))
    return made_of(*parts).taken_out()


def attribute_of(thing: object, name: str) -> Held:
    """Return an attribute of an object, or all its contents if that cannot be determined."""
    value = attribute(thing, name)
    return parts_of(thing) if value is DYNAMIC else held_of(value)


def has_field(held: Held, name: str) -> bool:
    """Tell whether a name stands for one part of a value, such as a field of a named tuple."""
    objects = [thing.thing for thing in held.things if isinstance(thing, ProgramObject)]
    values = [attribute(thing, name) for thing in objects]
    return bool(values) and not any(f is DYNAMIC or type(f) is BuiltinMethodType for f in values)


def property_of(thing: object, name: str) -> FunctionType | None:
    """Return the user's function that a property of an object calls, or None."""
    function = getter_of(static_attribute(thing, name))
    return function if type(function) is FunctionType and is_users(function) else None


def is_foreign(function: FunctionType) -> bool:
    """Tell whether a function belongs to a library that knows no states."""
    return not is_users(function) and function.__module__ != State.__module__


@dataclass(frozen=True, slots=True)
class GivenValues:
    """The arguments of a call."""

    plain: tuple[Held, ...] = ()
    named: Mapping[str, Held] = field(default_factory=dict)
    spread: Held = NOTHING
    """The contents of `*` and `**` arguments, which any parameter may get."""

    def all(self) -> Held:
        return either(self.spread, *self.plain, *self.named.values())

    def to(self, node: Scoped) -> dict[str, Held]:
        """Return what the parameters of a function hold."""
        plain = [a.arg for a in (*node.args.posonlyargs, *node.args.args)]
        names = [*plain, *(a.arg for a in node.args.kwonlyargs)]
        arguments = {name: either(self.spread, self.named.get(name, NOTHING)) for name in names}
        for name, held in zip(plain, self.plain, strict=False):
            arguments[name] = either(arguments[name], held)
        if node.args.vararg is not None:
            arguments[node.args.vararg.arg] = made_of(self.spread, *self.plain[len(plain) :])
        if node.args.kwarg is not None:
            rest = [held for name, held in self.named.items() if name not in names]
            arguments[node.args.kwarg.arg] = made_of(self.spread, *rest)
        return arguments
