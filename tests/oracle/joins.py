"""§5: two inputs. A match is a pair with equal, non-null keys that passes the condition."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from oracle.expressions import evaluate_expression
from oracle.rows import Row, cells, in_order, maximal, value_key
from weir.plan.operators import Join


def joined(
    node: Join,
    left: Sequence[Row],
    right: Sequence[Row],
    nulls: tuple[dict[str, None], dict[str, None]],
) -> list[Row]:
    """`nulls` are the payloads of an absent left and an absent right row."""
    matches = [[r for r in right if _match(node, a, r)] for a in left]
    pairs = list(zip(left, matches, strict=True))
    match node.kind:
        case "inner":
            return list(_inner(pairs))
        case "semi":
            return list(_presence(pairs, present=True))
        case "anti":
            return list(_presence(pairs, present=False))
        case "clip":
            return [clipped for a, found in pairs for clipped in _clip(a, found)]
        case "asof" | "left_asof":
            return list(_asof(pairs, nulls[1] if node.kind == "left_asof" else None))
    rows = list(_inner(pairs))
    if node.kind in ("left", "full"):
        rows += [Row(r.vs, r.ve, r.payload | nulls[1]) for r in _presence(pairs, present=False)]
    if node.kind in ("right", "full"):
        mirrored = [(b, [a for a in left if _match(node, a, b)]) for b in right]
        rows += [Row(r.vs, r.ve, nulls[0] | r.payload) for r in _presence(mirrored, present=False)]
    return rows


def _match(node: Join, left: Row, right: Row) -> bool:
    for mine, theirs in node.keys:
        a, b = left.payload[mine], right.payload[theirs]
        if a is None or b is None or value_key(a) != value_key(b):
            return False
    if node.condition is None:
        return True
    return evaluate_expression(node.condition, left.payload | right.payload) is True


Pairs = Sequence[tuple[Row, list[Row]]]


def _inner(pairs: Pairs) -> Iterator[Row]:
    for a, matches in pairs:
        for b in matches:
            if a.meets(b.vs, b.ve):
                yield Row(max(a.vs, b.vs), min(a.ve, b.ve), a.payload | b.payload)


def _presence(pairs: Pairs, *, present: bool) -> Iterator[Row]:
    for row, matches in pairs:
        inside = [c for c in cells([row, *matches]) if row.meets(*c)]
        pieces = [c for c in inside if any(m.meets(*c) for m in matches) == present]
        for start, end in maximal(pieces):
            yield Row(int(start), end, row.payload)


def _clip(row: Row, matches: list[Row]) -> list[Row]:
    end = min([row.ve, *(m.vs for m in matches if m.vs > row.vs)])
    return [Row(row.vs, end, row.payload)]


def _asof(pairs: Pairs, absent: dict[str, None] | None) -> Iterator[Row]:
    for row, matches in pairs:
        earlier = [m for m in in_order(matches) if m.vs <= row.vs]
        if earlier:
            yield Row(row.vs, row.ve, row.payload | earlier[-1].payload)
        elif absent is not None:
            yield Row(row.vs, row.ve, row.payload | absent)
