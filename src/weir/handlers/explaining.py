"""`weir explain app.py` says how an app runs: order, accesses, scans, and what runs row by row.

app spam

friendship
  befriend
    merge friendships[(e.a, e.b)]: set True

message
  count
    get friendships[(e.sender, e.recipient)]
    merge friend_msgs[e.sender]: add 1, if friendships.get((e.sender, e.recipient))
    …

scans
  message by (e.sender, e.recipient): reads friendships; merges of friendship's befriend come in
  message by e.sender: reads nonfriend_msgs, friend_msgs together; merges of count on its rows

row by row
  nothing: all values are column expressions
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from weir.handlers.accesses import Access, EmitAccess, GetAccess, MergeAccess
from weir.handlers.chains import EventChains
from weir.handlers.columns import why_row_by_row
from weir.handlers.dataflow import Flow
from weir.handlers.failing import shown_guard
from weir.handlers.handler_order import EventFlow
from weir.handlers.merging import merge_form
from weir.handlers.scan_planning import ScanNote
from weir.handlers.tree_text import key_text, tree_text
from weir.plan.states import Cell


def app_text(
    name: str,
    flow: Flow,
    chains: Sequence[EventChains],
    cells: dict[str, Cell],
    scans: Sequence[ScanNote],
    slow: Mapping[str, str],
) -> str:
    """Write how an app runs; `slow` says of states why no compiled loop keeps them."""
    lines = [f"app {name}"]
    for of, of_chains in zip(flow.events, chains, strict=True):
        lines += ["", of.event, *_handler_lines(of, of_chains, cells)]
    lines += ["", "scans", *(_scan_line(scan, flow) for scan in scans)]
    lines += [] if scans else ["  none: no handler reads a state"]
    lines += _circle_lines(flow)
    lines += ["", "row by row", *_row_lines(flow, chains, cells, slow)]
    return "\n".join(lines) + "\n"


def _handler_lines(of: EventFlow, chains: EventChains, cells: dict[str, Cell]) -> Iterator[str]:
    reads = read_names(of)
    whole = {w.handler: w for w in of.whole}
    for handler in of.handlers:
        yield f"  {handler}"
        if handler in whole:
            one = whole[handler]
            yield f"    runs whole, in serial group {one.group}"
            for what, names in (
                ("reads", one.reads), ("merges into", one.writes), ("emits", one.emits),
            ):  # fmt: skip
                if names:
                    yield f"    {what} {', '.join(sorted(names))}"
        block = None
        for access in of.accesses:
            if access.handler != handler:
                continue
            if access.block is not None and access.block != block:
                assert access.over is not None
                yield f"    for x in {tree_text(access.over, reads)}"
            block = access.block
            inner = "    " if block is None else "      "
            yield f"{inner}{_access_text(access, chains, cells, reads)}"


def read_names(of: EventFlow) -> dict[int, str]:
    """Return what the reads of an event type are called in its values."""
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
            raise TypeError(f"{type(access).__name__} is no access")
    guard = shown_guard(access.guard)
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
    groups = flow.groups()
    if groups:
        yield ""
        yield "serial groups"
    for number, members in groups.items():
        handlers = dict.fromkeys(whole.handler for _, whole in members)
        yield f"  {number}: {', '.join(handlers)}, in one vertex"


# --- row by row --------------------------------------------------------------------------------


def _row_lines(
    flow: Flow, chains: Sequence[EventChains], cells: dict[str, Cell], slow: Mapping[str, str]
) -> Iterator[str]:
    said: dict[str, None] = {}
    for of in chains:
        for access in of.flow.accesses:
            for why in _reasons(access, of, cells):
                said[f"  {access.handler}, {why}"] = None
    for ring in flow.rings:
        steps = [step for place in ring.places for step in place.steps]
        handlers = dict.fromkeys(step.handler for step in steps)
        said[f"  {', '.join(handlers)}: a ring over {', '.join(ring.states)}"] = None
    for members in flow.groups().values():
        for _, whole in members:
            said[f"  {whole.handler}: app.serial"] = None
    said |= {f"  the state {state}: {why}": None for state, why in slow.items()}
    yield from said or ["  nothing: all values are column expressions"]


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
