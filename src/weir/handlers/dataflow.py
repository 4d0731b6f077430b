"""The dataflow of an app says which accesses wait for which, and what must run in a circle.

Rules
1. A merge waits for the reads that its key, arguments and condition use. A read waits for those
   that its key uses, and for all merges into its state, by whatever event type and key.
2. Accesses that wait for each other are a *ring*: one scan runs them together, row by row. That is
   possible where they all have one key, in each event type the same tree. If all are in one loop,
   its rows are the loop's; else the event's, and loops are run there. Other accesses of the ring's
   states with that key run with them, unless rule 3 forbids it, or they wait for what itself waits
   for the ring or, in a loop that is run there, for a read of the loop that is not the ring's.
3. Within an event a ring has one place, from its first access (the loop that it runs) to its last:
   no other merge into its states may stand between them.
4. A serial group runs its handlers whole. It waits for all merges of others into the states that
   it touches; who reads what it writes waits for it.
5. Circles that are no ring are refused, by name.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from weir.errors import PlanError
from weir.handlers.accesses import Access, Analysed, EmitAccess, GetAccess, MergeAccess
from weir.handlers.components import reachable, strong_components, way_around
from weir.handlers.handler_order import EventFlow, WholeHandler, event_flow
from weir.handlers.tree_text import key_text
from weir.handlers.trees import reads_in, trees_of
from weir.handlers.values import Const, Element, Field, Instant, Op, ReadValue, Tree

Request: TypeAlias = tuple[str, int]
"""An access: its event type and its order."""
_SERIAL_HINT = "app.serial({handlers}) runs them in one partition, row by row"


@dataclass(frozen=True, slots=True)
class RingPlace:
    """A `RingPlace` is what a ring does for the events of one type, in order."""

    event: str
    key: tuple[Tree, ...]
    block: int | None
    steps: tuple[GetAccess | MergeAccess, ...]


@dataclass(frozen=True, slots=True)
class Ring:
    """A `Ring` has the states that are read and written in a circle, and where that happens."""

    states: tuple[str, ...]
    places: tuple[RingPlace, ...]


@dataclass(frozen=True, slots=True)
class Flow:
    """A `Flow` has the event types in order of declaration, and the rings among their accesses."""

    events: tuple[EventFlow, ...]
    rings: tuple[Ring, ...]

    def of(self, event: str) -> EventFlow:
        return next(flow for flow in self.events if flow.event == event)

    def merges_into(self, state: str) -> list[tuple[str, MergeAccess]]:
        """Return all merges into a state by handlers that are compiled, with their event types."""
        return [
            (flow.event, access)
            for flow in self.events
            for access in flow.accesses
            if isinstance(access, MergeAccess) and access.state == state
        ]

    def merge_names(self) -> dict[Request, str]:
        """Return a name of its own for each merge: its handler's, with a number from 2 on."""
        names: dict[Request, str] = {}
        counts: Counter[str] = Counter()
        for flow in self.events:
            for access in flow.accesses:
                if isinstance(access, MergeAccess):
                    counts[access.handler] += 1
                    count = counts[access.handler]
                    name = access.handler if count == 1 else f"{access.handler}.{count}"
                    names[flow.event, access.order] = name
        return names

    def groups(self) -> dict[int, list[tuple[str, WholeHandler]]]:
        """Return the serial groups, each with its handlers by event type, in order."""
        found: dict[int, list[tuple[str, WholeHandler]]] = {}
        for flow in self.events:
            for whole in flow.whole:
                found.setdefault(whole.group, []).append((flow.event, whole))
        return found


def app_flow(
    events: Sequence[str], analysed: Sequence[Analysed], groups: Mapping[str, int | None]
) -> Flow:
    """Draw the dataflow of an app: its event types and handlers come in order of definition.

    `groups` says in which serial group a handler is. PlanError for what cannot be run.
    """
    for found in analysed:
        if found.refused and groups.get(found.handler) is None:
            raise PlanError(found.refused)
    flows = tuple(
        event_flow(event, [a for a in analysed if a.event == event], groups) for event in events
    )
    return Flow(flows, _rings(flows))


def waits_for(access: Access) -> frozenset[int]:
    """Return the reads (of the same event) whose answers an access needs to take place."""
    if not isinstance(access, GetAccess):
        return reads_in(trees_of(access))
    around = () if access.over is None else (access.over,)
    guard = () if access.guard is None or is_plain(access.key) else (access.guard,)
    return reads_in((*access.key, *around, *guard))


def is_plain(key: Sequence[Tree]) -> bool:
    """Tell whether computing a key cannot fail, so that it is computed for every row."""
    plain = Field | Const | Element | Instant | ReadValue
    return all(
        isinstance(t, plain) or (isinstance(t, Op) and t.name == "tuple" and is_plain(t.args))
        for t in key
    )


# --- circles ---------------------------------------------------------------------------------


