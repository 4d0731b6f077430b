"""Finds what the user's code may touch, without running it.

All branches count, and all of the user's functions that the code mentions, directly or indirectly.

Contract
1. States, emits and parameters count if they are mentioned anywhere, so the answer may be too
   large, never too small. A state that is mentioned in any way except `get` or a merge counts as
   read and written.
2. Forbidden code is refused here, by name: the clock, random numbers, output, hidden code, changes
   of objects outside of the handler (`forbidden_calls.py`, `outside_changes.py`).
3. Functions of libraries are not looked into.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable, Iterable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from threading import local
from types import FunctionType, ModuleType
from typing import Any, TypeAlias

from weir.errors import ScriptError
from weir.handlers.api.app import App
from weir.handlers.api.declarations import MERGES, State
from weir.handlers.api.declared_types import misnamed
from weir.handlers.api.parameters import AppParam, param_app
from weir.handlers.reach.changed_copies import warn_of_changed_copies
from weir.handlers.reach.forbidden_calls import ban_of, ban_of_call, banned_attribute, full_name
from weir.handlers.reach.object_contents import class_module, inside, is_users
from weir.handlers.reach.outside_changes import MUTATORS, SetFlow, check_changes
from weir.handlers.reach.reachable_objects import handles_reached, reachable
from weir.handlers.reach.static_attributes import (
    DYNAMIC,
    attribute,
    is_iterator,
    missing_in_module,
    name_of,
    static_attribute,
)
from weir.handlers.reading.bindings import (
    Mention,
    assigned_names,
    body_of,
    bound_names,
    mentions,
)
from weir.handlers.reading.local_imports import imports_in
from weir.handlers.reading.sources import FunctionSource, SourceFile, source_of

Resolve: TypeAlias = Callable[[str], object]

_CHANGED_KINDS = (list, dict, set, bytearray)
_REMEMBER = frozenset(
    (
        "_hashlib",
        "_blake2",
        "_md5",
        "_sha1",
        "_sha2",
        "_sha256",
        "_sha512",
        "_sha3",
        "_random",
        "random",
        "sqlite3",
        "_sqlite3",
        "_io",
        "socket",
        "_socket",
    )
)
"""Modules of Python's library whose objects change when they are used."""
_DECLARES = frozenset(
    (
        "state",
        "events",
        "on",
        "param",
        "emits",
        "serial",
        "replay",
        "emitted",
        "program",
    )
)


@dataclass(slots=True)
class Touched:
    """What some code may touch."""

    reads: set[str] = field(default_factory=set)
    writes: set[str] = field(default_factory=set)
    emits: set[str] = field(default_factory=set)
    params: set[str] = field(default_factory=set)
    calls: dict[FunctionType, ast.AST] = field(default_factory=dict)
    """The user's functions that are mentioned, each with the node that mentions it."""

    def __bool__(self) -> bool:
        return bool(self.reads or self.writes or self.emits or self.params)

    @property
    def accesses(self) -> bool:
        """Whether it touches more than parameters."""
        return bool(self.reads or self.writes or self.emits)

    def include(self, other: Touched) -> None:
        self.reads |= other.reads
        self.writes |= other.writes
        self.emits |= other.emits
        self.params |= other.params


