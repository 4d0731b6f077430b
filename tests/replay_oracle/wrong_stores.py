"""Stores with one mistake each: see `wrong_loops.py`."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace

from replay_oracle.cells import Exact, Kept, Key, Kind, Merged, Store, comparable, fold, seen

# --- windows and expiry --------------------------------------------------------------------------


class WindowTooLong(Store):
    """A window holds a merge one tick too long."""

    def in_window(self, t: int, r: int, last: int) -> bool:
        return t <= r <= t + last


class WindowTooShort(Store):
    """A window holds a merge one tick too short."""

    def in_window(self, t: int, r: int, last: int) -> bool:
        return t <= r < t + last - 1


class WindowOpenBehind(Store):
    """A window does not hold merges of the read's own time."""

    def in_window(self, t: int, r: int, last: int) -> bool:
        return t < r < t + last


class WindowUnlimited(Store):
    """A window never lets go."""

    def in_window(self, t: int, r: int, last: int) -> bool:
        return True


class WindowBackwards(Store):
    """A window folds the newest merge first."""

    def _held(self, name: str, key: Key, r: int) -> object:
        kind, cell = self.kinds[name], self.cells[name].get(key)
        if isinstance(cell, tuple):
            return fold(kind, self._counts(kind, cell, r)[::-1])  # type: ignore[arg-type]
        return super()._held(name, key, r)


class ExpiresLate(Store):
    """A cell expires one tick too late."""

    def expired(self, t: int, r: int, expires: int) -> bool:
        return r > t + expires


class ExpiresNever(Store):
    """A cell never expires."""

    def expired(self, t: int, r: int, expires: int) -> bool:
        return False


class ReadsProlong(Store):
    """A read keeps a cell alive."""

    def get(self, name: str, key: object, r: int) -> object:
        kind, cell = self.kinds[name], self.cells[name].get(self.key(key))
        if isinstance(cell, Kept) and self._counts(kind, cell, r):
            self.cells[name][self.key(key)] = Kept(r, cell.value)
        return super().get(name, key, r)


class ExpiresFromFirst(Store):
    """A cell expires by its first merge."""

    def merge(self, name: str, given: object, merge: Merged) -> None:
        key, before = self.key(given), self.cells[name].get(self.key(given))
        alive = isinstance(before, Kept) and self._counts(self.kinds[name], before, merge.at)
        super().merge(name, given, merge)
        after = self.cells[name][key]
        if alive and isinstance(before, Kept) and isinstance(after, Kept):
            self.cells[name][key] = Kept(before.at, after.value)


class ExpiredGoesOn(Store):
    """A merge on an expired cell goes on from its old value."""

    def merge(self, name: str, given: object, merge: Merged) -> None:
        key, cell = self.key(given), self.cells[name].get(self.key(given))
        if isinstance(cell, Kept):
            self.cells[name][key] = Kept(merge.at, cell.value)
        super().merge(name, given, merge)


class ExpiredIsListed(Store):
    """The final state has cells that are gone."""

    def listed(self, name: str, r: int) -> Iterator[tuple[Key, object]]:
        for key in self.cells[name]:
            yield key, seen(self._held(name, key, r))


class AsOfLastMerge(Store):
    """The final state is as of a cell's own last merge."""

    def listed(self, name: str, r: int) -> Iterator[tuple[Key, object]]:
        for key, cell in self.cells[name].items():
            yield key, self.get(name, key, cell.at if isinstance(cell, Kept) else cell[-1].at)


class DefaultIsNoCell(Store):
    """The final state has no cells with the default."""

    def listed(self, name: str, r: int) -> Iterator[tuple[Key, object]]:
        for key, value in super().listed(name, r):
            if comparable(value) != comparable(self.kinds[name].default):
                yield key, value


# --- keys --------------------------------------------------------------------------------------


class NullIsNoKey(Store):
    """Merges under a NULL key are dropped."""

    def merge(self, name: str, given: object, merge: Merged) -> None:
        if None not in self.key(given):
            super().merge(name, given, merge)


class NullIsEmpty(Store):
    """NULL and the empty string are one key."""

    def key(self, given: object) -> Key:
        return tuple("" if part is None else part for part in super().key(given))


class ZerosDiffer(Store):
    """−0 and 0 are two keys."""

    def key(self, given: object) -> Key:
        parts = given if isinstance(given, tuple) else (given,)
        return tuple(
            ("zero", math.copysign(1, p)) if isinstance(p, float) and p == 0 else comparable(p)
            for p in parts
        )


class NaNsDiffer(Store):
    """A NaN is a key of its own."""

    def key(self, given: object) -> Key:
        return tuple(
            object() if p != p else comparable(p)
            for p in (given if isinstance(given, tuple) else (given,))
        )


