"""Columns only as far up as somebody reads them.

Contract
1. A column stays where an operator, an output or the order of rows needs it. The payload is part
   of the order only where rows have no origin of their own: below an operator for which order
   matters (`properties.order_sensitive`) a payload that comes from a stateful operator stays
   whole. DISTINCT and STITCH compare whole rows, the user's operators see whole rows.
2. What can fail is computed, whoever reads it.
3. A node that several read keeps what any of them needs. Columns keep their order.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from weir.plan.binding.projection import keep_only
from weir.plan.expressions import columns_of
from weir.plan.failures import aggregate_can_fail, can_fail
from weir.plan.nodes import (
    Aggregate,
    AlterLifetime,
    Apply,
    Distinct,
    Explode,
    Filter,
    Join,
    Node,
    PartialAggregate,
    Partition,
    Program,
    Project,
    SetLifetime,
    Source,
    Stitch,
    Top,
    Union,
    inputs_of,
    schema,
)
from weir.plan.properties import is_stateless, order_sensitive
from weir.plan.rewrites.traversal import (
    LIFETIME,
    ordered_nodes,
    reader_counts,
    rebuilt,
    row_outputs,
    with_inputs,
)

Names = frozenset[str]


def prune_columns(program: Program) -> Program:
    """The program without columns that nobody reads."""
    nodes = ordered_nodes(row_outputs(program))
    readers = reader_counts(program, nodes)
    needs, slim = _needs(program, nodes)

    def rebuild(node: Node, inputs: tuple[Node, ...]) -> Node:
        new = list(inputs)
        for port, (old, names) in enumerate(
            zip(inputs_of(node), _demands(slim[node], needs[node], unique), strict=True)
        ):
            # Behind a stage of its own a projection would cost more than it saves.
            alone = readers[old] == 1 and not is_stateless(node)
            if alone or isinstance(node, Union):
                new[port] = keep_only(inputs[port], names)
        result = with_inputs(slim[node], new)
        if isinstance(node, Source) or readers[node] > 1:
            result = keep_only(result, needs[node])
        return result

    unique = unique_origins(nodes)
    return rebuilt(program, rebuild)


def needed_columns(program: Program, source: Source) -> tuple[str, ...]:
    """The declared columns of a source that the program reads, those of the time among them.

    A reader of a columnar file may leave the others alone (NULLs in their place will do). A
    reader of text must still look at every value: one that does not fit makes a bad row.
    """
    asked = [o for o in program.outputs if o.kind != "rows" and o.node == source]
    if asked:  # late and bad rows are shown whole
        return tuple(name for name, _ in source.declared)
    needs, _ = _needs(program, ordered_nodes(row_outputs(program)))
    times = {source.options.vs, source.options.ve}
    wanted = needs.get(source, frozenset()) | times
    return tuple(name for name, _ in source.declared if name in wanted)


def unique_origins(nodes: list[Node]) -> Mapping[Node, bool]:
    """Whether no two rows of a node have the same origin, so that order never asks for more."""
    unique: dict[Node, bool] = {}
    for node in nodes:
        keeps = is_stateless(node) or isinstance(node, Union)
        own = isinstance(node, Source) and node.has_origins
        unique[node] = own or (keeps and all(unique[i] for i in inputs_of(node)))
    return unique


def _needs(program: Program, nodes: list[Node]) -> tuple[Mapping[Node, Names], Mapping[Node, Node]]:
    """For each node the columns that its readers need, and the node without what none does."""
    unique = unique_origins(nodes)
    needs: dict[Node, Names] = dict.fromkeys(nodes, frozenset())
    slim: dict[Node, Node] = {}
    for node in row_outputs(program):
        needs[node] = frozenset(schema(node).names)
    for node in reversed(nodes):
        slim[node] = _slim(node, needs[node])
        demands = _demands(slim[node], needs[node], unique)
        for below, names in zip(inputs_of(node), demands, strict=True):
            needs[below] |= names
    return needs, slim


def _slim(node: Node, wanted: Names) -> Node:
    """The operator without what it computes for nobody."""
    match node:
        case Project():
            columns = tuple((n, e) for n, e in node.columns if n in wanted or can_fail(e))
            return node if columns == node.columns else replace(node, columns=columns)
        case Aggregate():
            aggregates = tuple(
                (n, a)
                for n, a in node.aggregates
                if n in wanted or aggregate_can_fail(a, node.input)
            )
            return node if aggregates == node.aggregates else replace(node, aggregates=aggregates)
        case _:
            return node


def _demands(node: Node, wanted: Names, unique: Mapping[Node, bool]) -> tuple[Names, ...]:
    """The columns that the operator needs of each input."""
    return tuple(
        _whole(below) if order_sensitive(node, port) and not unique[below] else names
        for port, (below, names) in enumerate(
            zip(inputs_of(node), _read(node, wanted), strict=True)
        )
    )


def _whole(node: Node) -> Names:
    return frozenset(schema(node).names)


def _read(node: Node, wanted: Names) -> tuple[Names, ...]:
    """What the operator reads of each input, for itself and for its readers."""
    match node:
        case Source():
            return ()
        case Project():
            reads = frozenset().union(*(columns_of(e) for _, e in node.columns))
            return (reads - LIFETIME,)
        case Filter():
            return (wanted | columns_of(node.predicate) - LIFETIME,)
        case Explode():
            return (wanted | {node.column},)
        case AlterLifetime():
            if not isinstance(node.change, SetLifetime):
                return (wanted,)
            return (wanted | columns_of(node.change.end) - LIFETIME,)
        case Partition():
            return (wanted | frozenset(node.keys),)
        case Top():
            return (wanted | {name for name, _ in node.order},)
        case Aggregate() | PartialAggregate():
            columns = {c for _, a in node.aggregates for c in (*a.args, a.filter) if c is not None}
            return (frozenset(node.keys) | columns,)
        case Join():
            return _read_by_join(node, wanted)
        case Union():
            places = [p for p, name in enumerate(schema(node).names) if name in wanted]
            return tuple(frozenset(schema(i).names[p] for p in places) for i in node.inputs)
        case Distinct() | Stitch() | Apply():
            return tuple(_whole(i) for i in inputs_of(node))
        case _:
            return (wanted,)


def _read_by_join(node: Join, wanted: Names) -> tuple[Names, Names]:
    reads = wanted if node.condition is None else wanted | columns_of(node.condition)
    left = frozenset(a for a, _ in node.keys) | (reads & _whole(node.left))
    right = frozenset(b for _, b in node.keys) | (reads & _whole(node.right))
    return left, right
