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
from typing import Any, NamedTuple, TypeAlias

import pyarrow as pa

from weir.events.frozen_values import FrozenList, frozen, given_default
from weir.events.types import DOUBLE, INT, is_integer
from weir.kernels.expressions.user_values import Misfit, settler
from weir.kernels.structures.exact_doubles import ExactDouble
from weir.plan.states import Cell, CellFailure, MergeKind

Function: TypeAlias = Callable[..., object]
_NAN = math.nan  # one object, so that it equals itself as a key
_OF_LISTS = ("append", "add_to_set", "top_k")
_NOT_AT_ONCE = object()
_FEWEST = 1024
"""Cells that are looked through for those that have ended, at least."""


class PastMerge(NamedTuple):
    """A `PastMerge` is a merge that a window holds. `name` says which function a call calls."""

    time: int
    kind: MergeKind
    args: tuple[object, ...]
    function: Function | None = None
    name: str = ""


class CellTable:
    """A `CellTable` holds the cells of one state.

    Without `last`, `values` has what was merged (of exact sums, the sum) and `times` when that was
    last; these are not kept where nobody asks for them (`timed`). With `last`, `pasts` has the
    merges themselves.
    """

    def __init__(self, cell: Cell, *, timed: bool = True) -> None:
        self.cell = cell
        self._settle = settler(cell.type)
        self.default = frozen(self._settle(given_default(cell.default, cell.type)))
        self._nested = pa.types.is_nested(cell.type)
        listed = pa.types.is_list(cell.type)
        self._settle_element = settler(cell.type.value_type) if listed else self._settle
        self._sums = cell.type == DOUBLE
        self._range = value_range(cell.type) if is_integer(cell.type) else None
        self._last, self._expires = cell.last, cell.expires
        self._whole = cell.last is not None and is_integer(cell.type)
        """Whether values may be beyond their type until they are read."""
        self._timed = timed or cell.expires is not None
        self.values: dict[Hashable, object] = {}
        self.times: dict[Hashable, int] = {}
        self.pasts: dict[Hashable, deque[PastMerge]] = {}
        self._kinds: set[MergeKind] = set()
        """The kinds of merges that windows have seen."""
        self._swept = 0

    def __len__(self) -> int:
        return len(self.values) + sum(map(len, self.pasts.values()))

    def __contains__(self, key: object) -> bool:
        return key in self.values or key in self.pasts

    def __iter__(self) -> Iterator[Hashable]:
        yield from self.values
        yield from self.pasts

    def get(self, key: Hashable, time: int) -> object:
        """Return the value of a cell at a time."""
        if self._last is not None:
            return self._folded(key, time)
        value = self.values.get(key, self.default)
        if self._expires is not None and self._has_ended(key, time):
            return self.default
        return value.rounded() if type(value) is ExactDouble else value

    def merge(
        self, key: Hashable, time: int, kind: MergeKind, args: tuple[object, ...],
        function: Function | None = None, name: str = "",
    ) -> None:  # fmt: skip
        """Merge into a cell; for `top_k` the arguments are the value and k."""
        if self._last is not None:
            kept = PastMerge(time, kind, self._kept(kind, args), function, name)
            self.hold(key, kept)
            _leave(self.pasts[key], time, self._last)
            return
        old = self.values.get(key, self.default)
        if self._timed:
            if self._expires is not None and self._has_ended(key, time):
                old = self.default
            self.times[key] = time
        self.values[key] = self._merged(old, kind, args, function)

    def _has_ended(self, key: Hashable, time: int) -> bool:
        merged = self.times.get(key)
        return merged is not None and time >= merged + (self._expires or 0)

    # --- windows -----------------------------------------------------------------------------

    def hold(self, key: Hashable, merge: PastMerge) -> None:
        """Put a merge at the end of a window."""
        self._kinds.add(merge.kind)
        self.pasts.setdefault(key, deque()).append(merge)

    def _folded(self, key: Hashable, time: int) -> object:
        assert self._last is not None
        past = self.pasts.get(key)
        if past is None:
            return self.default
        _leave(past, time, self._last)
        value = self._folded_at_once(past) if len(self._kinds) == 1 else _NOT_AT_ONCE
        if value is _NOT_AT_ONCE:
            value = self.default
            for merge in past:
                try:
                    value = self._merged(value, merge.kind, merge.args, merge.function)
                except CellFailure as failure:
                    failure.merge = merge.kind
                    raise
        if self._whole:
            return self._settled(value)  # only what is read has to fit
        return value.rounded() if type(value) is ExactDouble else value

    def _folded_at_once(self, past: deque[PastMerge]) -> object:
        """Fold a window that has merges of one kind, where Python does that in one call."""
        (kind,) = self._kinds
        default: Any = self.default
        if not past or kind == "call" or (default is None and kind != "set"):
            return _NOT_AT_ONCE
        values: list[Any] = [merge.args[0] for merge in past]
        match kind:
            case "set":
                return values[-1]
            case "max":
                return max(default, *values)
            case "min":
                return min(default, *values)
            case "append":
                return FrozenList((*default, *values))
            case "top_k":
                ks: set[Any] = {merge.args[1] for merge in past}
                if len(ks) == 1:
                    return _best((*default, *values), ks.pop())
        return _NOT_AT_ONCE

    # --- cells that have ended ---------------------------------------------------------------

    def drop(self, time: int) -> None:
        """Forget the cells that are the default for every read from this time on."""
        if self._last is not None:
            for past in self.pasts.values():
                _leave(past, time, self._last)
            self.pasts = {key: past for key, past in self.pasts.items() if past}
        elif self._expires is not None:
            over = time - self._expires
            for key in [key for key, merged in self.times.items() if merged <= over]:
                del self.values[key], self.times[key]

    def sweep(self, time: int) -> None:
        """Do what `drop` does, when there are twice as many cells as were left the last time."""
        if len(self.values) + len(self.pasts) >= max(2 * self._swept, _FEWEST):
            self.drop(time)
            self._swept = len(self.values) + len(self.pasts)

    # --- merges ------------------------------------------------------------------------------

    def _merged(
        self, old: Any, kind: MergeKind, args: tuple[Any, ...], function: Function | None
    ) -> object:
        """Return what a cell holds after a merge, given what it held."""
        if kind == "add":
            if self._sums:
                return self._added(old, args[0])
            if self._range is not None and type(args[0]) is int and type(old) is int:
                total = old + args[0]
                if self._whole or self._range[0] <= total <= self._range[1]:
                    return total
        elif kind in _OF_LISTS and old is not None:
            return self._with_element(old, kind, args)
        value = old.rounded() if type(old) is ExactDouble else old
        if kind == "set":
            new = args[0]
        elif kind == "call":
            assert function is not None
            new = function(value, *args)
        elif value is None or args[0] is None:
            raise CellFailure(f"{kind} {self._of_nothing(value)}")
        elif kind == "add":
            new = value + args[0]
        else:
            greater = args[0] > value if kind == "max" else args[0] < value
            if not greater:
                return old
            new = args[0]
        if self._whole and type(new) is int:
            return new
        settled = self._settled(new)
        return frozen(settled) if self._nested else settled

    def _added(self, old: Any, arg: Any) -> object:
        """Add to an exact sum."""
        if old is None or arg is None:
            raise CellFailure(f"add {self._of_nothing(old)}")
        try:
            number: Any = self._settle(arg)
        except Misfit as misfit:
            raise CellFailure(f"add to {self.cell.state} takes {misfit}") from None
        total = old if type(old) is ExactDouble else ExactDouble.of(old)
        total.add(number)
        return total

    def _with_element(self, old: Any, kind: MergeKind, args: tuple[Any, ...]) -> object:
        """Return a list with one more element; those that are in it fit already."""
        (element, *_) = self._kept(kind, args)
        if kind == "append":
            return FrozenList((*old, element))
        if kind == "top_k":
            return _best((*old, element), args[1])
        mine = canonical_key(element)
        if any(canonical_key(v) == mine for v in old):
            return old
        return FrozenList((*old, element))

    def _kept(self, kind: MergeKind, args: tuple[object, ...]) -> tuple[object, ...]:
        """Return the arguments of a merge so that nobody can change them."""
        if kind == "call":
            return tuple(map(frozen, args))
        if args[0] is None:
            if kind in ("set", "append", "add_to_set"):
                return args
            raise CellFailure(f"{kind} {self._of_nothing(0)}")
        try:
            value = (self._settle_element if kind in _OF_LISTS else self._settle)(args[0])
        except Misfit as misfit:
            raise CellFailure(f"{kind} of {self.cell.state} takes {misfit}") from None
        return (frozen(value), *args[1:])

    def _settled(self, value: object) -> object:
        try:
            return self._settle(value)
        except Misfit as misfit:
            raise CellFailure(f"state {self.cell.state} must be {misfit}") from None

    def _of_nothing(self, old: object) -> str:
        if old is None:
            return into_null(self.cell)
        return f"of NULL into a cell of {self.cell.state}"


def into_null(cell: Cell) -> str:
    """Say that something is merged into a cell that is NULL, and what to do."""
    way = "give it another default, or say by merge() what NULL means"
    return f"into a cell of {cell.state} that is NULL ({way})"


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


def value_range(dtype: pa.DataType) -> tuple[int, int]:
    """Return the smallest and the largest int64 that a cell of this type may hold."""
    return (-(2**31), 2**31 - 1) if dtype == INT else (-(2**63), 2**63 - 1)


def _leave(past: deque[PastMerge], time: int, last: int) -> None:
    """Drop the merges that no read from this time on sees."""
    while past and past[0].time + last <= time:
        past.popleft()


def _best(values: tuple[Any, ...], k: int) -> FrozenList:
    """Return the k largest in descending order, of equal ones the earlier first."""
    return FrozenList(sorted(values, key=_rank, reverse=True)[:k])


def _rank(value: Any) -> Any:
    return (1, 0.0) if isinstance(value, float) and math.isnan(value) else (0, value)
