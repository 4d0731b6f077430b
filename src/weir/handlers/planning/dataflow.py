"""The dataflow of an app: how its handlers run, and which accesses wait for which.

Rules
1. A handler runs in columns if analysis found a form in columns for all of it, and it is not in a
   circle. Otherwise it runs unchanged: in rows (`row_stages.py`), or in one partition if it is in a
   serial group.
2. In columns, a merge waits for the reads that its key, arguments and condition use. A read waits
   for the reads that its key uses, and for all merges into its state, from any event type and with
   any key.
3. Handlers in a circle run unchanged if they can. Some cannot, because they read in a loop over a
   list of the event. If all handlers of such a circle have a form in columns, it is a *ring*: one
   scan runs their reads and merges together, row by row. For this all accesses need the same key;
   in each event type it must be the same tree. If all accesses are in one loop, the scan's rows are
   the rows of that loop. Otherwise they are the event's rows, and the scan runs the loops. Other
   accesses to the ring's states with that key run with them, unless
   a. rule 4 forbids it,
   b. they wait for something that waits for the ring, or
   c. they are in a loop that the scan runs, and wait for a read in it that is not the ring's.
4. Within an event a ring has one place, from its first access to its last, including loops that it
   runs. No other merge into its states may come between them.
5. A unit (a handler that runs unchanged) waits for the merges of others into the states that it
   reads. Reads of the states that it writes wait for the unit.
6. Circles that are not rings are refused, by name.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from weir.errors import PlanError
from weir.handlers.planning.graph_components import reachable, strong_components, way_around
from weir.handlers.planning.handler_order import EventFlow, PlacedUnit, event_flow
from weir.handlers.planning.row_stages import (
    NeedsSerial,
    NotInRows,
    StateTraits,
    Unit,
    UnitPlan,
    circle_with_group,
    plan_units,
    refusal,
)
from weir.handlers.trees.accesses import Access, Analysed, EmitAccess, GetAccess, MergeAccess
from weir.handlers.trees.tree_text import key_text
from weir.handlers.trees.tree_walks import reads_in, trees_of
from weir.handlers.trees.values import Const, Element, Field, Instant, Op, ReadValue, Tree

Request: TypeAlias = tuple[str, int]
"""An access: its event type and its order."""


@dataclass(frozen=True, slots=True)
class RingPlace:
    """The accesses of a ring for the events of one type, in order."""

    event: str
    key: tuple[Tree, ...]
    block: int | None
    steps: tuple[GetAccess | MergeAccess, ...]


@dataclass(frozen=True, slots=True)
class Ring:
    """States that are read and written in a circle, and the places where that happens."""

    states: tuple[str, ...]
    places: tuple[RingPlace, ...]


@dataclass(frozen=True, slots=True)
class Flow:
    """The event types in order of declaration, and the rings among their accesses."""

    events: tuple[EventFlow, ...]
    rings: tuple[Ring, ...]
    why_rows: Mapping[str, str]
    """For each handler that runs unchanged, why it does not run in columns."""

    def of(self, event: str) -> EventFlow:
        return next(flow for flow in self.events if flow.event == event)

    def units(self) -> Iterator[PlacedUnit]:
        return (unit for flow in self.events for unit in flow.units)

    def merges_into(self, state: str) -> list[tuple[str, MergeAccess]]:
        """Return all merges into a state by handlers in columns, with their event types."""
        return [
            (flow.event, access)
            for flow in self.events
            for access in flow.accesses
            if isinstance(access, MergeAccess) and access.state == state
        ]

    def merge_names(self) -> dict[Request, str]:
        """Return a unique name for each merge: the handler's, with a number from the second on."""
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


def app_flow(
    events: Sequence[str],
    analysed: Sequence[Analysed],
    groups: Mapping[str, int | None],
    states: Sequence[str],
    traits: StateTraits,
    *,
    vectorise: bool = True,
) -> Flow:
    """Plan the dataflow of an app; event types and handlers come in order of definition.

    `groups` has the serial group of each handler, or None. PlanError for handlers that cannot run;
    it names all handlers that would have to be in one serial group.
    """

    def drawn(in_groups: Mapping[str, int | None]) -> Flow:
        return _drawn(events, analysed, in_groups, states, traits, vectorise=vectorise)

    try:
        return drawn(groups)
    except NeedsSerial as problem:
        group_of = {one.handler: groups.get(one.handler) for one in analysed}
        hint = _serial_hint(problem, group_of, drawn)
        raise PlanError(problem.message, hint=f"{problem.hint}{hint}") from None


