"""Runs a handler symbolically: an `Execution`, with its parts in separate modules.

    statements.py    statements → paths
    expressions.py   expressions → symbols
    calls.py         calls: states, emits, helpers (read in their place), listed functions
    opaque_code.py   what is not on the list: visited for accesses, and left to CPython

Contract
1. Constructs on the list (`column_constructs.py`, and the forms that these modules know) become
   trees. Any other becomes an `Opaque`, and the first of these is the reason why the handler runs
   in rows (`why_rows`). In both cases all accesses are noted, in the order in which they may
   happen.
2. `NotListed` says that a construct is not on the list. The statement or expression around it
   catches it, undoes what was noted, and visits the construct as opaque code.
3. `HandleLost` says that analysis lost track of a handle: a state or the app reaches code that is
   not read. Only a serial group can run such a handler.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Protocol

import pyarrow as pa

from weir.errors import ScriptError
from weir.handlers.api.app import App
from weir.handlers.api.declarations import EventType, State
from weir.handlers.reach.code_reach import Reach, Touched
from weir.handlers.reading.column_constructs import is_listed_function, is_plain_constant
from weir.handlers.reading.frames import Conditions, Exits, Frame, Path, all_of
from weir.handlers.reading.symbols import (
    ITERATOR,
    BoundMethod,
    Known,
    LocalFunction,
    OneOf,
    Symbol,
    TheEvent,
    Unusable,
    WrittenOut,
    as_tree,
)
from weir.handlers.trees.accesses import EmitAccess, GetAccess, MergeAccess
from weir.handlers.trees.scope import Scope, has_old
from weir.handlers.trees.static_types import has_no_elements, static_type, type_of
from weir.handlers.trees.tree_walks import walk_tree
from weir.handlers.trees.values import Const, Element, Old, Opaque, ReadValue, Tree
from weir.plan.states import MergeKind


class NotListed(Exception):
    """A construct is not on the list of what becomes columns; the text says which one, and why."""

    def __init__(self, why: str, node: ast.AST) -> None:
        super().__init__(why)
        self.why, self.node = why, node


class HandleLost(Exception):
    """Says why a handler can neither become columns nor run in rows."""

    def __init__(self, why: str, node: ast.AST, frame: Frame, hint: str = "") -> None:
        super().__init__(why)
        self.why, self.node, self.frame, self.hint = why, node, frame, hint

    def error(self) -> ScriptError:
        return self.frame.file.error(self.why, self.node, self.hint)


class Steps(Protocol):
    """The modules that run the parts of a handler."""

    def evaluate(self, run: Execution, frame: Frame, node: ast.expr) -> Symbol: ...

    def visit(self, run: Execution, frame: Frame, node: ast.expr, why: str) -> Symbol: ...

    def call(self, run: Execution, frame: Frame, node: ast.Call) -> Symbol: ...

    def apply(
        self, run: Execution, frame: Frame, callee: Symbol, args: Sequence[Symbol], node: ast.AST
    ) -> Symbol: ...

    def execute(
        self, run: Execution, frame: Frame, body: Sequence[ast.stmt], path: Path
    ) -> Exits: ...

    def escape(self, run: Execution, frame: Frame, symbol: Symbol, node: ast.AST) -> None: ...


@dataclass(frozen=True, slots=True)
class EventLoop:
    """A loop `for x in e.list` with accesses in it."""

    block: int
    over: Tree


@dataclass(frozen=True, slots=True)
class FailingCheck:
    """A value that is evaluated only because it may fail.

    The handler raises it, or computes it and does not use it, or uses it only under a stronger
    condition.
    """

    at: int
    """The number of accesses that come before it."""
    tree: Tree
    node: ast.AST
    loop: EventLoop | None = None


@dataclass(frozen=True, slots=True)
class Evaluated:
    """A value that Python computes where these conditions hold."""

    conditions: Conditions
    tree: Tree
    at: int
    """The number of accesses that come before it."""
    node: ast.AST
    in_merge: bool
    """Whether the function of a merge computes it."""
    loop: EventLoop | None
    """The loop with accesses for whose elements it is computed, or None."""


@dataclass(frozen=True, slots=True)
class RunPoint:
    """A point of a run: how much was noted so far, and a frame's variables."""

    accesses: int
    checks: int
    evaluated: int
    variables: dict[str, Symbol]
    handed_on: frozenset[Tree]


