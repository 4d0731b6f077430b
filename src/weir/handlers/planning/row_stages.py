"""Plans the runs of handlers in rows, and which of their reads are answered before a run.

A handler in rows is a *unit* for each of its event types. It may run several times on an event: up
to a read whose key only it can compute, then in the scan that has the cells of a state, and a last
time when all its reads are answered.

Rules
1. A state T depends on a state S if the contents of T may follow from a read of S. In columns this
   is a merge into T that uses the read. In a unit it is every merge into T after a read of S, and
   every read of T after a read of S if the unit also merges into T. States that depend on each
   other in a circle are one *block*.
2. A state is *live* for a unit that merges functions into it, or takes part in its circle, or both
   reads it and merges into it (unless all merges have other keys and come before the reads). All
   accesses of a unit to the live states of a block must have the same key.
3. A read is *early* if its key is made of columns and constants, it cannot fail (or its failure can
   wait), and the answer cannot depend on the unit's own earlier merges. Early reads are answered
   for every row, with None for a key that cannot be computed. For any other read the unit runs up
   to that read, to compute its key. A read whose key an earlier read has certainly computed is
   answered together with that read. The key of an early read may also use the elements of one list,
   and the answers of other early reads. Then the read is answered for all elements of the list,
   also those that the unit does not need.
4. Blocks that a unit uses with the same key are joined, and the unit's last live step waits for all
   its reads, so that the unit runs once. Blocks are not joined if two steps would then wait for
   each other.
5. A step needs the answers of all reads before its last access. If one of them is only answered
   later, the unit cannot run in rows. The last step, which needs all others, takes the unit's emits
   and its merges into states that are not live. Merges that its own reads may depend on are taken
   by an earlier step, which needs only the reads before these merges.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol, TypeAlias

from weir.errors import PlanError
from weir.handlers.planning.graph_components import reachable, strong_components
from weir.handlers.trees.accesses import EmitAccess, GetAccess, MergeAccess
from weir.handlers.trees.tree_text import key_text
from weir.handlers.trees.tree_walks import conjuncts_of, walk_tree
from weir.handlers.trees.values import (
    Const,
    Element,
    Field,
    Instant,
    Old,
    Op,
    Opaque,
    ReadValue,
    Tree,
)

Key: TypeAlias = tuple[Tree, ...]
StateAccess: TypeAlias = GetAccess | MergeAccess


@dataclass(frozen=True, slots=True)
class Unit:
    """A handler in rows, for one event type.

    `accesses` are in the order in which they may happen. `group` is its serial group, or None.
    `event_columns` are the columns of the event that its code can reach, or None for all.
    """

    event: str
    handler: str
    accesses: tuple[GetAccess | MergeAccess | EmitAccess, ...]
    reads: frozenset[str]
    writes: frozenset[str]
    emits: frozenset[str]
    group: int | None = None
    event_columns: frozenset[str] | None = None

    @property
    def touched(self) -> frozenset[str]:
        return self.reads | self.writes

    def of(self, state: str) -> list[StateAccess]:
        return [a for a in self.accesses if not isinstance(a, EmitAccess) and a.state == state]


@dataclass(frozen=True, slots=True)
class StepNeeds:
    """What must be there before a step: early reads and other steps, by number in the plan."""

    early: frozenset[int] = frozenset()
    steps: frozenset[int] = frozenset()

    def __or__(self, other: StepNeeds) -> StepNeeds:
        return StepNeeds(self.early | other.early, self.steps | other.steps)


@dataclass(frozen=True, slots=True)
class AskedStep:
    """Runs a unit to compute the key of an access: a read, or the first access to live states.

    `reads` are then answered: those of the first of `states`, and others with the same key.
    """

    needs: StepNeeds
    states: tuple[str, ...]
    parts: int
    reads: tuple[GetAccess, ...] = ()


@dataclass(frozen=True, slots=True)
class LiveStep:
    """Runs a unit where the cells of these states are.

    `key` is None if the asked step with the number `told_by` computes it. Steps of one block run in
    one scan.
    """

    needs: StepNeeds
    states: tuple[str, ...]
    block: int
    key: Key | None
    told_by: int = -1


@dataclass(frozen=True, slots=True)
class NoteStep:
    """Runs a unit for its merges into a state that its later reads depend on."""

    needs: StepNeeds
    state: str


@dataclass(frozen=True, slots=True)
class LastStep:
    """Runs a unit when all its reads are answered."""

    needs: StepNeeds


UnitStep: TypeAlias = AskedStep | LiveStep | NoteStep | LastStep


@dataclass(frozen=True, slots=True)
class UnitPlan:
    """The early reads of a unit, and its steps.

    Each step needs only earlier ones, and the last step needs all others. `noted` has, for each
    state that is not live, the step that takes the merges into it.
    """

    unit: Unit
    early: tuple[GetAccess, ...]
    steps: tuple[UnitStep, ...]
    noted: Mapping[str, int]

    @property
    def live(self) -> frozenset[str]:
        return frozenset(
            s for step in self.steps if isinstance(step, LiveStep) for s in step.states
        )


class NotInRows(Exception):
    """Says why a unit cannot run in rows, and at which line."""

    def __init__(self, unit: Unit, why: str, line: int) -> None:
        super().__init__(why)
        self.unit, self.why, self.line = unit, why, line


Edges: TypeAlias = dict[str, set[str]]


class StateTraits(Protocol):
    """What planning must know of an app's states."""

    def can_fail(self, state: str) -> bool:
        """Tell whether a read may fail.

        Then only reads that happen in the serial loop may happen.
        """

    def defers(self, state: str) -> bool:
        """Tell whether a failing read answers None, which no other read does."""

    def is_window(self, state: str) -> bool:
        """Tell whether the state has `last`."""

    def has_same_keys(self, one: str, other: str) -> bool:
        """Tell whether the keys of two states are declared with the same types."""


