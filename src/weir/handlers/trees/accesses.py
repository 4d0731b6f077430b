"""The reads, merges and emits that analysis finds in a handler, as values over the event.

Contract
1. `order` numbers the accesses of one event *type* over all its handlers, in the order in which
   they happen for an event. It is set once the order of handlers is known (`handler_order.py`);
   analysis itself numbers the accesses of one handler from 0.
2. `guard` is the condition under which the access happens (None: always); it may use answers of
   reads with a smaller order. A value under a guard is evaluated only where the guard holds.
3. `block` is the number of the loop around the access, `over` the list that the loop iterates over;
   both are None outside of loops. The accesses of a loop have consecutive orders.
4. A merge is `kind` with its arguments: `add`, `set`, `max`, `min`, `append`, `add_to_set` have
   one, `top_k` has the value and k; `call` is a function of the old value whose result is `new`,
   a tree with `Old` in it.
5. `lists` are the lists that code in rows iterates over, by the block of the `Element` that stands
   for their elements. Such a loop may skip elements, and take them in any order.
"""

from __future__ import annotations

import linecache
from dataclasses import dataclass, field

from weir.errors import ProgramPlace
from weir.handlers.trees.values import Tree
from weir.plan.states import HandlerPlace, MergeKind

CHECKS = "$checks"
"""The name of emits that never happen, whose conditions are evaluated because they may fail."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """One statement of a handler that reads, merges or emits."""

    order: int
    handler: str
    line: int = field(compare=False)
    guard: Tree | None = None
    block: int | None = None
    over: Tree | None = None
    repeats: bool = False
    """Whether it may happen more than once for an event, apart from its loop `block`."""
    varying_from: int = 0
    """If it repeats: the number of the first `Opaque` that may differ each time."""
    region: int = 0
    """If it repeats: the number of the outermost code whose accesses repeat together."""
    is_deferred: bool = False
    """Whether it is in code that others may run later, at any time before the handler ends."""
    is_shielded: bool = False
    """Whether code around it may catch every exception."""
    in_merge: str = ""
    """The state whose merge function contains it."""
    is_hidden: bool = False
    """Whether no handler has it: it exists only because its condition may fail."""
    lists: tuple[tuple[int, Tree], ...] = ()
    """In code in rows: the lists whose elements it uses, by block."""
    is_certain: bool = field(default=False, compare=False)
    """Whether no event gets past it without it: any access with a greater order comes after it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GetAccess(Access):
    """A call of `state.get(key)`."""

    state: str
    key: tuple[Tree, ...]
    defers: bool = False
    """Whether a failing read answers None, and fails only when a handler uses the answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeAccess(Access):
    """A call of `state.merge(key, function)` or of a ready-made merge."""

    state: str
    key: tuple[Tree, ...]
    kind: MergeKind
    args: tuple[Tree, ...] = ()
    new: Tree | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EmitAccess(Access):
    """A call of `app.emit(name, field=value, …)`."""

    name: str
    fields: tuple[tuple[str, Tree], ...]


def access_place(access: Access, file: str) -> HandlerPlace:
    """Return the place of an access in its file, for errors at run time."""
    return handler_place(access.handler, file, access.line)


def handler_place(handler: str, file: str, line: int) -> HandlerPlace:
    """Return a line of a handler, with its text."""
    linecache.checkcache(file)
    text = linecache.getline(file, line).strip()
    return HandlerPlace(handler, ProgramPlace(line, 1, file, text))


@dataclass(frozen=True, slots=True)
class Analysed:
    """The result of analysing one handler for one of its event types.

    `refused` says why it cannot be compiled to scans, with the line. The handler then
    runs whole, row by row, with `app.serial()`.
    """

    handler: str
    event: str
    accesses: tuple[GetAccess | MergeAccess | EmitAccess, ...]
    reads: frozenset[str]
    writes: frozenset[str]
    """What its text reads and writes, on all branches."""
    emits: frozenset[str]
    why_rows: str = ""
    """Why it does not run in columns; empty if it can."""
    refused: str = ""
    refused_line: int = 0
    event_columns: frozenset[str] | None = None
    """The columns of the event that its code can reach, or None for all."""
