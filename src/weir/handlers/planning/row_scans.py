"""Plans row scans for the runs of units: one for all steps that need the same cells.

Contract
1. A scan has a port for each event type whose units take its step. The port has the rows of a point
   of the event type's chain: the event, the keys and answers of reads, and the answers that earlier
   runs recorded.
2. A scan gives out these columns: `$r5` is the part of a key that the step with token 5 computes,
   `$q5` whether its unit does nothing on the row, `$w5.sent` the answers that reads of a live state
   got, `$emessage.9.spam` the rows that the handler at place 9 of an event type emits,
   `$smessage.9.sent` its merges into a state that others use.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from weir.errors import PlanError
from weir.events.types import BOOLEAN, DOUBLE, STRING
from weir.handlers.api.app import App
from weir.handlers.columns.column_values import column_of
from weir.handlers.planning.chains import ChainPoint, EventChains
from weir.handlers.planning.emitted_streams import EmitTypes
from weir.handlers.planning.handler_order import PlacedStep, PlacedUnit
from weir.handlers.planning.row_stages import AskedStep, LiveStep
from weir.handlers.planning.scan_merges import constant_k
from weir.handlers.planning.scan_ports import PortColumns, ScanPort
from weir.handlers.runs.handler_runs import (
    AnsweredRead,
    Effect,
    EmitEffect,
    HandlerPort,
    HandlerRun,
    KeyEffect,
    ListedReads,
    MergeEffect,
    MergeUse,
    NeverEffect,
    PlannedHandler,
    QuietEffect,
    ReadUse,
    RecordEffect,
    StateUse,
    merge_label,
)
from weir.handlers.trees.accesses import GetAccess, MergeAccess, handler_place
from weir.plan.binding.projection import keep_only, with_columns
from weir.plan.expressions import Call, Column, Expr, Literal
from weir.plan.operators import Explode, Node, Project, schema
from weir.plan.saved_states import key_names
from weir.plan.states import (
    MERGE_TRAITS,
    Cell,
    HandlerPlace,
    MergeKind,
    RowEffect,
    StateMerge,
    told_kinds,
)


@dataclass(frozen=True, slots=True)
class UnitRun:
    """A step of a unit that a scan runs.

    `forms` has, by state, the form in which its merges are given out to others.
    """

    unit: PlacedUnit
    number: int
    """The number of the step in its unit."""
    forms: Mapping[str, str] = field(default_factory=dict)

    @property
    def placed(self) -> PlacedStep:
        return self.unit.steps[self.number]

    @property
    def is_last(self) -> bool:
        return self.number == len(self.unit.steps) - 1

    @property
    def event(self) -> str:
        return self.unit.unit.event


@dataclass(frozen=True, slots=True)
class GivenOut:
    """An effect of a run, with its column."""

    effect: Effect
    column: RowEffect


def given_out(
    run: UnitRun, cells: Mapping[str, Cell], emitted: Mapping[str, EmitTypes]
) -> list[GivenOut]:
    """Return the effects of a run with their columns, in order."""
    unit, placed = run.unit, run.placed
    event, handler = run.event, unit.handler
    outputs: list[GivenOut] = []
    match placed.step:
        case AskedStep(states=states):
            for part, token in enumerate(placed.tokens):
                key = KeyEffect(event, handler, frozenset(states), part)
                column = RowEffect(f"$r{token}", cells[states[0]].keys[part])
                outputs.append(GivenOut(key, column))
            quiet = QuietEffect(event, handler)
            outputs.append(GivenOut(quiet, RowEffect(_quiet_column(placed), BOOLEAN)))
        case LiveStep(states=states) if not run.is_last:
            for state in states:
                if _reads(unit, state):
                    record = RecordEffect(event, handler, state)
                    name = _record_column(placed, state)
                    dtype = pa.list_(cells[state].type)
                    column = RowEffect(name, dtype, is_list=True, is_whole=True)
                    outputs.append(GivenOut(record, column))
    for state, form in run.forms.items():
        cell = cells[state]
        kinds = tuple(merge_label(kind, k) for kind, k in _kinds(unit, cell))
        of_list = pa.types.is_list(cell.type)
        merge = MergeEffect(event, handler, state, form, kinds, of_list)  # type: ignore[arg-type]
        dtype = pa.list_(pa.struct(_merge_fields(cell, form)))
        outputs.append(GivenOut(merge, RowEffect(merge_column(unit, state), dtype, is_list=True)))
    if run.is_last:
        for name in sorted(unit.unit.emits):
            columns = emitted[name]
            emit = EmitEffect(event, handler, name, tuple(column for column, _ in columns))
            dtype = pa.list_(pa.struct(list(columns)))
            outputs.append(GivenOut(emit, RowEffect(emit_column(unit, name), dtype, is_list=True)))
        if not unit.unit.emits:
            outputs.append(
                GivenOut(NeverEffect(event, handler), RowEffect(never_column(unit), BOOLEAN))
            )
    return outputs


def _reads(unit: PlacedUnit, state: str) -> bool:
    return any(isinstance(a, GetAccess) for a in unit.unit.of(state))


# --- ports -------------------------------------------------------------------------------------


def run_port(
    runs: Sequence[UnitRun],
    chains: EventChains,
    at: ChainPoint,
    cells: Mapping[str, Cell],
    key_types: Sequence[pa.DataType],
    *,
    gives_out: bool,
) -> tuple[ScanPort, HandlerPort]:
    """Make the port of the units of one event type, at a point of its chain."""
    columns = PortColumns(at.node)
    event = runs[0].event
    reached = [run.unit.unit.event_columns for run in runs]
    own = [
        name
        for name, _ in chains.event_columns
        if any(columns is None or name in columns for columns in reached)
    ]
    extra: dict[str, None] = {}

    def column(preferred: str, expr: Expr) -> str:
        name = columns.name(preferred, expr)
        extra[name] = None
        return name

    handlers = [_planned(run, chains, at, cells, column) for run in runs]
    placed = runs[0].placed
    key = placed.key if isinstance(placed.step, LiveStep) else ()
    scope = chains.unit_scope(runs[0].unit.handler)
    keys = tuple(
        column(f"$l{placed.tokens[0]}.{n}", column_of(part, scope, target=dtype))
        for n, (part, dtype) in enumerate(zip(key, key_types, strict=True))
    )
    added = tuple(columns.added.items())
    rows = with_columns(at.node, added) if added else at.node
    names = (*own, *(name for name in extra if name not in own))
    port = HandlerPort(event, names, len(own), tuple(handlers), gives_out)
    return ScanPort(rows, keys), port


def _planned(
    run: UnitRun,
    chains: EventChains,
    at: ChainPoint,
    cells: Mapping[str, Cell],
    column: object,
) -> PlannedHandler:
    assert callable(column)
    unit, scope = run.unit, chains.unit_scope(run.unit.handler)
    answers = []
    lists = []
    for read in unit.reads:
        if read.order in at.answered and _is_before(run, read):
            if read.block is not None:
                names = (*chains.gathered_keys(read), chains.gathered_answers(read))
                own = schema(at.node)
                columns = (column(n, Column(n, type=own.type_of(n))) for n in names)
                *key, gathered = columns
                lists.append(ListedReads(read.state, tuple(key), gathered, read.defers))
                continue
            types = cells[read.state].keys
            keys = tuple(
                column(f"$a{read.order}.{n}", column_of(part, scope, target=dtype))
                for n, (part, dtype) in enumerate(zip(read.key, types, strict=True))
            )
            name, dtype = chains.answer_column(read)
            answer = column(name, Column(name, type=dtype))
            answers.append(AnsweredRead(read.state, keys, answer, read.defers))
    recorded, quiet = [], []
    for number, placed in enumerate(unit.steps):
        if isinstance(placed.step, AskedStep) and _needs_step(run, number):
            name = _quiet_column(placed)
            quiet.append(column(name, Column(name, type=BOOLEAN)))
        if isinstance(placed.step, LiveStep) and _needs_step(run, number):
            for state in placed.step.states:
                if _reads(unit, state):
                    name = _record_column(placed, state)
                    dtype = pa.list_(cells[state].type)
                    recorded.append((state, column(name, Column(name, type=dtype))))
    uses = tuple(_use(run, state) for state in sorted(unit.unit.touched))
    return PlannedHandler(
        unit.handler,
        uses,
        tuple(answers),
        tuple(lists),
        tuple(recorded),
        tuple(quiet),
        run.is_last,
    )


def _is_before(run: UnitRun, read: GetAccess) -> bool:
    """Tell whether a read of the unit is answered before a step, by the plan."""
    return run.is_last or read.order in run.placed.needs


def _use(run: UnitRun, state: str) -> StateUse:
    unit = run.unit
    accesses = unit.unit.of(state)
    reads: ReadUse = "refused"
    merges: MergeUse = "refused"
    step, live_at = run.placed.step, _live_at(unit, state)
    serial = unit.unit.group is not None
    if serial:
        return StateUse(
            state,
            "live" if state in unit.unit.reads else "refused",
            "live" if state in unit.unit.writes else "refused",
        )
    has_reads = any(isinstance(a, GetAccess) for a in accesses)
    has_merges = any(isinstance(a, MergeAccess) for a in accesses)
    if isinstance(step, AskedStep) and state in step.states and not step.reads:
        reads = merges = "asked"
    elif live_at is not None:
        reads = "recorded" if _needs_step(run, live_at) else "later"
        reads = "live" if live_at == run.number else reads
        merges = "live" if live_at == run.number else "ignored"
    else:
        asks = isinstance(step, AskedStep) and state in step.states
        reads = "answered" if run.is_last else "asked" if asks else "later"
        merges = "noted" if state in run.forms else "ignored"
    return StateUse(state, reads if has_reads else "refused", merges if has_merges else "refused")


def _needs_step(run: UnitRun, number: int) -> bool:
    """Tell whether a run comes after another step of its unit and uses that step's answers."""
    return number in run.placed.step.needs.steps


