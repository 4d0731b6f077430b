"""Final states as the engine saves them (`plan/saved_states.py`), as values as of a time."""

from __future__ import annotations

from collections.abc import Mapping

from replay_oracle.cells import Kind, Merged, comparable, copied, fold, seen

Rows = list[dict[str, object]]


def saved_values(kind: Kind, rows: Rows, end: int) -> dict[object, object]:
    """Return the cells of a state as of a time, by what a final state says of it."""
    return (_windows if kind.last is not None else _values)(kind, rows, end)


def _values(kind: Kind, rows: Rows, end: int) -> dict[object, object]:
    return {
        _key(row): comparable(row["value"])
        for row in rows
        if kind.expires is None or end < row["vs"] + kind.expires  # type: ignore[operator]
    }


def _windows(kind: Kind, rows: Rows, end: int) -> dict[object, object]:
    """Fold the saved merges that count; of a function the engine saves the name only, and what
    it gives is `UNKNOWN` (`probing.py` asks for it)."""
    assert kind.last is not None
    cells: dict[object, list[tuple[int, Merged]]] = {}
    for row in rows:
        at: int = row["vs"]  # type: ignore[assignment]
        if at <= end < at + kind.last:
            cells.setdefault(_key(row), []).append((row["number"], _merge(row)))  # type: ignore[arg-type]
    found: dict[object, object] = {}
    for key, merges in cells.items():
        ordered = tuple(m for _, m in sorted(merges, key=lambda pair: pair[0]))
        known = all(m.kind != "call" for m in ordered)
        found[key] = comparable(seen(fold(kind, ordered))) if known else UNKNOWN
    return found


class _Unknown:
    """Equal to everything: a value that only a function could tell."""

    def __eq__(self, other: object) -> bool:
        return True

    def __hash__(self) -> int:
        return 0

    def __repr__(self) -> str:
        return "?"


UNKNOWN = _Unknown()


def _merge(row: Mapping[str, object]) -> Merged:
    kind = str(row["merge"])
    if kind in ("append", "add_to_set"):
        return Merged(0, kind, (copied(row["element"]),))
    if kind == "top_k":
        return Merged(0, kind, (row["element"], row["k"]))
    if kind in ("add", "set", "max", "min"):
        return Merged(0, kind, (copied(row["arg"]),))
    return Merged(0, "call", ())


def _key(row: Mapping[str, object]) -> object:
    return tuple(comparable(v) for n, v in row.items() if n.startswith("key"))
