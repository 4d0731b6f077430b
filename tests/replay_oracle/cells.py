"""What a state holds, in the plainest way: for each key the merges that count, folded at a read.

A value is never changed in place: what comes in is copied, and what the user's code gets is a copy
of its own, with real lists. Every NaN in it is `math.nan`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from decimal import Context, Decimal
from fractions import Fraction

LEAST, MOST = -(2**63), 2**63 - 1
_DIGITS = Context(prec=100)
"""More than sums of DECIMALs have."""
KINDS = ("add", "set", "max", "min", "append", "add_to_set", "top_k", "call")


class Struct(dict):  # type: ignore[type-arg]
    """A `Struct` is a struct's value: `s["n"]` and `s.n`, also to set them."""

    def __getattr__(self, name: str) -> object:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None

    def __setattr__(self, name: str, value: object) -> None:
        self[name] = value


@dataclass(frozen=True, slots=True)
class Exact:
    """An `Exact` is a sum of doubles that is rounded only when somebody looks."""

    finite: Fraction
    special: float = 0.0  # inf, −inf or nan once such a number was added

    def plus(self, x: float) -> Exact:
        if math.isfinite(x):
            return Exact(self.finite + Fraction(x), self.special)
        return Exact(self.finite, self.special + x)

    def rounded(self) -> float:
        if self.special:  # nan is true
            return self.special
        try:
            return float(self.finite)
        except OverflowError:
            return math.inf if self.finite > 0 else -math.inf


@dataclass(frozen=True, slots=True)
class Merged:
    """A `Merged` is one merge that reached a cell, with the arguments that it captured."""

    at: int
    kind: str
    args: tuple[object, ...]
    function: Callable[[object], object] | None = None


@dataclass
class Kind:
    """A `Kind` says what the cells of a state are."""

    name: str
    default: object
    type: str
    last: int | None = None
    expires: int | None = None


@dataclass(frozen=True, slots=True)
class Kept:
    """A `Kept` is what a cell without a window keeps: its value and when it was merged last."""

    at: int
    value: object


Key = tuple[object, ...]
Cell = Kept | tuple[Merged, ...]
"""A cell with a window keeps its merges: which of them count is known at the read."""


# --- values ----------------------------------------------------------------------------------


def copied(value: object) -> object:
    """Return the value with lists and structs of its own, at every depth."""
    if isinstance(value, list | tuple):
        return [copied(v) for v in value]
    if isinstance(value, dict):
        return Struct({n: copied(v) for n, v in value.items()})
    return math.nan if isinstance(value, float) and math.isnan(value) else value


def typed(kind: Kind, value: object) -> object:
    """Return what a cell keeps of a value; an integer beyond its type is an error."""
    if value is None:
        return None
    if kind.type in ("BIGINT", "INT"):
        bound = 2**63 if kind.type == "BIGINT" else 2**31
        if not isinstance(value, int) or not -bound <= value < bound:
            raise OverflowError(f"{value!r} is no {kind.type}, in state {kind.name}")
        return int(value)
    if kind.type == "DOUBLE":
        return float(value)  # type: ignore[arg-type]
    if kind.type.startswith("DECIMAL("):
        digits, decimals = map(int, kind.type[len("DECIMAL(") : -1].split(","))
        number = Decimal(value)  # type: ignore[arg-type]
        scaled = Fraction(number) * 10**decimals
        if scaled.denominator != 1 or abs(scaled) >= 10**digits:
            raise OverflowError(f"{value!r} is no {kind.type}, in state {kind.name}")
        return Decimal(scaled.numerator).scaleb(-decimals, _DIGITS)
    return copied(value)


def comparable(value: object) -> object:
    """Return something that is equal where §3.1 calls two values equal, and can be hashed."""
    if isinstance(value, float):
        return "NaN of a DOUBLE" if math.isnan(value) else value + 0.0
    if isinstance(value, list | tuple):
        return tuple(comparable(v) for v in value)
    if isinstance(value, dict):
        return tuple((n, comparable(v)) for n, v in sorted(value.items()))
    return value


def ranked(value: object) -> tuple[bool, object]:
    """Return what orders values as §3.1 does: NaN behind all numbers, for `top_k`."""
    if value is None:
        raise TypeError("NULL cannot be compared")
    return (isinstance(value, float) and math.isnan(value), 0.0 if value != value else value)


# --- folding ---------------------------------------------------------------------------------


