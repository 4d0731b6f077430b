"""Orders the handlers of an event type, and numbers their accesses in that order.

Rules
1. A handler that writes a state runs before one that only reads it. This depends on the text of
   both only: all branches count, even if the run's parameters rule them out. Handlers that would
   have to run before each other, in a circle, stay together, in order of definition.
2. Of all handlers that may come next, the one that is defined first is next.
3. `order` counts over all accesses of the event type. The `block` that names a loop is the smallest
   order of its accesses.
4. A handler that runs unchanged (a unit) has one number, its place, for all its merges and emits.
   Its early reads and the results of its earlier runs have smaller numbers.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from types import FunctionType

from weir.handlers.api.app import App
from weir.handlers.planning.entrance import entrance
from weir.handlers.planning.graph_components import strong_components
from weir.handlers.planning.row_stages import (
    AskedStep,
    Key,
    LiveStep,
    Unit,
    UnitPlan,
    UnitStep,
    list_block,
    same_key,
    tried,
)
from weir.handlers.reach.code_reach import Reach
from weir.handlers.reach.state_uses import state_uses
from weir.handlers.trees.accesses import Analysed, EmitAccess, GetAccess, MergeAccess
from weir.handlers.trees.tree_walks import changed_tree, moved
from weir.handlers.trees.values import Element, ReadValue, Tree
from weir.plan.operators import Node


@dataclass(frozen=True, slots=True)
class PlacedStep:
    """A step of a unit on the chain of its event type.

    `tokens` are numbers that count as answered once it has run: for an asked step, one for each
    part of the key that it computes. `reads` are then answered with that key.
    """

    step: UnitStep
    tokens: tuple[int, ...]
    needs: frozenset[int]
    """The reads and tokens that must be answered before the step runs."""
    reads: tuple[GetAccess, ...] = ()
    key: Key = ()
    """Of a live step: the key by which its rows are split."""


@dataclass(frozen=True, slots=True)
class PlacedUnit:
    """A handler that runs unchanged, at its place in the order of an event."""

    plan: UnitPlan
    place: int
    early: tuple[GetAccess, ...]
    steps: tuple[PlacedStep, ...]

    @property
    def unit(self) -> Unit:
        return self.plan.unit

    @property
    def handler(self) -> str:
        return self.plan.unit.handler

    def note_order(self, state: str) -> int:
        """Return the order of a unit's merges into a state that others use.

        It is smaller than that of reads that come after the step which takes the merges.
        """
        number = self.plan.noted.get(state)
        if number is None or number == len(self.steps) - 1:
            return self.place
        return self.steps[number].tokens[0]

    @property
    def reads(self) -> tuple[GetAccess, ...]:
        """All reads that are answered before some run of the unit, early reads first."""
        return (*self.early, *(read for step in self.steps for read in step.reads))


@dataclass(frozen=True, slots=True)
class EventFlow:
    """The handlers of an event type in order, and all their accesses.

    For a unit these are only the reads that are answered before it runs.
    """

    event: str
    handlers: tuple[str, ...]
    accesses: tuple[GetAccess | MergeAccess | EmitAccess, ...]
    units: tuple[PlacedUnit, ...] = ()

    def access(self, order: int) -> GetAccess | MergeAccess | EmitAccess:
        return next(a for a in self.accesses if a.order == order)


def handler_order(analysed: Sequence[Analysed]) -> tuple[str, ...]:
    """Return the order in which the handlers of one event type run, given in order of definition.

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
    event: str,
    analysed: Sequence[Analysed],
    plans: Mapping[str, UnitPlan],
    deferring: Collection[str] = (),
) -> EventFlow:
    """Number the accesses of one event type; `plans` are the plans of units.

    Units may read `deferring` states: a read that fails then fails only in the run that uses it.
    """
    by_name = {a.handler: a for a in analysed}
    names = handler_order(analysed)
    accesses: list[GetAccess | MergeAccess | EmitAccess] = []
    units: list[PlacedUnit] = []
    following = 0
    for name in names:
        if name in plans:
            unit = _placed(plans[name], following, deferring)
            units.append(unit)
            accesses += unit.reads
            following = unit.place + 1
            continue
        own = by_name[name].accesses
        blocks = {b: first + following for b, first in _blocks(own).items()}
        shared: dict[int, Tree] = {}
        accesses += [moved(a, following, blocks, shared) for a in own]
        following += max((a.order + 1 for a in own), default=0)
    return EventFlow(event, names, tuple(accesses), tuple(units))