class Reach:
    """Finds what functions of one app may touch, and caches the answers."""

    def __init__(self, app: App) -> None:
        self.app = app
        self._own: dict[FunctionType, Touched] = {}
        self._handles: dict[int, tuple[object, bool]] = {}
        self._sources: dict[FunctionType, FunctionSource] = {}
        self._set_flow = SetFlow(lambda function: (self.source(function), resolver(function)))

    def source(self, function: FunctionType) -> FunctionSource:
        if function not in self._sources:
            self._sources[function] = source_of(function, self.app.imported)
        return self._sources[function]

    def of_function(self, function: FunctionType, *, handler: bool = False) -> Touched:
        """Return what a function may touch, including all that it may call."""
        touched = Touched()
        waiting, seen = [function], {function}
        while waiting:
            one = waiting.pop()
            own = self._of_one(one, handler and one is function)
            touched.include(own)
            new = [f for f in own.calls if f not in seen]
            waiting += new
            seen.update(new)
        return touched

    def of_thing(self, thing: object) -> Touched:
        """Return what an object's functions may touch, and the states inside the object."""
        touched = Touched()
        inner: Any
        for inner in inside(thing):
            own = type(inner)
            if own is FunctionType and is_users(inner):
                touched.include(self.of_function(inner))
            elif issubclass(own, State):
                touched.reads.add(inner.name)
                touched.writes.add(inner.name)
            elif issubclass(own, AppParam):
                touched.params.add(inner._weir_name)
        return touched

    def of_nodes(
        self,
        nodes: Iterable[ast.AST],
        resolve: Resolve,
        file: SourceFile,
        around: frozenset[str],
    ) -> Touched:
        """Return what a part of a function may touch; `around` are the function's variables."""
        own = _Mentioned(self.app, resolve, file).touched(nodes, frozenset(), around)
        for function in own.calls:
            own.include(self.of_function(function))
        return own

    def _of_one(self, function: FunctionType, handler: bool) -> Touched:
        if function not in self._own:
            source = self.source(function)
            resolve = resolver(function)
            walk = _Mentioned(self.app, resolve, source.file)
            bound = bound_names(source.node)
            self._own[function] = Touched()  # for functions that call each other
            self._own[function] = walk.touched(body_of(source.node), bound)
            check_changes(function, self._set_flow)
            warn_of_changed_copies(self.app, source, resolve)
        return self._own[function]

    def check_kept(self, function: FunctionType) -> None:
        """Refuse a function that reaches an object with a memory of its own, however it is used."""
        source = self.source(function)
        for thing in reachable(function):
            own = type(thing)
            remembers = class_module(own) in _REMEMBER or issubclass(own, ContextVar | local)
            if remembers or is_iterator(thing):
                raise source.file.error(
                    f"`{function.__name__}` reaches a `{name_of(own)}` that lives outside of "
                    "it: its results depend on what ran before",
                    source.node,
                    "make it inside of the handler; keep what a handler remembers in states",
                )

    def has_handles(self, thing: object) -> bool:
        """Tell whether code that has a thing could touch states of the app, or emit."""
        if id(thing) not in self._handles:
            states, has_app = handles_reached(thing)
            self._handles[id(thing)] = thing, bool(states) or has_app
        return self._handles[id(thing)][1]


def resolver(function: FunctionType) -> Resolve:
    """Return a function that resolves the names that a function does not bind itself."""
    cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    closure = dict(cells)
    built_in = function.__globals__.get("__builtins__", {})
    names = vars(built_in) if isinstance(built_in, ModuleType) else built_in

    def resolve(name: str) -> object:
        if name in closure:
            try:
                value: object = closure[name].cell_contents
            except ValueError:  # not assigned yet
                return DYNAMIC
            return value
        return function.__globals__.get(name, names.get(name, DYNAMIC))

    return resolve


