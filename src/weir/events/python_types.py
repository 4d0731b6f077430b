"""Types as Python programs write them: as text, Arrow types or Python's own types."""

from __future__ import annotations

import datetime
import types
import typing
from typing import TypeAlias

import pyarrow as pa

from weir.errors import PlanError
from weir.events.types import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    STRING,
    TIMESTAMP,
    holding_type,
    parse_type,
)

TypeText: TypeAlias = "str | pa.DataType | type | types.GenericAlias"
"""A type as text ('BIGINT'), an Arrow type, or a Python type (int, list[str])."""

PYTHON_TYPES: dict[type, pa.DataType] = {
    bool: BOOLEAN,
    int: BIGINT,
    float: DOUBLE,
    str: STRING,
    bytes: BINARY,
    datetime.date: DATE,
    datetime.datetime: TIMESTAMP,
}


def python_type(hint: object) -> pa.DataType | None:
    """Return the language's type for an annotation; None if there is none.

    >>> python_type(list[str | None]) == pa.list_(STRING), python_type(dict)
    (True, None)
    """
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if origin is list:
        element = python_type(inner[0])
        return None if element is None else pa.list_(element)
    if origin in (typing.Union, types.UnionType):  # `int | None` is a BIGINT that may be NULL
        real = [i for i in inner if i is not type(None)]
        return python_type(real[0]) if len(real) == 1 else None
    return PYTHON_TYPES.get(hint) if isinstance(hint, type) else None


def written_type(written: object, where: str = "") -> pa.DataType:
    """Return the type that a program has written.

    Raise PlanError, its message starting with `where`, if Weir has no such type.

    >>> written_type("BIGINT") == written_type(int) == written_type(pa.int64())
    True
    """
    if isinstance(written, str):
        return parse_type(written)
    dtype = written if isinstance(written, pa.DataType) else python_type(written)
    if dtype is None or holding_type(dtype) != dtype:
        before = f"{where}: " if where else ""
        message = f"{before}unsupported type {_shown(written)}"
        raise PlanError(message, hint=_instead(written))
    return dtype


def _shown(written: object) -> str:
    if isinstance(written, type):
        return written.__name__
    return str(written) if isinstance(written, pa.DataType) else repr(written)


def _instead(written: object) -> str:
    """Return a hint what to write for a type that the language does not have."""
    if isinstance(written, pa.DataType):
        is_a = pa.types
        for is_it, instead in (
            (is_a.is_timestamp, "'TIMESTAMP', which is pa.timestamp('us', 'UTC')"),
            (is_a.is_integer, "'BIGINT' or 'INT'"),
            (is_a.is_floating, "'DOUBLE'"),
            (is_a.is_large_string, "'STRING'"),
            (is_a.is_string_view, "'STRING'"),
            (is_a.is_large_binary, "'BINARY'"),
            (is_a.is_dictionary, "the type of its values, as 'STRING'"),
        ):
            if is_it(written):
                return f"write {instead}; values of files are converted"
    if getattr(written, "__name__", "") == "Decimal":
        return "write its digits, 'DECIMAL(18, 2)'"
    return "expected a type such as 'BIGINT', int, pa.int64(), 'LIST(STRING)' or list[str]"