def _live_at(unit: PlacedUnit, state: str) -> int | None:
    for number, placed in enumerate(unit.steps):
        if isinstance(placed.step, LiveStep) and state in placed.step.states:
            return number
    return None


def handler_run(
    app: App,
    params: Mapping[str, object],
    live: Sequence[str],
    ports: Sequence[tuple[ScanPort, HandlerPort]],
    effects: Sequence[GivenOut],
) -> HandlerRun:
    """Return the code of a scan that runs these units."""
    return HandlerRun(
        app,
        tuple(params.items()),
        tuple(live),
        tuple(port.keys for port, _ in ports),
        tuple(handlers for _, handlers in ports),
        tuple(out.effect for out in effects),
    )


def unsaved_windows(runs: Sequence[UnitRun], cells: Sequence[Cell]) -> str:
    """Describe the window of a scan that holds functions, so that no snapshot can store it.

    Return an empty text if there is none.
    """
    for cell in cells:
        for run in runs if cell.last is not None else ():
            for access in run.unit.unit.of(cell.state):
                if isinstance(access, MergeAccess) and access.kind == "call":
                    return (
                        f"`{run.unit.handler}` (line {access.line}), which runs as it is, merges a "
                        f"function into the window of `{cell.state}`"
                    )
    return ""


def check_window(unit: PlacedUnit, state: str) -> None:
    """Raise PlanError if a unit merges a function into a window that others use."""
    others = ", ".join(t.method for t in MERGE_TRAITS.values() if t.kind != "call")
    for access in unit.unit.of(state):
        if isinstance(access, MergeAccess) and access.kind == "call":
            raise PlanError(
                f"`{unit.handler}` (line {access.line}), which runs as it is, merges a function "
                f"into the window of `{state}`: what others read, or what is saved of it, cannot "
                "be known outside of its scan",
                hint=f"use {others}",
            )


