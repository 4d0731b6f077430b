"""Values that the user's code is handed do not change: lists and structs refuse what would.

A `FrozenList` is a list and a `FrozenStruct` a dict, so all that reads one works; what would
change one raises TypeError. `v += [x]` gives the variable another value, as for a tuple. A struct's
fields are attributes too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NoReturn, SupportsIndex

import pyarrow as pa


def _refused(self: object, *args: object, **options: object) -> NoReturn:
    raise TypeError(
        "values of events and states are immutable: make a new one (as in `old + [x]` or "
        "`{**old, 'n': 1}`) and merge that"
    )


class FrozenList(list[Any]):
    """A `FrozenList` is a list that cannot be changed.

    >>> FrozenList([1, 2]) + [3]
    [1, 2, 3]
    """

    __slots__ = ()

    append = clear = extend = insert = pop = remove = reverse = sort = _refused
    __setitem__ = __delitem__ = _refused

    def __iadd__(self, other: Iterable[Any]) -> list[Any]:  # type: ignore[override,misc]
        return [*self, *other]

    def __imul__(self, times: SupportsIndex) -> list[Any]:  # type: ignore[override]
        return self * times

    def __reduce__(self) -> tuple[object, ...]:
        return FrozenList, (list(self),)

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(tuple(self))

    def copy(self) -> list[Any]:
        """Return a list that can be changed."""
        return list(self)


class FrozenStruct(dict[str, Any]):
    """A `FrozenStruct` is a dict that cannot be changed; `s.a` is `s["a"]`.

    >>> FrozenStruct({"a": 1}).a
    1
    """

    __slots__ = ()

    clear = pop = popitem = setdefault = update = _refused
    __setitem__ = __delitem__ = _refused

    def __ior__(self, other: Any) -> dict[str, Any]:  # type: ignore[override,misc]
        return {**self, **dict(other)}

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"the struct has no field {name}") from None

    def __setattr__(self, name: str, value: object) -> None:
        _refused(self)

    def __reduce__(self) -> tuple[object, ...]:
        return FrozenStruct, (dict(self),)

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(tuple(self.items()))

    def copy(self) -> dict[str, Any]:
        """Return a dict that can be changed."""
        return dict(self)


def frozen(value: object) -> object:
    """Return the value with frozen lists and structs in place of others.

    >>> frozen({"a": [1]}).a
    [1]
    """
    kind = type(value)
    if kind is list or kind is tuple:
        return FrozenList(map(frozen, value))  # type: ignore[call-overload]
    if kind is dict:
        return FrozenStruct({n: frozen(v) for n, v in value.items()})  # type: ignore[attr-defined]
    return value


def freezer(dtype: pa.DataType) -> Callable[[object], object] | None:
    """Return the function that freezes values of this type; None where there is nothing to
    freeze."""
    return frozen if pa.types.is_nested(dtype) else None


def given_default(default: object, dtype: pa.DataType) -> object:
    """Return the value that a `Cell`'s default stands for: lists are tuples there, structs tuples
    of (name, value) pairs.

    >>> given_default((("n", 1),), pa.struct([("n", pa.int64())]))
    {'n': 1}
    """
    if default is None:
        return None
    if pa.types.is_list(dtype):
        assert isinstance(default, Sequence)
        return FrozenList(given_default(v, dtype.value_type) for v in default)
    if pa.types.is_struct(dtype):
        assert isinstance(default, Sequence)
        types = {field.name: field.type for field in dtype}
        return FrozenStruct({name: given_default(v, types[name]) for name, v in default})
    return default
