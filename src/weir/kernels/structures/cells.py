"""Cells of one state, by key, as Python objects (`plan/states.py` says what a cell means).

Contract
1. `get` and `merge` come in the order of requests: times never go back.
2. A key is anything that can be hashed: a tuple of values, or the number of a group.
3. What does not fit (an argument, a result, a sum) raises `CellFailure`; what a merge's function
   raises passes through.
4. `max` and `min` replace the value where the argument is greater (smaller), as Python's do.
   `add_to_set` takes elements as equal that are equal as keys. `top_k` orders NaN above all
   numbers.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import pyarrow as pa

from weir.events.frozen_values import FrozenList, frozen, given_default
from weir.events.types import DOUBLE, is_integer
from weir.kernels.expressions.user_values import Misfit, settler
from weir.kernels.structures.exact_doubles import ExactDouble
from weir.plan.states import Cell, MergeKind

Function: TypeAlias = Callable[..., object]
_NAN = math.nan  # one object, so that it equals itself as a key


class CellFailure(Exception):
    """A merge or a read cannot be done; the text says why."""


@dataclass(slots=True)
class CellEntry:
    """A `CellEntry` is a cell that was merged into: its value, and when that was.

    `exact` is the sum that `value` is rounded from, where it is not the value itself.
    """

    value: object
    time: int
    exact: ExactDouble | None = None


@dataclass(frozen=True, slots=True)
class PastMerge:
    """A `PastMerge` is a merge that a window holds. `name` says which function a call calls."""

    time: int
    kind: MergeKind
    args: tuple[object, ...]
    function: Function | None = None
    name: str = ""


class CellTable:
    """A `CellTable` holds the cells of one state."""

    def __init__(self, cell: Cell) -> None:
        self.cell = cell
        self._settle = settler(cell.type)
        self.default = frozen(self._settle(given_default(cell.default, cell.type)))
        self._nested = pa.types.is_nested(cell.type)
        self._sums = cell.type == DOUBLE
        self._last, self._expires = cell.last, cell.expires
        self._whole = cell.last is not None and is_integer(cell.type)
        """Whether values may be beyond their type until they are read."""
        self.entries: dict[Hashable, CellEntry] = {}
        self.pasts: dict[Hashable, deque[PastMerge]] = {}

    def __len__(self) -> int:
        return len(self.entries) + sum(map(len, self.pasts.values()))

    def get(self, key: Hashable, time: int) -> object:
        """Return the value of a cell at a time."""
        if self._last is not None:
            return self._folded(key, time)
        entry = self.entries.get(key)
        if entry is None or (self._expires is not None and time >= entry.time + self._expires):
            return self.default
        return _value(entry)

    def merge(
        self, key: Hashable, time: int, kind: MergeKind, args: tuple[object, ...],
        function: Function | None = None, name: str = "",
    ) -> None:  # fmt: skip
        """Merge into a cell; for `top_k` the arguments are the value and k."""
        if self._last is not None:
            past = self.pasts.setdefault(key, deque())
            past.append(PastMerge(time, kind, args, function, name))
            _leave(past, time, self._last)
            return
        entry = self.entries.get(key)
        if entry is None:
            entry = CellEntry(self.default, time)
            self._apply(entry, kind, args, function)
            self.entries[key] = entry
            return
        if self._expires is not None and time >= entry.time + self._expires:
            entry.value, entry.exact = self.default, None
        self._apply(entry, kind, args, function)
        entry.time = time

    def _folded(self, key: Hashable, time: int) -> object:
        assert self._last is not None
        past = self.pasts.get(key)
        if past is None:
            return self.default
        _leave(past, time, self._last)
        folded = CellEntry(self.default, time)
        for merge in past:
            self._apply(folded, merge.kind, merge.args, merge.function)
        value = _value(folded)
        if self._whole:
            self._settled(value)  # only what is read has to fit
        return value

    def drop(self, time: int) -> list[Hashable]:
        """Forget the cells that are the default for every read from this time on; return their
        keys."""
        if self._last is not None:
            for past in self.pasts.values():
                _leave(past, time, self._last)
            gone = [key for key, past in self.pasts.items() if not past]
            for key in gone:
                del self.pasts[key]
        elif self._expires is not None:
            over = time - self._expires
            gone = [key for key, entry in self.entries.items() if entry.time <= over]
            for key in gone:
                del self.entries[key]
        else:
            gone = []
        return gone

    def keys(self) -> Iterator[Hashable]:
        yield from self.entries
        yield from self.pasts

    # --- merges ------------------------------------------------------------------------------

    def _apply(
        self, entry: CellEntry, kind: MergeKind, args: tuple[object, ...], function: Function | None
    ) -> None:
        if kind == "add" and self._sums:
            self._add_exactly(entry, args[0])
            return
        old = _value(entry)
        new = self._merged(old, kind, args, function)
        if new is old:
            return
        if self._whole and type(new) is int:
            entry.value = new
            return
        settled = self._settled(new)
        entry.value, entry.exact = frozen(settled) if self._nested else settled, None

    def _settled(self, value: object) -> object:
        try:
            return self._settle(value)
        except Misfit as misfit:
            raise CellFailure(f"state {self.cell.state} must be {misfit}") from None

    def _merged(
        self, old: Any, kind: MergeKind, args: tuple[Any, ...], function: Function | None
    ) -> object:
        if kind == "set":
            return args[0]
        if kind == "call":
            assert function is not None
            return function(old, *args)
        if old is None or (args[0] is None and kind not in ("append", "add_to_set")):
            raise CellFailure(f"{kind} {self._of_nothing(old)}")
        match kind:
            case "add":
                return old + args[0]
            case "max":
                return args[0] if args[0] > old else old
            case "min":
                return args[0] if args[0] < old else old
            case "append":
                return FrozenList((*old, args[0]))
            case "add_to_set":
                mine = canonical_key(args[0])
                known = any(canonical_key(v) == mine for v in old)
                return old if known else FrozenList((*old, args[0]))
            case "top_k":
                return _best(old, args[0], args[1])

    def _of_nothing(self, old: object) -> str:
        if old is None:
            return f"into a cell of {self.cell.state} that is NULL"
        return f"of NULL into a cell of {self.cell.state}"

    def _add_exactly(self, entry: CellEntry, arg: object) -> None:
        if entry.value is None or arg is None:
            raise CellFailure(f"add {self._of_nothing(entry.value)}")
        try:
            number: Any = self._settle(arg)
        except Misfit as misfit:
            raise CellFailure(f"add to {self.cell.state} takes {misfit}") from None
        if entry.exact is None:
            assert isinstance(entry.value, float)
            entry.exact = ExactDouble.of(entry.value)
        entry.exact.add(number)


def canonical_key(value: object) -> Hashable:
    """Return one object for values that are equal as keys: −0 becomes 0, every NaN the same NaN,
    lists become tuples."""
    if isinstance(value, float):
        return _NAN if math.isnan(value) else value + 0.0
    if isinstance(value, list | tuple):
        return tuple(canonical_key(v) for v in value)
    if isinstance(value, dict):
        return tuple((k, canonical_key(v)) for k, v in value.items())
    assert isinstance(value, Hashable)
    return value


def _value(entry: CellEntry) -> object:
    return entry.value if entry.exact is None else entry.exact.rounded()


def _leave(past: deque[PastMerge], time: int, last: int) -> None:
    """Drop the merges that no read from this time on sees."""
    while past and past[0].time + last <= time:
        past.popleft()


def _best(old: list[Any], new: Any, k: Any) -> object:
    """Return the k largest of these and a new one, in descending order, of equal ones the earlier
    first."""
    return FrozenList(sorted((*old, new), key=_rank, reverse=True)[:k])


def _rank(value: Any) -> Any:
    return (1, 0.0) if isinstance(value, float) and math.isnan(value) else (0, value)
