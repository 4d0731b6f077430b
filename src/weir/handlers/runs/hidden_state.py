"""Checks that handlers do not change objects that live outside of them.

The answers of a handler that remembers something in a global, a closure, an attribute or a default
would depend on what ran before it in its process: on partitions, batches and restarts. Changes that
are visible in the text are refused before the run (`code_reach.py`, `outside_changes.py`). The
others are found here: fingerprints of all objects that handlers reach are taken before the first
event, and compared from time to time and when a run ends.

The value of a `cached_property` may appear during the run; from the first check on it must stay the
same.

Not checked are other caches (`functools.lru_cache`, those of enums and of `singledispatch`), whose
contents follow from their arguments; C objects that cannot be pickled; and the middle of containers
with more than `LARGE` entries.
"""

from __future__ import annotations

import enum
import functools
import io
import pickle
import weakref
from collections.abc import Iterator
from hashlib import blake2b
from types import FunctionType, ModuleType
from typing import Any

from weir.errors import RunError
from weir.handlers.api.app import App
from weir.handlers.api.declarations import EventType, State
from weir.handlers.api.parameters import AppParam
from weir.handlers.reach.object_contents import (
    attributes_of,
    class_dict,
    class_module,
    class_mro,
    instance_dict,
    is_users,
    is_users_class,
)
from weir.handlers.reach.reachable_objects import named_globals, reachable
from weir.handlers.reach.static_attributes import hides_its_class, name_of

LARGE = 100_000
"""The most entries of a container that are compared in full; of a larger one, only the ends are."""
_ENDS = 100
_OPAQUE = (FunctionType, ModuleType, type, App, State, EventType, AppParam, weakref.ref)


class KeptObjects:
    """Takes fingerprints of what an app's handlers reach; `check` finds changes."""

    def __init__(self, *functions: object) -> None:
        self._functions = functions
        self._before = self._fingerprints()
        self._looks = 0
        self._next = 1

    def look(self) -> None:
        """Check after the first, second, fourth, eighth … time that this is called."""
        self._looks += 1
        if self._looks == self._next:
            self._next *= 2
            self.check()

    def check(self) -> None:
        """Raise RunError if an object outside of the handlers has changed."""
        for (name, holder), fingerprint in self._fingerprints().items():
            if self._before.setdefault((name, holder), fingerprint) != fingerprint:
                error = RunError(
                    f"a handler has changed {name}, which lives outside of it"
                    f"{self._where(holder)}: later results would depend on partitions and "
                    "restarts. Keep what a handler remembers in a state: app.state(…)"
                )
                error.is_guard = True
                raise error

    def _where(self, holder: int) -> str:
        """Return a hint which function uses the changed object, or ''."""
        for thing in reachable(*self._functions):
            if id(thing) == holder and type(thing) is FunctionType:
                code = thing.__code__
                return f" (see {thing.__qualname__}, {code.co_filename}:{code.co_firstlineno})"
        return ""

    def _fingerprints(self) -> dict[tuple[str, int], bytes]:
        return {
            (name, id(holder)): _fingerprint(value)
            for holder in reachable(*self._functions)
            for name, value in _kept(holder)
        }


def _kept(thing: Any) -> Iterator[tuple[str, object]]:
    """Yield the things that a function, a class or an object keeps, each with a description."""
    if type(thing) is FunctionType:
        where = f"of `{thing.__qualname__}`"
        if is_users(thing):
            for name, value in named_globals(thing):
                yield f"the global `{name}`", value
            for number, default in enumerate(thing.__defaults__ or ()):
                yield f"the default argument {number + 1} {where}", default
            for name, default in (thing.__kwdefaults__ or {}).items():
                yield f"the default argument `{name}` {where}", default
            for name, cell in zip(thing.__code__.co_freevars, thing.__closure__ or (), strict=True):
                try:
                    yield (
                        f"the variable `{name}` around `{thing.__qualname__}`",
                        cell.cell_contents,
                    )
                except ValueError:  # not assigned yet
                    continue
            yield f"what attributes `{thing.__qualname__}` has", list(thing.__dict__)
            for name, value in thing.__dict__.items():
                yield f"the attribute `{name}` {where}", value
    elif issubclass(type(thing), type) and is_users_class(thing):
        is_enum = issubclass(thing, enum.Enum)
        names = [
            n for n in class_dict(thing) if not (_is_of_enums(n) if is_enum else n[:2] == "__")
        ]
        yield f"what attributes the class `{name_of(thing)}` has", names
        for name in names:
            yield f"the attribute `{name}` of the class `{name_of(thing)}`", class_dict(thing)[name]
    elif issubclass(type(thing), enum.Enum):
        held = {n: value for n, value in instance_dict(thing).items() if not _is_of_enums(n)}
        yield f"the attributes of a `{name_of(type(thing))}`", held
    else:
        kind: Any = type(thing)
        held = instance_dict(thing)
        for name in _cached_names(kind) & held.keys():
            yield f"what `{name}` of a `{name_of(kind)}` keeps", held[name]


def _is_of_enums(name: str) -> bool:
    """Tell whether an attribute of an enum or of its member is Python's own, such as a cache."""
    return name.startswith("_") and name.endswith("_")


def _fingerprint(value: object) -> bytes:
    buffer = io.BytesIO()
    try:
        _Kept(buffer, protocol=5).dump(value)
    except RecursionError:
        return b"too deep"
    return blake2b(buffer.getbuffer(), digest_size=16).digest()


class _Kept(pickle.Pickler):
    """Writes the contents of an object; for what is not data, its identity."""

    def persistent_id(self, obj: Any) -> object:
        # Called for every object; one without contents is identified by its address.
        kind = type(obj)
        if kind in _PLAIN or kind is functools.partial:  # which holds its arguments
            return None
        if issubclass(kind, _OPAQUE) or class_module(kind) in ("weakref", "_weakref", "functools"):
            return id(obj)
        if kind in (dict, list, set, frozenset, tuple) and len(obj) > LARGE:
            return _ends(obj)
        return None

    def reducer_override(self, obj: Any) -> Any:
        kind: Any = type(obj)
        cached = _cached_names(kind)
        if cached:
            held = attributes_of(obj)
            kept = {name: value for name, value in held.items() if name not in cached}
            return _told, (id(kind), kept)
        if not hides_its_class(obj):
            try:
                parts = obj.__reduce_ex__(5)
            except Exception:  # not picklable: a lock, a match, or an error in the user's class
                parts = None
            if type(parts) is tuple:
                return parts
        return _told, (id(obj), attributes_of(obj))


_PLAIN = frozenset((int, float, str, bytes, bool, type(None)))


def _told(*parts: object) -> None:
    """Takes the place of an object's constructor; the pickle is never read."""


def _ends(container: Any) -> tuple[int, int, str]:
    """Return the identity of a large container: its address, its length and its ends."""
    if isinstance(container, dict):
        items = list(container.items())
        ends = [*items[:_ENDS], *items[-_ENDS:]]
    elif isinstance(container, list | tuple):
        ends = [*container[:_ENDS], *container[-_ENDS:]]
    else:
        ends = []
    return id(container), len(container), repr(ends)


@functools.lru_cache(maxsize=1000)
def _cached_names(kind: Any) -> frozenset[str]:
    """Return the names of a class's cached properties."""
    return frozenset(
        name
        for base in class_mro(kind)
        for name, part in class_dict(base).items()
        if issubclass(type(part), functools.cached_property)
    )