class _Mentioned:
    """Walks the code of one function and notes what it mentions."""

    def __init__(self, app: App, resolve: Resolve, file: SourceFile) -> None:
        self._app, self._resolve, self._file = app, resolve, file
        self._found = Touched()
        self._containers: dict[ast.AST, str] = {}
        self._own_names: frozenset[str] = frozenset()
        """Variables of the function and of functions inside it."""

    def touched(
        self,
        nodes: Iterable[ast.AST],
        bound: frozenset[str],
        around: frozenset[str] = frozenset(),
    ) -> Touched:
        nodes = list(nodes)
        inner = (n for node in nodes for n in ast.walk(node))
        functions = (n for n in inner if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef))
        self._own_names = bound.union(around, *map(bound_names, functions), assigned_names(nodes))
        for node in nodes:
            self._refuse_statements(node)
            self._containers |= _used_as_containers(node)
            for mention in mentions([node], bound):
                self._mention(mention)
        self._check_imported(nodes)
        return self._found

    def _check_imported(self, nodes: Sequence[ast.AST]) -> None:
        """Refuse imports in the code of things that no handler may use."""
        things = imports_in(nodes, self._file)
        if not things:
            return
        inner = (n for node in nodes for n in ast.walk(node))
        functions = [n for n in inner if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)]
        for scope in (nodes, *map(body_of, functions)):
            for mention in mentions(scope):
                if mention.name in things:
                    self._check_path(things[mention.name], mention)

    def _check_path(self, thing: object, mention: Mention) -> None:
        written, rest = mention.name, mention.attributes
        self._check_ban(thing, written, mention)
        while rest and (inner := attribute(thing, rest[0])) is not DYNAMIC:
            thing, written, rest = inner, f"{written}.{rest[0]}", rest[1:]
            self._check_ban(thing, written, mention)
        if not isinstance(mention.node, ast.Name):
            self._check_change(thing, rest, mention)

    def _error(self, message: str, node: ast.AST, hint: str = "") -> ScriptError:
        return self._file.error(message, node, hint)

    def _refuse_statements(self, root: ast.AST) -> None:
        for node in ast.walk(root):
            ban = banned_attribute(node)
            if ban is not None:
                raise self._error(f"`{ast.unparse(node)[:40]}` {ban.why}", node, ban.hint)
            match node:
                case ast.Global(names=names):
                    raise self._outside(f"global {', '.join(names)}", node)
                case ast.Nonlocal(names=names) if not set(names) <= self._own_names:
                    raise self._outside(f"nonlocal {', '.join(names)}", node)

    def _outside(self, what: str, node: ast.AST) -> ScriptError:
        message = f"`{what}` changes what lives outside of the handler"
        return self._error(message, node, "keep what a handler remembers in a state: app.state(…)")

    def _mention(self, mention: Mention) -> None:
        thing: Any = self._resolve(mention.name)
        rest = mention.attributes
        written = mention.name
        while rest and not issubclass(type(thing), App | State | AppParam) and thing is not DYNAMIC:
            self._check_ban(thing, written, mention)
            inner = attribute(thing, rest[0])
            if inner is DYNAMIC:
                if type(thing) is ModuleType:
                    message, hint = missing_in_module(thing, rest[0])
                    raise self._error(message, mention.node, hint)
                break
            thing, written, rest = inner, f"{written}.{rest[0]}", rest[1:]
        if issubclass(type(thing), AppParam) and rest and rest[0] == "value":
            message = f"`{written}.value`: in a handler, a parameter is its plain value"
            raise self._error(message, mention.node, f"write `{written}`")
        if issubclass(type(thing), State) and not rest and mention.node in self._containers:
            message = f"the state `{written}` {self._containers[mention.node]}"
            hint = (
                f"{written}.get(key) reads a cell; {written}.add(key, x), .set(key, x), … change it"
            )
            raise self._error(message, mention.node, hint)
        if thing is not DYNAMIC:
            self._check_ban(thing, written, mention)
            self._check_change(thing, rest, mention)
            self._touch(thing, rest, mention)

    def _check_ban(self, thing: object, written: str, mention: Mention) -> None:
        banned = ban_of(thing, written)
        banned = banned or ban_of_call(thing, written, mention.call)
        if banned is not None:
            name, ban = banned
            shown = f"{name}()" if mention.call is not None else name
            raise self._error(f"`{shown}` {ban.why}", mention.node, ban.hint)

    def _check_held(self, thing: object, mention: Mention) -> None:
        """Refuse forbidden things inside a mentioned object, which may be called by other names."""
        banned = ban_of(thing, str(full_name(thing)))
        if banned is not None:
            name, ban = banned
            message = f"`{mention.name}` holds `{name}`, which {ban.why}"
            raise self._error(message, mention.node, ban.hint)

    def _check_change(self, thing: object, rest: tuple[str, ...], mention: Mention) -> None:
        """Refuse a change of anything but a variable of the function."""
        if is_iterator(thing):
            raise self._error(
                f"`{mention.name}` is an iterator, which lives outside of the handler: what it "
                "gives depends on what ran before",
                mention.node,
                "keep what a handler remembers in a state: app.state(…)",
            )
        by_method = (
            mention.call is not None
            and len(rest) == 1
            and rest[0] in MUTATORS
            and issubclass(type(thing), _CHANGED_KINDS)
        )
        in_cache = (
            mention.call is not None
            and len(rest) == 2
            and rest[1] in MUTATORS
            and issubclass(type(static_attribute(thing, rest[0])), functools.cached_property)
        )
        if mention.stored or by_method or in_cache:
            of_method = by_method or in_cache
            what = ".".join((mention.name, *mention.attributes[: -1 if of_method else None]))
            raise self._error(
                f"`{what}` is changed, and lives outside of the handler",
                mention.node,
                "keep what a handler remembers in a state: app.state(…)",
            )

    # --- what is touched ------------------------------------------------------------------

    def _touch(self, thing: Any, rest: tuple[str, ...], mention: Mention) -> None:
        own = type(thing)
        if issubclass(own, State):
            self._state(thing, rest, mention)
        elif issubclass(own, App):
            self._of_app(thing, rest, mention)
        elif issubclass(own, AppParam):
            self._check_app(param_app(thing), f"the parameter `{mention.name}`", mention)
            self._found.params.add(thing._weir_name)
        else:
            for inner in inside(thing):
                self._inner(inner, mention)
            for inner in inside(thing, libraries=False):
                self._check_held(inner, mention)

    def _inner(self, thing: Any, mention: Mention) -> None:
        """Note the contents of a mentioned function, class, tuple or object."""
        own = type(thing)
        if issubclass(own, State):
            self._state(thing, (), mention)
        elif issubclass(own, App):
            self._found.emits.update(thing.emit_declarations)
        elif issubclass(own, AppParam):
            self._found.params.add(thing._weir_name)
        elif own is FunctionType and is_users(thing):
            self._found.calls.setdefault(thing, mention.node)

    def _state(self, state: State, rest: tuple[str, ...], mention: Mention) -> None:
        self._check_app(state.app, f"the state `{state.name}`", mention)
        method = rest[0] if rest and mention.call is not None else ""
        if method not in MERGES:
            self._found.reads.add(state.name)
        if method != "get":
            self._found.writes.add(state.name)

    def _of_app(self, app: App, rest: tuple[str, ...], mention: Mention) -> None:
        if app is not self._app:
            message = (
                f"`{mention.name}` is the app `{app.name}`, the handler's is `{self._app.name}`"
            )
            raise self._error(message, mention.node)
        if rest and rest[0] in _DECLARES:
            message = f"app.{rest[0]}() inside of a handler"
            raise self._error(message, mention.node, "declare it outside, once")
        if rest and rest[0] == "emit":
            self._found.emits.add(self._emitted(mention))
        elif not rest:  # code that gets the app may emit all declared streams
            self._found.emits.update(app.emit_declarations)

    def _emitted(self, mention: Mention) -> str:
        match mention.call:
            case ast.Call(args=[ast.Constant(value=str(name)), *_]):
                if told := misnamed("an emitted stream", name):
                    raise self._error(told, mention.node, "it is a file's name: as in 'spam_2'")
                return name
        hint = 'app.emit("spam", message=e.id)'
        raise self._error("app.emit() takes the name of its stream as a text", mention.node, hint)

    def _check_app(self, app: App, what: str, mention: Mention) -> None:
        if app is not self._app:
            message = f"{what} belongs to the app `{app.name}`, the handler to `{self._app.name}`"
            raise self._error(
                message, mention.node, "app.emitted(…) of one app may be events of another"
            )


def _used_as_containers(root: ast.AST) -> dict[ast.AST, str]:
    """Return the names that are used like a dict, with the reason why a state cannot be."""
    problems: dict[ast.AST, str] = {}
    for node in ast.walk(root):
        match node:
            case ast.Subscript(value=of):
                problems[of] = problems[node] = "has no items"
            case ast.For(iter=of) | ast.comprehension(iter=of):
                problems[of] = "cannot be iterated over: only cells with a known key are read"
            case ast.Compare(ops=[ast.In() | ast.NotIn()], comparators=[of]):
                problems[of] = "has no set of keys: every key has a cell, at first with the default"
    return problems