def plan_units(
    units: Sequence[Unit],
    column_edges: Iterable[tuple[str, str]],
    states: Sequence[str],
    traits: StateTraits,
) -> tuple[list[UnitPlan], dict[str, int]]:
    """Plan the steps of all units; raise NotInRows for a unit that cannot run.

    Return also the states that depend on themselves, each with the number of its circle.
    `column_edges` are pairs of states where a handler in columns makes the second depend on the
    first.
    """
    edges: Edges = {state: set() for state in states}
    in_columns = set(column_edges)
    for before, after in in_columns:
        edges[before].add(after)
    for unit in units:
        for before, after in _unit_edges(unit):
            edges[before].add(after)
    blocks = _blocks(states, edges)
    plans, waits = _planned(units, edges, blocks, traits)
    tried: set[frozenset[int]] = set()
    while pair := next((p for p in _of_one_key(plans) if p not in tried), None):
        tried.add(pair)
        if not _can_be_one(pair, blocks, waits, in_columns):
            continue
        joined = blocks.joined(pair)
        try:
            fewer, waits_then = _planned(units, edges, joined, traits)
        except (NotInRows, PlanError):  # separately, they can run
            continue
        if _runs(fewer) < _runs(plans):
            plans, waits, blocks = fewer, waits_then, joined
    plans = _with_delays(plans, units, edges, blocks, traits)
    return plans, {s: block for s, block in blocks.of.items() if block in blocks.circles}


def _runs(plans: Sequence[UnitPlan]) -> int:
    return sum(len(plan.steps) for plan in plans)


@dataclass(frozen=True, slots=True)
class _Delay:
    """Makes the last live step of a unit its last step, by waiting for all its reads.

    `live` are the states of its block, `reads` the states that it then waits for.
    """

    live: frozenset[str]
    reads: frozenset[str]


