"""Plans the row scan of a ring: its reads and merges run together, row by row, on the cells.

As with a state scan, the reader's rows come out with the answers of the ring's reads as new
columns. So emits and merges into other states, which only use the answers, follow it as they follow
any scan. Other event types of the ring, and merges into its states with other keys, are separate
ports. Each has its place in the order within an event.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, takewhile

import pyarrow as pa

from weir.handlers.columns.column_values import column_of
from weir.handlers.planning.chains import ChainPoint, EventChains, has_element
from weir.handlers.planning.dataflow import Ring, RingPlace, is_plain, waits_for
from weir.handlers.planning.ring_code import RingCode, RingLoop, RingPort, RingStep
from weir.handlers.planning.scan_merges import merge_form
from weir.handlers.planning.scan_ports import PortColumns, ScanPort
from weir.handlers.trees.accesses import GetAccess, MergeAccess, access_place
from weir.handlers.trees.scope import leaf_column, leaves
from weir.handlers.trees.tree_walks import conjunction, conjuncts_of, reads_in
from weir.handlers.trees.values import (
    Element,
    Instant,
    Op,
    ReadValue,
    Tree,
)
from weir.plan.binding.projection import project, with_columns
from weir.plan.operators import schema
from weir.plan.states import Cell, RowCode, RowEffect, WindowCall


@dataclass(frozen=True, slots=True)
class RowPort:
    """An input of a ring's scan: its rows, the columns that the code gets, and its steps."""

    port: ScanPort
    columns: tuple[str, ...]
    """The keys, then the leaves of the steps."""
    place: int
    code: RingPort


def window_calls(ports: Sequence[RowPort]) -> tuple[WindowCall, ...]:
    """Return the functions that rings merge into windows, as calls."""
    return tuple(
        step.called for row in ports for step in _inner(row.code.steps) if step.called is not None
    )


def outside_reads(place: RingPlace) -> frozenset[int]:
    """Return the reads that a ring's steps wait for, except the ring's own."""
    own = {step.order for step in place.steps if isinstance(step, GetAccess)}
    return frozenset().union(*map(waits_for, place.steps)) - own


def ring_code(ring: Ring, ports: Sequence[RowPort]) -> RowCode:
    """Return the code of a ring's row scan."""
    handlers = dict.fromkeys(step.handler for place in ring.places for step in place.steps)
    return RowCode(", ".join(handlers), RingCode(tuple(port.code for port in ports)))


def place_port(
    chains: EventChains, at: ChainPoint, place: RingPlace, cells: Sequence[Cell], *, reader: bool
) -> RowPort:
    """Make the port of a ring's own rows; the reader's rows keep all their columns."""
    columns = PortColumns(at.node)
    if not reader:
        columns.own.clear()
    first = place.steps[0]
    keys = _key(chains, columns, place, cells)
    steps = tuple(_steps(chains, at, place, cells))
    inner = _inner(steps)
    loops = [step for step in steps if isinstance(step, RingLoop)]
    own = {step.answer for step in inner} | {loop.element for loop in loops}
    trees = [tree for step in inner for tree in _trees(step)]
    trees += [t for loop in loops for t in (loop.over, loop.guard) if t is not None]
    used = leaves(tuple(trees))
    needed = tuple(leaf for leaf in used if leaf not in own and not isinstance(leaf, Instant))
    scope = chains.scope(first)
    names = [
        columns.name(f"$l{first.order}.{i}", leaf_column(leaf, scope))
        for i, leaf in enumerate(needed)
    ]
    added = tuple(columns.added.items())
    rows = with_columns(at.node, added) if reader else project(at.node, added)
    block = first.order if place.block is None else place.block
    types = dict(schema(rows).columns)
    port = RingPort(len(keys), needed, tuple(types[name] for name in names), steps)
    return RowPort(ScanPort(rows, keys), (*keys, *names), block, port)


def _inner(steps: Sequence[RingStep | RingLoop]) -> list[RingStep]:
    """Return all steps, including those of loops."""
    return [s for step in steps for s in (step.steps if isinstance(step, RingLoop) else (step,))]