def _serial_hint(
    problem: NeedsSerial,
    groups: Mapping[str, int | None],
    drawn: Callable[[Mapping[str, int | None]], Flow],
) -> str:
    """Name the serial group that would run the handlers of `problem`.

    Handlers are added to it until planning succeeds.
    """
    members = set(problem.handlers)
    new = 1 + max((n for n in groups.values() if n is not None), default=0)
    runs = False
    while not runs:
        joined = {groups[name] for name in members} - {None}
        members |= {name for name, group in groups.items() if group in joined}
        try:
            drawn({name: new if name in members else group for name, group in groups.items()})
            runs = True
        except NeedsSerial as more:
            if members.issuperset(more.handlers):
                break
            members.update(more.handlers)
        except PlanError:
            break
    names = [name for name in groups if name in members]
    it, its = ("it", "its") if len(names) == 1 else ("them", "their")
    return (
        f"app.serial({', '.join(names)}) runs {it} in one partition, with all {its} states at hand"
    )


def _drawn(
    events: Sequence[str],
    analysed: Sequence[Analysed],
    groups: Mapping[str, int | None],
    states: Sequence[str],
    traits: StateTraits,
    *,
    vectorise: bool,
) -> Flow:
    for one in analysed:
        if one.refused and groups.get(one.handler) is None:
            raise NeedsSerial(one.refused, [one.handler])
    names = list(dict.fromkeys([*states, *(s for a in analysed for s in (*a.reads, *a.writes))]))
    chosen = _Ways(analysed, groups, names, traits, vectorise=vectorise)
    plans = chosen.plans()
    flows = tuple(
        event_flow(
            event,
            [a for a in analysed if a.event == event],
            {plan.unit.handler: plan for plan in plans if plan.unit.event == event},
            frozenset(filter(traits.defers, names)),
        )
        for event in events
    )
    return Flow(flows, _rings(flows), chosen.why_rows)


class _Ways:
    """Chooses which handlers run in columns, and plans the others."""

    def __init__(
        self,
        analysed: Sequence[Analysed],
        groups: Mapping[str, int | None],
        states: Sequence[str],
        traits: StateTraits,
        *,
        vectorise: bool,
    ) -> None:
        self._analysed, self._groups, self._states = analysed, groups, states
        self._traits = traits
        self.why_rows: dict[str, str] = {}
        """The handlers that run unchanged, with the reasons."""
        self._pinned: dict[str, NotInRows] = {}
        """Handlers that are in a circle, have a form in columns, and cannot run in rows."""
        for one in analysed:
            if groups.get(one.handler) is not None:
                self.why_rows[one.handler] = "app.serial"
            elif one.why_rows or not vectorise:
                self.why_rows.setdefault(one.handler, one.why_rows or "vectorisation is off")

    def plans(self) -> list[UnitPlan]:
        while True:
            try:
                plans, circles = plan_units(
                    self._units(), self._column_edges(), self._states, self._traits
                )
            except NotInRows as problem:
                self._pin(problem)
                continue
            if not self._convert(plans, circles):
                return plans

    def _units(self) -> list[Unit]:
        return [
            Unit(
                one.event,
                one.handler,
                tuple(access for access in one.accesses if not access.is_hidden),
                *_touched(one),
                one.emits,
                self._groups.get(one.handler),
                one.event_columns,
            )
            for one in self._analysed
            if one.handler in self.why_rows
        ]

    def _in_columns(self) -> list[Analysed]:
        return [one for one in self._analysed if one.handler not in self.why_rows]

    def _column_edges(self) -> list[tuple[str, str]]:
        return [edge for one in self._in_columns() for edge in _dependences(one)]

    def _pin(self, problem: NotInRows) -> None:
        """Keep a handler in columns that cannot run in rows; raise its error if it cannot stay."""
        handler = problem.unit.handler
        if handler in self._pinned or any(
            one.why_rows for one in self._analysed if one.handler == handler
        ):
            raise refusal(problem)
        self._pinned[handler] = problem
        del self.why_rows[handler]

    def _convert(self, plans: Sequence[UnitPlan], circles: Mapping[str, int]) -> bool:
        """Change the handlers in columns that are in a circle to run in rows.

        Return whether there were any. `circles` has, for each state in a circle, the circle's
        number.
        """
        live = {
            circles[state]
            for plan in plans
            for state in plan.live
            if plan.unit.group is None and state in circles
        }
        for one in self._in_columns():
            inside = {
                circles[a]
                for a, b in _dependences(one)
                if a in circles and circles.get(b) == circles[a]
            }
            if inside and one.handler not in self._pinned:
                self.why_rows[one.handler] = "what it reads depends on what it writes"
                return True
            if inside & live:
                circle = [
                    plan.unit.handler
                    for plan in plans
                    if any(circles.get(state) in inside for state in plan.live)
                ]
                raise refusal(self._pinned[one.handler], circle)
            groups = [
                u
                for u in self._units()
                if u.group is not None and any(circles.get(s) in inside for s in u.touched)
            ]
            if groups:
                mine = [u.handler for u in self._units() if u.group == groups[0].group]
                raise circle_with_group(mine, [one.handler])
        return False


