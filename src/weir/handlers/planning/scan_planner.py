"""Plans the scans of an app, one by one, until every read is answered and every unit has run.

Rules
1. A scan can be made when the reads that its key uses are answered, and all merges into its states
   have their place. For handlers in columns that is a point of a chain, for units the run that
   takes the merges.
2. Reads with one key on one chain that can be answered at the same time share a scan. A scan is
   delayed while more reads of its key wait for other scans.
3. Merges into a scan's states that lie on the reader's rows stay there; others are ports.
4. Steps of units that use the same cells run in one scan.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from weir.events.types import BOOLEAN
from weir.handlers.api.app import App
from weir.handlers.planning.chains import ChainPoint, EventChains, RowChain
from weir.handlers.planning.dataflow import Flow, Request, Ring, RingPlace, waits_for
from weir.handlers.planning.emitted_streams import EmitTypes
from weir.handlers.planning.gathering_scans import gathering_scan
from weir.handlers.planning.handler_order import PlacedUnit
from weir.handlers.planning.ring_scans import (
    outside_reads,
    place_port,
    ring_code,
    ring_effects,
    ring_places,
    window_calls,
)
from weir.handlers.planning.row_scans import (
    UnitRun,
    check_window,
    effect_form,
    given_out,
    handler_run,
    merge_port,
    run_port,
    unsaved_windows,
)
from weir.handlers.planning.row_stages import AskedStep, LastStep, LiveStep, NoteStep
from weir.handlers.planning.scan_ports import ScanPort, reader_port, state_cells, writer_ports
from weir.handlers.trees.accesses import Access, EmitAccess, GetAccess, MergeAccess, access_place
from weir.handlers.trees.values import Tree
from weir.plan.expressions import Literal
from weir.plan.fluent.stream import Stream
from weir.plan.operators import Filter, FinalState, Node, Project, RowScan, StateScan, schema
from weir.plan.saved_states import key_names
from weir.plan.states import Cell, RowCode, StateRead


@dataclass(frozen=True, slots=True)
class ScanNote:
    """What one scan does, for `explain`.

    It answers reads, with the merges that reach it; or it runs units, with the cells of some
    states.
    """

    event: str
    reads: tuple[GetAccess, ...] = ()
    own: tuple[MergeAccess, ...] = ()
    others: tuple[tuple[str, MergeAccess], ...] = ()
    is_ring: bool = False
    runs: tuple[UnitRun, ...] = ()


@dataclass(frozen=True, slots=True)
class PlanInputs:
    """The inputs for planning the scans of an app."""

    app: App
    params: Mapping[str, object]
    flow: Flow
    chains: Sequence[EventChains]
    cells: Mapping[str, Cell]
    emitted: Mapping[str, EmitTypes]
    depth: int
    restored: Mapping[str, Stream]
    final: bool
    as_of: int | None


@dataclass(frozen=True, slots=True)
class _Waiting:
    """A read whose answer a chain's rows still need."""

    chains: EventChains
    chain: RowChain
    read: GetAccess


UnitMerges = tuple[PlacedUnit, str]
"""A unit, and a state that it merges into."""