def ring_effects(chains: EventChains, place: RingPlace) -> tuple[RowEffect, ...]:
    """Return the new columns of a ring's reader, in the order in which the code gives them out."""
    reads = [step for step in place.steps if isinstance(step, GetAccess)]
    outside = [RowEffect(*chains.answer_column(r)) for r in reads if r.block == place.block]
    lists = []
    for block in dict.fromkeys(r.block for r in reads if r.block != place.block):
        assert block is not None
        fields = [chains.element_column(block)]
        fields += [chains.answer_column(r) for r in reads if r.block == block]
        lists.append(RowEffect(f"$b{block}", pa.list_(pa.struct(fields)), is_list=True))
    return (*outside, *lists)


def _steps(
    chains: EventChains, at: ChainPoint, place: RingPlace, cells: Sequence[Cell]
) -> Iterator[RingStep | RingLoop]:
    """Return the steps of a ring's place; the steps of a loop are one `RingLoop`."""
    for block, accesses in groupby(place.steps, key=lambda step: step.block):
        together = list(accesses)
        steps = tuple(_step(chains, access, cells) for access in together)
        if block == place.block:
            yield from steps
            continue
        first = together[0]
        assert block is not None and first.over is not None
        guard = chains.loop_guard(block, at.answered | {s.order for s in place.steps})
        reads = [step for step in together if isinstance(step, GetAccess)]
        names = (chains.element_column(block)[0], *(chains.answer(r.order) for r in reads))
        where = chains.scope(first).where
        yield RingLoop(first.handler, where, first.over, guard, Element(block), steps, names)


def _step(chains: EventChains, access: GetAccess | MergeAccess, cells: Sequence[Cell]) -> RingStep:
    state = next(n for n, cell in enumerate(cells) if cell.state == access.state)
    scope = chains.scope(access)
    at = access_place(access, scope.where)
    if isinstance(access, GetAccess):
        return RingStep(access.handler, scope.where, state, answer=ReadValue(access.order), at=at)
    form = merge_form(access, cells[state], scope)
    step = RingStep(access.handler, scope.where, state, access.guard, form.kind, at=at)
    if form.function is not None and cells[state].last is None:
        return replace(step, new=access.new)
    if form.function is not None:
        function = replace(form.function, name=chains.function_names[access.order])
        types = tuple(dtype for _, dtype in form.args)
        step = replace(step, called=WindowCall(state, function, types))
    return replace(step, args=tuple(tree for tree, _ in form.args), k=form.k)


def _trees(step: RingStep) -> tuple[Tree, ...]:
    around = (tree for tree in (step.guard, step.new) if tree is not None)
    return (*step.args, *around)


def _key(
    chains: EventChains, columns: PortColumns, place: RingPlace, cells: Sequence[Cell]
) -> tuple[str, ...]:
    """Make the key columns; a key that can fail is computed only where a step may need it.

    A step's condition may use reads of the ring itself; then only its parts before those count.
    """
    first = place.steps[0]
    answered = outside_reads(place)
    conditions = [_known_part(step.guard, answered) for step in place.steps]
    guard = None
    if not is_plain(place.key) and None not in conditions:
        distinct = tuple(dict.fromkeys(part for part in conditions if part is not None))
        guard = distinct[0] if len(distinct) == 1 else Op("or", distinct)
    scope = chains.scope(first)
    return tuple(
        columns.name(f"$k{first.order}.{i}", column_of(part, scope, target=dtype, guard=guard))
        for i, (part, dtype) in enumerate(zip(place.key, cells[0].keys, strict=True))
    )


def _known_part(guard: Tree | None, answered: frozenset[int]) -> Tree | None:
    """Return the first conjuncts of a condition that these reads alone decide.

    Conjuncts with an element of a loop are never among them.
    """
    if guard is None:
        return None
    parts = conjuncts_of(guard)
    prefix = takewhile(lambda p: reads_in((p,)) <= answered and not has_element(p), parts)
    return conjunction(list(prefix))


def ring_places(rings: Sequence[Ring]) -> Mapping[tuple[str, int], tuple[Ring, RingPlace]]:
    """Return the ring and the place of each read in a ring, by event type and order."""
    return {
        (place.event, step.order): (ring, place)
        for ring in rings
        for place in ring.places
        for step in place.steps
        if isinstance(step, GetAccess)
    }