class FirstPartOnly(Store):
    """Of a tuple key only the first part counts."""

    def key(self, given: object) -> Key:
        return super().key(given)[:1]


class LastPartOnly(Store):
    """Of a tuple key only the last part counts."""

    def key(self, given: object) -> Key:
        return super().key(given)[-1:]


# --- merges ------------------------------------------------------------------------------------


class _Merging(Store):
    """Takes another merge than the one that came."""

    def merge(self, name: str, given: object, merge: Merged) -> None:
        super().merge(name, given, self.taken(self.kinds[name], merge))

    def taken(self, kind: Kind, merge: Merged) -> Merged:
        raise NotImplementedError


def _called(merge: Merged, function: Callable[[object], object]) -> Merged:
    return Merged(merge.at, "call", (), function)


class SumsOneByOne(_Merging):
    """`add` on DOUBLE rounds after each addition."""

    def taken(self, kind: Kind, merge: Merged) -> Merged:
        if merge.kind == "add" and kind.type == "DOUBLE":
            return _called(merge, lambda v: v + merge.args[0])  # type: ignore[operator]
        return merge


class PlusIsExact(_Merging):
    """`lambda n: n + x` on DOUBLE becomes `add`."""

    def taken(self, kind: Kind, merge: Merged) -> Merged:
        if merge.kind == "call" and kind.type == "DOUBLE" and merge.function is not None:
            x = merge.function(0.0)
            if merge.function(64.0) == 64.0 + x:  # type: ignore[operator]
                return Merged(merge.at, "add", (x,))
        return merge


class FunctionSeesExact(Store):
    """A set or a function does not begin the exact sum anew."""

    def merge(self, name: str, given: object, merge: Merged) -> None:
        cell = self.cells[name].get(self.key(given))
        super().merge(name, given, merge)
        after = self.cells[name][self.key(given)]
        if not isinstance(cell, Kept) or not isinstance(after, Kept):
            return
        if isinstance(cell.value, Exact) and after.value == cell.value.rounded():
            self.cells[name][self.key(given)] = Kept(after.at, cell.value)


class SumsWithoutDefault(_Merging):
    """`add` on DOUBLE leaves the default out."""

    def taken(self, kind: Kind, merge: Merged) -> Merged:
        kind.default = 0.0 if kind.type == "DOUBLE" and merge.kind == "add" else kind.default
        return merge


class IntegersWrap(_Merging):
    """Integers beyond int64 wrap around."""

    def taken(self, kind: Kind, merge: Merged) -> Merged:
        if merge.kind == "add" and kind.type == "BIGINT":
            x = merge.args[0]
            return _called(merge, lambda v: (v + x + 2**63) % 2**64 - 2**63)  # type: ignore[operator]
        return merge


class NullAddsNothing(_Merging):
    """`add`, `max` and `min` of NULL change nothing."""

    def taken(self, kind: Kind, merge: Merged) -> Merged:
        quiet = merge.kind in ("add", "max", "min") and merge.args[0] is None
        return _called(merge, lambda v: v) if quiet else merge


class SetIgnoresNull(_Merging):
    """`set` of NULL changes nothing."""

    def taken(self, kind: Kind, merge: Merged) -> Merged:
        quiet = merge.kind == "set" and merge.args[0] is None
        return _called(merge, lambda v: v) if quiet else merge


class SetsAreSorted(_Merging):
    """`add_to_set` sorts."""

    def taken(self, kind: Kind, merge: Merged) -> Merged:
        if merge.kind != "add_to_set":
            return merge
        return _called(merge, lambda v: tuple(sorted({*v, merge.args[0]})))  # type: ignore[misc]


class AppendsOnce(_Merging):
    """`append` takes a value once."""

    def taken(self, kind: Kind, merge: Merged) -> Merged:
        return replace(merge, kind="add_to_set") if merge.kind == "append" else merge


class BestAreDistinct(_Merging):
    """`top_k` takes a value once."""

    def taken(self, kind: Kind, merge: Merged) -> Merged:
        if merge.kind != "top_k":
            return merge
        x, k = merge.args
        return _called(merge, lambda v: tuple(sorted({*v, x}, reverse=True)[:k]))  # type: ignore[misc]


class WorstAreKept(_Merging):
    """`top_k` is ascending."""

    def taken(self, kind: Kind, merge: Merged) -> Merged:
        if merge.kind != "top_k":
            return merge
        x, k = merge.args
        return _called(merge, lambda v: tuple(sorted((*v, x))[:k]))  # type: ignore[misc]


class MaxForgetsDefault(_Merging):
    """`max` and `min` do not look at the default."""

    def taken(self, kind: Kind, merge: Merged) -> Merged:
        if merge.kind in ("max", "min"):
            return _called(merge, lambda v: merge.args[0])
        return merge