def _rings(flows: Sequence[EventFlow]) -> tuple[Ring, ...]:
    accesses: dict[Request, Access] = {}
    for flow in flows:
        for access in flow.accesses:
            if not isinstance(access, EmitAccess):
                accesses[flow.event, access.order] = access
    groups: dict[Request, list[tuple[str, WholeHandler]]] = {}
    for flow in flows:
        for whole in flow.whole:
            groups.setdefault(("", whole.group), []).append((flow.event, whole))
    edges = _edges(accesses, groups)
    rings = []
    for component in strong_components([*accesses, *groups], edges):
        inside = {r: [s for s in edges.get(r, ()) if s in component] for r in component}
        if len(component) == 1:
            continue
        if any(request in groups for request in component):
            raise _circle_with_group(component, accesses, groups)
        made = _ring(component, inside, flows, reachable(component, edges))
        for place in made.places:  # what runs with a ring lets all of it wait
            for order in frozenset().union(*map(waits_for, place.steps)):
                edges[place.event, order] += component
        rings.append(made)
    _check_loops(rings)
    _check_groups(flows)
    return tuple(rings)


def _edges(
    accesses: Mapping[Request, Access], groups: Mapping[Request, list[tuple[str, WholeHandler]]]
) -> dict[Request, list[Request]]:
    """Return who waits for each request."""
    edges: dict[Request, list[Request]] = {request: [] for request in (*accesses, *groups)}
    readers: dict[str, list[Request]] = {}
    writers: dict[str, list[Request]] = {}
    for request, access in accesses.items():
        if isinstance(access, GetAccess):
            readers.setdefault(access.state, []).append(request)
        if isinstance(access, MergeAccess):
            writers.setdefault(access.state, []).append(request)
        for order in waits_for(access):
            edges[request[0], order].append(request)
    for group, members in groups.items():
        for state in sorted(frozenset().union(*(w.reads | w.writes for _, w in members))):
            readers.setdefault(state, []).append(group)
        for state in sorted(frozenset().union(*(w.writes for _, w in members))):
            writers.setdefault(state, []).append(group)
    for state, written in writers.items():
        for writer in written:
            edges[writer] += [r for r in readers.get(state, ()) if r != writer]
    return edges


def _ring(
    component: Sequence[Request],
    edges: Mapping[Request, Sequence[Request]],
    flows: Sequence[EventFlow],
    behind: Collection[Request],
) -> Ring:
    """Make the ring of these requests; `behind` are all that wait for them, directly or not."""
    by_event = {flow.event: flow for flow in flows}
    inside: dict[str, list[GetAccess | MergeAccess]] = {}
    for event, order in component:
        access = by_event[event].access(order)
        assert isinstance(access, GetAccess | MergeAccess)
        inside.setdefault(event, []).append(access)
    states = tuple(dict.fromkeys(a.state for found in inside.values() for a in found))
    places = []
    for event, found in inside.items():
        key = found[0].key
        if any(a.key != key for a in found):
            raise _different_keys(component, edges, by_event)
        blocks = {a.block for a in found}
        block = found[0].block if len(blocks) == 1 else None
        with_it = [
            a
            for a in by_event[event].accesses
            if isinstance(a, GetAccess | MergeAccess)
            and (a.state in states and a.key == key and block in (None, a.block))
        ]
        later = {order for at, order in behind if at == event}
        steps = _able_to_run(with_it, by_event[event], block, later)
        if any(a not in steps for a in found):
            raise _waits_in_loop(found, by_event[event])
        place = RingPlace(event, key, block, steps)
        if _merge_between(place, by_event[event], states) is not None:
            first, last = found[0].order, found[-1].order
            place = replace(place, steps=tuple(s for s in steps if first <= s.order <= last))
        between = _merge_between(place, by_event[event], states)
        if between is not None:
            raise _different_keys(component, edges, by_event, between)
        places.append(place)
    return Ring(states, tuple(places))


def _able_to_run(
    steps: Sequence[GetAccess | MergeAccess],
    flow: EventFlow,
    block: int | None,
    later: Collection[int],
) -> tuple[GetAccess | MergeAccess, ...]:
    """Return those steps that need no read but the ring's own of those that wait for the ring, nor
    of a loop, on rows of `block`."""
    found = list(steps)
    while True:
        own = {step.order for step in found}
        behind = set(later) - own
        outside = behind | {a.order for a in flow.accesses if a.block != block} - own
        able = [a for a in found if not waits_for(a) & (behind if a.block == block else outside)]
        if len(able) == len(found):
            return tuple(found)
        found = able


