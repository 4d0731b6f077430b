"""§6: how a partition's items become rows.

Lateness depends on the partition's own items, in offset order, and on nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence

from oracle.rows import Cti, OracleError, Row
from weir.plan.operators import Source

Item = Row | Cti


def ingress(source: Source, partitions: Sequence[Sequence[Item]]) -> list[Row]:
    return [
        row for number, items in enumerate(partitions) for row in _partition(source, number, items)
    ]


def late_rows(source: Source, partitions: Sequence[Sequence[Item]]) -> int:
    """How many events are counted as late (dropped, or adjusted to nothing)."""
    events = sum(isinstance(i, Row) for items in partitions for i in items)
    return events - len(ingress(source, partitions))


def _partition(source: Source, number: int, items: Sequence[Item]) -> list[Row]:
    now = float("-inf")
    rows = []
    for offset, item in enumerate(items):
        if isinstance(item, Cti):
            now = max(now, item.time)
            continue
        vs = item.vs
        if vs < now:
            match source.options.late:
                case "fail":
                    raise OracleError("late")
                case "drop":
                    continue
                case "adjust":
                    vs = int(now)
        else:
            now = max(now, vs - source.options.delay)
        if vs < item.ve:
            rows.append(Row(vs, item.ve, item.payload, (source.index, number, offset)))
    return rows
