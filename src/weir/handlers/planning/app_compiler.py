"""Compiles an app to a plan: its reads and merges become scans along its event types' chains.

Contract
1. Emitted rows and final states are streams of plain algebra: the same app, parameters, paths and
   span of time make equal plans.
2. The types of keys, of emitted streams and of states are determined before any scan is made.
3. States that no handler reads are compiled for their final state only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from weir.errors import PlanError
from weir.events.types import BOOLEAN, is_integer
from weir.handlers.api.app import App
from weir.handlers.api.bound_streams import with_streams
from weir.handlers.planning.app_explanation import app_text
from weir.handlers.planning.chains import EventChains, in_handler, scope_of
from weir.handlers.planning.dataflow import Flow, app_flow
from weir.handlers.planning.emitted_streams import (
    EmitBranch,
    EmitTypes,
    by_name,
    chain_branches,
    check_rows,
    emit_columns,
    emitted_streams,
)
from weir.handlers.planning.entrance import entrance
from weir.handlers.planning.handler_order import PlacedUnit
from weir.handlers.planning.ring_scans import outside_reads, ring_places
from weir.handlers.planning.row_scans import emit_rows, never_column
from weir.handlers.planning.row_stages import AskedStep
from weir.handlers.planning.scan_planner import PlanInputs, ScanNote, ScanPlanner
from weir.handlers.planning.state_keys import TypedAccess, app_cells
from weir.handlers.reading.analysis import analyse_app
from weir.handlers.runs.live_handles import param_places
from weir.handlers.trees.accesses import Analysed, EmitAccess, MergeAccess
from weir.plan.binding.binder import unknown
from weir.plan.expressions import Column
from weir.plan.fluent.stream import Stream
from weir.plan.operators import Filter, Node, schema
from weir.plan.states import Cell


@dataclass(frozen=True, slots=True)
class Compiled:
    """The emitted streams of a compiled app and, if asked for, its final states."""

    app: App
    flow: Flow
    emitted: dict[str, Stream]
    final: dict[str, Stream]
    scans: tuple[ScanNote, ...]
    chains: tuple[EventChains, ...]
    cells: dict[str, Cell]

    def text(self, slow: Mapping[str, str] | None = None) -> str:
        """Return how the app runs, for `weir explain`.

        `slow` gives the reasons why some states are not kept by compiled loops.
        """
        return app_text(self.app.name, self.flow, self.chains, self.cells, self.scans, slow or {})


def compile_app(
    app: App,
    *,
    paths: Mapping[str, str] | None = None,
    params: Mapping[str, object] | None = None,
    start: int | None = None,
    end: int | None = None,
    restored: Mapping[str, Stream] | None = None,
    final: bool = False,
    as_of: int | None = None,
    vectorise: bool = True,
    first_index: int = 0,
    streams: Mapping[str, Stream] | None = None,
    flow: Flow | None = None,
) -> Compiled:
    """Compile an app to the streams that it emits, and with `final` also to its final states.

    `paths` has the paths of logs, by event type. Only events with start ≤ vs < end count.
    `restored` has the final states of an earlier run, from which this one continues. `as_of` is a
    time at or after all events; cells that have ended by then are left out of the final states. The
    app's own sources are numbered from `first_index` on. `streams` replace the logs of some event
    types. `flow` may be the dataflow of the same app with the same parameters, from an earlier
    compilation.
    """
    for name in restored or {}:
        if name not in app.states:
            raise unknown("state", name, app.states)
    if not app.handlers:
        event = next(iter(app.event_types), "event")
        hint = f"@app.on({event}) stands above the function that handles it"
        raise PlanError(f"the app `{app.name}` has no handlers", hint=hint)
    values = app.param_values(params)
    param_places(app)  # refuses parameters that no run could set
    flow = flow or flow_of(app, values, vectorise=vectorise)
    events = with_streams(app.event_types, streams or {})
    enters = entrance(events, paths or {}, start, end, first_index)
    files = {name: h.function.__code__.co_filename for name, h in app.handlers.items()}
    typed = _typed_accesses(app, flow, enters.rows, files, vectorise)
    cells = app_cells(app.states, [pair for pairs in typed.values() for pair in pairs])
    _check_keys_known(flow, cells)
    chains = _event_chains(app, flow, enters.rows, cells, files, vectorise)
    branches: list[EmitBranch] = []
    unit_emits = _UnitEmits()
    for number, of_event in enumerate(chains):
        branches += chain_branches(number, of_event)
        for unit in of_event.flow.units:
            emits = typed[of_event.flow.event, unit.handler]
            branches += unit_emits.branches(number, unit, emits)
    emitted = {
        name: emit_columns(name, of_name, app.emit_declarations.get(name))
        for name, of_name in by_name(branches).items()
    }
    planner = ScanPlanner(
        PlanInputs(
            app,
            values,
            flow,
            chains,
            cells,
            emitted,
            enters.depth,
            dict(restored or {}),
            final,
            as_of,
        )
    )
    planner.plan()
    unit_emits.planner = planner
    checks = _checks(flow, chains, planner)
    if not final:
        checks += planner.unread_states()
    outputs, checks = emitted_streams(branches, emitted, enters.depth, checks)
    finals: dict[str, Stream] = {}
    for name, cell in cells.items() if final else ():
        stream = planner.final_state(cell, checks)
        if stream is not None:
            finals[name], checks = stream, []
    if checks and (outputs or finals):
        raise PlanError(
            f"what `{app.name}` emits has another kind of time than the events of some handlers, "
            "so these handlers would not run",
            hint="emit something for these events, too, or give all logs one kind of time",
        )
    return Compiled(
        app,
        flow,
        outputs,
        finals,
        tuple(planner.notes),
        tuple(chains),
        cells,
    )


def _checks(flow: Flow, chains: Sequence[EventChains], planner: ScanPlanner) -> list[Node]:
    """Return nodes that must run though no output needs them.

    These are checks, and units that emit nothing.
    """
    checks = [node for of_event in chains for node in check_rows(of_event)]
    for unit in flow.units():
        if not unit.unit.emits:
            rows = planner.last_run(unit)
            checks.append(Filter(rows, Column(never_column(unit), type=BOOLEAN)))
    return checks


def _typed_accesses(
    app: App,
    flow: Flow,
    rows: Mapping[str, Node],
    files: Mapping[str, str],
    vectorise: bool,
) -> dict[tuple[str, str], list[TypedAccess]]:
    """Return the accesses of all handlers with scopes that know their types.

    They are by event type and handler; those of units are as analysis found them.
    """
    typed: dict[tuple[str, str], list[TypedAccess]] = {}
    for of in flow.events:
        units = {unit.handler: unit for unit in of.units}
        for handler in of.handlers:
            own = [a for a in of.accesses if a.handler == handler]
            accesses = units[handler].unit.accesses if handler in units else own
            scope = scope_of(accesses, schema(rows[of.event]), app.states, files, vectorise)
            scope = in_handler(scope, handler, files)
            typed[of.event, handler] = [(access, scope) for access in accesses]
    return typed


def _event_chains(
    app: App,
    flow: Flow,
    rows: Mapping[str, Node],
    cells: Mapping[str, Cell],
    files: Mapping[str, str],
    vectorise: bool,
) -> list[EventChains]:
    rings, names = ring_places(flow.rings), flow.merge_names()
    chains = []
    for of in flow.events:
        mine = {n: place for (e, n), (_, place) in rings.items() if e == of.event}
        waits = {n: outside_reads(place) for n, place in mine.items()}
        on_main = frozenset(n for n, place in mine.items() if place.block is None)
        named = {n: name for (e, n), name in names.items() if e == of.event}
        parts = {
            token: dtype
            for unit in of.units
            for placed in unit.steps
            if isinstance(placed.step, AskedStep)
            for token, dtype in zip(placed.tokens, cells[placed.step.states[0]].keys, strict=True)
        }
        chains.append(
            EventChains(
                of,
                rows[of.event],
                waits,
                on_main,
                named,
                app.states,
                files,
                parts,
                vectorise=vectorise,
            )
        )
    return chains


def app_emitted(app: App, name: str, *, params: Mapping[str, object] | None = None) -> Stream:
    """Return the rows that an app emits under a name, as a stream."""
    emitted = compile_app(app, params=params).emitted
    if name not in emitted:
        raise unknown("emitted stream", name, emitted)
    return emitted[name]


def flow_of(
    app: App, params: Mapping[str, object] | None = None, *, vectorise: bool = True
) -> Flow:
    """Analyse the handlers of an app and draw its dataflow."""
    app.check_serial()
    groups = {name: app.serial_group(name) for name in app.handlers}
    analysed = analyse_app(app, params)
    return app_flow(
        list(app.event_types),
        analysed,
        groups,
        list(app.states),
        _Traits(app, analysed),
        vectorise=vectorise,
    )


@dataclass(frozen=True, slots=True)
class _Traits:
    """Answers planning's questions about the states of an app (see `StateTraits`)."""

    app: App
    analysed: Sequence[Analysed]

    def can_fail(self, state: str) -> bool:
        return self._sums(state) and not self.defers(state)

    def defers(self, state: str) -> bool:
        if not self._sums(state) or self.app.states[state].default is None:
            return False
        writers = [one for one in self.analysed if state in one.writes]
        merges = (a for one in writers for a in one.accesses if isinstance(a, MergeAccess))
        return all(not one.refused for one in writers) and all(
            merge.kind in ("add", "max", "min") for merge in merges if merge.state == state
        )

    def _sums(self, state: str) -> bool:
        # A sum may exceed its type until it is read.
        dtype = self.app.states[state].type
        return self.is_window(state) and (is_integer(dtype) or pa.types.is_decimal(dtype))

    def is_window(self, state: str) -> bool:
        return self.app.states[state].last is not None

    def has_same_keys(self, one: str, other: str) -> bool:
        keys = self.app.states[one].keys
        return keys is not None and keys == self.app.states[other].keys


def _check_keys_known(flow: Flow, cells: Mapping[str, object]) -> None:
    for unit in flow.units():
        for state in sorted(unit.unit.touched):
            if state not in cells:
                raise PlanError(
                    f"the key of `{state}` is not known, as `{unit.handler}` runs as it is",
                    hint=f"say it: app.state('{state}', …, key='BIGINT')",
                )


class _UnitEmits:
    """Makes the branches of rows that units emit, which exist only when scans are planned."""

    planner: ScanPlanner

    def branches(
        self, number: int, unit: PlacedUnit, typed: Sequence[TypedAccess]
    ) -> list[EmitBranch]:
        branches = []
        for name in sorted(unit.unit.emits):
            emits = tuple(
                (access, scope)
                for access, scope in typed
                if isinstance(access, EmitAccess) and access.name == name
            )

            def rows(columns: EmitTypes, name: str = name) -> Node:
                return emit_rows(self.planner.last_run(unit), unit, name, columns)

            place = number, unit.place
            branches.append(EmitBranch(name, place, unit.place, True, emits, unit.handler, rows))
        return branches
