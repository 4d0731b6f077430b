"""Columns of Parquet and Arrow files are held against the declared ones: which types widen to
which, and which columns must be read."""

from __future__ import annotations

import pyarrow as pa

from weir.errors import InputError
from weir.events.types import BIGINT, DATE, DOUBLE, INT, STRING, TIMESTAMP, type_name
from weir.files.chunks import Columns, DataFile, shown

_MOST_DIGITS = 38


def columns_to_read(found: pa.Schema, file: DataFile) -> Columns:
    """Return the needed columns and those in which a value may not fit. Raise InputError if a
    declared column is missing or has another type, needed or not."""
    _check(found, file.columns, file.name)
    return [
        (name, dtype)
        for name, dtype in file.columns
        if file.needs(name) or not _always_fits(found.field(name).type, dtype)
    ]


def _always_fits(found: pa.DataType, wanted: pa.DataType) -> bool:
    if pa.types.is_dictionary(found):
        return _always_fits(found.value_type, wanted)
    if found == wanted or wanted in (DOUBLE, STRING):
        return True
    return bool(pa.types.is_signed_integer(found))


def _check(found: pa.Schema, columns: Columns, file: str) -> None:
    for name, dtype in columns:
        indexes = found.get_all_field_indices(name)
        if not indexes:
            message = f"the file has no such column, but {shown(', '.join(found.names))}"
            raise InputError(message, file=file, column=name)
        if len(indexes) > 1:
            message = f"the file has this column {len(indexes)} times, not once"
            raise InputError(message, file=file, column=name)
        kind = found.field(indexes[0]).type
        if not _widens(kind, dtype):
            message = f"wanted {type_name(dtype)}, the file has {type_name(kind)}"
            raise InputError(message, file=file, column=name)


def _widens(found: pa.DataType, wanted: pa.DataType) -> bool:
    if pa.types.is_dictionary(found):
        return _widens(found.value_type, wanted)
    if found == wanted or pa.types.is_null(found):
        return True
    if pa.types.is_nested(wanted):
        return _nested_widens(found, wanted)
    if wanted == TIMESTAMP:
        # Asked for its zone now: one that is no text raises.
        return bool(pa.types.is_timestamp(found)) and found.tz != ""
    if wanted == DATE:
        return bool(pa.types.is_date(found))
    if wanted in (BIGINT, INT):
        return bool(pa.types.is_integer(found)) and found.bit_width <= wanted.bit_width
    if wanted == DOUBLE:
        return bool(pa.types.is_floating(found) or pa.types.is_integer(found))
    if pa.types.is_decimal(wanted):
        # Arrow dies of scales that no decimal has.
        return bool(pa.types.is_decimal(found)) and -_MOST_DIGITS <= found.scale <= wanted.scale
    if wanted == STRING:
        return bool(pa.types.is_large_string(found) or pa.types.is_string_view(found))
    return bool(pa.types.is_large_binary(found) or pa.types.is_fixed_size_binary(found))


def _nested_widens(found: pa.DataType, wanted: pa.DataType) -> bool:
    if pa.types.is_list(wanted):
        lists = pa.types.is_list(found) or pa.types.is_large_list(found)
        return bool(lists) and _widens(found.value_type, wanted.value_type)
    names = [f.name for f in wanted]
    return (
        bool(pa.types.is_struct(found))
        and [f.name for f in found] == names
        and all(_widens(f.type, w.type) for f, w in zip(found, wanted, strict=True))
    )
