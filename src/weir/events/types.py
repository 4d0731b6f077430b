"""The value types of the language: Arrow types, and their names in scripts.

A column's type is a plain `pyarrow.DataType`. Only this module knows which of these types the
language has, and what scripts call them.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Mapping

import pyarrow as pa

from weir.errors import PlanError

BIGINT = pa.int64()
INT = pa.int32()
DOUBLE = pa.float64()
BOOLEAN = pa.bool_()
STRING = pa.string()
BINARY = pa.binary()
TIMESTAMP = pa.timestamp("us", tz="UTC")
DATE = pa.date32()
NULL = pa.null()
"""The type of a column that has only NULLs so far; it fits every other type."""

_SIMPLE = {
    "BIGINT": BIGINT,
    "INT": INT,
    "DOUBLE": DOUBLE,
    "BOOLEAN": BOOLEAN,
    "STRING": STRING,
    "BINARY": BINARY,
    "TIMESTAMP": TIMESTAMP,
    "DATE": DATE,
}
TYPE_NAMES = (*_SIMPLE, "DECIMAL", "LIST", "STRUCT")
# What other dialects call our types.
_ELSEWHERE = {
    **dict.fromkeys(("INTEGER", "INT32", "SMALLINT", "TINYINT"), "INT"),
    **dict.fromkeys(("LONG", "INT64", "INT8"), "BIGINT"),
    **dict.fromkeys(("FLOAT", "REAL", "FLOAT64"), "DOUBLE"),
    **dict.fromkeys(("VARCHAR", "TEXT", "CHAR", "STR", "UTF8"), "STRING"),
    **dict.fromkeys(("BYTES", "BLOB", "VARBINARY"), "BINARY"),
    **dict.fromkeys(("DATETIME", "TIMESTAMPTZ"), "TIMESTAMP"),
    **dict.fromkeys(("NUMERIC", "NUMBER"), "DECIMAL(p, s)"),
    "BOOL": "BOOLEAN",
}
_STORED = _SIMPLE | {"NULL": NULL}
_TOKEN = re.compile(r'"(?:[^"]|"")*"|\w+|\S')
_NAMES = {dtype: name for name, dtype in _SIMPLE.items()} | {NULL: "NULL"}


def simple_type(name: str) -> pa.DataType | None:
    """Return the type of a name without parameters, or None.

    >>> simple_type("bigint") == BIGINT
    True
    """
    return _SIMPLE.get(name.upper())


def type_name(dtype: pa.DataType, field_name: Callable[[str], str] = str) -> str:
    """Return the type as a script writes it.

    >>> type_name(pa.list_(pa.decimal128(10, 2)))
    'LIST(DECIMAL(10, 2))'
    """
    if pa.types.is_decimal(dtype):
        return f"DECIMAL({dtype.precision}, {dtype.scale})"
    if pa.types.is_list(dtype):
        return f"LIST({type_name(dtype.value_type, field_name)})"
    if pa.types.is_struct(dtype):
        fields = (f"{field_name(f.name)} {type_name(f.type, field_name)}" for f in dtype)
        return f"STRUCT({', '.join(fields)})"
    return _NAMES.get(dtype, str(dtype))


def stored_type_name(dtype: pa.DataType) -> str:
    """Return a type as text for `parse_stored_type`.

    Fields may have any name, and types may be NULL.

    >>> stored_type_name(pa.struct([("a", BIGINT), ("x y", pa.list_(NULL))]))
    'STRUCT(a BIGINT, "x y" LIST(NULL))'
    """
    return type_name(dtype, _quoted_field)


def _quoted_field(name: str) -> str:
    return name if _is_word(name) else '"' + name.replace('"', '""') + '"'


def _is_word(name: str) -> bool:
    return name.isidentifier() and re.fullmatch(r"\w+", name) is not None


def holding_type(dtype: pa.DataType) -> pa.DataType | None:
    """Return the language's type that can hold all values of an Arrow type, or None.

    >>> holding_type(pa.large_string()) == STRING, holding_type(pa.duration("s"))
    (True, None)
    """
    is_a = pa.types
    if is_a.is_dictionary(dtype):
        return holding_type(dtype.value_type)
    if is_a.is_list(dtype) or is_a.is_large_list(dtype):
        element = holding_type(dtype.value_type)
        return None if element is None else pa.list_(element)
    if is_a.is_struct(dtype):
        fields = [(field.name, holding_type(field.type)) for field in dtype]
        return None if any(t is None for _, t in fields) else pa.struct(fields)
    if dtype in (BOOLEAN, STRING, BINARY, DATE, NULL) or is_a.is_decimal128(dtype):
        return dtype
    if is_a.is_integer(dtype):
        small = dtype.bit_width < 32 or dtype == INT
        return INT if small else BIGINT
    for is_it, holder in (
        (is_a.is_floating, DOUBLE),
        (is_a.is_timestamp, TIMESTAMP),
        (is_a.is_date, DATE),
        (is_a.is_large_string, STRING),
        (is_a.is_string_view, STRING),
        (is_a.is_large_binary, BINARY),
        (is_a.is_binary_view, BINARY),
        (is_a.is_fixed_size_binary, BINARY),
    ):
        if is_it(dtype):
            return holder
    return None


def is_integer(dtype: pa.DataType) -> bool:
    return bool(dtype in (BIGINT, INT))


def is_numeric(dtype: pa.DataType) -> bool:
    return is_integer(dtype) or dtype == DOUBLE or bool(pa.types.is_decimal(dtype))


def parse_type(text: str) -> pa.DataType:
    """Return the type of a name in a script; raise PlanError if it is unknown.

    >>> parse_type("LIST(DECIMAL(10, 2))") == pa.list_(pa.decimal128(10, 2))
    True
    """
    return _parsed_type(text, _SIMPLE)


def parse_stored_type(text: str) -> pa.DataType:
    """Return the type that `stored_type_name` wrote; raise PlanError for any other text.

    >>> parse_stored_type('STRUCT("x y" LIST(NULL))')
    StructType(struct<x y: list<item: null>>)
    """
    return _parsed_type(text, _STORED)


def _parsed_type(text: str, simple: Mapping[str, pa.DataType]) -> pa.DataType:
    tokens = _TOKEN.findall(text)
    try:
        dtype = _read_type(tokens, simple)
    except IndexError:
        dtype = None
    if dtype is None or tokens:
        hint = type_hint(text) or "as in BIGINT or LIST(DECIMAL(10, 2))"
        raise PlanError(f"unknown type `{text}`", hint=hint)
    return dtype


def type_hint(name: str) -> str:
    """Return Weir's name for a type of another dialect, or a similar name; '' for neither.

    >>> type_hint("varchar"), type_hint("TIMESTMP")
    ('write STRING', 'did you mean `TIMESTAMP`?')
    """
    upper = name.upper()
    if upper in _ELSEWHERE:
        return f"write {_ELSEWHERE[upper]}"
    close = difflib.get_close_matches(upper, TYPE_NAMES, n=1)
    return f"did you mean `{close[0]}`?" if close else ""


_CLOSED_BY = {"(": ")", "<": ">"}


def _read_type(tokens: list[str], simple: Mapping[str, pa.DataType]) -> pa.DataType | None:
    """Consume the tokens of the first type and return it; raise IndexError if they run out."""
    name = tokens.pop(0).upper()
    if name not in ("DECIMAL", "LIST", "ARRAY", "STRUCT"):
        return simple.get(name)
    closing = _CLOSED_BY.get(tokens.pop(0))
    if name == "DECIMAL":
        dtype = _read_decimal(tokens)
    elif name == "STRUCT":
        dtype = _read_struct(tokens, simple)
    else:
        element = _read_type(tokens, simple)
        dtype = None if element is None else pa.list_(element)
    return dtype if tokens.pop(0) == closing else None


def _read_decimal(tokens: list[str]) -> pa.DataType | None:
    precision, scale = tokens.pop(0), "0"
    if tokens[0] == ",":
        tokens.pop(0)
        scale = tokens.pop(0)
    if not (re.fullmatch("[0-9]{1,2}", precision) and re.fullmatch("[0-9]{1,2}", scale)):
        return None
    fits = 1 <= int(precision) <= 38 and int(scale) <= int(precision)
    return pa.decimal128(int(precision), int(scale)) if fits else None


def _read_struct(tokens: list[str], simple: Mapping[str, pa.DataType]) -> pa.DataType | None:
    fields: dict[str, pa.DataType] = {}
    while True:
        token = tokens.pop(0)
        name = token[1:-1].replace('""', '"') if token[0] == '"' else token
        dtype = _read_type(tokens, simple)
        if dtype is None or name in fields or not (token[0] == '"' or _is_word(name)):
            return None
        fields[name] = dtype
        if tokens[0] != ",":
            return pa.struct(list(fields.items()))
        tokens.pop(0)
