"""The serial loop's cells of an app's states: dictionaries of Python values.

This implements `docs/reference/handlers.md` again, as simply as possible, and is never optimised.
Its purpose is to catch mistakes in the kernels, so it shares no code with them except the
conversion of a value to a declared type, and the class of structs.

Rules
1. A key is a tuple of values of the state's key types; in keys −0 = 0 and NaN = NaN. A cell is the
   default until something is merged into it.
2. Reads return copies, so changing one changes nothing here. Every NaN in a copy is `math.nan`.
3. With `last`, a cell is the list of its merges; a read folds those that are in force at its time.
   With `expires`, a cell ends that long after its last merge.
4. `add` on DOUBLE is a sum of fractions, rounded when it is read; on DECIMAL it is exact. Other
   sums are Python's. A value must fit its type when it is merged. An integer or DECIMAL in a window
   must fit when it is read.
5. A function that is merged into a window runs when the window is read, and sees all other cells as
   they were just before its merge. For this, `version` counts merges, and `_replaced` has the value
   that each merge replaced, from the first such function on.
6. A value that does not fit raises `Unfit`. Where a number is expected, a bool counts as the number
   that it equals.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from decimal import Context
from enum import Enum
from fractions import Fraction
from typing import Any, TypeAlias

import pyarrow as pa

from weir.events.types import DOUBLE, is_integer
from weir.events.user_copies import StructValue
from weir.handlers.api.declarations import State
from weir.kernels.expressions.handler_values import settled_value
from weir.kernels.expressions.user_values import Misfit
from weir.plan.states import MergeKind

CellKey: TypeAlias = tuple[Hashable, ...]
OldToNew: TypeAlias = Callable[..., object]
OF_ELEMENTS = ("append", "add_to_set", "top_k")
_DIGITS = Context(prec=100)
"""A precision that no sum of DECIMALs exceeds."""


# --- values ----------------------------------------------------------------------------------


def copied(value: object) -> Any:
    """Return a copy of a value that shares no mutable part with it.

    >>> copied({"a": (1, 2)}).a
    [1, 2]
    """
    if isinstance(value, list | tuple):
        return [copied(part) for part in value]
    if isinstance(value, dict):
        return StructValue({name: copied(part) for name, part in value.items()})
    return math.nan if value != value else value


class NanKey(Enum):
    """Stands for every NaN in a key: it equals itself."""

    NAN = "nan"

    def __repr__(self) -> str:
        return self.value


def same_as_key(value: object) -> Hashable:
    """Return an object that is equal for values that are equal as keys.

    >>> same_as_key(-0.0) == same_as_key(0.0), same_as_key(math.nan) == same_as_key(math.nan)
    (True, True)
    """
    if isinstance(value, float):  # Python has −0.0 == 0.0
        return NanKey.NAN if math.isnan(value) else value
    if isinstance(value, list | tuple):
        return tuple(same_as_key(part) for part in value)
    if isinstance(value, dict):
        return tuple((name, same_as_key(part)) for name, part in value.items())
    assert isinstance(value, Hashable)
    return value


@dataclass(frozen=True, slots=True)
class FractionSum:
    """A sum of doubles: the exact sum of the finite ones, and the effect of the others."""

    finite: Fraction = Fraction(0)
    special: float = 0.0

    def plus(self, x: float) -> FractionSum:
        if math.isfinite(x):
            return FractionSum(self.finite + Fraction(x), self.special)
        return FractionSum(self.finite, self.special + x)

    def rounded(self) -> float:
        if self.special != 0.0:
            return self.special
        try:
            return float(self.finite)
        except OverflowError:
            return math.inf if self.finite > 0 else -math.inf


def seen(value: Any) -> Any:
    """Return what a read sees of a cell's content."""
    return value.rounded() if isinstance(value, FractionSum) else value


class Unfit(TypeError):
    """A state cannot take or return a value; this ends the loop even if a handler catches it."""


def fit(what: str, value: object, dtype: pa.DataType) -> Any:
    """Return a new value of this type; `Unfit` if the value does not fit."""
    try:
        return settled_value(dtype)(value)
    except Misfit as misfit:
        raise Unfit(f"{what} must be {misfit}") from None


