"""`weir explain app.py`: how each handler of an app runs and why, its accesses, and the scans.

app payments: 2 handlers in columns, 1 in rows

payment
  count: in columns
    merge spent[e.card]: add e.cents
  claim: in rows, because what it reads depends on what it writes
    get owner[e.device]
    merge owner[e.device]: set e.card, if owner.get(e.device) < 0
    run 1: with the cells of owner, by e.device
  decide: in columns
    get spent[e.card]
    emit review(payment=e.id), if spent.get(e.card) > 200000

scans
  payment by e.card: reads spent; merges of count on its rows
  claim by e.device, with the cells of owner

row by row
  claim: what it reads depends on what it writes
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Literal, TypeAlias

from weir.handlers.columns.column_values import why_row_by_row
from weir.handlers.planning.chains import EventChains
from weir.handlers.planning.dataflow import Flow
from weir.handlers.planning.handler_order import EventFlow, PlacedStep, PlacedUnit
from weir.handlers.planning.row_stages import AskedStep, LiveStep, NoteStep
from weir.handlers.planning.scan_merges import merge_form
from weir.handlers.planning.scan_planner import ScanNote
from weir.handlers.reading.raised_failures import condition_of, shown_guard
from weir.handlers.trees.accesses import Access, EmitAccess, GetAccess, MergeAccess
from weir.handlers.trees.tree_text import key_text, tree_text
from weir.plan.states import Cell

HandlerWay: TypeAlias = Literal["columns", "rows", "serial"]
"""How a handler runs: as column expressions, or unchanged in rows, or unchanged in one partition.
"""


def app_text(
    name: str,
    flow: Flow,
    chains: Sequence[EventChains],
    cells: dict[str, Cell],
    scans: Sequence[ScanNote],
    slow: Mapping[str, str],
) -> str:
    """Write how an app runs; `slow` gives reasons why compiled loops do not keep some states."""
    lines = [f"app {name}: {_ways_text(flow)}"]
    for of, of_chains in zip(flow.events, chains, strict=True):
        lines += ["", of.event, *_handler_lines(of, of_chains, flow, cells)]
    lines += ["", "scans", *(_scan_line(scan, flow) for scan in scans)]
    lines += [] if scans else ["  none: no handler reads a state"]
    lines += _circle_lines(flow)
    lines += ["", "row by row", *_row_lines(flow, chains, cells, slow)]
    return "\n".join(lines) + "\n"


def ways(flow: Flow) -> dict[str, HandlerWay]:
    """Return how each handler runs, in the order of event types and handlers."""
    in_rows = {unit.handler: unit.unit.group for unit in flow.units()}
    names = dict.fromkeys(handler for of in flow.events for handler in of.handlers)
    return {
        name: "columns" if name not in in_rows else "rows" if in_rows[name] is None else "serial"
        for name in names
    }


def _ways_text(flow: Flow) -> str:
    counts = Counter(ways(flow).values())
    if not counts:
        return "no handlers"
    texts: dict[HandlerWay, str] = {
        "columns": "in columns",
        "rows": "in rows",
        "serial": "in one partition",
    }
    parts = [f"{counts[way]} {text}" for way, text in texts.items() if counts[way]]
    handlers = "handler" if parts[0].startswith("1 ") else "handlers"
    first, _, rest = parts[0].partition(" ")
    return ", ".join([f"{first} {handlers} {rest}", *parts[1:]])


def _handler_lines(
    of: EventFlow, chains: EventChains, flow: Flow, cells: dict[str, Cell]
) -> Iterator[str]:
    reads = read_names(of)
    units = {unit.handler: unit for unit in of.units}
    for handler in of.handlers:
        if handler in units:
            yield from _unit_lines(units[handler], flow.why_rows[handler])
            continue
        yield f"  {handler}: in columns"
        block = None
        for access in of.accesses:
            if access.handler != handler or access.is_hidden:
                continue
            if access.block is not None and access.block != block:
                assert access.over is not None
                yield f"    for x in {tree_text(access.over, reads)}"
            block = access.block
            inner = "    " if block is None else "      "
            yield f"{inner}{_access_text(access, chains, cells, reads)}"


def _unit_lines(unit: PlacedUnit, why: str) -> Iterator[str]:
    """Write what a handler in rows accesses, and when it runs."""
    if unit.unit.group is not None:
        yield f"  {unit.handler}: in one partition (app.serial)"
        for what, names in (
            ("reads", unit.unit.reads),
            ("merges into", unit.unit.writes),
            ("emits", unit.unit.emits),
        ):
            if names:
                yield f"    {what} {', '.join(sorted(names))}"
        return
    yield f"  {unit.handler}: in rows, because {why}"
    reads = {
        a.order: f"{a.state}.get({key_text(a.key)})"
        for a in unit.unit.accesses
        if isinstance(a, GetAccess)
    }
    yield from dict.fromkeys(f"    {_plain_text(a, reads)}" for a in unit.unit.accesses)
    for number, placed in enumerate(unit.steps, 1):
        yield f"    run {number}: {_step_text(placed)}"


def _plain_text(access: Access, reads: dict[int, str]) -> str:
    """Name an access of a handler in rows, without its values, which CPython computes."""
    match access:
        case GetAccess():
            each = (f", for each x in {tree_text(over, reads)}" for _, over in access.lists)
            return f"get {access.state}[{key_text(access.key, reads)}]{''.join(each)}"
        case MergeAccess():
            return f"merge {access.state}[{key_text(access.key, reads)}]: {access.kind}"
        case EmitAccess():
            return f"emit {access.name}"
    raise TypeError(f"{type(access).__name__} is not an access")


def _step_text(placed: PlacedStep) -> str:
    match placed.step:
        case AskedStep(states=states):
            return f"up to {', '.join(states)}, for the key"
        case LiveStep(states=states):
            by = f", by {key_text(placed.key)}" if placed.key else ""
            return f"with the cells of {', '.join(states)}{by}"
        case NoteStep(state=state):
            return f"for its merges into {state}"
    return "with all answers"


def read_names(of: EventFlow) -> dict[int, str]:
    """Return the names for an event type's reads in messages about its values."""
    names: dict[int, str] = {}
    for access in of.accesses:
        if isinstance(access, GetAccess):
            names[access.order] = f"{access.state}.get({key_text(access.key, names)})"
    return names


