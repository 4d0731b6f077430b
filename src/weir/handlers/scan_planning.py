"""The scans of an app are planned here, one after the other, until every read is answered.

Rules
1. A scan can be made when the reads of its key are known, and all merges into its states have
   their place on some chain (a serial group's: when it runs).
2. Reads with one key on one chain that can be answered at the same time share a scan. A scan is
   put off as long as more reads of its key wait for other scans.
3. Merges into a scan's states that lie on the reader's rows stay there; others are ports.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from weir.handlers.accesses import Access, EmitAccess, GetAccess, MergeAccess, access_place
from weir.handlers.app import App
from weir.handlers.chains import ChainPoint, EventChains, RowChain
from weir.handlers.dataflow import Flow, Request, Ring, RingPlace, waits_for
from weir.handlers.emitting import EmitTypes
from weir.handlers.ring_scans import (
    RowPort,
    as_row_port,
    other_ports,
    outside_reads,
    place_port,
    ring_code,
    ring_effects,
    ring_places,
)
from weir.handlers.scan_ports import ScanPort, reader_port, state_cells, writer_ports
from weir.handlers.serial_planning import SerialRows
from weir.handlers.serial_scans import effect_columns, group_scan
from weir.handlers.values import Tree
from weir.plan.operators import FinalState, Node, RowScan, StateScan
from weir.plan.saved_states import key_names
from weir.plan.states import Cell, StateRead
from weir.plan.stream import Stream


@dataclass(frozen=True, slots=True)
class ScanNote:
    """A `ScanNote` says what one scan answers, and which merges reach it, for `explain`."""

    event: str
    reads: tuple[GetAccess, ...]
    own: tuple[MergeAccess, ...]
    others: tuple[tuple[str, MergeAccess], ...]
    is_ring: bool = False


@dataclass(frozen=True, slots=True)
class PlanInputs:
    """`PlanInputs` are what the scans of an app are planned from."""

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
    """A `_Waiting` is a read that a chain's rows still need an answer to."""

    chains: EventChains
    chain: RowChain
    read: GetAccess