# --- after a run -------------------------------------------------------------------------------


def emit_rows(scan: Node, unit: PlacedUnit, name: str, columns: EmitTypes) -> Node:
    """Return the rows that a unit emits under a name."""
    return _taken_out(scan, emit_column(unit, name), columns)


def merge_port(
    scan: Node, unit: PlacedUnit, cell: Cell, state: int, form: str, file: str
) -> ScanPort:
    """Make the port of a unit's merges into a state that is scanned elsewhere.

    `file` is the file of the unit's handler.
    """
    fields = tuple(_merge_fields(cell, form))
    rows = _taken_out(scan, merge_column(unit, cell.state), fields)
    keys = tuple(name for name, _ in fields[: len(cell.keys)])
    order = unit.note_order(cell.state)

    def merge(kind: MergeKind, arg: str, condition: str | None, k: int = 0) -> StateMerge:
        at = _merge_place(unit, cell.state, kind, file)
        return StateMerge(state, kind, (arg,), order, order, condition, k, at=at)

    if form == "value":
        return ScanPort(rows, keys, (merge("set", "$value", None),))
    kinds = [(kind, k, f"$is_{merge_label(kind, k)}") for kind, k in _kinds(unit, cell)]
    is_kind = [(column, _equals("$kind", merge_label(kind, k))) for kind, k, column in kinds]
    merges = tuple(
        merge(kind, "$element" if MERGE_TRAITS[kind].of_elements else "$value", column, k)
        for kind, k, column in kinds
    )
    return ScanPort(with_columns(rows, is_kind), keys, merges)


