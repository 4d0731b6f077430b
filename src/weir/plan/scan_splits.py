"""Chooses the columns by which the rows of scans are split.

The rows of a scan go on in full. Where the next scan over them has fewer keys (messages by sender
and recipient, then by sender), splitting by those serves both: the rows stay where they are.
Whatever skew the fewer keys have, the next scan would have.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from weir.plan.operators import Node, Partition
from weir.plan.operators.facts import Meet
from weir.plan.operators.scanning import Scanning


def scan_splits(nodes: Sequence[Node]) -> Mapping[Node, tuple[str, ...]]:
    """Return, by scan, the columns of its first input by which its rows are split: its keys, or
    some of them. The nodes come with inputs before their readers."""
    requested: dict[Node, list[tuple[str, ...]]] = {node: [] for node in nodes}
    chosen: dict[Node, tuple[str, ...]] = {}
    for node in reversed(nodes):
        if isinstance(node, Scanning):
            keys = node.keys[0]
            chosen[node] = next((w for w in requested[node] if set(w) <= set(keys)), keys)
            joins = keys and len(node.inputs) == 1
            asked: Iterable[tuple[str, ...]] = [chosen[node]] if joins else []
        elif node.meeting() is Meet.NEVER and not isinstance(node, Partition):
            asked = requested[node]
        else:
            continue
        for port, below in enumerate(node.inputs):
            names = node.passed_columns(port)
            requested[below] += [
                tuple(names[n] for n in w) for w in asked if set(w) <= names.keys()
            ]
    return chosen