def given_default(state: State) -> Any:
    """Return a state's default; a nested one is declared as tuples."""

    def plain(value: Any, dtype: pa.DataType) -> object:
        if value is not None and pa.types.is_list(dtype):
            return [plain(part, dtype.value_type) for part in value]
        if value is not None and pa.types.is_struct(dtype):
            types = {column.name: column.type for column in dtype}
            return {name: plain(part, types[name]) for name, part in value}
        return value

    return plain(state.default, state.type)


# --- cells -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class HeldValue:
    """A cell without a window: its value, and the time of its last merge."""

    time: int
    value: object


@dataclass(frozen=True, slots=True)
class HeldMerge:
    """One merge in a window; `version` is the version just before it."""

    version: int
    time: int
    kind: MergeKind
    args: tuple[Any, ...]
    function: OldToNew | None = None


@dataclass(slots=True)
class SerialCells:
    """All cells of an app; see the module's rules."""

    states: Mapping[str, State]
    now: int = 0
    """The time of the event that runs."""
    version: int = 0
    values: dict[str, dict[CellKey, HeldValue]] = field(init=False)
    windows: dict[str, dict[CellKey, deque[HeldMerge]]] = field(init=False)
    """The merges of cells with a window, by state and key; `values` has the other cells."""
    on_first: Callable[[str, tuple[object, ...]], None] | None = None
    """Called with the state and the key before a cell is first touched, to restore it."""
    _touched: set[tuple[str, CellKey]] = field(default_factory=set)
    _replaced: list[tuple[str, CellKey, HeldValue | None]] | None = None
    """The value that each merge since `_replaced_from` replaced."""
    _replaced_from: int = 0
    _function: tuple[int, int] | None = None
    """The version and the time that a merge's function sees while it runs."""

    def __post_init__(self) -> None:
        self.values = {name: {} for name in self.states}
        self.windows = {name: {} for name in self.states}

    def get(self, name: str, parts: tuple[object, ...]) -> Any:
        """Return a copy of a cell's value."""
        state = self.states[name]
        key = self._touched_key(state, _fitting_key(state, parts))
        version, time = self._function or (self.version, self.now)
        if state.last is not None:
            return copied(self.folded(state, self.in_force(state, key, version, time)))
        return copied(seen(self._value(state, key, version, time)))

    def merge(
        self,
        name: str,
        parts: tuple[object, ...],
        kind: MergeKind,
        args: tuple[object, ...],
        function: OldToNew | None = None,
    ) -> None:
        """Merge into a cell at the current time."""
        self.refuse_in_function(f"{name}.{'merge' if kind == 'call' else kind}()")
        state = self.states[name]
        key = self._touched_key(state, _fitting_key(state, parts))
        step = HeldMerge(self.version, self.now, kind, _fitting(state, kind, args), function)
        if state.last is not None:
            if function is not None and self._replaced is None:
                self._replaced, self._replaced_from = [], self.version
            self._hold(state, key, step)
        else:
            old = self._value(state, key, self.version, self.now)
            self._replace(state, key, HeldValue(self.now, self._merged(state, old, step)))

    def refuse_in_function(self, what: str) -> None:
        """Raise `Unfit` while a merge's function runs, because it may only read."""
        if self._function is not None:
            raise Unfit(f"{what} in a merge's function: it may read, not merge or emit")

    def _touched_key(self, state: State, parts: tuple[object, ...]) -> CellKey:
        key = tuple(same_as_key(part) for part in parts)
        if self.on_first is not None and (state.name, key) not in self._touched:
            self._touched.add((state.name, key))
            self.on_first(state.name, parts)
        return key

    def _value(self, state: State, key: CellKey, version: int, time: int) -> object:
        """Return the value of a cell without a window at a version and a time."""
        held = self.values[state.name].get(key)
        if version < self.version:
            assert self._replaced is not None, "only functions in windows look back"
            for name, other, before in self._replaced[version - self._replaced_from :]:
                if (name, other) == (state.name, key):
                    held = before
                    break
        if held is None or (state.expires is not None and time >= held.time + state.expires):
            return given_default(state)
        return held.value

    def _replace(self, state: State, key: CellKey, new: HeldValue) -> None:
        if self._replaced is not None:
            self._replaced.append((state.name, key, self.values[state.name].get(key)))
        self.values[state.name][key] = new
        self.version += 1

    def _hold(self, state: State, key: CellKey, merge: HeldMerge) -> None:
        """Add a merge to a window, and drop merges that no read can see any more."""
        if self._replaced is not None:  # versions are positions in this list
            self._replaced.append(("", (), None))
        held = self.windows[state.name].setdefault(key, deque())
        held.append(merge)
        assert state.last is not None
        while self._replaced is None and held[0].time + state.last <= merge.time:
            held.popleft()
        self.version += 1

    def in_force(self, state: State, key: CellKey, version: int, time: int) -> list[HeldMerge]:
        """Return the merges of a window, before a version, that a read at a time sees."""
        assert state.last is not None
        held = self.windows[state.name].get(key, ())
        return [m for m in held if m.version < version and m.time <= time < m.time + state.last]

    def folded(self, state: State, merges: Iterable[HeldMerge]) -> Any:
        """Return the value that a read of a window returns: the default after these merges."""
        value = given_default(state)
        for merge in merges:
            value = self._merged(state, value, merge)
        return fit(f"state {state.name}", seen(value), state.type)

    def _merged(self, state: State, old: Any, merge: HeldMerge) -> object:
        """Return the content of a cell after a merge."""
        value, kind = seen(old), merge.kind
        x: Any = merge.args[0] if merge.args else None
        if value is None and kind not in ("set", "call"):
            raise Unfit(f"{kind} into a cell of {state.name} that is NULL")
        match kind:
            case "set":
                new = x
            case "add" if state.type == DOUBLE:
                return (old if isinstance(old, FractionSum) else FractionSum().plus(old)).plus(x)
            case "add" if pa.types.is_decimal(state.type):
                new = _DIGITS.add(value, x)
            case "add":
                new = value + x
            case "max":
                new = x if x > value else old
            case "min":
                new = x if x < value else old
            case "append":
                new = [*value, x]
            case "add_to_set":
                there = [same_as_key(element) for element in value]
                new = value if same_as_key(x) in there else [*value, x]
            case "top_k":
                # Sorting is stable, so of equal values the earlier stays in front.
                new = sorted([*value, x], key=_rank, reverse=True)[: merge.args[1]]
            case "call":
                assert merge.function is not None
                with self._function_runs(merge):
                    new = merge.function(copied(value), *merge.args)
        is_sum = is_integer(state.type) or (kind == "add" and pa.types.is_decimal(state.type))
        if new is old or (state.last is not None and is_sum):
            return new
        return fit(f"state {state.name}", new, state.type)

    @contextmanager
    def _function_runs(self, merge: HeldMerge) -> Iterator[None]:
        before, self._function = self._function, (merge.version, merge.time)
        try:
            yield
        finally:
            self._function = before


def _fitting_key(state: State, parts: tuple[object, ...]) -> tuple[object, ...]:
    """Return a key with its parts as values of the key types, where these are known."""
    if state.keys is None:
        return parts
    if len(parts) != len(state.keys):
        raise Unfit(f"a key of {state.name} has {len(state.keys)} parts, not {len(parts)}")
    typed = zip(parts, state.keys, strict=True)
    return tuple(fit(f"a key of {state.name}", part, dtype) for part, dtype in typed)


def _fitting(state: State, kind: MergeKind, args: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the arguments of a merge as values, or as elements, of the state's type."""
    if kind == "call":
        return args
    if args[0] is None and kind not in ("set", "append", "add_to_set"):
        raise Unfit(f"{kind} of NULL into a cell of {state.name}")
    if kind == "top_k" and (type(args[1]) is not int or args[1] < 1):
        raise Unfit(f"the k of top_k is a positive integer, not {args[1]!r}")
    dtype = state.type.value_type if kind in OF_ELEMENTS else state.type
    return fit(f"{kind} of {state.name}", args[0], dtype), *args[1:]


def _rank(value: Any) -> tuple[bool, Any]:
    """Return a sort key that puts NaN above all numbers."""
    return (True, 0) if value != value else (False, value)