def _merge_between(place: RingPlace, flow: EventFlow, states: Sequence[str]) -> MergeAccess | None:
    """Return a merge that is no step and stands between the steps of a ring (rule 3)."""
    first, last = place.steps[0], place.steps[-1]
    for access in flow.accesses:
        if (
            isinstance(access, MergeAccess)
            and access.state in states
            and access not in place.steps
            and (
                first.order < access.order < last.order
                # A loop that the ring runs is run as a whole.
                or (access.block != place.block and access.block in (first.block, last.block))
            )
        ):
            return access
    return None


def _check_loops(rings: Sequence[Ring]) -> None:
    """Raise PlanError where two rings of an event type read within one loop."""
    readers: dict[tuple[str, int], GetAccess] = {}
    for ring in rings:
        for place in ring.places:
            inside = [s for s in place.steps if isinstance(s, GetAccess) and place.block is None]
            found = {s.block: s for s in reversed(inside) if s.block is not None}
            for block, read in found.items():
                other = readers.setdefault((place.event, block), read)
                if other is not read:
                    raise PlanError(
                        f"{read.handler}: the loop reads `{other.state}` (line {other.line}) and "
                        f"`{read.state}` (line {read.line}), which are two circles of reads and "
                        "merges outside of the loop",
                        hint=f"two loops, or {_SERIAL_HINT.format(handlers=read.handler)}",
                    )


def _check_groups(flows: Sequence[EventFlow]) -> None:
    """Raise PlanError where a merge stands between the handlers of a serial group."""
    for flow in flows:
        for group in {whole.group for whole in flow.whole}:
            members = [whole for whole in flow.whole if whole.group == group]
            touched = frozenset().union(*(w.reads | w.writes for w in members))
            for access in flow.accesses:
                if (
                    isinstance(access, MergeAccess)
                    and access.state in touched
                    and members[0].order < access.order < members[-1].order
                ):
                    raise PlanError(
                        f"`{access.handler}` (line {access.line}) merges into `{access.state}` "
                        f"between `{members[0].handler}` and `{members[-1].handler}`, which are a "
                        "serial group that touches it",
                        hint=f"put `{access.handler}` into the group: app.serial(…)",
                    )


# --- refusals ----------------------------------------------------------------------------------


def _different_keys(
    component: Sequence[Request],
    edges: Mapping[Request, Sequence[Request]],
    flows: Mapping[str, EventFlow],
    between: MergeAccess | None = None,
) -> PlanError:
    found = {request: flows[request[0]].access(request[1]) for request in component}
    start = next(request for request, access in found.items() if isinstance(access, GetAccess))
    way = [found[request] for request in way_around(start, edges)]
    parts = []
    for access in way:
        if isinstance(access, GetAccess):
            parts.append(f"{access.handler} (line {access.line})")
        elif isinstance(access, MergeAccess):
            parts.append(access.state)
    circle = " → ".join([*parts, found[start].handler])
    keys = {
        f"{a.state} with {key_text(a.key)}{' in a loop' if a.block is not None else ''} "
        f"(line {a.line})": None
        for a in (*found.values(), *(() if between is None else (between,)))
        if isinstance(a, GetAccess | MergeAccess)
    }
    handlers = dict.fromkeys(access.handler for access in found.values())
    return PlanError(
        f"handlers read and write in a circle over different keys: {circle}; {', '.join(keys)}",
        hint=f"use one key in all of them, or {_SERIAL_HINT.format(handlers=', '.join(handlers))}",
    )


def _waits_in_loop(found: Sequence[GetAccess | MergeAccess], flow: EventFlow) -> PlanError:
    access, read = next(
        (access, read)
        for access in found
        for order in sorted(waits_for(access))
        if isinstance(read := flow.access(order), GetAccess)
        and (read.block is not None and read not in found)
    )
    return PlanError(
        f"{access.handler}: the loop reads `{read.state}` (line {read.line}) for `{access.state}` "
        f"(line {access.line}), which is read and merged in a circle outside of the loop, too",
        hint=f"read `{read.state}` in front of the loop, or "
        f"{_SERIAL_HINT.format(handlers=access.handler)}",
    )


def _circle_with_group(
    component: Sequence[Request],
    accesses: Mapping[Request, Access],
    groups: Mapping[Request, list[tuple[str, WholeHandler]]],
) -> PlanError:
    inside = [groups[r] for r in component if r in groups]
    serial = list(dict.fromkeys(w.handler for members in inside for _, w in members))
    others = list(dict.fromkeys(accesses[r].handler for r in component if r in accesses))
    touched = frozenset().union(*(w.reads | w.writes for members in inside for _, w in members))
    shared = sorted(
        {
            a.state
            for r in component
            if isinstance(a := accesses.get(r), GetAccess | MergeAccess) and a.state in touched
        }
    ) or sorted(touched)
    everyone = ", ".join([*serial, *others])
    return PlanError(
        f"the serial group of {', '.join(serial)} is in a circle"
        f"{' with ' + ', '.join(others) if others else ''} over {', '.join(shared)}",
        hint=f"put all of them into one group: app.serial({everyone})",
    )
