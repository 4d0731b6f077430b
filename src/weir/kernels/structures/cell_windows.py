"""Keeps the value that a window folds to as merges come and go, so a read need not visit them all.

Contract
1. A folding is of one window, whose merges are all of one kind. Merges come at the end (`push`) and
   leave from the front (`leave`). `value`, if the window has merges, is what folding them in order,
   from the default, would return.
2. `folding_of` has none for functions, for NULL as a default (which is an error, except for `set`),
   and for mixed kinds: then all merges are folded at each read.
3. A read takes time in proportion to its answer, because it makes a new list.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from bisect import bisect_left, insort
from collections import deque
from collections.abc import Callable, Hashable
from decimal import Context, Decimal
from typing import Any, NamedTuple

from weir.kernels.structures.exact_doubles import MINUS, NAN, PLUS, ExactDouble
from weir.plan.states import MERGE_TRAITS, MergeKind

_WITH_K = frozenset(kind for kind, traits in MERGE_TRAITS.items() if traits.has_k)


class PastMerge(NamedTuple):
    """A merge in a window; of a call, `name` is the function's."""

    time: int
    kind: MergeKind
    args: tuple[Any, ...]
    function: Callable[..., object] | None = None
    name: str = ""

    @property
    def way(self) -> object:
        """What merges must have in common to be in one folding."""
        return self.args[1] if self.kind in _WITH_K else self.kind


class Folding(ABC):
    """What the merges of a window fold to."""

    __slots__ = ()

    @abstractmethod
    def push(self, merge: PastMerge) -> None:
        """Append a merge."""

    @abstractmethod
    def leave(self, merge: PastMerge) -> None:
        """Remove the oldest merge."""

    @abstractmethod
    def value(self, default: Any) -> object:
        """Return the value of a window that has a merge."""


class _Latest(Folding):
    __slots__ = ("_last",)

    def push(self, merge: PastMerge) -> None:
        self._last = merge.args[0]

    def leave(self, merge: PastMerge) -> None:
        pass

    def value(self, default: Any) -> object:
        return self._last


class _Extreme(Folding):
    """The merges that may still become the largest (smallest) of the window.

    No merge is larger (smaller) than the one before it. NaN never replaces a value."""

    __slots__ = ("_best", "_sign")

    def __init__(self, kind: MergeKind) -> None:
        self._best: deque[PastMerge] = deque()
        self._sign = kind == "max"

    def push(self, merge: PastMerge) -> None:
        value, best = merge.args[0], self._best
        if value != value:
            return
        while best and (best[-1].args[0] < value if self._sign else best[-1].args[0] > value):
            best.pop()
        best.append(merge)

    def leave(self, merge: PastMerge) -> None:
        if self._best and self._best[0] is merge:
            self._best.popleft()

    def value(self, default: Any) -> object:
        if not self._best:
            return default
        best = self._best[0].args[0]
        beyond = best > default if self._sign else best < default
        return best if beyond else default


class _Total(Folding):
    __slots__ = ("_total",)

    def __init__(self) -> None:
        self._total = 0

    def push(self, merge: PastMerge) -> None:
        self._total += merge.args[0]

    def leave(self, merge: PastMerge) -> None:
        self._total -= merge.args[0]

    def value(self, default: Any) -> object:
        return default + self._total


EXACT = Context(prec=100)
"""Adds DECIMALs without rounding: they have 38 digits, and there are fewer than 10^60 of them."""


class _DecimalTotal(Folding):
    __slots__ = ("_total",)

    def __init__(self) -> None:
        self._total = Decimal(0)

    def push(self, merge: PastMerge) -> None:
        self._total = EXACT.add(self._total, merge.args[0])

    def leave(self, merge: PastMerge) -> None:
        self._total = EXACT.subtract(self._total, merge.args[0])

    def value(self, default: Any) -> object:
        return EXACT.add(default, self._total)


