"""Random logs: equal times, skewed keys, NULLs, empty logs, several partitions."""

from __future__ import annotations

import random
from collections.abc import Sequence

Rows = list[dict[str, object]]

_STRINGS = ("a", "b", "ab", "", "ß", "x y", "A", "0", "٣", "a\n")
_FLOATS = (0.5, 1.0, -2.5, 0.1, 0.2, 1e16, -1e16, 0.0, 3.0, 7.25)


def draw_logs(
    rng: random.Random, types: dict[str, Sequence[str]], most: int
) -> dict[str, list[Rows]]:
    """Draw the partitions of each event type; `types` has their columns."""
    logs = {}
    for name, columns in types.items():
        partitions = rng.choice([1, 1, 1, 2, 3])
        rows = 0 if rng.random() < 0.08 else rng.randint(0, most)
        sizes = [rows // partitions + (i < rows % partitions) for i in range(partitions)]
        logs[name] = [_partition(rng, columns, size) for size in sizes]
    return logs


def _partition(rng: random.Random, columns: Sequence[str], size: int) -> Rows:
    now, rows = rng.choice([0, 0, 1, 3]), []
    skew = rng.choice([1.0, 2.0, 4.0])
    for _ in range(size):
        now += rng.choice([0, 0, 1, 1, 2, 2, 3, 9])
        rows.append({"ts": now, **{c: _value(rng, c, skew) for c in columns}})
    return rows


def _value(rng: random.Random, column: str, skew: float) -> object:
    small = int(5 * rng.random() ** skew)
    match column:
        case "k":
            return ("a", "b", None, "c", "")[small]
        case "u":
            return small
        case "n" | "v":
            return rng.choice([0, 1, 1, 2, 3, 5, -1, -4, 9])
        case "m":
            return rng.choice([None, None, 0, 2, 7])
        case "x" | "y":
            return float("nan") if rng.random() < 0.02 else rng.choice(_FLOATS)
        case "s":
            return _STRINGS[int(len(_STRINGS) * rng.random() ** skew)]
        case "t":
            return rng.choice([None, "a", "b", ""])
        case "f":
            return rng.random() < 0.5
        case "tags":
            return [rng.choice("abc") for _ in range(rng.choice([0, 1, 2, 3]))]
        case "nums":
            return [rng.choice([0, 1, 2, 5, -3]) for _ in range(rng.choice([0, 1, 2, 3]))]
    raise AssertionError(column)
