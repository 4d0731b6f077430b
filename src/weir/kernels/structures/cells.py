"""Cells of one state, by key, as Python objects (`plan/states.py` defines cells).

Contract
1. `get` and `merge` come in the order of requests: times never decrease.
2. A key is anything that can be hashed: a tuple of values, or the number of a group.
3. An argument, result or sum that does not fit raises `CellFailure`; exceptions from a merge's
   function pass through.
4. `max` and `min` replace the value if the argument is greater (smaller), as Python's do.
   `add_to_set` treats elements as equal if they are equal as keys. `top_k` orders NaN above all
   numbers.
5. Lists and structs in cells belong to the table: input is copied, and so is what is handed out
   (answers, arguments of functions).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterator, Sequence
from decimal import Decimal
from typing import Any, TypeAlias

import pyarrow as pa

from weir.events.batch import START
from weir.events.types import DOUBLE, INT, is_integer
from weir.events.user_copies import copied, copier, default_value
from weir.kernels.expressions.user_values import Misfit, settler
from weir.kernels.structures.cell_windows import (
    EXACT,
    Folding,
    PastMerge,
    best_of,
    canonical_key,
    folding_of,
)
from weir.kernels.structures.exact_doubles import ExactDouble
from weir.plan.states import MERGE_TRAITS, Cell, CellFailure, MergeKind

Function: TypeAlias = Callable[..., object]
_OF_ELEMENTS = frozenset(kind for kind, traits in MERGE_TRAITS.items() if traits.of_elements)
_OF_NULL = frozenset(kind for kind, traits in MERGE_TRAITS.items() if traits.null)


class Sweeps:
    """Decides when to look for cells and merges that have ended.

    That is due when there are twice as many as after the last sweep, and when everything that was
    held then may have ended. So what is held is at most twice what was live within two spans, and
    each merge is visited only a few times.
    """

    FEWEST = 1024

    def __init__(self, states: Sequence[Cell]) -> None:
        spans = [cell.expires if cell.last is None else cell.last for cell in states]
        self._span = max((span for span in spans if span is not None), default=None)
        self._left, self._at = 0, START

    def is_due(self, held: int, time: int) -> bool:
        if self._span is None or held < self.FEWEST:
            return False
        return held >= 2 * self._left or time >= self._at + self._span

    def done(self, left: int, time: int) -> None:
        self._left, self._at = left, time


class CellTable:
    """Holds the cells of one state.

    Without `last`, `values` has the merged values (for exact sums, the sum), and `times` the times
    of the last merges; times are kept only if they are needed (`timed`). With `last`, `pasts` has
    the merges themselves.
    """

    def __init__(self, cell: Cell, *, timed: bool = True) -> None:
        self.cell = cell
        self._settle = settler(cell.type)
        self.default: Any = self._settle(default_value(cell.default, cell.type))
        self.copy = copier(cell.type)
        """Copies a value; None if values are immutable."""
        listed = pa.types.is_list(cell.type)
        self._settle_element = settler(cell.type.value_type) if listed else self._settle
        self._sums = cell.type == DOUBLE
        self._range = value_range(cell.type) if is_integer(cell.type) else None
        self._last, self._expires = cell.last, cell.expires
        self._decimal = pa.types.is_decimal(cell.type)
        self._whole = cell.last is not None and (is_integer(cell.type) or self._decimal)
        """Whether values may exceed the range of their type until they are read."""
        self.timed = timed or cell.expires is not None
        """Whether the time of each cell's last merge is kept."""
        self.values: dict[Hashable, Any] = {}
        self.times: dict[Hashable, int] = {}
        self.pasts: dict[Hashable, deque[PastMerge]] = {}
        self.folded: PastMerge | None = None
        """The merge of a window that was folded last, for messages."""
        self._ways: set[object] = set()
        """The kinds of merges that windows have had (see `PastMerge.way`)."""
        self._foldings: dict[Hashable, Folding] = {}
        """The foldings of windows that were read, while all merges are of one kind."""
        self._members: dict[Hashable, set[Hashable]] = {}
        """The elements of lists that `add_to_set` has extended, as keys."""
        self._held = 0
        self._sweeps = Sweeps([cell])

    def __len__(self) -> int:
        """Return the count of cells, plus the count of merges in windows."""
        return len(self.values) + self._held

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
            value = self.default
        if self.copy is not None:
            return self.copy(value)
        return value.rounded() if type(value) is ExactDouble else value

    def merge(
        self,
        key: Hashable,
        time: int,
        kind: MergeKind,
        args: tuple[object, ...],
        function: Function | None = None,
        name: str = "",
    ) -> None:
        """Merge into a cell; for `top_k`, the arguments are the value and k."""
        if self._last is not None:
            kept = PastMerge(time, kind, self._kept(kind, args), function, name)
            self.hold(key, kept)
            self._leave(key, self.pasts[key], time)
            return
        old = self.values.get(key, self.default)
        if self._expires is not None and self._has_ended(key, time):
            old = self.default
        if kind in _OF_ELEMENTS and old is not None:
            self._grow(key, old, kind, args)
        else:
            self._members.pop(key, None)
            self.values[key] = self._merged(old, kind, args, function)
        if self.timed:  # last, because a merge's function may read the cell as it was
            self.times[key] = time

    def _grow(self, key: Hashable, old: list[Any], kind: MergeKind, args: tuple[Any, ...]) -> None:
        """Add an element to the list of a cell, in place."""
        (element, *_) = self._kept(kind, args)
        if kind == "top_k":
            self.values[key] = best_of((*old, element), args[1])
            self._members.pop(key, None)
            return
        if old is self.default:
            old = self.values[key] = [*old]
            self._members.pop(key, None)
        if kind == "add_to_set":
            members = self._members.get(key)
            if members is None:
                members = self._members[key] = set(map(canonical_key, old))
            mine = canonical_key(element)
            if mine in members:
                return
            members.add(mine)
        else:
            self._members.pop(key, None)
        old.append(element)

    def _has_ended(self, key: Hashable, time: int) -> bool:
        merged = self.times.get(key)
        return merged is not None and time >= merged + (self._expires or 0)

    # --- windows -----------------------------------------------------------------------------

    def hold(self, key: Hashable, merge: PastMerge) -> None:
        """Append a merge to a window."""
        if merge.way not in self._ways:
            self._ways.add(merge.way)
            if len(self._ways) > 1:
                self._foldings.clear()
        self.pasts.setdefault(key, deque()).append(merge)
        self._held += 1
        folding = self._foldings.get(key)
        if folding is not None:
            folding.push(merge)

    def _leave(self, key: Hashable, past: deque[PastMerge], time: int) -> None:
        """Drop the merges that no read from this time on includes."""
        assert self._last is not None
        over = time - self._last
        if not past or past[0].time > over:
            return
        folding = self._foldings.get(key)
        while past and past[0].time <= over:
            merge = past.popleft()
            self._held -= 1
            if folding is not None:
                folding.leave(merge)

    def _folded(self, key: Hashable, time: int) -> object:
        past = self.pasts.get(key)
        if past is not None:
            self._leave(key, past, time)
        if not past:
            return self.default if self.copy is None else self.copy(self.default)
        folding = self._folding(key, past)
        value = self._fold(past) if folding is None else folding.value(self.default)
        if self._whole:
            return self.settled(value)  # only a value that is read has to fit
        if self.copy is not None:
            return self.copy(value)
        return value.rounded() if type(value) is ExactDouble else value

    def _folding(self, key: Hashable, past: deque[PastMerge]) -> Folding | None:
        """Return the folding of a window; it is made when the window is first read."""
        folding = self._foldings.get(key)
        if folding is None and len(self._ways) == 1:
            folding = folding_of(past[0], self.default, exact=self._sums)
            if folding is not None:
                for merge in past:
                    folding.push(merge)
                self._foldings[key] = folding
        return folding

    def _fold(self, past: deque[PastMerge]) -> object:
        """Fold all merges of a window."""
        value: object = self.default
        for merge in past:
            self.folded = merge
            try:
                value = self._merged(value, merge.kind, merge.args, merge.function)
            except CellFailure as failure:
                failure.merge = merge.kind
                raise
        return value

    # --- cells that have ended ---------------------------------------------------------------

    def drop(self, time: int) -> None:
        """Forget cells that every read from this time on would see as the default."""
        if self._last is not None:
            for key, past in self.pasts.items():
                self._leave(key, past, time)
            for key in [key for key, past in self.pasts.items() if not past]:
                del self.pasts[key]
                self._foldings.pop(key, None)
        elif self._expires is not None:
            over = time - self._expires
            for key in [key for key, merged in self.times.items() if merged <= over]:
                del self.values[key], self.times[key]
                self._members.pop(key, None)

    def sweep(self, time: int) -> None:
        """Call `drop` if it is worth it."""
        if self._sweeps.is_due(len(self) + len(self.pasts), time):
            self.drop(time)
            self._sweeps.done(len(self) + len(self.pasts), time)

    # --- merges ------------------------------------------------------------------------------

    def _merged(
        self, old: Any, kind: MergeKind, args: tuple[Any, ...], function: Function | None
    ) -> object:
        """Return a cell's new value after a merge, given the old one."""
        if kind == "add":
            if self._sums:
                return self._added(old, args[0])
            if self._range is not None and type(args[0]) is int and type(old) is int:
                total = old + args[0]
                if self._whole or self._range[0] <= total <= self._range[1]:
                    return total
        elif kind in _OF_ELEMENTS and old is not None:
            return self._with_element(old, kind, args)
        value = old.rounded() if type(old) is ExactDouble else old
        if kind == "set":
            new = args[0]
        elif kind == "call":
            assert function is not None
            new = function(value if self.copy is None else self.copy(value), *map(copied, args))
        elif value is None or args[0] is None:
            raise CellFailure(f"{kind} {self._of_nothing(value)}")
        elif kind == "add" and self._decimal:
            new = self._added_exactly(value, args[0])
            if self._whole:
                return new
        elif kind == "add":
            new = value + args[0]
        else:
            greater = args[0] > value if kind == "max" else args[0] < value
            if not greater:
                return old
            new = args[0]
        if self._whole and type(new) is int:
            return new
        return self.settled(new)

    def _added(self, old: Any, arg: Any) -> object:
        """Add to an exact sum."""
        if old is None or arg is None:
            raise CellFailure(f"add {self._of_nothing(old)}")
        number = self._number(arg)
        total = old if type(old) is ExactDouble else ExactDouble.of(old)
        total.add(number)
        return total

    def _added_exactly(self, old: Any, arg: object) -> Decimal:
        """Add a DECIMAL; the sum may have more digits than the type."""
        return EXACT.add(old, self._number(arg))

    def _number(self, arg: object) -> Any:
        """Return the argument of an addition as a value of the state's type."""
        try:
            return self._settle(arg)
        except Misfit as misfit:
            raise CellFailure(f"add to {self.cell.state} takes {misfit}") from None

    def _with_element(self, old: Any, kind: MergeKind, args: tuple[Any, ...]) -> object:
        """Return a list with one more element; its other elements fit already."""
        (element, *_) = self._kept(kind, args)
        if kind == "append":
            return [*old, element]
        if kind == "top_k":
            return best_of((*old, element), args[1])
        mine = canonical_key(element)
        if any(canonical_key(v) == mine for v in old):
            return old
        return [*old, element]

    def _kept(self, kind: MergeKind, args: tuple[object, ...]) -> tuple[object, ...]:
        """Return copies of a merge's arguments."""
        if kind == "call":
            return tuple(map(copied, args))
        if args[0] is None:
            if kind in _OF_NULL:
                return args
            raise CellFailure(f"{kind} {self._of_nothing(0)}")
        try:
            value = (self._settle_element if kind in _OF_ELEMENTS else self._settle)(args[0])
        except Misfit as misfit:
            raise CellFailure(f"{kind} of {self.cell.state} takes {misfit}") from None
        return (value, *args[1:])

    def forget_members(self, key: Hashable) -> None:
        """Forget which elements `add_to_set` has seen in a list, because the list was set."""
        self._members.pop(key, None)

    def settled(self, value: object) -> object:
        """Return the value in the form that cells have; raise CellFailure if it does not fit."""
        try:
            return self._settle(value)
        except Misfit as misfit:
            raise CellFailure(f"state {self.cell.state} must be {misfit}") from None

    def _of_nothing(self, old: object) -> str:
        if old is None:
            return into_null(self.cell)
        return f"of NULL into a cell of {self.cell.state}"


def into_null(cell: Cell) -> str:
    """Return a message about a merge into a cell that is NULL, and what to do."""
    way = "give it another default, or say by merge() what NULL means"
    return f"into a cell of {cell.state} that is NULL ({way})"


def value_range(dtype: pa.DataType) -> tuple[int, int]:
    """Return the smallest and the largest int64 that a cell of this type may hold."""
    return (-(2**31), 2**31 - 1) if dtype == INT else (-(2**63), 2**63 - 1)