class _ExactTotal(Folding):
    """The exact sum of doubles; of NaN and infinities, only their counts."""

    __slots__ = ("_special", "_units")

    def __init__(self) -> None:
        self._units = 0
        self._special = {NAN: 0, PLUS: 0, MINUS: 0}

    def push(self, merge: PastMerge) -> None:
        self._count(merge.args[0], 1)

    def leave(self, merge: PastMerge) -> None:
        self._count(merge.args[0], -1)

    def _count(self, value: float, sign: int) -> None:
        one = ExactDouble.of(value)
        if one.special:
            self._special[one.special] += sign
        else:
            self._units += sign * one.units

    def value(self, default: Any) -> object:
        total = ExactDouble.of(default)
        total.units += self._units
        total.special |= sum(flag for flag, count in self._special.items() if count)
        return total


class _Listed(Folding):
    __slots__ = ("_elements",)

    def __init__(self) -> None:
        self._elements: deque[Any] = deque()

    def push(self, merge: PastMerge) -> None:
        self._elements.append(merge.args[0])

    def leave(self, merge: PastMerge) -> None:
        self._elements.popleft()

    def value(self, default: Any) -> object:
        return [*default, *self._elements]


class _Distinct(Folding):
    """Distinct elements by what makes them equal, each with the numbers of its merges.

    The first of these numbers decides the element's place in the list."""

    __slots__ = ("_elements", "_next")

    def __init__(self) -> None:
        self._elements: dict[Hashable, deque[tuple[int, Any]]] = {}
        self._next = 0

    def push(self, merge: PastMerge) -> None:
        element = merge.args[0]
        self._elements.setdefault(canonical_key(element), deque()).append((self._next, element))
        self._next += 1

    def leave(self, merge: PastMerge) -> None:
        key = canonical_key(merge.args[0])
        self._elements[key].popleft()
        if not self._elements[key]:
            del self._elements[key]

    def value(self, default: Any) -> object:
        default_keys = set(map(canonical_key, default))
        first = sorted(
            (m[0] for key, m in self._elements.items() if key not in default_keys), key=_number
        )
        return [*default, *(element for _, element in first)]


class _Ranked(Folding):
    """All elements by rank, in ascending order; of equal ones, the later comes first."""

    __slots__ = ("_first", "_k", "_next", "_order")

    def __init__(self, k: int) -> None:
        self._k, self._first, self._next = k, 0, 0
        self._order: list[tuple[Any, int, Any]] = []

    def push(self, merge: PastMerge) -> None:
        element = merge.args[0]
        insort(self._order, (_rank(element), -self._next, element))
        self._next += 1

    def leave(self, merge: PastMerge) -> None:
        element = merge.args[0]
        del self._order[bisect_left(self._order, (_rank(element), -self._first, element))]
        self._first += 1

    def value(self, default: Any) -> object:
        best = [element for _, _, element in self._order[: -self._k - 1 : -1]]
        return best_of((*default, *best), self._k)


def folding_of(merge: PastMerge, default: object, *, exact: bool) -> Folding | None:
    """Return a folding for a window whose merges are like this one, or None if there is none.

    `exact` says that sums are those of doubles."""
    if default is None and merge.kind != "set":
        return None
    match merge.kind:
        case "set":
            return _Latest()
        case "max" | "min":
            return _Extreme(merge.kind)
        case "add" if isinstance(default, Decimal):
            return _DecimalTotal()
        case "add":
            return _ExactTotal() if exact else _Total()
        case "append":
            return _Listed()
        case "add_to_set":
            return _Distinct()
        case "top_k":
            return _Ranked(merge.args[1])
        case "call":
            return None


# --- elements --------------------------------------------------------------------------------

_NAN = math.nan  # one object, so that it equals itself as a key


def canonical_key(value: object) -> Hashable:
    """Return the same object for all values that are equal as keys.

    −0 becomes 0, every NaN the same NaN, and lists become tuples."""
    if isinstance(value, float):
        return _NAN if math.isnan(value) else value + 0.0
    if isinstance(value, list | tuple):
        return tuple(canonical_key(v) for v in value)
    if isinstance(value, dict):
        return tuple((k, canonical_key(v)) for k, v in value.items())
    assert isinstance(value, Hashable)
    return value


def best_of(values: tuple[Any, ...], k: int) -> list[Any]:
    """Return the k largest in descending order; of equal ones, the earlier comes first."""
    return sorted(values, key=_rank, reverse=True)[:k]


def _rank(value: Any) -> Any:
    return (1, 0.0) if isinstance(value, float) and math.isnan(value) else (0, value)


def _number(pair: tuple[int, Any]) -> int:
    return pair[0]