def _touched(one: Analysed) -> tuple[frozenset[str], frozenset[str]]:
    """Return what a handler reads and writes with these parameters, as far as is known."""
    if one.refused:
        return one.reads, one.writes
    return (
        frozenset(a.state for a in one.accesses if isinstance(a, GetAccess)),
        frozenset(a.state for a in one.accesses if isinstance(a, MergeAccess)),
    )


def _dependences(one: Analysed) -> set[tuple[str, str]]:
    """Return pairs of states where a handler in columns makes the second depend on the first."""
    reads = {a.order: a for a in one.accesses if isinstance(a, GetAccess)}
    waits = {order: waits_for(read) for order, read in reads.items()}
    return {
        (reads[order].state, merge.state)
        for merge in one.accesses
        if isinstance(merge, MergeAccess)
        # A read may need the answers of others for its key.
        for order in reachable(waits_for(merge), waits)
    }


def waits_for(access: Access) -> frozenset[int]:
    """Return the reads (of the same event) whose answers an access needs."""
    if not isinstance(access, GetAccess):
        return reads_in(trees_of(access))
    around = () if access.over is None else (access.over,)
    guard = () if access.guard is None or is_plain(access.key) else (access.guard,)
    return reads_in((*access.key, *around, *guard))


def is_plain(key: Sequence[Tree]) -> bool:
    """Tell whether a key can be computed for every row, because that cannot fail."""
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
    units: dict[Request, PlacedUnit] = {
        (flow.event, -1 - n): unit for flow in flows for n, unit in enumerate(flow.units)
    }
    edges = _edges(accesses, units)
    rings = []
    for component in strong_components(list(accesses), edges):
        inside = {r: [s for s in edges.get(r, ()) if s in component] for r in component}
        if len(component) == 1:
            continue
        ring = _ring(component, inside, flows, reachable(component, edges))
        for place in ring.places:  # all of a ring waits for its steps' reads
            for order in frozenset().union(*map(waits_for, place.steps)):
                edges[place.event, order] += component
        rings.append(ring)
    _check_loops(rings)
    return tuple(rings)


def _edges(
    accesses: Mapping[Request, Access], units: Mapping[Request, PlacedUnit]
) -> dict[Request, list[Request]]:
    """Return, for each request, the requests that wait for it; units have negative numbers."""
    edges: dict[Request, list[Request]] = {request: [] for request in (*accesses, *units)}
    readers: dict[str, list[Request]] = {}
    writers: dict[str, list[Request]] = {}
    for request, access in accesses.items():
        if isinstance(access, GetAccess):
            readers.setdefault(access.state, []).append(request)
        if isinstance(access, MergeAccess):
            writers.setdefault(access.state, []).append(request)
        for order in waits_for(access):
            if (request[0], order) in edges:  # otherwise, it is a key part that a unit computes
                edges[request[0], order].append(request)
    for request, unit in units.items():
        for read in unit.reads:
            edges[request[0], read.order].append(request)
        for state in sorted(unit.plan.live):
            readers.setdefault(state, []).append(request)
        for state in sorted(unit.unit.writes):
            writers.setdefault(state, []).append(request)
    for state, written in writers.items():
        for writer in written:
            edges[writer] += [r for r in readers.get(state, ()) if r != writer]
    return edges


