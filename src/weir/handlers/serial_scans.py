"""A serial group becomes row scans without a key: one vertex runs its handlers as they are.

There is one scan for each event type whose handlers in the group have effects that others need. All
of them take all rows of the group.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from weir.errors import PlanError
from weir.events.types import BOOLEAN, DOUBLE, STRING
from weir.handlers.accesses import EmitAccess, MergeAccess, handler_place
from weir.handlers.app import App
from weir.handlers.chains import EventChains
from weir.handlers.emitting import EmitTypes
from weir.handlers.handler_order import WholeHandler
from weir.handlers.ring_scans import RowPort
from weir.handlers.scan_ports import ScanPort
from weir.handlers.serial_code import (
    USE_VALUES,
    EffectForm,
    EmitEffect,
    MergeEffect,
    SerialCode,
    SerialPort,
)
from weir.plan.binding.projection import keep_only, with_columns
from weir.plan.expressions import Call, Column, Expr, Literal
from weir.plan.operators import Explode, Node, Project, RowScan, schema
from weir.plan.saved_states import key_names
from weir.plan.states import (
    MERGE_TRAITS,
    Cell,
    HandlerPlace,
    MergeKind,
    RowCode,
    StateMerge,
    told_kinds,
)


@dataclass(frozen=True, slots=True)
class SerialGroup:
    """A `SerialGroup` has its handlers by event type, in order, and all states that they touch."""

    number: int
    members: tuple[tuple[str, WholeHandler], ...]

    @property
    def touched(self) -> frozenset[str]:
        return frozenset().union(*(w.reads | w.writes for _, w in self.members))

    @property
    def events(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(event for event, _ in self.members))

    def of(self, event: str) -> list[WholeHandler]:
        return [whole for name, whole in self.members if name == event]

    def writers(self, state: str) -> list[tuple[str, WholeHandler]]:
        return [(event, whole) for event, whole in self.members if state in whole.writes]


def effect_form(cell: Cell, goes_on: bool) -> EffectForm:
    """Say what others must know of a group's merges into a state; `goes_on`: others merge, too."""
    if cell.last is not None:
        return "window"
    return "sum" if cell.type == DOUBLE and goes_on else "set"


def check_window(group: SerialGroup, state: str) -> None:
    """Raise PlanError if a group merges a function into a window that others must know."""
    untold = [t.kind for t in MERGE_TRAITS.values() if not t.is_value]
    if told := _window_merge(group, state, untold):
        raise PlanError(
            f"{told}: what others read, or what is saved of it, cannot be known outside of the "
            "group",
            hint=USE_VALUES,
        )


def _window_merge(group: SerialGroup, state: str, kinds: Sequence[MergeKind]) -> str:
    """Say in words where a group merges into a window by one of these kinds; nothing if it does
    not."""
    for _, whole in group.writers(state):
        for access in whole.accesses:
            if isinstance(access, MergeAccess) and access.state == state and access.kind in kinds:
                what = "a function" if access.kind == "call" else access.kind
                return (
                    f"`{whole.handler}` (line {access.line}), in a serial group, merges into the "
                    f"window of `{state}` with {what}"
                )
    return ""


def effect_columns(
    wholes: Sequence[WholeHandler],
    emitted: Mapping[str, EmitTypes],
    forms: Mapping[str, EffectForm],
    cells: Mapping[str, Cell],
) -> list[tuple[EmitEffect | MergeEffect, str, pa.DataType]]:
    """Return the effects of one event type's handlers, each with its column and type."""
    found: list[tuple[EmitEffect | MergeEffect, str, pa.DataType]] = []
    for whole in wholes:
        for name in sorted(whole.emits):
            columns = emitted[name]
            emit = EmitEffect(whole.handler, name, tuple(column for column, _ in columns))
            found.append((emit, _emit_column(whole, name), pa.list_(pa.struct(list(columns)))))
        for state in sorted(whole.writes & forms.keys()):
            cell = cells[state]
            kinds, of_list = _kinds(whole, cell), pa.types.is_list(cell.type)
            merge = MergeEffect(whole.handler, state, forms[state], kinds, of_list)
            dtype = pa.list_(pa.struct(_merge_fields(cell, forms[state])))
            found.append((merge, _merge_column(whole, state), dtype))
    return found


def group_scan(
    app: App,
    params: Mapping[str, object],
    group: SerialGroup,
    event: str,
    cells: tuple[Cell, ...],
    chains: Mapping[str, EventChains],
    others: Sequence[RowPort],
    effects: Sequence[tuple[EmitEffect | MergeEffect, str, pa.DataType]],
    depth: int,
    restore: Callable[[tuple[Cell, ...], list[ScanPort]], tuple[int, ...]],
) -> RowScan:
    """Make the scan of a group whose reader are the events of one type."""
    own = [event, *(other for other in group.events if other != event)]
    ports = [ScanPort(chains[name].entrance, ()) for name in own]
    ports += [ScanPort(other.port.node, ()) for other in others]
    count = len(ports)
    restored = restore(cells, ports)
    saved = len(ports) - count
    serial = [_serial_port(chains[name], group.of(name)) for name in own]
    code = SerialCode(
        app,
        tuple(params.items()),
        tuple(cell.state for cell in cells),
        (*serial, *(other.code for other in others)),
        tuple(effect for effect, _, _ in effects),
    )
    names = dict.fromkeys(whole.handler for _, whole in group.members)
    windows = (_window_merge(group, c.state, ("call",)) for c in cells if c.last is not None)
    places = _effect_places(app, group, code.effects)
    return RowScan(
        tuple(port.node for port in ports),
        tuple(port.keys for port in ports),
        cells,
        RowCode(", ".join(names), code, app.imported, places, next(filter(None, windows), "")),
        (*(port.columns for port in serial), *(o.columns for o in others), *((),) * saved),
        (*(_place(group.of(n)) for n in own), *(o.place for o in others), *((0, 0),) * saved),
        tuple((column, dtype) for _, column, dtype in effects),
        depth,
        restored,
        tuple(call for other in others for call in other.calls),
    )


