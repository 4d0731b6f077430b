"""The handlers of an event type run in one order, and their accesses are numbered by it.

Rules
1. A handler that writes a state runs before one that only reads it, by the text of both: on all
   branches, whether these parameters leave them or not. Handlers that these rules put
   before each other, in a circle, stay together, in order of definition.
2. Of all that may come next, the one that is defined first does.
3. `order` counts over all accesses of the event type. A loop is called by the smallest order of
   its accesses: its `block`.
4. A handler that runs whole (in a serial group) has one number, its place.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from weir.handlers.accesses import Analysed, EmitAccess, GetAccess, MergeAccess
from weir.handlers.components import strong_components
from weir.handlers.trees import moved
from weir.handlers.values import Tree


@dataclass(frozen=True, slots=True)
class WholeHandler:
    """A `WholeHandler` is one that runs as it is, in a serial group, at a place of its own."""

    handler: str
    group: int
    order: int
    reads: frozenset[str]
    writes: frozenset[str]
    emits: frozenset[str] = frozenset()
    accesses: tuple[GetAccess | MergeAccess | EmitAccess, ...] = ()
    """What analysis found in it, if it did, with numbers of its own: types follow from it."""


@dataclass(frozen=True, slots=True)
class EventFlow:
    """An `EventFlow` has the handlers of an event type in order, and all their accesses."""

    event: str
    handlers: tuple[str, ...]
    accesses: tuple[GetAccess | MergeAccess | EmitAccess, ...]
    whole: tuple[WholeHandler, ...] = ()

    def access(self, order: int) -> GetAccess | MergeAccess | EmitAccess:
        return next(a for a in self.accesses if a.order == order)


def handler_order(analysed: Sequence[Analysed]) -> tuple[str, ...]:
    """Return the order in which the handlers of one event type run; they come as defined.

    >>> none = frozenset()
    >>> judge = Analysed("judge", "e", (), frozenset(["n"]), none, none)
    >>> count = Analysed("count", "e", (), none, frozenset(["n"]), none)
    >>> handler_order([judge, count])
    ('count', 'judge')
    """
    names = [a.handler for a in analysed]
    after: dict[str, list[str]] = {
        writer.handler: [
            reader.handler
            for reader in analysed
            if reader is not writer and writer.writes & (reader.reads - reader.writes)
        ]
        for writer in analysed
    }
    components = strong_components(names, after)
    home = {name: n for n, component in enumerate(components) for name in component}
    before: list[set[int]] = [set() for _ in components]
    for writer, readers in after.items():
        for reader in readers:
            before[home[reader]].add(home[writer])
    ordered: list[str] = []
    waiting = dict.fromkeys(range(len(components)))
    while waiting:
        # There is always one: components have no circles.
        chosen = next(n for n in waiting if not (before[n] - {n}) & waiting.keys())
        del waiting[chosen]
        ordered += components[chosen]
    return tuple(ordered)


def event_flow(
    event: str, analysed: Sequence[Analysed], groups: Mapping[str, int | None]
) -> EventFlow:
    """Number the accesses of one event type; `groups` are the serial groups of handlers."""
    by_name = {a.handler: a for a in analysed}
    names = handler_order(analysed)
    accesses: list[GetAccess | MergeAccess | EmitAccess] = []
    whole: list[WholeHandler] = []
    following = 0
    for name in names:
        found, group = by_name[name], groups.get(name)
        if group is not None:
            reads, writes = _done(found)
            whole.append(
                WholeHandler(name, group, following, reads, writes, found.emits, found.accesses)
            )
            following += 1
            continue
        blocks = {b: first + following for b, first in _blocks(found.accesses).items()}
        known: dict[int, Tree] = {}
        accesses += [moved(a, following, blocks, known) for a in found.accesses]
        following += max((a.order + 1 for a in found.accesses), default=0)
    return EventFlow(event, names, tuple(accesses), tuple(whole))


def _done(found: Analysed) -> tuple[frozenset[str], frozenset[str]]:
    """Return what a handler reads and writes with these parameters, as far as that is known."""
    if found.refused:
        return found.reads, found.writes
    return (
        frozenset(a.state for a in found.accesses if isinstance(a, GetAccess)),
        frozenset(a.state for a in found.accesses if isinstance(a, MergeAccess)),
    )


def _blocks(accesses: Collection[GetAccess | MergeAccess | EmitAccess]) -> dict[int, int]:
    found: dict[int, int] = {}
    for access in accesses:
        if access.block is not None:
            found[access.block] = min(found.get(access.block, access.order), access.order)
    return found