def _placed(plan: UnitPlan, following: int, deferring: Collection[str]) -> PlacedUnit:
    """Number the reads and steps of a unit, from `following` on."""
    early = _placed_early(plan, following, deferring)
    following += len(early)
    steps: list[PlacedStep] = []
    done: list[tuple[int, ...]] = []
    """The tokens that count as answered when a step has run, by step."""
    for step in plan.steps:
        before = [early[n].order for n in step.needs.early]
        needs = frozenset((*before, *(order for n in step.needs.steps for order in done[n])))
        count = step.parts if isinstance(step, AskedStep) else 1
        tokens = tuple(range(following, following + count))
        following += count
        key: Key = tuple(map(ReadValue, tokens)) if isinstance(step, AskedStep) else ()
        reads: tuple[GetAccess, ...] = ()
        if isinstance(step, AskedStep):
            reads = tuple(
                _answered(read, following + n, key, deferring) for n, read in enumerate(step.reads)
            )
            following += len(reads)
        if isinstance(step, LiveStep):
            key = step.key if step.key is not None else steps[step.told_by].key
        steps.append(PlacedStep(step, tokens, needs, reads, key))
        done.append((*tokens, *(read.order for read in reads)))
    return PlacedUnit(plan, following, early, tuple(steps))


def _placed_early(
    plan: UnitPlan, following: int, deferring: Collection[str]
) -> tuple[GetAccess, ...]:
    """Number the early reads of a unit.

    Reads by the elements of a list are in a loop over it, as for a handler in columns.
    """
    orders: dict[int, int] = {}
    for access in plan.unit.accesses:
        if isinstance(access, GetAccess):
            numbers = (n for n, early in enumerate(plan.early) if same_key(access, early))
            orders[access.order] = following + next(numbers, 0)
    blocks: dict[int, int] = {}
    placed = []
    for number, read in enumerate(plan.early, following):
        block = list_block(read)

        def leaf(tree: Tree) -> Tree:
            match tree:
                case ReadValue():
                    return replace(tree, order=orders[tree.order])
                case Element():
                    return replace(tree, block=blocks[tree.block])
            return tree

        if block is not None:
            blocks.setdefault(block, number)
        key = tuple(tried(changed_tree(part, leaf)) for part in read.key)
        answered = _answered(read, number, key, deferring)
        if block is not None:
            over = tried(changed_tree(dict(read.lists)[block], leaf))
            answered = replace(answered, block=blocks[block], over=over)
        placed.append(answered)
    return tuple(placed)


def _answered(read: GetAccess, order: int, key: Key, deferring: Collection[str]) -> GetAccess:
    """Return a read of a unit as one that is answered for every row before the unit runs."""
    defers = read.state in deferring
    return replace(
        read,
        order=order,
        key=key,
        guard=None,
        block=None,
        over=None,
        lists=(),
        defers=defers,
    )


def _blocks(accesses: Collection[GetAccess | MergeAccess | EmitAccess]) -> dict[int, int]:
    first_orders: dict[int, int] = {}
    for access in accesses:
        if access.block is not None:
            first_orders[access.block] = min(
                first_orders.get(access.block, access.order), access.order
            )
    return first_orders


def serial_order(app: App) -> dict[str, tuple[str, ...]]:
    """Return the names of handlers by event type, in the order in which they run.

    By their text, handlers that write a state come before those that only read it; otherwise they
    are in order of definition.
    """
    reach, none = Reach(app), frozenset[str]()
    uses = {}
    for name, handler in app.handlers.items():
        assert isinstance(handler.function, FunctionType)
        uses[name] = state_uses(handler.function, reach)
    return {
        event.name: handler_order(
            [
                Analysed(name, event.name, (), *uses[name], none)
                for name, handler in app.handlers.items()
                if event in handler.events
            ]
        )
        for event in app.event_types.values()
    }


def event_rows(
    app: App, paths: Mapping[str, str], start: int | None = None, end: int | None = None
) -> dict[str, Node]:
    """Return the rows of each event type as the app's handlers get them; see `entrance`."""
    return entrance(list(app.event_types.values()), paths, start, end).rows
