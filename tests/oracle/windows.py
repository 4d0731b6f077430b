"""§3: which rows make up each window, and the window's lifetime; LIMIT, DISTINCT."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from oracle.aggregates import aggregate
from oracle.rows import (
    OPEN,
    OracleError,
    Row,
    by_key,
    by_payload,
    cells,
    in_order,
    maximal,
    value_key,
)
from weir.plan.operators import Aggregate, Top
from weir.plan.windows import CountWindow, Hopping, Session, SnapshotWindow, Window

Pane = tuple[float, float, list[Row]]


def aggregated(node: Aggregate, rows: Iterable[Row]) -> list[Row]:
    result = []
    for group in by_key(rows, node.keys):
        keys = {k: group[0].payload[k] for k in node.keys}
        for start, end, members in _panes(node.window, group):
            values = {name: aggregate(a, members) for name, a in node.aggregates}
            result.append(Row(int(start), end, keys | values))
    return result


def _panes(window: Window, group: list[Row]) -> Iterator[Pane]:
    match window:
        case Hopping():
            return _hopping(window, group)
        case Session(timeout=timeout):
            return _sessions(timeout, group)
        case CountWindow(n=n, step=step):
            return _counts(n, step, group)
        case SnapshotWindow():
            return _snapshots(group)


def _hopping(window: Hopping, group: list[Row]) -> Iterator[Pane]:
    if any(row.ve == OPEN for row in group):
        raise OracleError("open")
    first = (min(r.vs for r in group) - window.size - window.offset) // window.hop
    last = (int(max(r.ve for r in group)) - window.offset) // window.hop
    for k in range(first, last + 1):
        start = window.offset + k * window.hop
        members = [row for row in group if row.meets(start, start + window.size)]
        if members:
            yield start, start + window.size, members


def _sessions(timeout: int, group: list[Row]) -> Iterator[Pane]:
    members: list[Row] = []
    for row in group:
        if members and row.vs >= members[-1].vs + timeout:
            yield members[0].vs, members[-1].vs + timeout, members
            members = []
        members.append(row)
    yield members[0].vs, members[-1].vs + timeout, members


def _counts(n: int, step: int, group: list[Row]) -> Iterator[Pane]:
    for start in range(0, len(group) - n + 1, step):
        members = group[start : start + n]
        yield members[-1].vs, members[-1].ve, members


def _snapshots(group: list[Row]) -> Iterator[Pane]:
    for start, end in cells(group):
        members = [row for row in group if row.meets(start, end)]
        if members:
            yield start, end, members


def distinct(rows: Iterable[Row]) -> list[Row]:
    """One row per payload and maximal interval on which it is live at least once."""
    result = []
    for same in by_payload(rows):
        live = [c for c in cells(same) if any(r.meets(*c) for r in same)]
        result += [Row(int(a), b, same[0].payload) for a, b in maximal(live)]
    return result


def top(node: Top, rows: Sequence[Row]) -> list[Row]:
    if node.scope == "window":
        windows = {(r.vs, r.ve) for r in rows}
        contents = [(a, b, [r for r in rows if (r.vs, r.ve) == (a, b)]) for a, b in windows]
    else:
        contents = [(a, b, [r for r in rows if r.meets(a, b)]) for a, b in cells(rows)]
    return [
        Row(int(start), end, row.payload)
        for start, end, live in contents
        for row in _best(node, live)
    ]


def _best(node: Top, rows: list[Row]) -> list[Row]:
    ranked = in_order(rows)
    for name, descending in reversed(node.order):
        # A stable sort, also when reversed: ties keep the total order.
        ranked.sort(key=lambda row: value_key(row.payload[name]), reverse=descending)
    best = ranked[: node.limit]
    if node.ties and best:
        best += [r for r in ranked[node.limit :] if _rank(node, r) == _rank(node, best[-1])]
    return best


def _rank(node: Top, row: Row) -> list[object]:
    return [value_key(row.payload[name]) for name, _ in node.order]