def _access_text(
    access: Access, chains: EventChains, cells: dict[str, Cell], reads: dict[int, str]
) -> str:
    match access:
        case GetAccess():
            return f"get {access.state}[{key_text(access.key, reads)}]"
        case MergeAccess():
            text = f"merge {access.state}[{key_text(access.key, reads)}]: "
            text += _merge_text(access, chains, cells[access.state], reads)
        case EmitAccess():
            fields = ", ".join(f"{n}={tree_text(v, reads)}" for n, v in access.fields)
            text = f"emit {access.name}({fields})"
        case _:
            raise TypeError(f"{type(access).__name__} is not an access")
    guard = condition_of(access.guard)
    return text if guard is None else f"{text}, if {tree_text(guard, reads)}"


def _merge_text(merge: MergeAccess, chains: EventChains, cell: Cell, reads: dict[int, str]) -> str:
    form = merge_form(merge, cell, chains.scope(merge))
    if form.kind == "call":
        assert merge.new is not None
        return f"old → {tree_text(merge.new, reads)}"
    args = [tree_text(tree, reads) for tree, _ in form.args]
    return f"{form.kind} {', '.join([*args, *([str(form.k)] if form.k else [])])}"


# --- scans -------------------------------------------------------------------------------------


def _scan_line(scan: ScanNote, flow: Flow) -> str:
    if scan.runs:
        return _run_line(scan)
    names = read_names(flow.of(scan.event))
    states = list(dict.fromkeys(read.state for read in scan.reads))
    together = " together" if len(states) > 1 else ""
    parts = [f"reads {', '.join(states)}{together}"]
    if scan.is_ring:
        parts.append("a ring: reads and merges run row by row within a key")
    if scan.own:
        handlers = dict.fromkeys(merge.handler for merge in scan.own)
        parts.append(f"merges of {', '.join(handlers)} lie on its rows")
    if scan.others:
        others = dict.fromkeys(_writer_text(event, merge) for event, merge in scan.others)
        parts.append(f"merges come in from {', '.join(others)}")
    loop = "" if scan.reads[0].block is None else ", for each x,"
    return f"  {scan.event}{loop} by {key_text(scan.reads[0].key, names)}: {'; '.join(parts)}"


def _run_line(scan: ScanNote) -> str:
    handlers = ", ".join(dict.fromkeys(run.unit.handler for run in scan.runs))
    placed = scan.runs[0].placed
    by = f" by {key_text(placed.key)}" if placed.key else ""
    if scan.runs[0].unit.unit.group is not None:
        by = " in one partition"
    return f"  {handlers}{by}, {_step_text(replace(placed, key=()))}"


def _writer_text(event: str, merge: MergeAccess) -> str:
    return f"{event}'s {merge.handler} by {key_text(merge.key)}"


def _circle_lines(flow: Flow) -> Iterator[str]:
    if flow.rings:
        yield ""
        yield "rings"
    for ring in flow.rings:
        handlers = dict.fromkeys(step.handler for place in ring.places for step in place.steps)
        keys = ", ".join(f"{key_text(p.key)} of {p.event}" for p in ring.places)
        yield f"  {', '.join(handlers)} read and write {', '.join(ring.states)}, by {keys}"


# --- row by row --------------------------------------------------------------------------------


def _row_lines(
    flow: Flow, chains: Sequence[EventChains], cells: dict[str, Cell], slow: Mapping[str, str]
) -> Iterator[str]:
    lines: dict[str, None] = {}
    in_columns = [handler for handler, way in ways(flow).items() if way == "columns"]
    for of in chains:
        for access in of.flow.accesses:
            if access.handler not in in_columns:
                continue
            for why in _reasons(access, of, cells):
                lines[f"  {access.handler}, {why}"] = None
    for ring in flow.rings:
        steps = [step for place in ring.places for step in place.steps]
        handlers = dict.fromkeys(step.handler for step in steps)
        lines[f"  {', '.join(handlers)}: a ring over {', '.join(ring.states)}"] = None
    lines |= {f"  {handler}: {why}": None for handler, why in flow.why_rows.items()}
    lines |= {f"  the state {state}: {why}": None for state, why in slow.items()}
    yield from lines or ["  nothing: all values are column expressions"]


def _reasons(access: Access, chains: EventChains, cells: dict[str, Cell]) -> Iterator[str]:
    scope = chains.scope(access)
    guard = shown_guard(access.guard)
    trees = [] if guard is None else [guard]
    match access:
        case GetAccess():
            trees += access.key
        case EmitAccess():
            trees += [value for _, value in access.fields]
        case MergeAccess():
            form = merge_form(access, cells[access.state], scope)
            trees += [*access.key, *(tree for tree, _ in form.args)]
            if form.function is not None and not form.function.step:
                yield f"line {access.line}: the merge's function is called for each merge"
    for tree in trees:
        why = why_row_by_row(tree, scope)
        if why:
            yield why
