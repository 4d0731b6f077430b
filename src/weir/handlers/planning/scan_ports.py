"""Builds the ports of a scan: rows with keys, arguments and conditions as columns.

Contract
1. A merge on the reader's own rows with the reader's key stays on the reader's rows, with a
   condition. Merges with another key, of another event type or on other rows are separate ports,
   which leave out rows without a merge.
2. Values are computed only where their access happens: on filtered rows, or guarded by its
   condition.
3. `$k4.0` is a part of the key of the access with order 4, `$a4.0` an argument, `$g4` a condition.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from weir.events.types import BOOLEAN
from weir.handlers.columns.column_values import column_of
from weir.handlers.planning.chains import ChainPoint, EventChains
from weir.handlers.planning.dataflow import is_plain
from weir.handlers.planning.scan_merges import merge_form
from weir.handlers.trees.accesses import Access, GetAccess, MergeAccess, access_place
from weir.handlers.trees.values import Op, Tree
from weir.plan.binding.projection import project, with_columns
from weir.plan.expressions import Call, Column, Expr, Literal
from weir.plan.operators import Filter, Node, schema
from weir.plan.states import Cell, StateMerge


@dataclass(frozen=True, slots=True)
class ScanPort:
    """One input of a scan: its rows, their key columns, their merges."""

    node: Node
    keys: tuple[str, ...]
    merges: tuple[StateMerge, ...] = ()


class PortColumns:
    """Collects the columns that a port's rows need in addition to their own."""

    def __init__(self, rows: Node) -> None:
        self.rows = rows
        self.own = dict(schema(rows).columns)
        self.added: dict[str, Expr] = {}

    def name(self, preferred: str, expr: Expr) -> str:
        """Return the column with a value: an existing one, or a new one with a unique name."""
        if isinstance(expr, Column) and self.own.get(expr.name) == expr.type:
            return expr.name
        # An earlier scan of the event may have needed a column for the same access.
        while preferred in self.own:
            preferred += "'"
        self.added[preferred] = expr
        return preferred


def reader_port(
    chains: EventChains,
    at: ChainPoint,
    reads: Sequence[GetAccess],
    merges: Sequence[MergeAccess],
    cells: Sequence[Cell],
) -> ScanPort:
    """Make the port of a reader, with the merges on its rows."""
    columns = PortColumns(at.node)
    accesses: list[Access] = [*reads, *merges]
    keys = _key(chains, columns, reads[0], cells, guard_of_all(reads[0].key, accesses))
    port_merges = []
    for merge in merges:
        condition = chains.condition(merge)
        name = None if condition is None else columns.name(f"$g{merge.order}", condition)
        port_merges.append(_merge(chains, columns, merge, cells, name, guarded=True))
    rows = with_columns(at.node, tuple(columns.added.items())) if columns.added else at.node
    return ScanPort(rows, keys, tuple(port_merges))


def writer_ports(
    merges: Iterable[tuple[EventChains, MergeAccess]], cells: Sequence[Cell]
) -> list[ScanPort]:
    """Make the ports of merges that are not on a reader's rows, one port for each key."""
    groups: dict[object, list[tuple[EventChains, MergeAccess]]] = {}
    for chains, merge in merges:
        home = chains.home(merge)
        groups.setdefault((chains.flow.event, id(home), merge.key), []).append((chains, merge))
    return [_writer(group[0][0], [m for _, m in group], cells) for group in groups.values()]


def _writer(chains: EventChains, merges: Sequence[MergeAccess], cells: Sequence[Cell]) -> ScanPort:
    points = [chains.point(merge) for merge in merges]
    at = max((p for p in points if p is not None), key=lambda p: len(p.answered))
    conditions = {m: chains.condition(m) for m in merges}
    guards = list(dict.fromkeys(c for c in conditions.values() if c is not None))
    rows = at.node
    if None not in conditions.values():
        anyone = guards[0] if len(guards) == 1 else Call("or", tuple(guards), type=BOOLEAN)
        rows = Filter(rows, anyone)
    alike = len(set(conditions.values())) == 1
    columns = PortColumns(rows)
    columns.own.clear()  # only the port's own columns travel
    keys = _key(chains, columns, merges[0], cells, None)
    port_merges = []
    for merge in merges:
        condition = conditions[merge]
        name = None
        if condition is not None and not alike:
            name = columns.name(f"$g{merge.order}", condition)
        port_merges.append(_merge(chains, columns, merge, cells, name, guarded=not alike))
    return ScanPort(project(rows, tuple(columns.added.items())), keys, tuple(port_merges))


def _key(
    chains: EventChains,
    columns: PortColumns,
    access: GetAccess | MergeAccess,
    cells: Sequence[Cell],
    guard: Tree | None,
) -> tuple[str, ...]:
    scope = chains.scope(access)
    cell = next(cell for cell in cells if cell.state == access.state)
    return tuple(
        columns.name(f"$k{access.order}.{i}", column_of(part, scope, target=dtype, guard=guard))
        for i, (part, dtype) in enumerate(zip(access.key, cell.keys, strict=True))
    )


def guard_of_all(key: Sequence[Tree], accesses: Sequence[Access]) -> Tree | None:
    """Return the condition under which some access needs the key; None if it is always computed."""
    guards = tuple(dict.fromkeys(access.guard for access in accesses))
    if None in guards or is_plain(key):
        return None
    conditions = tuple(guard for guard in guards if guard is not None)
    return conditions[0] if len(conditions) == 1 else Op("or", conditions)


def _merge(
    chains: EventChains,
    columns: PortColumns,
    merge: MergeAccess,
    cells: Sequence[Cell],
    condition: str | None,
    *,
    guarded: bool,
) -> StateMerge:
    state = next(n for n, cell in enumerate(cells) if cell.state == merge.state)
    scope = chains.scope(merge)
    form = merge_form(merge, cells[state], scope)
    args: list[str | Literal] = []
    guard, under = chains.known_guard(merge) if guarded else (None, scope)
    for i, (tree, dtype) in enumerate(form.args):
        if is_plain((tree,)):
            value = column_of(tree, scope, target=dtype)
        else:
            value = column_of(tree, under, target=dtype, guard=guard)
        if isinstance(value, Literal):  # a constant needs no column
            args.append(value)
        else:
            args.append(columns.name(f"$a{merge.order}.{i}", value))
    block = merge.order if merge.block is None else merge.block
    called = form.function
    if called is not None:
        called = replace(called, name=chains.function_names[merge.order])
    at = access_place(merge, scope.where)
    return StateMerge(
        state, form.kind, tuple(args), merge.order, block, condition, form.k, called, at
    )


def state_cells(cells: Mapping[str, Cell], names: Iterable[str]) -> tuple[Cell, ...]:
    """Return the cells of these states, each once, in order."""
    return tuple(cells[name] for name in dict.fromkeys(names))