def _with_delays(
    plans: list[UnitPlan],
    units: Sequence[Unit],
    edges: Edges,
    blocks: _Blocks,
    traits: StateTraits,
) -> list[UnitPlan]:
    """Return plans with fewer runs: live steps wait, unless that makes a step wait for itself.

    They are tried one after the other.
    """
    delays: dict[int, _Delay] = {}
    for number in range(len(units)):
        delay = _delay(plans[number], blocks)
        if delay is None:
            continue
        trial = {**delays, number: delay}
        try:
            fewer, _ = _planned(units, edges, blocks, traits, trial)
        except (NotInRows, PlanError):
            continue
        if _runs(fewer) < _runs(plans):
            plans, delays = fewer, trial
    return plans


def _delay(plan: UnitPlan, blocks: _Blocks) -> _Delay | None:
    match plan.steps:
        case (*others, LiveStep() as live, LastStep()) if plan.unit.group is None:
            inside = frozenset(s for s, block in blocks.of.items() if block == live.block)
            reads = {read.state for read in plan.early}
            for step in others:
                if isinstance(step, AskedStep | LiveStep):
                    reads.update(step.states)
            return _Delay(inside, frozenset(reads) - inside)
    return None


def _planned(
    units: Sequence[Unit],
    edges: Edges,
    blocks: _Blocks,
    traits: StateTraits,
    delays: Mapping[int, _Delay] | None = None,
) -> tuple[list[UnitPlan], Edges]:
    """Plan the steps of all units; return also which states wait for which.

    NotInRows if a delayed unit would wait for itself.
    """
    delays = delays or {}
    planning = [_Planning(unit, edges, blocks, traits) for unit in units]
    # The last step of a unit takes its merges once all its reads are answered.
    waits = {state: set(after) for state, after in edges.items()}
    for one in planning:
        for before, after in one.waits():
            waits[before].add(after)
    for delay in delays.values():
        for read in delay.reads:
            waits[read] |= delay.live
    for number, delay in delays.items():
        if reachable(delay.live, waits) & delay.reads:
            raise NotInRows(units[number], "it would wait for itself", 0)
    plans = [one.plan(waits, delayed=n in delays) for n, one in enumerate(planning)]
    _check_groups(plans, blocks)
    return plans, waits


def _of_one_key(plans: Sequence[UnitPlan]) -> Iterator[frozenset[int]]:
    """Yield the pairs of blocks that a unit uses with one key, in separate runs."""
    for plan in plans:
        live = [step for step in plan.steps if isinstance(step, LiveStep) and step.key is not None]
        for n, one in enumerate(live):
            for other in live[n + 1 :]:
                if one.key == other.key and one.block != other.block:
                    yield frozenset((one.block, other.block))


def _can_be_one(
    pair: frozenset[int], blocks: _Blocks, waits: Edges, in_columns: set[tuple[str, str]]
) -> bool:
    """Tell whether one scan can hold two blocks.

    It cannot if something outside of the scan comes between them. Nor can it if a handler in
    columns leads from one to the other, because that handler would have to run in the scan too.
    """
    inside = {state for state, block in blocks.of.items() if block in pair}
    after = {state for one in inside for state in waits[one]} - inside
    if reachable(after, waits) & inside:
        return False
    return not any(
        a in inside and b in inside and blocks.of[a] != blocks.of[b] for a, b in in_columns
    )


def _unit_edges(unit: Unit) -> set[tuple[str, str]]:
    if unit.group is not None:
        return {(a, b) for a in unit.touched for b in unit.writes}
    edges = set()
    reads: list[GetAccess] = []
    for access in _in_any_order(unit):
        if access.state in unit.writes:
            before = {read.state for read in reads if not are_exclusive(read, access)}
            edges |= {(state, access.state) for state in before - {access.state}}
            if isinstance(access, MergeAccess) and access.state in before:
                edges.add((access.state, access.state))
        if isinstance(access, GetAccess):
            reads.append(access)
    return edges


