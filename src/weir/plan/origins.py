"""Origins: which rows carry the origin that they came from, and which source row it names.

Rows carry origins from a source up to an operator that depends on the order of rows. On the way are
operators that treat each row alone, UNION ALL, and state scans, whose rows are their reader's.
`Number` makes origins.

If each operator on the way treats rows alone, a row is still a row of its source: its origin names
that row, and some of its columns are the source's. Errors show the rest of the source row
(`input_row`). Within a stage, the origin is available. Rows with several readers end their stage;
they keep origins if one of the readers may fail. Such a reader gets them vertex by vertex, so no
exchange carries more columns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from weir.errors import InputRow, PlanError
from weir.plan.functions.failures import can_fail
from weir.plan.lifetime_changes import SetLifetime
from weir.plan.operators import (
    AlterLifetime,
    Enter,
    Filter,
    FinalState,
    Node,
    Number,
    Project,
    RowScan,
    Source,
    StateScan,
    Union,
    schema,
)
from weir.plan.operators.source import PARTITION_BITS, SOURCE_ORIGIN_DEPTH
from weir.plan.program import Program
from weir.plan.traversal import ordered_nodes, reader_counts


def origin_depths(program: Program) -> dict[Node, int]:
    """Return how many origin columns each node's rows carry; 0 if none are needed or there."""
    nodes = ordered_nodes(o.node for o in program.outputs)
    asked = _nodes_asked_for_origins(nodes, _nodes_with_failing_readers(program, nodes))
    depths: dict[Node, int] = {}
    for node in nodes:
        below = [depths[i] for i in node.inputs]
        depths[node] = node.origin_depth(below) if node in asked else 0
        _check_depths(node, below)
    return depths


def _check_depths(node: Node, below: Sequence[int]) -> None:
    """Check that the rows of an app's events have the origins that its operators rely on."""
    match node:
        case Enter() if below[0] and not (node.behind or 0) <= below[0] < node.depth:
            raise PlanError(f"{below[0]} origin columns do not fit around {node.detail()}")
        case StateScan() | RowScan() | FinalState():
            for port, depth in enumerate(below):
                if node.sees_order(port) and depth < node.depth:
                    raise PlanError(
                        f"{type(node).__name__}: rows of port {port} have {depth} origin columns, "
                        f"and an event needs {node.depth}",
                        hint="rows of a query or a DataFrame go through Number first",
                    )


def unique_origins(nodes: Sequence[Node]) -> Mapping[Node, bool]:
    """Return for each node whether all its rows have different origins.

    If so, the order of rows never depends on anything else. The nodes come with inputs before their
    readers.
    """
    depths: dict[Node, int] = {}
    unique: dict[Node, bool] = {}
    for node in nodes:
        depths[node] = node.origin_depth([depths[i] for i in node.inputs])
        unique[node] = depths[node] > 0 and _are_unique(node, unique)
    return unique


def _are_unique(node: Node, unique: Mapping[Node, bool]) -> bool:
    match node:
        case Number():
            return True
        case StateScan():
            return unique[node.streams[0]]
        case RowScan():
            return all(unique[i] for i in node.streams[: node.out_ports])
    return all(unique[i] for i in node.inputs)


def _nodes_asked_for_origins(nodes: Sequence[Node], named_by_errors: set[Node]) -> set[Node]:
    asked = named_by_errors.copy()
    for node in reversed(nodes):
        keeps = node.origin_depth([1] * len(node.inputs)) > 0
        for port, below in enumerate(node.inputs):
            if node.sees_order(port) or (keeps and node in asked):
                asked.add(below)
    return asked


def _nodes_with_failing_readers(program: Program, nodes: Sequence[Node]) -> set[Node]:
    """Return nodes that end a stage and whose rows, unchanged, may make another stage fail."""
    readers = reader_counts(program, nodes)
    failing: set[Node] = set()
    for node in reversed(nodes):
        if node.stateless and (_may_fail(node) or (readers[node] == 1 and node in failing)):
            failing.update(node.inputs)
    return {node for node in failing if readers[node] > 1}


def _may_fail(node: Node) -> bool:
    """Tell whether an operator that treats each row alone may fail."""
    match node:
        case Project():
            return any(can_fail(expr) for _, expr in node.columns)
        case Filter():
            return can_fail(node.predicate)
        case AlterLifetime(change=SetLifetime(end=end)):
            return can_fail(end)
    return False


@dataclass(frozen=True, slots=True)
class _Traced:
    """A source that rows come from, and which of their columns are the source's.

    `before` is the count of origin columns in front of the source's own."""

    source: Source
    before: int
    columns: Mapping[str, str]


def input_row(node: Node, origin: tuple[int, ...]) -> InputRow | None:
    """Return the source row that this row is, by its origin; None if it is made of other rows."""
    traces = _traced(node)
    for traced in traces:
        source, own = traced.source, origin[traced.before :]
        partition, offset = 0, None
        if len(own) >= SOURCE_ORIGIN_DEPTH:
            index, partition = divmod(own[0], 1 << PARTITION_BITS)
            offset = own[1]
            if index != source.index:
                continue
        elif len(traces) > 1:
            return None
        return InputRow(source.name, partition, offset, schema(source).names, traced.columns)
    return None


def _traced(node: Node) -> tuple[_Traced, ...]:
    match node:
        case Source():
            return (_Traced(node, 0, {name: name for name in schema(node).names}),)
        case Union():
            ports = range(len(node.inputs))
            return tuple(t for port in ports for t in _passed(node, port))
        case StateScan():
            return _passed(node, 0)
        case RowScan():
            return tuple(t for port in range(node.out_ports) for t in _passed(node, port))
    return _passed(node, 0) if node.stateless else ()


def _passed(node: Node, port: int) -> tuple[_Traced, ...]:
    passed = node.passed_columns(port)
    added = isinstance(node, Enter) and node.behind is None
    return tuple(
        _Traced(
            t.source,
            t.before + added,
            {name: t.columns[old] for name, old in passed.items() if old in t.columns},
        )
        for t in _traced(node.inputs[port])
    )
