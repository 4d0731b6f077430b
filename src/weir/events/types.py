"""The value types of the language, as Arrow types.

A column's type is a plain `pyarrow.DataType`; this module is the only place that knows
which of them the language has and how they are called in a script.
"""

from __future__ import annotations

import pyarrow as pa

BIGINT = pa.int64()
INT = pa.int32()
DOUBLE = pa.float64()
BOOLEAN = pa.bool_()
STRING = pa.string()
BINARY = pa.binary()
TIMESTAMP = pa.timestamp("us", tz="UTC")
DATE = pa.date32()
NULL = pa.null()
"""The type of a column in which only NULL was ever seen; it fits every other type."""

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
_NAMES = {dtype: name for name, dtype in _SIMPLE.items()} | {NULL: "NULL"}


def simple_type(name: str) -> pa.DataType | None:
    """The type of a name without parameters, or None.

    >>> simple_type("bigint") == BIGINT
    True
    """
    return _SIMPLE.get(name.upper())


def type_name(dtype: pa.DataType) -> str:
    """How a script writes a type.

    >>> type_name(pa.list_(pa.decimal128(10, 2)))
    'LIST(DECIMAL(10, 2))'
    """
    if pa.types.is_decimal(dtype):
        return f"DECIMAL({dtype.precision}, {dtype.scale})"
    if pa.types.is_list(dtype):
        return f"LIST({type_name(dtype.value_type)})"
    if pa.types.is_struct(dtype):
        fields = ", ".join(f"{f.name} {type_name(f.type)}" for f in dtype)
        return f"STRUCT({fields})"
    return _NAMES.get(dtype, str(dtype))


def is_integer(dtype: pa.DataType) -> bool:
    return bool(dtype in (BIGINT, INT))


def is_numeric(dtype: pa.DataType) -> bool:
    return is_integer(dtype) or dtype == DOUBLE or bool(pa.types.is_decimal(dtype))