def _merge_place(unit: PlacedUnit, state: str, kind: MergeKind, file: str) -> HandlerPlace:
    """Return where a unit merges into a state, for messages: the first merge of that kind."""
    merges = [a for a in unit.unit.of(state) if isinstance(a, MergeAccess)]
    first = next((a for a in merges if a.kind == kind), None) or next(iter(merges), None)
    line = 1 if first is None else first.line
    return handler_place(unit.handler, file, line)


def effect_form(cell: Cell, goes_on: bool) -> str:
    """Return the form in which merges into a live state are given out to others.

    `goes_on` tells whether others merge into it too.
    """
    if cell.last is not None:
        return "merge"
    return "sum" if cell.type == DOUBLE and goes_on else "value"


def _kinds(unit: PlacedUnit, cell: Cell) -> list[tuple[MergeKind, int]]:
    """Return the kinds of a unit's merges into a state that others may need, with the k of `top_k`.

    A function counts as `set`. If the kinds are not known, all kinds with one value are returned.
    """
    merges = [a for a in unit.unit.of(cell.state) if isinstance(a, MergeAccess)]
    if not merges:
        return [(kind, 0) for kind in told_kinds(pa.types.is_list(cell.type))]
    kinds: dict[tuple[MergeKind, int], None] = {}
    for merge in merges:
        if merge.kind == "call":
            kinds["set", 0] = None
        else:
            kinds[merge.kind, constant_k(merge) if merge.kind == "top_k" else 0] = None
    return list(kinds)


def _equals(column: str, value: str) -> Expr:
    return Call("eq", (Column(column, type=STRING), Literal(value, type=STRING)), type=BOOLEAN)


def _taken_out(scan: Node, column: str, fields: Sequence[tuple[str, pa.DataType]]) -> Node:
    """Return a row for each STRUCT in a column of LISTs, with its fields as columns."""
    rows = Explode(keep_only(scan, [column]), column)
    whole = Column(column, type=schema(rows).type_of(column))
    columns = [
        (name, Call("field", (whole, Literal(name, type=STRING)), type=dtype))
        for name, dtype in fields
    ]
    return Project(rows, tuple(columns))


def _merge_fields(cell: Cell, form: str) -> list[tuple[str, pa.DataType]]:
    fields = [(f"${name}", dtype) for name, dtype in zip(key_names(cell), cell.keys, strict=True)]
    if form != "value":
        fields.append(("$kind", STRING))
    fields.append(("$value", cell.type))
    if form != "value" and pa.types.is_list(cell.type):
        fields.append(("$element", cell.type.value_type))
    return fields


def emit_column(unit: PlacedUnit, name: str) -> str:
    return f"$e{unit.unit.event}.{unit.place}.{name}"


def never_column(unit: PlacedUnit) -> str:
    """Return the column, always NULL, of a unit that emits nothing."""
    return f"$n{unit.unit.event}.{unit.place}"


def merge_column(unit: PlacedUnit, state: str) -> str:
    return f"$s{unit.unit.event}.{unit.place}.{state}"


def _quiet_column(placed: PlacedStep) -> str:
    return f"$q{placed.tokens[0]}"


def _record_column(placed: PlacedStep, state: str) -> str:
    return f"$w{placed.tokens[0]}.{state}"
