"""Compares the column types of Parquet and Arrow files with the declared types.

Decides which types widen to which, and which columns must be read."""

from __future__ import annotations

import pyarrow as pa

from weir.errors import InputError
from weir.events.types import BIGINT, DATE, DOUBLE, INT, STRING, TIMESTAMP, type_name
from weir.files.chunks import Columns, DataFile, shown

_MOST_DIGITS = 38


def columns_to_read(schema: pa.Schema, file: DataFile) -> Columns:
    """Return the needed columns and those whose values may not fit. Raise InputError if a declared
    column is missing or has another type, even if it is not needed."""
    _check(schema, file.columns, file.name)
    return [
        (name, dtype)
        for name, dtype in file.columns
        if file.needs(name) or not _always_fits(schema.field(name).type, dtype)
    ]


def _always_fits(stored: pa.DataType, declared: pa.DataType) -> bool:
    if pa.types.is_dictionary(stored):
        return _always_fits(stored.value_type, declared)
    if stored == declared or declared in (DOUBLE, STRING):
        return True
    return bool(pa.types.is_signed_integer(stored))


def _check(schema: pa.Schema, columns: Columns, file: str) -> None:
    for name, dtype in columns:
        indexes = schema.get_all_field_indices(name)
        if not indexes:
            message = f"the file has no such column, but {shown(', '.join(schema.names))}"
            raise InputError(message, file=file, column=name)
        if len(indexes) > 1:
            message = f"the file has this column {len(indexes)} times, not once"
            raise InputError(message, file=file, column=name)
        kind = schema.field(indexes[0]).type
        if not _widens(kind, dtype):
            message = f"wanted {type_name(dtype)}, the file has {type_name(kind)}"
            raise InputError(message, file=file, column=name)


def _widens(stored: pa.DataType, declared: pa.DataType) -> bool:
    if pa.types.is_dictionary(stored):
        return _widens(stored.value_type, declared)
    if stored == declared or pa.types.is_null(stored):
        return True
    if pa.types.is_nested(declared):
        return _nested_widens(stored, declared)
    if declared == TIMESTAMP:
        # Read the zone here: one that is not valid text raises.
        return bool(pa.types.is_timestamp(stored)) and stored.tz != ""
    if declared == DATE:
        return bool(pa.types.is_date(stored))
    if declared in (BIGINT, INT):
        return bool(pa.types.is_integer(stored)) and stored.bit_width <= declared.bit_width
    if declared == DOUBLE:
        return bool(pa.types.is_floating(stored) or pa.types.is_integer(stored))
    if pa.types.is_decimal(declared):
        # Arrow crashes on scales that no decimal has.
        return bool(pa.types.is_decimal(stored)) and -_MOST_DIGITS <= stored.scale <= declared.scale
    if declared == STRING:
        return bool(pa.types.is_large_string(stored) or pa.types.is_string_view(stored))
    return bool(pa.types.is_large_binary(stored) or pa.types.is_fixed_size_binary(stored))


def _nested_widens(stored: pa.DataType, declared: pa.DataType) -> bool:
    if pa.types.is_list(declared):
        lists = pa.types.is_list(stored) or pa.types.is_large_list(stored)
        return bool(lists) and _widens(stored.value_type, declared.value_type)
    names = [f.name for f in declared]
    return (
        bool(pa.types.is_struct(stored))
        and [f.name for f in stored] == names
        and all(_widens(f.type, w.type) for f, w in zip(stored, declared, strict=True))
    )
