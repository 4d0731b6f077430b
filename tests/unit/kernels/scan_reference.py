"""A state scan as a plain loop: all requests in one sorted list, all merges of a cell kept.

Every read folds again what its cell has seen. Slow, and written apart from the kernels.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import pyarrow as pa

from weir.plan.states import Cell, StateMerge, StateRead

Event = tuple[int, ...]


@dataclass(frozen=True)
class ReferenceRow:
    """A row of a port: its time, its event, its element, its columns."""

    vs: int
    event: Event
    element: tuple[int, ...]
    values: dict[str, Any]


@dataclass(frozen=True)
class _Merged:
    time: int
    merge: StateMerge
    args: tuple[Any, ...]


def same_key(values: Sequence[Any]) -> tuple[Any, ...]:
    """Keys as texts: −0 is 0, NaN is NaN."""
    return tuple(repr(v + 0.0 if isinstance(v, float) else v) for v in values)


class ReferenceScan:
    """The cells of a scan, as histories."""

    def __init__(self, states: Sequence[Cell]) -> None:
        self.states = states
        self.seen: dict[tuple[int, tuple[Any, ...]], list[_Merged]] = {}

    def run(
        self,
        ports: Sequence[Sequence[ReferenceRow]],
        keys: Sequence[Sequence[str]],
        merges: Sequence[Sequence[StateMerge]],
        reads: Sequence[StateRead],
    ) -> list[list[Any]]:
        """The answers of all reads, by row of port 0."""
        answers: list[list[Any]] = [[None] * len(ports[0]) for _ in reads]
        requests: list[tuple[Any, Callable[[], None]]] = []
        for port, rows in enumerate(ports):
            for number, row in enumerate(rows):
                key = same_key([row.values[name] for name in keys[port]])
                for m in merges[port]:
                    if m.condition is None or row.values[m.condition]:
                        at = (row.vs, row.event, m.block, row.element, m.order)
                        requests.append((at, lambda m=m, r=row, k=key: self._merge(m, r, k)))
                for i, r in enumerate(reads) if port == 0 else ():
                    at = (row.vs, row.event, r.block, row.element, r.order)
                    requests.append(
                        (
                            at,
                            lambda i=i, n=number, r=r, row=row, k=key: answers[i].__setitem__(
                                n, self.value(r.state, k, row.vs)
                            ),
                        )
                    )
        for _, request in sorted(requests, key=lambda r: r[0]):
            request()
        return answers

    def _merge(self, m: StateMerge, row: ReferenceRow, key: tuple[Any, ...]) -> None:
        args = tuple(row.values[a] if isinstance(a, str) else a.value for a in m.args)
        self.seen.setdefault((m.state, key), []).append(_Merged(row.vs, m, args))

    def value(self, state: int, key: tuple[Any, ...], time: int) -> Any:
        """What a read at this time finds."""
        cell = self.states[state]
        default: Any = cell.default
        if pa.types.is_list(cell.type):
            default = list(default)
        value = default
        exact, merged_at = None, None
        for past in self.seen.get((state, key), ()):
            if cell.last is not None and not past.time <= time < past.time + cell.last:
                continue
            expires = math.inf if cell.expires is None else cell.expires
            if merged_at is not None and past.time >= merged_at + expires:
                value, exact = default, None
            if past.merge.kind == "add" and cell.type == pa.float64():
                exact = _Exact(value) if exact is None else exact
                exact.add(past.args[0])
                value = exact.rounded()
            else:
                value = _folded(value, past)
                exact = (
                    exact
                    if past.merge.kind in ("max", "min") and value is not past.args[0]
                    else None
                )
            merged_at = past.time
        if cell.expires is not None and merged_at is not None and time >= merged_at + cell.expires:
            return default
        return value


class _Exact:
    def __init__(self, value: float) -> None:
        self.sum, self.special = Fraction(0), 0.0
        self.add(value)

    def add(self, value: float) -> None:
        if math.isfinite(value):
            self.sum += Fraction(value)
        else:
            self.special += value

    def rounded(self) -> float:
        if self.special != 0.0:
            return self.special
        try:
            return self.sum.numerator / self.sum.denominator
        except OverflowError:
            return math.inf if self.sum > 0 else -math.inf


def _folded(old: Any, past: _Merged) -> Any:
    arg = past.args[0] if past.args else None
    match past.merge.kind:
        case "add":
            return old + arg
        case "set":
            return arg
        case "max":
            return max(old, arg)
        case "min":
            return min(old, arg)
        case "append":
            return [*old, arg]
        case "add_to_set":
            return old if repr(arg) in map(repr, old) else [*old, arg]
        case "top_k":
            return sorted([*old, arg], reverse=True)[: past.merge.k]
        case "call":
            assert past.merge.function is not None
            return past.merge.function.function(old, *past.args)
