"""What analysis finds in a handler: its reads, merges and emits, as values over the event.

Contract
1. `order` numbers the accesses of one event *type* over all its handlers, in the order in which
   they happen for an event. It is set when the order of handlers is known (`handler_order.py`);
   analysis numbers those of one handler from 0.
2. `guard` is the condition under which the access happens (None: always); it may read answers of
   reads with a smaller order. A value that stands under a guard is evaluated only where it holds.
3. `block` is the number of the loop that the access is in, `over` the list that the loop goes
   over; both None outside of loops. All accesses of a loop have orders next to each other.
4. A merge is `kind` with its arguments: `add`, `set`, `max`, `min`, `append`, `add_to_set` have
   one, `top_k` has the value and k; `call` is a function of the old value whose result is `new`,
   a tree with `Old` in it.
5. `lists` are the lists that code in rows goes through, by the block of the `Element` that stands
   for what it gets of them. A loop may leave elements out, and their order is its own.
"""

from __future__ import annotations

import linecache
from dataclasses import dataclass, field

from weir.errors import ProgramPlace
from weir.handlers.trees.values import Tree
from weir.plan.states import HandlerPlace, MergeKind

CHECKS = "$checks"
"""The name of emits that never happen: their conditions are evaluated for their failures."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """An `Access` is one statement of a handler that touches the world."""

    order: int
    handler: str
    line: int = field(compare=False)
    guard: Tree | None = None
    block: int | None = None
    over: Tree | None = None
    repeats: bool = False
    """Whether it may happen more than once for an event, other than by its block."""
    varying_from: int = 0
    """Where it repeats: the number of the first `Opaque` that may be another one each time."""
    region: int = 0
    """Where it repeats: which outermost code, all of whose accesses repeat together."""
    is_deferred: bool = False
    """Whether it is in code that others may run later: until the handler ends, at any time."""
    is_shielded: bool = False
    """Whether code around it may catch every exception."""
    in_merge: str = ""
    """The state whose merge function it stands in."""
    is_hidden: bool = False
    """Whether no handler has it: it is there for the failures of others."""
    lists: tuple[tuple[int, Tree], ...] = ()
    """Of code in rows: the lists whose elements it uses, by their blocks."""
    is_certain: bool = field(default=False, compare=False)
    """Whether no event gets past it without it: any access of a greater order comes after it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GetAccess(Access):
    """A `GetAccess` is `state.get(key)`."""

    state: str
    key: tuple[Tree, ...]
    defers: bool = False
    """Whether an answer that fails is None, until a handler uses it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeAccess(Access):
    """A `MergeAccess` is `state.merge(key, function)` or one of the ready-made ones."""

    state: str
    key: tuple[Tree, ...]
    kind: MergeKind
    args: tuple[Tree, ...] = ()
    new: Tree | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EmitAccess(Access):
    """An `EmitAccess` is `app.emit(name, field=value, …)`."""

    name: str
    fields: tuple[tuple[str, Tree], ...]


def access_place(access: Access, file: str) -> HandlerPlace:
    """Say where an access stands in its file, for errors at run time."""
    return handler_place(access.handler, file, access.line)


def handler_place(handler: str, file: str, line: int) -> HandlerPlace:
    """Return a line of a handler, with its text."""
    linecache.checkcache(file)
    text = linecache.getline(file, line).strip()
    return HandlerPlace(handler, ProgramPlace(line, 1, file, text))


@dataclass(frozen=True, slots=True)
class Analysed:
    """An `Analysed` is what analysis knows of one handler for one of its event types.

    `refused` says why it cannot be compiled to scans (with the line); the handler then runs whole,
    row by row, by `app.serial()`.
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
    """The columns of the event that its code can reach; None: all."""