class ScanPlanner:
    """Extends chains, scan by scan, until every read is answered and every unit has run."""

    def __init__(self, inputs: PlanInputs) -> None:
        self._inputs = inputs
        self._flow, self._cells = inputs.flow, inputs.cells
        self._by_event = {of.flow.event: of for of in inputs.chains}
        self._rings = ring_places(inputs.flow.rings)
        self._needed: dict[str, list[Access]] = {}
        self._units = list(inputs.flow.units())
        self._done: set[tuple[str, str, int]] = set()
        """The steps of units that have run: event type, handler, number of the step."""
        self._merged_by: dict[tuple[str, str, str], Node] = {}
        """The rows that have a unit's merges, by event type, handler and state."""
        self._last: dict[tuple[str, str], Node] = {}
        """The rows of each unit's last run."""
        self._scanned: set[str] = set()
        """The states that have a scan."""
        self.notes: list[ScanNote] = []

    def plan(self) -> None:
        """Make all scans."""
        needed = self._all_needed()
        for of_event in self._inputs.chains:
            name = of_event.flow.event
            self._needed[name] = [a for a in of_event.flow.accesses if (name, a.order) in needed]
            of_event.begin(self._needed[name])
        while True:
            if self._run_units():
                continue
            waiting = self._waiting()
            if waiting and self._answer(waiting):
                continue
            if self._gather():
                continue
            assert not waiting, "reads wait for each other, and no ring was found"
            break
        assert all(not self._steps_left(unit) for unit in self._units)

    def last_run(self, unit: PlacedUnit) -> Node:
        """Return the rows of a unit's last run."""
        return self._last[unit.unit.event, unit.handler]

    # --- what is needed ----------------------------------------------------------------------

    def _all_needed(self) -> set[Request]:
        """Return all emits and merges, the needs of units, and the reads that these depend on."""
        needed: set[Request] = set()
        stack: list[tuple[str, Access]] = [
            (of.event, access)
            for of in self._flow.events
            for access in of.accesses
            if isinstance(access, EmitAccess | MergeAccess)
        ]
        for unit in self._units:
            stack += [(unit.unit.event, read) for read in unit.reads]
            for state in sorted(unit.unit.touched):
                stack += self._flow.merges_into(state)
        tokens = {(u.unit.event, t) for u in self._units for step in u.steps for t in step.tokens}
        while stack:
            event, access = stack.pop()
            if (event, access.order) in needed:
                continue
            needed.add((event, access.order))
            orders = [o for o in waits_for(access) if (event, o) not in tokens]
            stack += [(event, self._flow.of(event).access(order)) for order in orders]
            if isinstance(access, GetAccess):
                stack += self._flow.merges_into(access.state)
            if (event, access.order) in self._rings:
                ring, _ = self._rings[event, access.order]
                stack += [(place.event, step) for place in ring.places for step in place.steps]
        return needed

    def _waiting(self) -> list[_Waiting]:
        waiting: dict[tuple[str, int, int], _Waiting] = {}
        for of_event in self._inputs.chains:
            name = of_event.flow.event
            for access in self._needed[name]:
                pending = of_event.pending(access)
                chain = of_event.home(access)
                if isinstance(access, GetAccess):
                    if not of_event.is_on_main(access):
                        if self._is_gathered(name, access) and chain is not None:
                            own = [] if access.order in chain.points[-1].answered else [access]
                            for read in (*pending, *own):
                                waiting[name, id(chain), read.order] = _Waiting(
                                    of_event, chain, read
                                )
                        continue  # otherwise, its use determines its rows
                    chain = of_event.main
                    unanswered = access.order not in chain.points[-1].answered
                    pending = [access] if unanswered else []
                for read in pending:
                    assert chain is not None
                    waiting[name, id(chain), read.order] = _Waiting(of_event, chain, read)
        return list(waiting.values())

    # --- which scan is next --------------------------------------------------------------------

    def _is_gathered(self, event: str, read: GetAccess) -> bool:
        """Tell whether a unit needs a read's answers for all elements of a list."""
        units = (unit for unit in self._units if unit.unit.event == event)
        return any(read is early for unit in units for early in unit.early)

    def _gather(self) -> bool:
        """Put answers of reads by a list's elements into columns of the events' rows.

        Return whether there were any answers yet.
        """
        for of_event in self._inputs.chains:
            at = of_event.main.points[-1]
            reads: list[tuple[RowChain, GetAccess]] = []
            for unit in self._units:
                for read in unit.early if unit.unit.event == of_event.flow.event else ():
                    chain = None if of_event.is_on_main(read) else of_event.home(read)
                    if chain is None or read.order in at.answered:
                        continue
                    if read.order in chain.points[-1].answered:
                        reads.append((chain, read))
            if reads:
                scan = gathering_scan(of_event, reads, self._cells, self._inputs.depth)
                orders = {read.order for _, read in reads}
                of_event.add_point(of_event.main, scan, at.answered | orders)
                return True
        return False

    def _answer(self, waiting: list[_Waiting]) -> bool:
        """Make the next scan; return whether there was one to make."""
        groups: dict[object, list[_Waiting]] = {}
        for one in waiting:
            types = self._cells[one.read.state].keys
            ring, _ = self._rings.get((one.chains.flow.event, one.read.order), (None, None))
            key = (id(one.chain), one.read.key, types, ring)
            groups.setdefault(key, []).append(one)
        ready = {group: [w for w in ws if self._is_ready(w)] for group, ws in groups.items()}
        able = [group for group, members in ready.items() if members]
        if not able:
            return False
        whole = [group for group in able if len(ready[group]) == len(groups[group])]
        chosen = ready[(whole or able)[0]]
        chains, chain = chosen[0].chains, chosen[0].chain
        reads = tuple(sorted((w.read for w in chosen), key=lambda r: r.order))
        ring_place = self._rings.get((chains.flow.event, reads[0].order))
        if ring_place is None:
            self._scan(chains, chain, reads)
        else:
            self._ring_scan(chains, chain, *ring_place)
        return True

    def _is_ready(self, one: _Waiting) -> bool:
        ring_place = self._rings.get((one.chains.flow.event, one.read.order))
        answered = one.chain.points[-1].answered
        if ring_place is None:
            return waits_for(one.read) <= answered and self._all_merged([one.read.state])
        ring, place = ring_place
        for other in ring.places:
            if other is not place and self._point_of(other) is None:
                return False
        return outside_reads(place) <= answered and self._all_merged(ring.states, ring_steps(ring))

    def _point_of(self, place: RingPlace) -> ChainPoint | None:
        """Return the point with a ring's rows for an event type, or None if there is none yet."""
        chains, reads = self._by_event[place.event], outside_reads(place)
        if place.block is not None:
            return chains.point(place.steps[0], reads)
        number = chains.main.point_with(reads)
        return None if number is None else chains.main.points[number]

    def _all_merged(self, states: Iterable[str], without: frozenset[Request] = frozenset()) -> bool:
        """Tell whether all merges into these states have their place; `without` are not counted."""
        return self._are_placed(states, without) and self._are_taken(states)

    # --- scans ---------------------------------------------------------------------------------

    def _scan(self, chains: EventChains, chain: RowChain, reads: tuple[GetAccess, ...]) -> None:
        at = chain.points[-1]
        cells = state_cells(self._cells, (read.state for read in reads))
        self._scanned.update(cell.state for cell in cells)
        own, others = self._merges(cells, chains, chain, reads[0].key)
        ports = [reader_port(chains, at, reads, own, cells), *self._writers(others, cells)]
        restored = self._restore(cells, ports)
        states = {cell.state: n for n, cell in enumerate(cells)}
        answers = tuple(
            StateRead(
                states[read.state],
                chains.answer(read.order),
                read.order,
                read.order if read.block is None else read.block,
                access_place(read, chains.scope(read).where),
                read.defers,
            )
            for read in reads
        )
        scan = StateScan(
            tuple(port.node for port in ports),
            tuple(port.keys for port in ports),
            cells,
            tuple(port.merges for port in ports),
            answers,
            self._inputs.depth,
            restored,
        )
        chains.add_point(chain, scan, at.answered | {read.order for read in reads})
        self.notes.append(ScanNote(chains.flow.event, reads, tuple(own), tuple(others)))

    def _ring_scan(
        self, chains: EventChains, chain: RowChain, ring: Ring, place: RingPlace
    ) -> None:
        at = chain.points[-1]
        cells = state_cells(self._cells, ring.states)
        self._scanned.update(ring.states)
        rows = [place_port(chains, at, place, cells, reader=True)]
        for other in ring.places:
            if other is not place:
                point = self._point_of(other)
                assert point is not None
                of_event = self._by_event[other.event]
                rows.append(place_port(of_event, point, other, cells, reader=False))
        others = [
            (event, merge)
            for cell in cells
            for event, merge in self._flow.merges_into(cell.state)
            if (event, merge.order) not in ring_steps(ring)
        ]
        ports = [*(row.port for row in rows), *self._writers(others, cells)]
        restored = self._restore(cells, ports)
        reads = tuple(step for step in place.steps if isinstance(step, GetAccess))
        scan = RowScan(
            streams=tuple(port.node for port in ports),
            keys=tuple(port.keys for port in ports),
            states=cells,
            code=ring_code(ring, rows),
            columns=tuple(row.columns for row in rows),
            places=tuple((row.place,) for row in rows),
            merges=tuple(port.merges for port in ports),
            effects=ring_effects(chains, place),
            depth=self._inputs.depth,
            restored=restored,
            passes=True,
            calls=window_calls(rows),
        )
        chains.add_point(chain, scan, at.answered | {read.order for read in reads})
        own = tuple(step for step in place.steps if isinstance(step, MergeAccess))
        self.notes.append(ScanNote(chains.flow.event, reads, own, tuple(others), is_ring=True))

    def unread_states(self) -> list[Node]:
        """Return scans of the states that nobody reads.

        Their rows never come out; they run because a merge may fail, as it does in the serial loop.
        """
        nodes: list[Node] = []
        for cell in self._cells.values():
            if cell.state in self._scanned:
                continue
            ports = self._writers(self._flow.merges_into(cell.state), (cell,))
            if not ports:
                continue
            restored = self._restore((cell,), ports)
            scan = StateScan(
                tuple(port.node for port in ports),
                tuple(port.keys for port in ports),
                (cell,),
                tuple(port.merges for port in ports),
                (),
                self._inputs.depth,
                restored,
            )
            nodes.append(Filter(scan, Literal(False, type=BOOLEAN)))
        return nodes

    def final_state(self, cell: Cell, checks: Sequence[Node] = ()) -> Stream | None:
        """Return the final cells of a state, or None if there can be none.

        `checks` have no rows, and run together with it.
        """
        ports = self._writers(self._flow.merges_into(cell.state), (cell,))
        if not ports and cell.state not in self._inputs.restored:
            return None
        ports += [_no_merges(check, cell) for check in checks]
        restored = self._restore((cell,), ports)
        node = FinalState(
            tuple(port.node for port in ports),
            tuple(port.keys for port in ports),
            cell,
            tuple(port.merges for port in ports),
            self._inputs.depth,
            restored[0] if restored else None,
            self._inputs.as_of,
        )
        return Stream(node, cell.state)

    # --- merges --------------------------------------------------------------------------------

    def _merges(
        self, cells: tuple[Cell, ...], chains: EventChains, chain: RowChain, key: tuple[Tree, ...]
    ) -> tuple[list[MergeAccess], list[tuple[str, MergeAccess]]]:
        """Return the merges into these states: those on the reader's rows, and the others."""
        own, others = [], []
        for cell in cells:
            for event, merge in self._flow.merges_into(cell.state):
                of_event = self._by_event[event]
                if of_event is chains and merge.key == key and of_event.home(merge) is chain:
                    own.append(merge)
                else:
                    others.append((event, merge))
        return sorted(own, key=lambda m: m.order), others

    def _writers(
        self,
        merges: Iterable[tuple[str, MergeAccess]],
        cells: tuple[Cell, ...],
        without: Iterable[PlacedUnit] = (),
    ) -> list[ScanPort]:
        """Return the ports of these merges, and of units' merges into the states of these cells.

        Units in `without` are skipped: they run in the scan itself and have the state live there.
        """
        ports = writer_ports(((self._by_event[e], m) for e, m in merges), cells)
        numbers = {cell.state: n for n, cell in enumerate(cells)}
        own = {(unit.unit.event, unit.handler) for unit in without}
        for unit, state in self._unit_merges(numbers):
            if (unit.unit.event, unit.handler) not in own or state not in unit.plan.live:
                rows = self._merged_by[unit.unit.event, unit.handler, state]
                form, file = self._form(unit, state), self._file(unit)
                cell = self._cells[state]
                ports.append(merge_port(rows, unit, cell, numbers[state], form, file))
        return ports

    def _file(self, unit: PlacedUnit) -> str:
        return self._inputs.app.handlers[unit.handler].function.__code__.co_filename

    def _unit_merges(self, states: Iterable[str]) -> list[UnitMerges]:
        return [(u, state) for state in states for u in self._units if state in u.unit.writes]

    def _restore(self, cells: tuple[Cell, ...], ports: list[ScanPort]) -> tuple[int, ...]:
        """Add ports with saved cells; return the port number of each state."""
        if not any(cell.state in self._inputs.restored for cell in cells):
            return ()
        indexes = []
        for cell in cells:
            saved = self._inputs.restored.get(cell.state)
            indexes.append(-1 if saved is None else len(ports))
            if saved is not None:
                ports.append(ScanPort(saved.node, key_names(cell)))
        return tuple(indexes)

    # --- units -------------------------------------------------------------------------------

    def _run_units(self) -> bool:
        """Make the scans of units' steps that can be made now; return whether there were any."""
        ready = False
        for unit in self._units:
            for number in self._steps_left(unit):
                members = self._members(unit, number)
                if all(self._can_run(m, n, members) for m, n in members):
                    self._run_scan([UnitRun(m, n, self._forms(m, n)) for m, n in members])
                    ready = True
                    break
        return ready

    def _steps_left(self, unit: PlacedUnit) -> list[int]:
        where = unit.unit.event, unit.handler
        return [n for n in range(len(unit.steps)) if (*where, n) not in self._done]

    def _members(self, unit: PlacedUnit, number: int) -> list[tuple[PlacedUnit, int]]:
        """Return the steps that run in one scan with a step: those with the same live states."""
        step = unit.steps[number].step
        if isinstance(step, AskedStep | NoteStep):
            return [(unit, number)]
        if isinstance(step, LastStep):
            return [
                (other, n)
                for other in self._units
                if other.unit.event == unit.unit.event
                for n in self._steps_left(other)
                if isinstance(other.steps[n].step, LastStep)
                and (other is unit or self._can_run(other, n, ()))
            ]
        return [
            (other, n)
            for other in self._units
            for n, placed in enumerate(other.steps)
            if isinstance(placed.step, LiveStep)
            and self._share_cells(unit, step, other, placed.step)
        ]

    def _share_cells(
        self, unit: PlacedUnit, step: LiveStep, other: PlacedUnit, its: LiveStep
    ) -> bool:
        if unit.unit.group is not None or other.unit.group is not None:
            return unit.unit.group == other.unit.group
        return its.block == step.block

    def _can_run(
        self, unit: PlacedUnit, number: int, members: Sequence[tuple[PlacedUnit, int]]
    ) -> bool:
        if number not in self._steps_left(unit):
            return False
        placed = unit.steps[number]
        if self._by_event[unit.unit.event].main.point_with(placed.needs) is None:
            return False
        if not isinstance(placed.step, LiveStep):
            return True
        own = {(m.unit.event, m.handler) for m, _ in members}
        return self._are_placed(placed.step.states) and all(
            ((u.unit.event, u.handler) in own and state in u.plan.live)
            or (u.unit.event, u.handler, state) in self._merged_by
            for u, state in self._unit_merges(placed.step.states)
        )

    def _forms(self, unit: PlacedUnit, number: int) -> dict[str, str]:
        """Return, by state, the form in which a step's merges are given out to others."""
        step = unit.steps[number].step
        forms = {s: "merge" for s, n in unit.plan.noted.items() if n == number and s in self._cells}
        if isinstance(step, LiveStep):
            for state in step.states:
                if (
                    state in unit.unit.writes
                    and state in self._cells
                    and self._is_told(unit, state)
                ):
                    forms[state] = self._form(unit, state)
                    if forms[state] == "merge":
                        check_window(unit, state)
        return forms

    def _form(self, unit: PlacedUnit, state: str) -> str:
        if state in unit.plan.noted:
            return "merge"
        return effect_form(self._cells[state], self._goes_on(unit, state))

    def _goes_on(self, unit: PlacedUnit, state: str) -> bool:
        """Tell whether a live state of a unit is merged into by others, or saved at the end."""
        others = [
            u for u, _ in self._unit_merges([state]) if not self._run_together(u, unit, state)
        ]
        return self._inputs.final or bool(others) or bool(self._flow.merges_into(state))

    def _is_told(self, unit: PlacedUnit, state: str) -> bool:
        """Tell whether anything outside of its scan needs a unit's merges into a state."""
        readers = any(
            isinstance(access, GetAccess) and access.state == state
            for of in self._flow.events
            for access in of.accesses
        )
        others = any(
            state in u.plan.live and not self._run_together(u, unit, state) for u in self._units
        )
        return self._inputs.final or readers or others

    def _run_together(self, one: PlacedUnit, other: PlacedUnit, state: str) -> bool:
        """Tell whether two units have a state live in the same scan."""
        if one is other:
            return True
        if one.unit.group is not None or other.unit.group is not None:
            return one.unit.group == other.unit.group
        return state in one.plan.live and state in other.plan.live

    def _run_scan(self, runs: Sequence[UnitRun]) -> None:
        """Make the scan of steps that run together.

        If rows continue from it with their new columns, make a scan for each port.
        """
        ports = _ports_of(runs)
        goes_on = any(not run.is_last for run in runs)
        times = {schema(self._by_event[run.event].entrance).time for run in runs}
        if len(ports) == 1 or (not goes_on and len(times) == 1):
            scan = self._scan_of(ports, out=len(ports), passes=goes_on)
            self._note_runs(runs, scan)
        else:
            for port in ports:
                ordered = [port, *(other for other in ports if other is not port)]
                self._note_runs(port, self._scan_of(ordered, out=1, passes=True))
        self._done |= {(run.event, run.unit.handler, run.number) for run in runs}
        self.notes.append(ScanNote(runs[0].event, runs=tuple(runs)))

    def _scan_of(self, ports: Sequence[Sequence[UnitRun]], *, out: int, passes: bool) -> RowScan:
        runs = [run for port in ports for run in port]
        states = dict.fromkeys(
            state
            for run in runs
            if isinstance(run.placed.step, LiveStep)
            for state in run.placed.step.states
        )
        cells = state_cells(self._cells, (s for s in states if s in self._cells))
        self._scanned.update(cell.state for cell in cells)
        key_types = () if runs[0].unit.unit.group is not None or not cells else cells[0].keys
        own = []
        for number, port in enumerate(ports):
            chains = self._by_event[port[0].event]
            at = self._point_for(chains, port)
            own.append(run_port(port, chains, at, self._cells, key_types, gives_out=number < out))
        effects = [
            gives
            for port in ports[:out]
            for run in port
            for gives in given_out(run, self._cells, self._inputs.emitted)
        ]
        merges = [pair for cell in cells for pair in self._flow.merges_into(cell.state)]
        inputs = [
            *(port for port, _ in own),
            *self._writers(merges, cells, [run.unit for run in runs]),
        ]
        restored = self._restore(cells, inputs)
        names = ", ".join(dict.fromkeys(run.unit.handler for run in runs))
        live = [cell.state for cell in cells]
        code = handler_run(self._inputs.app, self._inputs.params, live, own, effects)
        return RowScan(
            streams=tuple(port.node for port in inputs),
            keys=tuple(port.keys for port in inputs),
            states=cells,
            code=RowCode(names, code, self._inputs.app.imported, unsaved_windows(runs, cells)),
            columns=tuple(handlers.columns for _, handlers in own),
            places=tuple(tuple(run.unit.place for run in port) for port in ports),
            merges=tuple(port.merges for port in inputs),
            effects=tuple(gives.column for gives in effects),
            depth=self._inputs.depth,
            out_ports=out,
            restored=restored,
            passes=passes,
        )

    def _point_for(self, chains: EventChains, runs: Sequence[UnitRun]) -> ChainPoint:
        needs = frozenset().union(*(run.placed.needs for run in runs))
        if any(not run.is_last for run in runs):
            return chains.main.points[-1]  # the rows go on from here
        number = chains.main.point_with(needs)
        assert number is not None
        return chains.main.points[number]

    def _note_runs(self, runs: Sequence[UnitRun], scan: RowScan) -> None:
        """Note the results of a scan."""
        tokens: dict[str, frozenset[int]] = {}
        for run in runs:
            where = run.event, run.unit.handler
            for state in run.forms:
                self._merged_by[*where, state] = scan
            if run.is_last:
                self._last[where] = scan
            else:
                before = tokens.get(run.event, frozenset())
                tokens[run.event] = before | frozenset(run.placed.tokens)
        for event, answered in tokens.items():
            main = self._by_event[event].main
            self._by_event[event].add_point(main, scan, main.points[-1].answered | answered)

    def _are_taken(self, states: Iterable[str]) -> bool:
        """Tell whether the merges of all units into these states have been taken."""
        return all(
            (unit.unit.event, unit.handler, state) in self._merged_by
            for unit, state in self._unit_merges(states)
        )

    def _are_placed(self, states: Iterable[str], without: frozenset[Request] = frozenset()) -> bool:
        """Tell whether all merges of handlers in columns into these states have their place."""
        return all(
            self._by_event[event].point(merge) is not None
            for state in states
            for event, merge in self._flow.merges_into(state)
            if (event, merge.order) not in without
        )


def _no_merges(rows: Node, cell: Cell) -> ScanPort:
    """Return a port of rows that never come."""
    names = key_names(cell)
    columns = [(n, Literal(None, type=t)) for n, t in zip(names, cell.keys, strict=True)]
    return ScanPort(Project(rows, tuple(columns)), names)


def _ports_of(runs: Sequence[UnitRun]) -> list[list[UnitRun]]:
    """Return the runs by port: one for each event type and key that its rows are split by."""
    ports: dict[object, list[UnitRun]] = {}
    for run in sorted(runs, key=lambda r: r.unit.place):
        placed = run.placed
        key = placed.key if isinstance(placed.step, LiveStep) else ()
        ports.setdefault((run.event, key), []).append(run)
    return list(ports.values())


def ring_steps(ring: Ring) -> frozenset[Request]:
    """Return the accesses that a ring runs."""
    return frozenset((place.event, step.order) for place in ring.places for step in place.steps)
