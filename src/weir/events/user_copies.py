"""Copies of nested values for user code: real lists, and dicts whose fields are attributes.

Contract
1. User code that changes a value changes only its own copy.
2. A LIST becomes a `list`, a STRUCT a `StructValue`, which is a `dict`. Other values are immutable
   and are passed on as they are.
3. Every NaN in a copy is `math.nan`, because `x in xs` compares identities first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from math import nan
from typing import Any, TypeAlias

import pyarrow as pa

from weir.events.types import DOUBLE

Copy: TypeAlias = Callable[[Any], Any]


class StructValue(dict[str, Any]):
    """A STRUCT as user code sees it: a dict with attributes, `s.city` for `s["city"]`.

    >>> place = StructValue(city="Rome", floor=2)
    >>> place.city, place["floor"]
    ('Rome', 2)
    """

    __slots__ = ()

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"the struct has no field {name!r}") from None

    def __setattr__(self, name: str, value: object) -> None:
        self[name] = value

    def __reduce__(self) -> tuple[object, ...]:
        return StructValue, (dict(self),)


@lru_cache(maxsize=1024)
def copier(dtype: pa.DataType) -> Copy | None:
    """Return the function that copies values of a type; None if they are immutable.

    >>> rows = [[1], [2]]
    >>> copy = copier(pa.list_(pa.list_(pa.int64())))
    >>> copied = copy(rows)
    >>> copied[0].append(5)
    >>> rows
    [[1], [2]]
    """
    if pa.types.is_list(dtype):
        if dtype.value_type == DOUBLE:
            return lambda value: None if value is None else [nan if v != v else v for v in value]
        inner = copier(dtype.value_type)
        if inner is None:
            return lambda value: None if value is None else [*value]
        return lambda value: None if value is None else [inner(v) for v in value]
    if pa.types.is_struct(dtype):
        fields = {
            field.name: _one_nan if field.type == DOUBLE else copier(field.type) for field in dtype
        }
        nested = {name: copy for name, copy in fields.items() if copy is not None}

        def copy_struct(value: Any) -> Any:
            if value is None:
                return None
            copied = StructValue(value)
            for name, copy in nested.items():
                copied[name] = copy(copied[name])
            return copied

        return copy_struct
    return None


def _one_nan(value: Any) -> Any:
    return nan if value != value else value


def copied(value: Any) -> Any:
    """Copy a nested value of unknown type.

    >>> copied({"a": [1]}).a
    [1]
    """
    if isinstance(value, list | tuple):
        return [copied(v) for v in value]
    if isinstance(value, dict):
        return StructValue({name: copied(v) for name, v in value.items()})
    return nan if isinstance(value, float) and value != value else value


def default_value(default: Any, dtype: pa.DataType) -> Any:
    """Return the value of a `Cell`'s default, which stores lists as tuples.

    It stores structs as tuples of (name, value) pairs.

    >>> default_value((("n", 1),), pa.struct([("n", pa.int64())]))
    {'n': 1}
    """
    if default is None:
        return None
    if pa.types.is_list(dtype):
        assert isinstance(default, Sequence)
        return [default_value(v, dtype.value_type) for v in default]
    if pa.types.is_struct(dtype):
        assert isinstance(default, Sequence)
        types = {field.name: field.type for field in dtype}
        return StructValue({name: default_value(v, types[name]) for name, v in default})
    return default
