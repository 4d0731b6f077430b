"""What the names of a handler's text may stand for, as far as states are concerned.

That is states, their methods, functions and objects that may lead to states, and the contents of
containers.

A value is data, or one of these things (`Held.things`), or has them inside, however deep
(`Held.parts`).
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
    """A `NamePlace` is a function, or a comprehension, at one of its calls: what its names hold."""

    names: frozenset[str]
    resolve: Resolve
    parent: NamePlace | None
    """The place that it is written in."""
    held: dict[str, Held] = field(default_factory=dict)
    looked_at: set[str] = field(default_factory=set)
    """The names that were looked at in this walk."""

    def home(self, name: str) -> NamePlace | None:
        if name in self.names:
            return self
        return None if self.parent is None else self.parent.home(name)


@dataclass(frozen=True, slots=True)
class ProgramObject:
    """A `ProgramObject` is one that exists before the run."""

    number: int
    thing: object = field(compare=False)


@dataclass(frozen=True, slots=True)
class StateMethod:
    """A `StateMethod` is `state.get`, `state.add` …"""

    state: State
    name: str


@dataclass(frozen=True, slots=True)
class InnerFunction:
    """An `InnerFunction` is a function, or a lambda, inside of another."""

    node: Scoped
    place: NamePlace


Holdable: TypeAlias = "State | FunctionType | ProgramObject | StateMethod | InnerFunction"
_NONE: frozenset[Holdable] = frozenset()


class Held(NamedTuple):
    """A `Held` says what a value may be, and what may lie in it, however deep."""

    things: frozenset[Holdable] = _NONE
    parts: frozenset[Holdable] = _NONE

    def taken_out(self) -> Held:
        return Held(self.parts, self.parts)


NOTHING = Held()


class StateUses(NamedTuple):
    """`StateUses` are the names of the states that a function reads, and that it writes."""

    reads: frozenset[str]
    writes: frozenset[str]


def either(*held: Held) -> Held:
    return Held(_NONE.union(*(h.things for h in held)), _NONE.union(*(h.parts for h in held)))


def made_of(*held: Held) -> Held:
    return Held(_NONE, _NONE.union(*(h.things | h.parts for h in held)))


def held_of(thing: object) -> Held:
    """Return what an object of the program is, and what lies in it if it is a container."""
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
    """Return what lies in an object whose attributes cannot be told."""
    parts = (held_of(i) for i in inside(thing) if issubclass(type(i), State | FunctionType))
    return made_of(*parts).taken_out()


def attribute_of(thing: object, name: str) -> Held:
    """Return what an attribute of an object is, or all that lies in it if that cannot be told."""
    value = attribute(thing, name)
    return parts_of(thing) if value is DYNAMIC else held_of(value)


def has_field(held: Held, name: str) -> bool:
    """Tell whether a name stands for one part of a value, as of a named tuple."""
    objects = [thing.thing for thing in held.things if isinstance(thing, ProgramObject)]
    values = [attribute(thing, name) for thing in objects]
    return bool(values) and not any(f is DYNAMIC or type(f) is BuiltinMethodType for f in values)


def property_of(thing: object, name: str) -> FunctionType | None:
    """Return the user's function that a property of an object calls."""
    function = getter_of(static_attribute(thing, name))
    return function if type(function) is FunctionType and is_users(function) else None


def is_foreign(function: FunctionType) -> bool:
    """Tell whether a function is a library's that knows no states."""
    return not is_users(function) and function.__module__ != State.__module__


@dataclass(frozen=True, slots=True)
class GivenValues:
    """A `GivenValues` is what a call hands over."""

    plain: tuple[Held, ...] = ()
    named: Mapping[str, Held] = field(default_factory=dict)
    spread: Held = NOTHING
    """What `*` and `**` give, to any argument."""

    def all(self) -> Held:
        return either(self.spread, *self.plain, *self.named.values())

    def to(self, node: Scoped) -> dict[str, Held]:
        """Return what the arguments of a function hold."""
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