def _effect_places(
    app: App, group: SerialGroup, effects: Sequence[EmitEffect | MergeEffect]
) -> tuple[HandlerPlace, ...]:
    """Say where each effect stands: at the first emit that analysis found, or at its handler."""
    places = []
    for effect in effects:
        code = app.handlers[effect.handler].function.__code__
        lines = [
            access.line
            for _, whole in group.members
            for access in whole.accesses
            if isinstance(effect, EmitEffect)
            and isinstance(access, EmitAccess)
            and (access.handler, access.name) == (effect.handler, effect.name)
        ]
        line = min(lines, default=code.co_firstlineno)
        places.append(handler_place(effect.handler, code.co_filename, line))
    return tuple(places)


def _serial_port(chains: EventChains, wholes: Sequence[WholeHandler]) -> SerialPort:
    columns = schema(chains.entrance).names
    return SerialPort(
        chains.flow.event,
        columns,
        tuple(whole.handler for whole in wholes),
        tuple(whole.reads for whole in wholes),
        tuple(whole.writes for whole in wholes),
    )


def _place(wholes: Sequence[WholeHandler]) -> tuple[int, int]:
    return wholes[0].order, wholes[0].order


# --- behind a group ----------------------------------------------------------------------------


def emit_rows(scan: Node, whole: WholeHandler, name: str, columns: EmitTypes) -> Node:
    """Return the rows that a group's handler emits under a name."""
    return _taken_out(scan, _emit_column(whole, name), columns)


def merge_port(
    scan: Node, whole: WholeHandler, cell: Cell, state: int, form: EffectForm
) -> ScanPort:
    """Make the port of a group's merges into a state that is scanned elsewhere."""
    fields = tuple(_merge_fields(cell, form))
    rows = _taken_out(scan, _merge_column(whole, cell.state), fields)
    keys = tuple(name for name, _ in fields[: len(cell.keys)])
    order = whole.order

    def merge(kind: MergeKind, arg: str, condition: str | None) -> StateMerge:
        return StateMerge(state, kind, (arg,), order, order, condition)

    if form == "set":
        return ScanPort(rows, keys, (merge("set", "value", None),))
    kinds = _kinds(whole, cell)
    told = [(f"is_{kind}", _equals("kind", kind)) for kind in kinds]
    merges = tuple(
        merge(kind, "element" if MERGE_TRAITS[kind].of_elements else "value", f"is_{kind}")
        for kind in kinds
    )
    return ScanPort(with_columns(rows, told), keys, merges)


def _kinds(whole: WholeHandler, cell: Cell) -> tuple[MergeKind, ...]:
    """Return the kinds of a handler's merges into a state that others must be told of: those that
    analysis found, or where it found nothing all that there can be. A function is told as `set`."""
    able = told_kinds(pa.types.is_list(cell.type))
    mine = [a for a in whole.accesses if isinstance(a, MergeAccess) and a.state == cell.state]
    found = {"set" if a.kind == "call" else a.kind for a in mine}
    return tuple(kind for kind in able if kind in found) or able


def _equals(column: str, value: str) -> Expr:
    return Call("eq", (Column(column, type=STRING), Literal(value, type=STRING)), type=BOOLEAN)


def _taken_out(scan: Node, column: str, fields: Sequence[tuple[str, pa.DataType]]) -> Node:
    """Return a row for each element of a column of LISTs of STRUCTs, with the fields as columns."""
    rows = Explode(keep_only(scan, [column]), column)
    whole = Column(column, type=schema(rows).type_of(column))
    taken = [
        (name, Call("field", (whole, Literal(name, type=STRING)), type=dtype))
        for name, dtype in fields
    ]
    return Project(rows, tuple(taken))


def _merge_fields(cell: Cell, form: EffectForm) -> list[tuple[str, pa.DataType]]:
    fields = [*zip(key_names(cell), cell.keys, strict=True)]
    if form != "set":
        fields.append(("kind", STRING))
    fields.append(("value", cell.type))
    if form == "window" and pa.types.is_list(cell.type):
        fields.append(("element", cell.type.value_type))
    return fields


def _emit_column(whole: WholeHandler, name: str) -> str:
    return f"$e{whole.order}.{name}"


def _merge_column(whole: WholeHandler, state: str) -> str:
    return f"$s{whole.order}.{state}"