def fold(kind: Kind, merges: tuple[Merged, ...]) -> object:
    """Return what a cell holds after these merges, from the default on."""
    value: object = kind.default
    for merge in merges:
        value = step(kind, value, merge)
    return value


def step(kind: Kind, value: object, merge: Merged) -> object:
    if merge.kind == "add" and kind.type == "DOUBLE":
        x = merge.args[0]
        if value is None or x is None:
            raise TypeError("add of NULL")
        exact = value if isinstance(value, Exact) else Exact(Fraction(0)).plus(float(value))  # type: ignore[arg-type]
        return exact.plus(float(x))  # type: ignore[arg-type]
    new = typed(kind, _merged(seen(value), merge))
    # A sum that is large enough already stays the sum that it is.
    return value if merge.kind in ("max", "min") and new == seen(value) else new


def seen(value: object) -> object:
    """Return what a reader sees of what a cell holds."""
    return value.rounded() if isinstance(value, Exact) else value


def _merged(old: object, merge: Merged) -> object:
    x = merge.args[0] if merge.args else None
    match merge.kind:
        case "add" if isinstance(old, Decimal):
            return _DIGITS.add(old, Decimal(x))  # type: ignore[arg-type]
        case "add":
            return old + x  # type: ignore[operator]
        case "set":
            return x
        case "max":
            return max(old, x)  # type: ignore[type-var]
        case "min":
            return min(old, x)  # type: ignore[type-var]
        case "append":
            return [*old, x]  # type: ignore[misc]
        case "add_to_set":
            here = {comparable(v) for v in old}  # type: ignore[attr-defined]
            return old if comparable(x) in here else [*old, x]  # type: ignore[misc]
        case "top_k":
            ranked(x)
            # Sorting is stable: of equal ones the earlier stays in front.
            best = sorted((*old, x), key=ranked, reverse=True)  # type: ignore[misc]
            return best[: merge.args[1]]  # type: ignore[misc]
        case "call":
            assert merge.function is not None
            return merge.function(copied(old))
    raise AssertionError(merge.kind)


@dataclass
class Store:
    """A `Store` holds the cells of all states; a merge's function may look at a copy later."""

    kinds: dict[str, Kind] = field(default_factory=dict)
    cells: dict[str, dict[Key, Cell]] = field(default_factory=dict)

    def copy(self) -> Store:
        return type(self)(self.kinds, {name: dict(cells) for name, cells in self.cells.items()})

    def declare(self, kind: Kind) -> None:
        self.kinds[kind.name], self.cells[kind.name] = kind, {}

    def get(self, name: str, key: object, r: int) -> object:
        """Return what a read at r sees."""
        return copied(seen(self._held(name, self.key(key), r)))

    def merge(self, name: str, given: object, merge: Merged) -> None:
        kind, key, cells = self.kinds[name], self.key(given), self.cells[name]
        if kind.last is None:
            cells[key] = Kept(merge.at, step(kind, self._held(name, key, merge.at), merge))
        else:
            earlier = cells.get(key, ())
            assert isinstance(earlier, tuple)
            cells[key] = (*earlier, merge)

    def listed(self, name: str, r: int) -> Iterator[tuple[Key, object]]:
        """Give the cells of a state in which a merge is in force at r."""
        for key, cell in self.cells[name].items():
            if self._counts(self.kinds[name], cell, r):
                yield key, seen(self._held(name, key, r))

    def _held(self, name: str, key: Key, r: int) -> object:
        kind, cell = self.kinds[name], self.cells[name].get(key)
        if cell is None or not (counting := self._counts(kind, cell, r)):
            return kind.default
        return cell.value if isinstance(cell, Kept) else fold(kind, counting)

    def _counts(self, kind: Kind, cell: Cell, r: int) -> tuple[Merged | Kept, ...]:
        """Return the part of a cell that counts at r."""
        if isinstance(cell, Kept):
            gone = kind.expires is not None and self.expired(cell.at, r, kind.expires)
            return () if gone else (cell,)
        assert kind.last is not None
        return tuple(m for m in cell if self.in_window(m.at, r, kind.last))

    def in_window(self, t: int, r: int, last: int) -> bool:
        return t <= r < t + last

    def expired(self, t: int, r: int, expires: int) -> bool:
        return r >= t + expires

    def key(self, given: object) -> Key:
        parts = given if isinstance(given, tuple) else (given,)
        return tuple(comparable(p) for p in parts)