class ScanPlanner:
    """The `ScanPlanner` lets chains grow, scan by scan, until all needed reads are answered."""

    def __init__(self, given: PlanInputs) -> None:
        self._given = given
        self._flow, self._cells = given.flow, given.cells
        self._by_event = {of.flow.event: of for of in given.chains}
        self._rings = ring_places(given.flow.rings)
        self._serial = SerialRows(given.flow, given.cells, final=given.final)
        self._needed: dict[str, list[Access]] = {}
        self.notes: list[ScanNote] = []

    def plan(self) -> None:
        """Make all scans."""
        needed = self._all_needed()
        for of_event in self._given.chains:
            name = of_event.flow.event
            self._needed[name] = [a for a in of_event.flow.accesses if (name, a.order) in needed]
            of_event.begin(self._needed[name])
        while True:
            self._run_groups()
            waiting = self._waiting()
            if not waiting:
                break
            self._answer(waiting)
        assert all(map(self._serial.is_done, self._serial.groups.values()))

    def serial_rows(self, group: int, event: str) -> Node:
        """Return the rows of a serial group's scan."""
        return self._serial.rows[group, event]

    # --- what is needed ----------------------------------------------------------------------

    def _all_needed(self) -> set[Request]:
        """Return all emits, and the reads and merges that they come from (where final states are
        asked for, all merges)."""
        found: set[Request] = set()
        stack: list[tuple[str, Access]] = [
            (of.event, access)
            for of in self._flow.events
            for access in of.accesses
            if isinstance(access, EmitAccess)
            or (self._given.final and isinstance(access, MergeAccess))
        ]
        for group in self._serial.groups.values():
            for state in sorted(group.touched):
                stack += self._flow.merges_into(state)
        while stack:
            event, access = stack.pop()
            if (event, access.order) in found:
                continue
            found.add((event, access.order))
            stack += [(event, self._flow.of(event).access(order)) for order in waits_for(access)]
            if isinstance(access, GetAccess):
                stack += self._flow.merges_into(access.state)
            if (event, access.order) in self._rings:
                ring, _ = self._rings[event, access.order]
                stack += [(place.event, step) for place in ring.places for step in place.steps]
        return found

    def _waiting(self) -> list[_Waiting]:
        found: dict[tuple[str, int, int], _Waiting] = {}
        for of_event in self._given.chains:
            name = of_event.flow.event
            for access in self._needed[name]:
                pending = of_event.pending(access)
                chain = of_event.home(access)
                if isinstance(access, GetAccess):
                    if not of_event.is_on_main(access):
                        continue  # whoever uses it says on which rows
                    chain = of_event.main
                    unanswered = access.order not in chain.points[-1].answered
                    pending = [access] if unanswered else []
                for read in pending:
                    assert chain is not None
                    found[name, id(chain), read.order] = _Waiting(of_event, chain, read)
        return list(found.values())

    # --- which scan is next --------------------------------------------------------------------

    def _answer(self, waiting: list[_Waiting]) -> None:
        """Add the next scan."""
        groups: dict[object, list[_Waiting]] = {}
        for one in waiting:
            types = self._cells[one.read.state].keys
            ring, _ = self._rings.get((one.chains.flow.event, one.read.order), (None, None))
            key = (id(one.chain), one.read.key, types, ring)
            groups.setdefault(key, []).append(one)
        ready = {group: [w for w in ws if self._is_ready(w)] for group, ws in groups.items()}
        able = [group for group, found in ready.items() if found]
        assert able, "reads wait for each other, and no ring was found"
        whole = [group for group in able if len(ready[group]) == len(groups[group])]
        chosen = ready[(whole or able)[0]]
        chains, chain = chosen[0].chains, chosen[0].chain
        reads = tuple(sorted((w.read for w in chosen), key=lambda r: r.order))
        found = self._rings.get((chains.flow.event, reads[0].order))
        if found is None:
            self._scan(chains, chain, reads)
        else:
            self._ring_scan(chains, chain, *found)

    def _is_ready(self, one: _Waiting) -> bool:
        found = self._rings.get((one.chains.flow.event, one.read.order))
        answered = one.chain.points[-1].answered
        if found is None:
            return waits_for(one.read) <= answered and self._all_merged([one.read.state])
        ring, place = found
        for other in ring.places:
            if other is not place and self._point_of(other) is None:
                return False
        return outside_reads(place) <= answered and self._all_merged(ring.states, ring_steps(ring))

    def _point_of(self, place: RingPlace) -> ChainPoint | None:
        """Return the point that a ring's rows of an event type come from, if there is one yet."""
        chains, reads = self._by_event[place.event], outside_reads(place)
        if place.block is not None:
            return chains.point(place.steps[0], reads)
        number = chains.main.point_with(reads)
        return None if number is None else chains.main.points[number]

    def _all_merged(self, states: Iterable[str], without: frozenset[Request] = frozenset()) -> bool:
        """Tell whether all merges into these states have their place."""
        return self._are_placed(states, without) and self._serial.are_done(states)

    # --- scans ---------------------------------------------------------------------------------

    def _scan(self, chains: EventChains, chain: RowChain, reads: tuple[GetAccess, ...]) -> None:
        at = chain.points[-1]
        cells = state_cells(self._cells, (read.state for read in reads))
        own, others = self._merges(cells, chains, chain, reads[0].key)
        ports = [reader_port(chains, at, reads, own, cells), *self._writers(others, cells)]
        restored = self._restore(cells, ports)
        states = {cell.state: n for n, cell in enumerate(cells)}
        answers = tuple(
            StateRead(
                states[read.state], chains.answer(read.order), read.order,
                read.order if read.block is None else read.block,
                access_place(read, chains.scope(read).where),
            )
            for read in reads
        )  # fmt: skip
        scan = StateScan(
            tuple(port.node for port in ports), tuple(port.keys for port in ports), cells,
            tuple(port.merges for port in ports), answers, self._given.depth, restored,
        )  # fmt: skip
        chains.add_point(chain, scan, at.answered | {read.order for read in reads})
        self.notes.append(ScanNote(chains.flow.event, reads, tuple(own), tuple(others)))

    def _ring_scan(
        self, chains: EventChains, chain: RowChain, ring: Ring, place: RingPlace
    ) -> None:
        at = chain.points[-1]
        cells = state_cells(self._cells, ring.states)
        rows = [place_port(chains, at, place, cells, reader=True)]
        for other in ring.places:
            if other is not place:
                point = self._point_of(other)
                assert point is not None
                of_event = self._by_event[other.event]
                rows.append(place_port(of_event, point, other, cells, reader=False))
        others, more = self._other_rows(cells, ring_steps(ring))
        rows += more
        ports = [row.port for row in rows]
        restored = self._restore(cells, ports)
        saved = len(ports) - len(rows)
        reads = tuple(step for step in place.steps if isinstance(step, GetAccess))
        scan = RowScan(
            tuple(port.node for port in ports),
            tuple(port.keys for port in ports),
            cells,
            ring_code(ring, rows),
            (*(row.columns for row in rows), *((),) * saved),
            (*(row.place for row in rows), *((0, 0),) * saved),
            ring_effects(chains, place),
            self._given.depth,
            restored,
            tuple(call for row in rows for call in row.calls),
        )
        chains.add_point(chain, scan, at.answered | {read.order for read in reads})
        own = tuple(step for step in place.steps if isinstance(step, MergeAccess))
        self.notes.append(ScanNote(chains.flow.event, reads, own, tuple(others), is_ring=True))

    def final_state(self, cell: Cell) -> Stream | None:
        """Return the cells of a state at the end, if anything can be in them."""
        ports = self._writers(self._flow.merges_into(cell.state), (cell,))
        restored = self._restore((cell,), ports)
        if not ports:
            return None
        node = FinalState(
            tuple(port.node for port in ports), tuple(port.keys for port in ports), cell,
            tuple(port.merges for port in ports), self._given.depth,
            restored[0] if restored else None, self._given.as_of,
        )  # fmt: skip
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
        self, merges: Iterable[tuple[str, MergeAccess]], cells: tuple[Cell, ...]
    ) -> list[ScanPort]:
        """Return the ports of merges, and those of serial groups' merges into these states."""
        ports = writer_ports(((self._by_event[e], m) for e, m in merges), cells)
        return ports + [port for _, port in self._serial.ports(cells)]

    def _other_rows(
        self, cells: tuple[Cell, ...], without: frozenset[Request], group: int | None = None
    ) -> tuple[list[tuple[str, MergeAccess]], list[RowPort]]:
        """Return the merges into a row scan's states that are not its own, and their ports."""
        merges = [
            (event, merge)
            for cell in cells
            for event, merge in self._flow.merges_into(cell.state)
            if (event, merge.order) not in without
        ]
        rows = other_ports([(self._by_event[e], m) for e, m in merges], cells)
        for whole, port in self._serial.ports(cells, group):
            rows.append(as_row_port(port, cells, whole.handler, ""))
        return merges, rows

    def _restore(self, cells: tuple[Cell, ...], ports: list[ScanPort]) -> tuple[int, ...]:
        """Add the ports with saved cells; return which one each state has."""
        if not any(cell.state in self._given.restored for cell in cells):
            return ()
        found = []
        for cell in cells:
            saved = self._given.restored.get(cell.state)
            found.append(-1 if saved is None else len(ports))
            if saved is not None:
                ports.append(ScanPort(saved.node, key_names(cell)))
        return tuple(found)

    # --- serial groups -------------------------------------------------------------------------

    def _run_groups(self) -> None:
        """Make the scans of all serial groups that can be made now."""
        for group in self._serial.groups.values():
            states = sorted(group.touched)
            known = self._serial.are_done(states, group.number)
            if self._serial.is_done(group) or not known or not self._are_placed(states):
                continue
            cells = state_cells(self._cells, states)
            _, rows = self._other_rows(cells, frozenset(), group.number)
            for event in group.events:
                effects = effect_columns(
                    group.of(event), self._given.emitted, self._serial.forms(group), self._cells
                )
                self._serial.rows[group.number, event] = group_scan(
                    self._given.app, self._given.params, group, event, cells, self._by_event,
                    rows, effects, self._given.depth, self._restore,
                )  # fmt: skip

    def _are_placed(self, states: Iterable[str], without: frozenset[Request] = frozenset()) -> bool:
        """Tell whether all merges of compiled handlers into these states have their place."""
        return all(
            self._by_event[event].point(merge) is not None
            for state in states
            for event, merge in self._flow.merges_into(state)
            if (event, merge.order) not in without
        )


def ring_steps(ring: Ring) -> frozenset[Request]:
    """Return the accesses that a ring runs."""
    return frozenset((place.event, step.order) for place in ring.places for step in place.steps)