def _in_any_order(unit: Unit) -> list[StateAccess]:
    """Return the accesses to states in an order that contains every possible order of two of them.

    One access comes before another, if need be a second time, wherever that may happen when the
    unit runs. Code that repeats together comes twice. Code that others may run later comes twice
    more at the end.
    """
    accesses = [a for a in unit.accesses if not isinstance(a, EmitAccess)]
    spans: list[tuple[int, int]] = []
    ends: dict[tuple[int | None, int], int] = {}
    for n, access in enumerate(accesses):
        if _repeats(access):
            ends[access.block, access.region] = n
    following = 0
    for n, access in enumerate(accesses):
        if not _repeats(access):
            continue
        end = ends[access.block, access.region] + 1
        if n < following:
            start, before = spans.pop()
            spans.append((start, max(end, before)))
        else:
            spans.append((n, end))
        following = spans[-1][1]
    ordered: list[StateAccess] = []
    following = 0
    for start, end in spans:
        ordered += accesses[following:end] + accesses[start:end]
        following = end
    ordered += accesses[following:]
    later = [access for access in accesses if access.is_deferred]
    return ordered + later + later


def are_exclusive(one: StateAccess, other: StateAccess) -> bool:
    """Tell whether two accesses are on different branches, so that no event has both."""
    if one.guard is None or other.guard is None:
        return False
    for a, b in zip(conjuncts_of(one.guard), conjuncts_of(other.guard), strict=False):
        if a is not b:
            is_fixed = all(_is_fixed((a, b), x.varying_from) for x in (one, other) if x.repeats)
            return is_fixed and (_is_not(a, b) or _is_not(b, a))
    return False


def _is_not(a: Tree, b: Tree) -> bool:
    return isinstance(a, Op) and a.name == "not" and a.args[0] is b


def list_block(read: GetAccess) -> int | None:
    """Return the block of the only list whose elements a read's key uses, or None."""
    return read.lists[0][0] if len(read.lists) == 1 else None


def _is_of_columns(part: Tree) -> bool:
    """Tell whether a value can be computed from the columns of the event."""
    return not any(isinstance(t, Opaque | ReadValue | Element | Old) for t in walk_tree(part))


def tried(part: Tree) -> Tree:
    """Return a value that is None where computing it fails.

    On such rows it is not needed, or the handler itself fails.
    """
    return part if isinstance(part, Field | Instant | Const) else Op("tried", (part,))


@dataclass(frozen=True, slots=True)
class _Blocks:
    """The blocks of states; `circles` are those whose states depend on themselves."""

    of: dict[str, int]
    circles: frozenset[int] = field(default_factory=frozenset)

    def joined(self, pair: frozenset[int]) -> _Blocks:
        """Return the blocks after joining two of them."""
        one = min(pair)
        of = {state: one if block in pair else block for state, block in self.of.items()}
        return _Blocks(of, (self.circles - pair) | {one})


def _blocks(states: Sequence[str], edges: Edges) -> _Blocks:
    components = strong_components(list(states), edges)
    circles = frozenset(
        n
        for n, component in enumerate(components)
        if len(component) > 1 or component[0] in edges[component[0]]
    )
    return _Blocks({s: n for n, component in enumerate(components) for s in component}, circles)


