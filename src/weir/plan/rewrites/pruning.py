"""Pruning drops columns above the last operator that reads them.

Contract
1. A column stays if an operator, an output or the order of rows needs it. The payload is part of
   the order only if rows have no origin of their own: if the order of its input matters to an
   operator (`sees_order`), a payload that comes from a stateful operator stays whole. DISTINCT and
   STITCH compare whole rows; the user's operators get whole rows.
2. An expression that can fail is computed, even if nothing reads it.
3. A node with several readers keeps what any of them needs. Columns keep their order.
"""

from __future__ import annotations

from collections.abc import Mapping

from weir.plan.binding.projection import keep_only
from weir.plan.operators import Node, Source, schema
from weir.plan.operators.facts import Names
from weir.plan.origins import unique_origins
from weir.plan.program import Program, row_outputs
from weir.plan.traversal import ordered_nodes, reader_counts, rebuilt, with_inputs


def prune_columns(program: Program) -> Program:
    """Return the program without columns that nothing reads."""
    nodes = ordered_nodes(row_outputs(program))
    readers = reader_counts(program, nodes)
    needs, slim = _needs(program, nodes)

    def rebuild(node: Node, inputs: tuple[Node, ...]) -> Node:
        new = list(inputs)
        for port, (old, names) in enumerate(
            zip(node.inputs, _demands(slim[node], needs[node], unique), strict=True)
        ):
            # After an input that ends a stage of its own, a projection would cost more than it
            # saves.
            alone = readers[old] == 1 and not node.stateless
            if alone or node.by_position:
                new[port] = keep_only(inputs[port], names)
        result = with_inputs(slim[node], new)
        if not node.inputs or readers[node] > 1:
            result = keep_only(result, needs[node])
        return result

    unique = unique_origins(nodes)
    return rebuilt(program, rebuild)


def needed_columns(program: Program, source: Source) -> tuple[str, ...]:
    """Return the declared columns of a source that the program reads, including those of the time.

    A reader of a columnar file may skip the other columns (and return NULLs instead). A reader of
    text must still check every value: a value that does not fit makes a bad row.
    """
    asked = [o for o in program.outputs if o.kind != "rows" and o.node == source]
    if asked:  # late and bad rows are shown whole
        return tuple(name for name, _ in source.declared)
    needs, _ = _needs(program, ordered_nodes(row_outputs(program)))
    times = {source.options.vs, source.options.ve}
    names = needs.get(source, frozenset()) | times
    return tuple(name for name, _ in source.declared if name in names)


def _needs(program: Program, nodes: list[Node]) -> tuple[Mapping[Node, Names], Mapping[Node, Node]]:
    """Return the columns that each node's readers need, and the node without the other columns."""
    unique = unique_origins(nodes)
    needs: dict[Node, Names] = dict.fromkeys(nodes, frozenset())
    slim: dict[Node, Node] = {}
    for node in row_outputs(program):
        needs[node] = frozenset(schema(node).names)
    for node in reversed(nodes):
        slim[node] = node.slimmed(needs[node])
        demands = _demands(slim[node], needs[node], unique)
        for below, names in zip(node.inputs, demands, strict=True):
            needs[below] |= names
    return needs, slim


def _demands(node: Node, wanted: Names, unique: Mapping[Node, bool]) -> tuple[Names, ...]:
    """Return the columns that the operator needs of each input."""
    return tuple(
        frozenset(schema(below).names) if node.sees_order(port) and not unique[below] else names
        for port, (below, names) in enumerate(
            zip(node.inputs, node.columns_read(wanted), strict=True)
        )
    )