@dataclass(slots=True, eq=False)
class Execution:
    """Runs one handler for one event type."""

    app: App
    event: EventType
    handler: str
    params: Mapping[str, object]
    reach: Reach
    steps: Steps
    accesses: list[GetAccess | MergeAccess | EmitAccess] = field(default_factory=list)
    conditions: Conditions = ()
    """The conditions of the path that is being run."""
    loop: EventLoop | None = None
    blocks: int = 0
    merging: State | None = None
    """The state whose merge function is being run."""
    checks: list[FailingCheck] = field(default_factory=list)
    evaluated: list[Evaluated] = field(default_factory=list)
    stack: list[ast.AST] = field(default_factory=list)
    """The functions that are being run, the innermost last."""
    frames: list[Frame] = field(default_factory=list)
    """The frames of the functions in `stack`."""
    why_rows: str = ""
    """The first construct that is not on the list, with the reason."""
    opaques: int = 0
    """How many opaque values were made, including those that were undone."""
    elements: int = 0
    """How many comprehensions over values and loops in rows there were, including those undone."""
    lists: dict[int, Tree] = field(default_factory=dict)
    """The lists that loops in rows iterate over, by block."""
    handed_on: frozenset[Tree] = frozenset()
    """Values that may have been changed in place by code that is not read."""
    iterated: set[ast.expr] = field(default_factory=set)
    """Expressions that a loop iterates over at once, with their parts."""
    used_up: set[ast.expr] = field(default_factory=set)
    """Generators that a function iterates over at once, and no other code."""
    values: dict[ast.expr, Symbol] = field(default_factory=dict)
    """The symbols of expressions when they were last visited."""
    calls: dict[object, Opaque] = field(default_factory=dict)
    """The results of functions that were called with plain values of the event."""
    parts_of_keys: dict[tuple[int, int], tuple[Opaque, ...]] = field(default_factory=dict)
    """The parts of opaque keys, by the number of the value and the number of parts."""
    repeating: int = 0
    """How many loops, and functions that others call, are being run now."""
    varying_from: int = 0
    """The number of the first opaque value that may differ each time."""
    region: int = 0
    """The number of the last outermost loop, or function that others call."""
    deferring: int = 0
    """How many levels of the code around are run by others, perhaps later."""
    shields: int = 0
    """How many levels of the code around may catch every exception."""
    uses_whole_event: bool = False
    certain: frozenset[ast.AST] = frozenset()
    """The parts of the handler that are evaluated for every event that gets past them."""
    scope: Scope = field(init=False)
    """The types of the leaves of trees."""

    def __post_init__(self) -> None:
        columns = {name: (name, dtype) for name, dtype in self.event.columns}
        self.scope = Scope(fields=columns, answers={}, elements={}, time=self.event.schema.time)

    # --- values ---------------------------------------------------------------------------

    def value(self, frame: Frame, node: ast.expr, *, consumed: bool = False) -> Symbol:
        """Return what an expression stands for; it is opaque if it is not on the list.

        With `consumed`, the caller iterates over it at once, so it may be an iterator. Anywhere
        else code might iterate over it twice, so CPython must run that code.
        """
        if consumed:
            self.iterated.add(node)
        symbol = self.values[node] = self._value(frame, node, consumed=consumed)
        return symbol

    def _value(self, frame: Frame, node: ast.expr, *, consumed: bool) -> Symbol:
        try:
            with self.attempt(frame):
                symbol = self.steps.evaluate(self, frame, node)
                if isinstance(symbol, WrittenOut) and symbol.kind == ITERATOR and not consumed:
                    raise NotListed(f"`{shown(node)}` is an iterator, which is used up", node)
                if isinstance(symbol, Unusable) and not symbol.choices:
                    raise NotListed(f"`{shown(node)}`: {symbol.why}", node)
        except NotListed as reason:
            return self.steps.visit(self, frame, node, reason.why)
        if isinstance(symbol, Unusable):
            self.note_rows(node, f"`{shown(node)}`: {symbol.why}")
            return OneOf(_all_choices(symbol))
        if isinstance(symbol, Tree):
            self.note_evaluated(symbol, node)
        return symbol

    def tree(self, frame: Frame, node: ast.expr) -> Tree:
        """Evaluate an expression that must be data."""
        return self.data(frame, self.value(frame, node), node)

    def data(self, frame: Frame, symbol: Symbol, node: ast.AST) -> Tree:
        """Return a symbol as data; one that cannot be data is passed to code that is not read."""
        if isinstance(symbol, Known) and is_listed_function(symbol.thing):
            return Const(symbol.thing, line=getattr(node, "lineno", 0))
        tree = as_tree(symbol, getattr(node, "lineno", 0))
        if tree is None:
            self.steps.escape(self, frame, symbol, node)
            return self.opaque(node, _not_data(symbol))
        if isinstance(tree, Const) and not is_plain_constant(tree.value):
            self.steps.escape(self, frame, Known(tree.value), node)
            return self.opaque(node, "an object of the program is used as a value")
        return tree

    def opaque(
        self, node: ast.AST, why: str, dtype: pa.DataType | None = None, *, is_exact: bool = True
    ) -> Opaque:
        """Return a value that only CPython can compute, and note why."""
        self.note_rows(node, why)
        self.opaques += 1
        if dtype is not None and has_no_elements(dtype):
            dtype = None  # its elements are unknown
        return Opaque(self.opaques, dtype, is_exact, line=getattr(node, "lineno", 0))

    def key_parts(self, key: Opaque, count: int, node: ast.AST) -> tuple[Opaque, ...]:
        """Return the parts of a key that only CPython can compute.

        A key with several parts is a tuple.
        """
        if count == 1:
            return (key,)
        which = key.number, count
        if which not in self.parts_of_keys:
            self.parts_of_keys[which] = tuple(
                self.opaque(node, "a key is a tuple that Python computes") for _ in range(count)
            )
        return self.parts_of_keys[which]

    def note_rows(self, node: ast.AST, why: str) -> None:
        """Note why the handler does not run in columns."""
        if not self.why_rows:
            line = getattr(node, "lineno", 0)
            self.why_rows = f"line {line}: {why}" if line else why

    def type_of(self, symbol: Symbol | None) -> pa.DataType | None:
        """Return the type of a column that can hold a value, if it is known."""
        tree = None if symbol is None else as_tree(symbol)
        return None if tree is None else type_of(tree, self.scope)

    def static_type(self, tree: Tree) -> pa.DataType | None:
        return static_type(tree, self.scope)

    def note_evaluated(self, tree: Tree, node: ast.AST) -> None:
        """Note that Python computes a value here."""
        in_merge = self.merging is not None
        self.evaluated.append(
            Evaluated(self.conditions, tree, len(self.accesses), node, in_merge, self.loop)
        )

    def point(self, frame: Frame) -> RunPoint:
        """Return the current point of the run, to which `take_back` can return."""
        counts = len(self.accesses), len(self.checks), len(self.evaluated)
        before = frame.variables
        frame.variables = dict(before)
        return RunPoint(*counts, before, self.handed_on)

    def take_back(self, frame: Frame, to: RunPoint) -> None:
        """Forget what was noted and set since a point, because it is evaluated again."""
        del self.accesses[to.accesses :], self.checks[to.checks :], self.evaluated[to.evaluated :]
        frame.variables, self.handed_on = to.variables, to.handed_on

    @contextmanager
    def attempt(self, frame: Frame) -> Iterator[None]:
        """Take back what was done if it turns out not to be on the list."""
        done = self.point(frame)
        before = (
            self.conditions,
            self.loop,
            self.blocks,
            self.merging,
            self.why_rows,
            self.repeating,
            self.varying_from,
            self.deferring,
            self.shields,
            self.uses_whole_event,
        )
        stack, frames = list(self.stack), list(self.frames)
        try:
            yield
        except NotListed:
            self.take_back(frame, done)
            (
                self.conditions,
                self.loop,
                self.blocks,
                self.merging,
                self.why_rows,
                self.repeating,
                self.varying_from,
                self.deferring,
                self.shields,
                self.uses_whole_event,
            ) = before
            self.stack, self.frames = stack, frames
            raise

    @contextmanager
    def repeated(self) -> Iterator[None]:
        """Run code that may happen any number of times."""
        before = self.varying_from
        if not self.repeating:
            self.varying_from = self.opaques + 1
            self.region += 1
        self.repeating += 1
        try:
            yield
        finally:
            self.repeating -= 1
            self.varying_from = before

    @contextmanager
    def deferred(self) -> Iterator[None]:
        """Run code that others may run later, at any time before the handler ends."""
        self.deferring += 1
        try:
            yield
        finally:
            self.deferring -= 1

    @contextmanager
    def shielded(self) -> Iterator[None]:
        """Run code around which any exception may be caught."""
        self.shields += 1
        try:
            yield
        finally:
            self.shields -= 1

    # --- accesses -------------------------------------------------------------------------

    def read(self, state: State, key: tuple[Tree, ...], node: ast.AST) -> Tree:
        """Note a read, and return its answer."""
        order, line = len(self.accesses), getattr(node, "lineno", 0)
        conditions = tuple(c for c in self.conditions if not has_old(c))
        self.accesses.append(
            GetAccess(
                order=order,
                handler=self.handler,
                line=line,
                guard=all_of(conditions),
                block=self._block,
                over=self._over,
                state=state.name,
                key=key,
                repeats=self.repeating > 0,
                varying_from=self.varying_from,
                region=self.region if self.repeating else 0,
                is_deferred=self.deferring > 0,
                is_shielded=self.shields > 0,
                lists=self._lists_of(key),
                is_certain=node in self.certain,
                in_merge="" if self.merging is None else self.merging.name,
            )
        )
        assert isinstance(self.scope.answers, dict)
        self.scope.answers[order] = ("", state.type)
        return ReadValue(order, line=line)

    def merge(
        self,
        state: State,
        key: tuple[Tree, ...],
        kind: MergeKind,
        args: tuple[Tree, ...],
        new: Tree | None,
        node: ast.AST,
    ) -> None:
        self.accesses.append(
            MergeAccess(
                order=len(self.accesses),
                handler=self.handler,
                line=getattr(node, "lineno", 0),
                guard=all_of(self.conditions),
                block=self._block,
                over=self._over,
                state=state.name,
                key=key,
                kind=kind,
                args=args,
                new=new,
                lists=self._lists_of((*key, *args, *(() if new is None else (new,)))),
                repeats=self.repeating > 0,
                varying_from=self.varying_from,
                region=self.region if self.repeating else 0,
                is_deferred=self.deferring > 0,
                is_shielded=self.shields > 0,
            )
        )

    def emit(self, name: str, fields: Sequence[tuple[str, Tree]], node: ast.AST) -> None:
        self.accesses.append(
            EmitAccess(
                order=len(self.accesses),
                handler=self.handler,
                line=getattr(node, "lineno", 0),
                guard=all_of(self.conditions),
                block=self._block,
                over=self._over,
                name=name,
                fields=tuple(fields),
                lists=self._lists_of(value for _, value in fields),
                repeats=self.repeating > 0,
                varying_from=self.varying_from,
                region=self.region if self.repeating else 0,
                is_deferred=self.deferring > 0,
                is_shielded=self.shields > 0,
            )
        )

    def begin_loop(self, over: Tree) -> EventLoop:
        """Begin a loop over a list of the event; the elements' type is that of the list."""
        dtype = static_type(over, self.scope)
        if dtype is None or not pa.types.is_list(dtype):
            raise NotListed("a loop over something that is not a list of the event", ast.Pass())
        loop = self.loop = EventLoop(self.blocks, over)
        self.blocks += 1
        assert isinstance(self.scope.elements, dict)
        self.scope.elements[loop.block] = ("", dtype.value_type)
        return loop

    def element(self, over: Tree, line: int) -> Element | None:
        """Return the symbol for an element of a list that code in rows iterates over.

        None if the type of the list is not known, or if code that is not read may have changed the
        list.
        """
        dtype = self.static_type(over)
        if dtype is None or not pa.types.is_list(dtype) or pa.types.is_null(dtype.value_type):
            return None
        if any(isinstance(t, Opaque | Element | Old) for t in walk_tree(over)):
            return None
        if self.may_be_changed(over):
            return None
        self.elements += 1
        element = Element(-self.elements, line=line)
        assert isinstance(self.scope.elements, dict)
        self.scope.elements[element.block] = ("", dtype.value_type)
        self.lists[element.block] = over
        return element

    def _lists_of(self, trees: Iterable[Tree]) -> tuple[tuple[int, Tree], ...]:
        """Return the lists whose elements these values use, also through reads."""
        blocks: dict[int, Tree] = {}
        for part in (part for tree in trees for part in walk_tree(tree)):
            if isinstance(part, Element) and part.block in self.lists:
                blocks[part.block] = self.lists[part.block]
            elif isinstance(part, ReadValue) and part.order < len(self.accesses):
                blocks |= self.accesses[part.order].lists
        return tuple(blocks.items())

    def hand_on(self, value: Tree) -> None:
        """Note that code which is not read may change a value, and what contains it, in place."""
        dtype = self.static_type(value)
        if dtype is not None and not pa.types.is_nested(dtype):
            return
        parts = list(walk_tree(value))
        self.handed_on = self.handed_on.union(parts)
        for part in parts:
            if isinstance(part, Element) and part.block in self.lists:
                self.hand_on(self.lists[part.block])

    def may_be_changed(self, value: Tree) -> bool:
        """Tell whether code that is not read may have changed a value in place."""
        for part in walk_tree(value):
            dtype = self.static_type(part)
            if part in self.handed_on and (dtype is None or pa.types.is_nested(dtype)):
                return True
        return False

    @property
    def _block(self) -> int | None:
        return None if self.loop is None else self.loop.block

    @property
    def _over(self) -> Tree | None:
        return None if self.loop is None else self.loop.over

    # --- what code touches ----------------------------------------------------------------

    def touches(self, frame: Frame, nodes: Sequence[ast.AST]) -> Touched:
        """Return what a part of a function may touch, including functions defined in it."""
        touched = self.reach.of_nodes(nodes, frame.thing, frame.file, frame.all_names())
        for name in {n.id for node in nodes for n in ast.walk(node) if isinstance(n, ast.Name)}:
            home = frame.binds(name)
            local = home.variables.get(name) if home is not None else None
            if isinstance(local, LocalFunction) and local.node not in self.stack:
                self.stack.append(local.node)
                touched.include(self.touches(local.frame, [local.node]))
                self.stack.pop()
        return touched

    def touches_thing(self, thing: object) -> bool:
        """Tell whether code that has a thing could touch states or emit."""
        return self.reach.has_handles(thing)


def shown(node: ast.AST) -> str:
    """Write some code for messages, shortened."""
    text = ast.unparse(node)
    return text if len(text) <= 40 else f"{text[:39]}…"


def _all_choices(symbol: Symbol) -> tuple[Symbol, ...]:
    """Return all things that a symbol may stand for, each once."""
    if not isinstance(symbol, Unusable | OneOf):
        return (symbol,)
    return tuple(dict.fromkeys(one for part in symbol.choices for one in _all_choices(part)))


def _not_data(symbol: Symbol) -> str:
    match symbol:
        case TheEvent():
            return "the event is used as a whole"
        case Known() | LocalFunction() | BoundMethod():
            return "a function is used as a value"
    return "what it stands for depends on the event"