class NeedsSerial(PlanError):
    """Says that handlers can only run in one serial group, and why.

    `handlers` are those that are known to be needed in it; planning again with that group may find
    more.
    """

    def __init__(self, message: str, handlers: Iterable[str], *, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.handlers = tuple(dict.fromkeys(handlers))


def circle_with_group(group: Sequence[str], others: Sequence[str]) -> NeedsSerial:
    """Return the error for a serial group in a circle with handlers outside of it."""
    inside, outside = list(dict.fromkeys(group)), list(dict.fromkeys(others))
    return NeedsSerial(
        f"the serial group of {', '.join(inside)} is in a circle with {', '.join(outside)}",
        [*inside, *outside],
    )


def _check_groups(plans: Sequence[UnitPlan], blocks: _Blocks) -> None:
    """Raise PlanError if a serial group is in a circle with units outside of it."""
    for plan in plans:
        group = plan.unit.group
        if group is None:
            continue
        circles = {blocks.of[s] for s in plan.unit.touched} & blocks.circles
        others = [
            other.unit.handler
            for other in plans
            if other.unit.group != group and {blocks.of[s] for s in other.live} & circles
        ]
        if others:
            inside = [p.unit.handler for p in plans if p.unit.group == group]
            raise circle_with_group(inside, others)


@dataclass(slots=True)
class _Stop:
    """What a unit must run for: a read, live states of a block, or merges that reads need."""

    last: int
    """The position of its last access."""
    accesses: list[StateAccess]
    block: int | None = None
    note: str = ""
    """The state whose merges are taken by this step."""
    beside: list[GetAccess] = field(default_factory=list)
    """Reads of other states with the key that this step computes."""


class _Planning:
    """Plans the steps of one unit."""

    def __init__(self, unit: Unit, edges: Edges, blocks: _Blocks, traits: StateTraits) -> None:
        self._unit, self._edges, self._blocks = unit, edges, blocks
        self._traits = traits
        self._accesses = _in_any_order(unit)
        """All accesses in any possible order; an index is a position of an access."""
        self._live = {s for s in unit.touched if self._is_live(s)}
        # A circle runs in one scan, so no read of its states has an answer before that.
        joined = {blocks.of[s] for s in self._live} & blocks.circles
        self._live |= {s for s in unit.reads if blocks.of[s] in joined}
        self._early = self._early_reads()
        self._steps: list[UnitStep] = []

    def waits(self) -> Iterator[tuple[str, str]]:
        """Yield pairs of states: a step waits for the first, and merges into the second."""
        if self._unit.group is None:
            for before in self._unit.reads | self._live:
                for after in self._unit.writes - self._live:
                    yield before, after

    def plan(self, waits: Edges, *, delayed: bool = False) -> UnitPlan:
        unit = self._unit
        if unit.group is not None:
            states = tuple(sorted(unit.touched))
            return UnitPlan(unit, (), (LiveStep(StepNeeds(), states, -1, ()),), {})
        noted: dict[str, int] = {}
        stops = sorted([*self._stops(), *self._notes(waits)], key=lambda stop: stop.last)
        while stops:
            stops.remove(self._add_first(stops, noted))
        everything = StepNeeds(
            frozenset(range(len(self._early))), frozenset(range(len(self._steps)))
        )
        if delayed and isinstance(self._steps[-1], LiveStep):
            needs = StepNeeds(everything.early, everything.steps - {len(self._steps) - 1})
            self._steps[-1] = replace(self._steps[-1], needs=needs)
        if not self._ends_live(everything):
            self._steps.append(LastStep(everything))
        last = len(self._steps) - 1
        merged = sorted(
            {a.state for a in self._accesses if isinstance(a, MergeAccess)} - self._live
        )
        return UnitPlan(
            unit,
            tuple(self._early),
            tuple(self._steps),
            {state: noted.get(state, last) for state in merged},
        )

    def _add_first(self, stops: Sequence[_Stop], noted: dict[str, int]) -> _Stop:
        """Add the step of the first stop whose reads have answers; NotInRows if there is none.

        The step may come before one that ends earlier, if it is on a branch without that one.
        """
        problem: NotInRows | None = None
        for stop in stops:
            try:
                if stop.note:
                    self._steps.append(NoteStep(self._needs(stop.last, stop.accesses), stop.note))
                    noted[stop.note] = len(self._steps) - 1
                elif stop.block is None:
                    self._add_asked(stop)
                else:
                    self._add_live(stop)
            except NotInRows as error:
                problem = problem or error
            else:
                return stop
        assert problem is not None
        raise problem

    def _ends_live(self, everything: StepNeeds) -> bool:
        """Tell whether the last step so far is a live step that can be the unit's last."""
        if not self._steps or not isinstance(self._steps[-1], LiveStep):
            return False
        last = len(self._steps) - 1
        return self._steps[-1].needs == StepNeeds(everything.early, everything.steps - {last})

    # --- states ------------------------------------------------------------------------------

    def _is_live(self, state: str) -> bool:
        accesses = [a for a in self._accesses if a.state == state]
        reads = any(isinstance(a, GetAccess) for a in accesses)
        merges = [a for a in accesses if isinstance(a, MergeAccess)]
        if any(map(_is_function, merges)):
            return True
        if reads and merges:
            # Merges with other keys that all come before the reads need not run with them.
            first = next(n for n, a in enumerate(accesses) if isinstance(a, GetAccess))
            one_key = all(same_key(accesses[0], a) for a in accesses)
            if one_key or any(isinstance(a, MergeAccess) for a in accesses[first:]):
                return True
        block = self._blocks.of[state]
        return block in self._blocks.circles and self._takes_part(block)

    def _takes_part(self, block: int) -> bool:
        """Tell whether merges of the unit into states of a circle follow from its reads of them."""
        inside = [a for a in self._accesses if self._blocks.of[a.state] == block]
        first = next((n for n, a in enumerate(inside) if isinstance(a, GetAccess)), None)
        return first is not None and any(isinstance(a, MergeAccess) for a in inside[first:])

    # --- reads -------------------------------------------------------------------------------

    def _early_reads(self) -> list[GetAccess]:
        early: list[GetAccess] = []
        self._early_blocks: dict[int, int | None] = {}
        """The early reads by order: the list's block for reads by elements, else None."""
        for position, access in enumerate(self._accesses):
            if not isinstance(access, GetAccess) or access.state in self._live:
                continue
            if not self._is_asked_early(access, position):
                continue
            self._early_blocks[access.order] = list_block(access)
            if not any(same_key(access, other) for other in early):
                early.append(access)
        return early

    def _is_asked_early(self, read: GetAccess, position: int) -> bool:
        if self._traits.can_fail(read.state) or self._follows_merges(read, position):
            return False
        return all(map(_is_of_columns, read.key)) or self._is_of_elements(read)

    def _is_of_elements(self, read: GetAccess) -> bool:
        """Tell whether every row has the key of a read for each element of one list."""
        block = list_block(read)
        if block is None:
            return False
        (over,) = (over for _, over in read.lists)
        for tree in (over, *read.key):
            for part in walk_tree(tree):
                if isinstance(part, Opaque | Old):
                    return False
                if isinstance(part, Element) and part.block != block:
                    return False
                if isinstance(part, ReadValue):
                    if part.order not in self._early_blocks:
                        return False
                    inner = self._early_blocks[part.order]
                    if inner not in (None, block) or (tree is over and inner is not None):
                        return False
        return True

    def _follows_merges(self, read: GetAccess, position: int) -> bool:
        """Tell whether the answer of a read may depend on earlier merges of this unit."""
        merged = {a.state for a in self._accesses[:position] if isinstance(a, MergeAccess)}
        return read.state in reachable(merged - self._live, self._edges)

    # --- steps -------------------------------------------------------------------------------

    def _stops(self) -> list[_Stop]:
        """Return the reads and the live states that the unit must run for."""
        asked: list[_Stop] = []
        blocks: dict[int, _Stop] = {}
        for position, access in enumerate(self._accesses):
            if access.state in self._live:
                block = self._blocks.of[access.state]
                stop = blocks.setdefault(block, _Stop(position, [], block))
            elif isinstance(access, MergeAccess) or self._early_number(access) is not None:
                continue
            else:
                beside = self._told_before(asked, access, position)
                if beside is not None:
                    beside.beside.append(access)
                    continue
                same = (stop for stop in asked if same_key(stop.accesses[0], access))
                existing = next(same, None)
                stop = _Stop(position, []) if existing is None else existing
                if existing is None:
                    asked.append(stop)
            stop.last = position
            stop.accesses.append(access)
        return [*asked, *blocks.values()]

    def _told_before(self, asked: Sequence[_Stop], read: GetAccess, position: int) -> _Stop | None:
        """Return the stop that computes the key of a read for every event with that read.

        The read can then be answered there.
        """
        if self._traits.can_fail(read.state) or self._follows_merges(read, position):
            return None
        return next((stop for stop in asked if self._tells(stop.accesses[0], read)), None)

    def _tells(self, first: StateAccess, later: StateAccess) -> bool:
        """Tell whether an access has the key of a later one, for every event with the later one."""
        return (
            first.is_certain
            and first.order < later.order
            and same_key(first, later, any_state=True)
            and self._traits.has_same_keys(first.state, later.state)
        )

    def _early_number(self, read: StateAccess) -> int | None:
        return next((n for n, early in enumerate(self._early) if same_key(read, early)), None)

    def _needs(self, position: int, own: Sequence[StateAccess]) -> StepNeeds:
        """Return what a step with the accesses `own` needs for all reads before a position.

        The step's own reads are left out. NotInRows if a read is only answered later.
        """
        needs = StepNeeds()
        for at, access in enumerate(self._accesses[:position]):
            if not isinstance(access, GetAccess) or access in own:
                continue
            following = (other for other in self._accesses[at : position + 1] if other in own)
            if all(are_exclusive(access, other) for other in following):
                continue
            early = self._early_number(access)
            if early is not None:
                needs |= StepNeeds(frozenset((early,)))
                continue
            number = self._answered_by(access)
            if number is None:
                raise NotInRows(
                    self._unit,
                    f"`{own[0].state}` (line {own[0].line}) is used between accesses to "
                    f"`{access.state}` (line {access.line}), with a key that only the handler can "
                    f"compute; use it before or after all accesses to `{access.state}`",
                    own[0].line,
                )
            needs |= self._steps[number].needs | StepNeeds(steps=frozenset((number,)))
        return needs

    def _answered_by(self, read: GetAccess) -> int | None:
        """Return the step after which a read has its answer."""
        for number, step in enumerate(self._steps):
            if isinstance(step, LiveStep) and read.state in step.states:
                return number
            if isinstance(step, AskedStep) and any(same_key(read, asked) for asked in step.reads):
                return number
        return None

    def _add_asked(self, stop: _Stop) -> None:
        read = stop.accesses[0]
        assert isinstance(read, GetAccess)
        for access in stop.accesses:
            self._check_askable(access)
        needs = self._needs(stop.last, stop.accesses)
        reads = [read]
        for other in stop.beside:
            if not any(same_key(other, one) for one in reads):
                reads.append(other)
        self._steps.append(AskedStep(needs, (read.state,), len(read.key), tuple(reads)))

    def _check_askable(self, access: StateAccess) -> None:
        if access.in_merge and not access.is_shielded:
            raise NotInRows(
                self._unit,
                f"`{access.state}` is read in the function of a merge, with a key that only the "
                "handler can compute, or as a window that may fail",
                access.line,
            )
        if _repeats(access):
            raise NotInRows(
                self._unit,
                f"`{access.state}` is used in a loop, or in a function that others call, with the "
                f"key {key_text(access.key)}, which may differ each time",
                access.line,
            )
        if access.is_shielded:
            raise NotInRows(
                self._unit,
                f"`{access.state}` is used with a key that only the handler can compute, inside of "
                "`try` or `with` code that may catch everything",
                access.line,
            )

    def _add_live(self, stop: _Stop) -> None:
        states = tuple(sorted({a.state for a in stop.accesses}))
        first = stop.accesses[0]
        for access in stop.accesses:
            if _is_function(access) and self._traits.is_window(access.state):
                raise NotInRows(
                    self._unit,
                    f"a function is merged into the window of `{access.state}`, which would have "
                    "to call it whenever it is read",
                    access.line,
                )
            if access.in_merge and access.in_merge not in states:
                raise NotInRows(
                    self._unit,
                    f"`{access.state}`, which the handler also changes, is read in the function of "
                    f"a merge into `{access.in_merge}`",
                    access.line,
                )
            if _repeats(access) and not _is_fixed(access.key, access.varying_from):
                self._check_askable(access)
            if not same_key(first, access, any_state=True):
                raise NotInRows(
                    self._unit,
                    f"`{first.state}` has the key {key_text(first.key)} (line {first.line}), and "
                    f"`{access.state}` {key_text(access.key)} (line {access.line}): reads and "
                    "merges that depend on each other need one key",
                    access.line,
                )
        assert stop.block is not None
        needs = self._needs(stop.last, stop.accesses)
        key = tuple(map(tried, first.key)) if all(map(_is_of_columns, first.key)) else None
        told_by = -1
        if key is None:
            told_by = self._teller(first)
            if told_by < 0:
                for access in stop.accesses:
                    if access.is_shielded:
                        self._check_askable(access)
                told_by = len(self._steps)
                self._steps.append(AskedStep(needs, states, len(first.key)))
            needs |= StepNeeds(steps=frozenset((told_by,)))
        self._steps.append(LiveStep(needs, states, stop.block, key, told_by))

    def _teller(self, access: StateAccess) -> int:
        """Return the step that computes the key of an access for every event with it, or -1."""
        for number, step in enumerate(self._steps):
            if isinstance(step, AskedStep) and step.reads and self._tells(step.reads[0], access):
                return number
        return -1

    def _notes(self, waits: Edges) -> list[_Stop]:
        """Return the states whose merges must be known before all reads of the unit are answered.

        Its reads may wait for these merges.
        """
        used = self._unit.reads | self._live
        scans = {self._blocks.of[s] for s in self._live}
        notes = []
        for state in sorted(self._unit.writes - self._live):
            merges = [
                n
                for n, a in enumerate(self._accesses)
                if isinstance(a, MergeAccess) and a.state == state
            ]
            in_scan = self._blocks.of[state] in scans  # the scan needs them before it runs
            if merges and (in_scan or reachable([state], waits) & used):
                last = merges[-1]
                notes.append(_Stop(last, [self._accesses[last]], note=state))
        return notes


def _is_function(access: StateAccess) -> bool:
    return isinstance(access, MergeAccess) and access.kind == "call"


def _repeats(access: StateAccess) -> bool:
    return access.repeats or access.block is not None


def same_key(one: StateAccess, other: StateAccess, *, any_state: bool = False) -> bool:
    """Tell whether two accesses certainly have the same key."""
    if not any_state and one.state != other.state:
        return False
    return len(one.key) == len(other.key) and all(
        a is b or (a == b and not _is_uncertain(a)) for a, b in zip(one.key, other.key, strict=True)
    )


def _is_uncertain(part: Tree) -> bool:
    """Tell whether a value may change between two computations of the same expression."""
    return not isinstance(part, Opaque) and any(isinstance(t, Opaque) for t in walk_tree(part))


def _is_fixed(key: Key, varying_from: int) -> bool:
    """Tell whether a key is the same in all rounds of the loop around its access."""
    for part in key:
        for tree in walk_tree(part):
            if isinstance(tree, Element):
                return False
            if isinstance(tree, Opaque) and tree.number >= varying_from:
                return False
            if isinstance(tree, ReadValue):
                return False
    return True


def refusal(problem: NotInRows, circle: Sequence[str] = ()) -> NeedsSerial:
    """Return the error for a unit that cannot run in rows; `circle` are its circle's handlers."""
    name = problem.unit.handler
    return NeedsSerial(f"{name} (line {problem.line}): {problem.why}", [name, *circle])