def _ring(
    component: Sequence[Request],
    edges: Mapping[Request, Sequence[Request]],
    flows: Sequence[EventFlow],
    waiting: Collection[Request],
) -> Ring:
    """Make the ring of these requests; `waiting` are all requests that wait for them.

    That includes requests that wait indirectly.
    """
    by_event = {flow.event: flow for flow in flows}
    inside: dict[str, list[GetAccess | MergeAccess]] = {}
    for event, order in component:
        access = by_event[event].access(order)
        assert isinstance(access, GetAccess | MergeAccess)
        inside.setdefault(event, []).append(access)
    states = tuple(dict.fromkeys(a.state for accesses in inside.values() for a in accesses))
    places = []
    for event, accesses in inside.items():
        key = accesses[0].key
        if any(a.key != key for a in accesses):
            raise _different_keys(component, edges, by_event)
        blocks = {a.block for a in accesses}
        block = accesses[0].block if len(blocks) == 1 else None
        with_it = [
            a
            for a in by_event[event].accesses
            if isinstance(a, GetAccess | MergeAccess)
            and (a.state in states and a.key == key and block in (None, a.block))
        ]
        later = {order for at, order in waiting if at == event}
        steps = _able_to_run(with_it, by_event[event], block, later)
        if any(a not in steps for a in accesses):
            raise _waits_in_loop(accesses, by_event[event])
        place = RingPlace(event, key, block, steps)
        if _merge_between(place, by_event[event], states) is not None:
            first, last = accesses[0].order, accesses[-1].order
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
    """Return the steps that a ring can run on rows of `block`.

    A step must not need reads that wait for the ring, except the ring's own. In a loop that the
    scan runs, it must not need other reads of that loop either.
    """
    remaining = list(steps)
    while True:
        own = {step.order for step in remaining}
        waiting = set(later) - own
        outside = waiting | {a.order for a in flow.accesses if a.block != block} - own
        able = [
            a for a in remaining if not waits_for(a) & (waiting if a.block == block else outside)
        ]
        if len(able) == len(remaining):
            return tuple(remaining)
        remaining = able


def _merge_between(place: RingPlace, flow: EventFlow, states: Sequence[str]) -> MergeAccess | None:
    """Return a merge that is not a step of a ring but comes between its steps (rule 4)."""
    first, last = place.steps[0], place.steps[-1]
    for access in flow.accesses:
        if (
            isinstance(access, MergeAccess)
            and access.state in states
            and access not in place.steps
            and (
                first.order < access.order < last.order
                # The ring runs a loop as a whole.
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
            reads = {s.block: s for s in reversed(inside) if s.block is not None}
            for block, read in reads.items():
                other = readers.setdefault((place.event, block), read)
                if other is not read:
                    raise NeedsSerial(
                        f"{read.handler}: the loop reads `{other.state}` (line {other.line}) and "
                        f"`{read.state}` (line {read.line}), which are two circles of reads and "
                        "merges outside of the loop",
                        [read.handler],
                        hint="write two loops, or ",
                    )


# --- refusals ----------------------------------------------------------------------------------


def _different_keys(
    component: Sequence[Request],
    edges: Mapping[Request, Sequence[Request]],
    flows: Mapping[str, EventFlow],
    between: MergeAccess | None = None,
) -> PlanError:
    accesses = {request: flows[request[0]].access(request[1]) for request in component}
    start = next(request for request, access in accesses.items() if isinstance(access, GetAccess))
    way = [accesses[request] for request in way_around(start, edges)]
    parts = []
    for access in way:
        if isinstance(access, GetAccess):
            parts.append(f"{access.handler} (line {access.line})")
        elif isinstance(access, MergeAccess):
            parts.append(access.state)
    circle = " → ".join([*parts, accesses[start].handler])
    keys = {
        f"{a.state} with {key_text(a.key)}{' in a loop' if a.block is not None else ''} "
        f"(line {a.line})": None
        for a in (*accesses.values(), *(() if between is None else (between,)))
        if isinstance(a, GetAccess | MergeAccess)
    }
    handlers = dict.fromkeys(access.handler for access in accesses.values())
    return NeedsSerial(
        f"handlers read and write in a circle over different keys: {circle}; {', '.join(keys)}",
        handlers,
        hint="use one key in all of them, or ",
    )


def _waits_in_loop(accesses: Sequence[GetAccess | MergeAccess], flow: EventFlow) -> PlanError:
    access, read = next(
        (access, read)
        for access in accesses
        for order in sorted(waits_for(access))
        if isinstance(read := flow.access(order), GetAccess)
        and (read.block is not None and read not in accesses)
    )
    return NeedsSerial(
        f"{access.handler}: the loop reads `{read.state}` (line {read.line}) for `{access.state}` "
        f"(line {access.line}), which is read and merged in a circle outside of the loop, too",
        [access.handler],
        hint=f"read `{read.state}` in front of the loop, or ",
    )
