"""Finds the source row that an operator's row is, if it is one, for messages.

A row that each operator on the way treats alone is still a row of its source: its origin names it,
and some of its columns are the source's. Errors show the rest of that row.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from weir.errors import InputRow
from weir.plan.operators import Enter, Node, RowScan, Source, StateScan, Union, schema
from weir.plan.operators.source import PARTITION_BITS, SOURCE_ORIGIN_DEPTH


@dataclass(frozen=True, slots=True)
class _Traced:
    """A `_Traced` source: how many origin columns stand before its own, and which columns of the
    rows are its columns."""

    source: Source
    before: int
    columns: Mapping[str, str]


def input_row(node: Node, origin: tuple[int, ...]) -> InputRow | None:
    """Return the row of a source that a row with this origin is; None where it is made of
    others'."""
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
