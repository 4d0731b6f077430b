"""An app becomes a plan here: its accesses are put into scans along the chains of its event types.

Contract
1. What is emitted, and the final states, are streams of plain algebra: the same app, parameters,
   paths and span of time make equal plans.
2. Types are found before any scan is made: those of keys, of what is emitted, of states.
3. States that nobody reads are compiled for their final state only.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from weir.errors import PlanError
from weir.handlers.accesses import EmitAccess
from weir.handlers.analysis import analyse_app
from weir.handlers.app import App
from weir.handlers.chains import EventChains, in_handler, scope_of
from weir.handlers.columns import Scope
from weir.handlers.dataflow import Flow, app_flow
from weir.handlers.emitting import (
    EmitBranch,
    EmitTypes,
    by_name,
    chain_branches,
    emit_columns,
    emitted_streams,
)
from weir.handlers.entrance import entrance
from weir.handlers.explaining import app_text
from weir.handlers.given_streams import with_streams
from weir.handlers.handler_order import WholeHandler
from weir.handlers.ring_scans import outside_reads, ring_places
from weir.handlers.scan_planning import PlanInputs, ScanNote, ScanPlanner
from weir.handlers.serial_scans import emit_rows
from weir.handlers.state_keys import TypedAccess, app_cells
from weir.plan.binding.binder import unknown
from weir.plan.operators import Node, schema
from weir.plan.states import Cell
from weir.plan.stream import Stream


@dataclass(frozen=True, slots=True)
class Compiled:
    """A `Compiled` app has what is emitted and, where it was asked for, the final states."""

    app: App
    flow: Flow
    emitted: dict[str, Stream]
    final: dict[str, Stream]
    scans: tuple[ScanNote, ...]
    chains: tuple[EventChains, ...]
    cells: dict[str, Cell]

    def text(self, slow: Mapping[str, str] | None = None) -> str:
        """Say how the app runs, for `weir explain`; `slow` says of states why no compiled loop
        keeps them."""
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
) -> Compiled:
    """Compile an app: to what it emits, and with `final` to the cells of its states at the end.

    `paths` are those of logs, by event type; only events with start ≤ vs < end count. `restored`
    are the final states of an earlier run, which this one goes on from. `as_of` is a time that no
    event is later than: final states then leave out what has ended by it. The app's own sources
    have the numbers from `first_index` on. `streams` are in place of the logs of some event types.
    """
    for name in restored or {}:
        if name not in app.states:
            raise unknown("state", name, app.states)
    if not app.handlers:
        event = next(iter(app.event_types), "event")
        hint = f"@app.on({event}) stands above the function that handles it"
        raise PlanError(f"the app `{app.name}` has no handlers", hint=hint)
    values = app.param_values(params)
    flow = flow_of(app, values)
    events = with_streams(app.event_types, streams or {})
    enters = entrance(events, paths or {}, start, end, first_index)
    files = {name: h.function.__code__.co_filename for name, h in app.handlers.items()}
    rings, names = ring_places(flow.rings), flow.merge_names()
    chains = []
    typed: list[TypedAccess] = []
    branches: list[EmitBranch] = []
    wholes = _WholeEmits()
    for number, of in enumerate(flow.events):
        rows = enters.rows[of.event]
        mine = {n: place for (e, n), (_, place) in rings.items() if e == of.event}
        waits = {n: outside_reads(place) for n, place in mine.items()}
        on_main = frozenset(n for n, place in mine.items() if place.block is None)
        named = {n: name for (e, n), name in names.items() if e == of.event}
        chains.append(
            EventChains(of, rows, waits, on_main, named, app.states, files, vectorise=vectorise)
        )
        typed += [(access, chains[-1].scope(access)) for access in of.accesses]
        branches += chain_branches(number, chains[-1])
        for whole in of.whole:
            scope = scope_of(whole.accesses, schema(rows), app.states, files, vectorise)
            scope = in_handler(scope, whole.handler, files)
            typed += [(access, scope) for access in whole.accesses]
            branches += wholes.branches(number, of.event, whole, scope)
    emitted = {
        name: emit_columns(name, found, app.emit_declarations.get(name))
        for name, found in by_name(branches).items()
    }
    cells = app_cells(app.states, typed)
    _check_keys_known(flow, cells)
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
    wholes.planner = planner
    finals = {name: planner.final_state(cell) for name, cell in cells.items()} if final else {}
    return Compiled(
        app,
        flow,
        emitted_streams(branches, emitted, enters.depth),
        {name: stream for name, stream in finals.items() if stream is not None},
        tuple(planner.notes),
        tuple(chains),
        cells,
    )


def app_emitted(app: App, name: str, *, params: Mapping[str, object] | None = None) -> Stream:
    """Return what an app emits under a name, as a stream."""
    emitted = compile_app(app, params=params).emitted
    if name not in emitted:
        raise unknown("emitted stream", name, emitted)
    return emitted[name]


def flow_of(app: App, params: Mapping[str, object] | None = None) -> Flow:
    """Analyse the handlers of an app and draw its dataflow."""
    app.check_serial()
    analysed = analyse_app(app, params)
    groups = {name: app.serial_group(name) for name in app.handlers}
    return app_flow(list(app.event_types), analysed, groups)


def _check_keys_known(flow: Flow, cells: Mapping[str, object]) -> None:
    for members in flow.groups().values():
        for _, whole in members:
            for state in sorted(whole.reads | whole.writes):
                if state not in cells:
                    raise PlanError(
                        f"the key of `{state}` is not known, as `{whole.handler}` runs whole",
                        hint=f"say it: app.state('{state}', …, key='BIGINT')",
                    )


class _WholeEmits:
    """Makes the branches of handlers that run whole, whose rows exist when scans are planned."""

    planner: ScanPlanner

    def branches(
        self, number: int, event: str, whole: WholeHandler, scope: Scope
    ) -> list[EmitBranch]:
        made = []
        for name in sorted(whole.emits):
            found = tuple(
                (access, scope)
                for access in whole.accesses
                if isinstance(access, EmitAccess) and access.name == name
            )

            def rows(columns: EmitTypes, name: str = name) -> Node:
                scan = self.planner.serial_rows(whole.group, event)
                return emit_rows(scan, whole, name, columns)

            place = number, whole.order
            made.append(EmitBranch(name, place, whole.order, True, found, whole.handler, rows))
        return made
