"""JSON lines: one object a line, one partition a file.

A field that is not declared is ignored, a missing one is NULL. `{"$cti": T}` is an explicit
CTI, T ticks or ISO 8601. How values look:

    BIGINT, INT   numbers without fraction         TIMESTAMP, DATE   ISO 8601 texts
    DOUBLE        numbers; "NaN", "Infinity",      DECIMAL           numbers or texts, exact
                  "-Infinity"                      BINARY            base64
    LIST, STRUCT  arrays, objects

Each line is decoded by itself, so a torn line is that line's fault and no other's.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Annotated, Literal

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from weir.events.batch import ticks
from weir.events.text import parse_timestamps
from weir.events.types import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    INT,
    STRING,
    TIMESTAMP,
    type_name,
)
from weir.io.chunks import CHUNK_ROWS, NO_TIMES, Chunk
from weir.io.texts import Columns, Misfits, Record, Typed, cast_texts, grouped, text_chunk

_CTI = "$cti"
_PLACE = re.compile(r" - at `\$\.([^`]*)`$")
_DOUBLES = {"NaN": float("nan"), "Infinity": float("inf"), "-Infinity": float("-inf")}
_FORMS: dict[pa.DataType, object] = {
    BIGINT: Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)],
    INT: Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)],
    DOUBLE: float | Literal["NaN", "Infinity", "-Infinity"],
    BOOLEAN: bool,
    STRING: str,
    BINARY: bytes,
    TIMESTAMP: str,
    DATE: str,
}


@dataclass(frozen=True, slots=True)
class JsonLines:
    """A `.jsonl` file as a partition."""

    name: str
    columns: Columns

    def chunks(self, size: int = CHUNK_ROWS, start: int = 0) -> Iterator[Chunk]:
        decoder = msgspec.json.Decoder(_form(self.columns, cti=True))
        seen = 0
        with open(self.name, "rb") as file:
            for lines in grouped(enumerate(file, start=1), size):
                records, ctis = _records(decoder, lines, self.columns)
                skipped = min(max(start - seen, 0), len(records))
                seen += len(records)
                kept = [(t, place - skipped) for t, place in ctis if place >= skipped]
                if len(records) > skipped or kept:
                    yield _chunk(self.columns, records[skipped:], kept, seen)


def _chunk(
    columns: Columns,
    records: Sequence[Record[msgspec.Struct]],
    ctis: Sequence[tuple[int, int]],
    stop: int,
) -> Chunk:
    rows = [r.row for r in records if r.row is not None]
    parts = [values_as(_field(rows, i), dtype) for i, (_, dtype) in enumerate(columns)]
    typed = Typed([p[0] for p in parts], [p[1] for p in parts])
    times = np.array(ctis, dtype=np.int64).reshape(-1, 2)
    cti_columns = (times[:, 0], times[:, 1]) if ctis else (NO_TIMES, NO_TIMES)
    return text_chunk(columns, records, typed, stop - len(records), cti_columns)


# --- lines ---------------------------------------------------------------------------------


def _records(
    decoder: msgspec.json.Decoder[msgspec.Struct],
    lines: Sequence[tuple[int, bytes]],
    columns: Columns,
) -> tuple[list[Record[msgspec.Struct]], list[tuple[int, int]]]:
    """The data rows, and the CTIs with the number of data rows before each."""
    records: list[Record[msgspec.Struct]] = []
    ctis: list[tuple[int, int]] = []
    decode = decoder.decode
    for number, line in lines:
        try:
            row = decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            if line.strip():
                records.append(_unreadable(number, line, error, columns))
            continue
        cti = row.cti  # type: ignore[attr-defined]
        if cti is msgspec.UNSET:
            records.append(Record(number, line, row))
        elif (time := _cti_time(cti)) is not None:
            ctis.append((time, len(records)))
        else:
            reason = f"wanted ticks or an ISO 8601 time, came {cti!r}"
            records.append(Record(number, line, None, _CTI, reason))
    return records, ctis


def _unreadable(
    number: int, line: bytes, error: Exception, columns: Columns
) -> Record[msgspec.Struct]:
    message = str(error)
    found = _PLACE.search(message)
    path = found[1] if found else ""
    # Names may have dots of their own: the longest that fits is the column.
    names = [n for n, _ in columns if path == n or path.startswith((f"{n}.", f"{n}["))]
    name = max(names, key=len, default=path)
    wanted = type_name(dict(columns)[name]) if names else "a row"
    detail = _PLACE.sub("", message)
    return Record(number, line, None, name, f"wanted {wanted}: {detail}")


def _cti_time(value: int | float | str | None) -> int | None:
    if isinstance(value, str):
        texts = pa.array([value])
        try:
            return int(ticks(parse_timestamps(texts))[0])
        except pa.ArrowInvalid:
            return None
    if value is None or value != value or value not in range(-(2**63), 2**63):
        return None
    return int(value)


# --- values --------------------------------------------------------------------------------


def _form(columns: Columns, *, cti: bool = False) -> type[msgspec.Struct]:
    """A struct with the fields f0, f1, … for the columns, whatever they are called."""
    fields: list[tuple[str, object, object]] = [
        (f"f{i}", _value_form(dtype) | None, None)  # type: ignore[operator]
        for i, (_, dtype) in enumerate(columns)
    ]
    names = {f"f{i}": name for i, (name, _) in enumerate(columns)}
    if cti:
        fields.append(("cti", int | float | str | None | msgspec.UnsetType, msgspec.UNSET))
        names["cti"] = _CTI
    return msgspec.defstruct("Row", fields, rename=names, gc=False)  # type: ignore[arg-type]


def _value_form(dtype: pa.DataType) -> object:
    if pa.types.is_decimal(dtype):
        return Decimal
    if pa.types.is_list(dtype):
        element = _value_form(dtype.value_type) | None  # type: ignore[operator]
        return list[element]  # type: ignore[valid-type]
    if pa.types.is_struct(dtype):
        return _form([(f.name, f.type) for f in dtype])
    if pa.types.is_null(dtype):
        return None
    return _FORMS[dtype]


def _field(rows: Sequence[msgspec.Struct | None], place: int) -> list[object]:
    name = f"f{place}"
    return [None if row is None else getattr(row, name) for row in rows]


def values_as(values: list[object], dtype: pa.DataType) -> tuple[pa.Array, Misfits]:
    """Decoded values as a column; the rows whose texts are none of the type are misfits."""
    if dtype in (TIMESTAMP, DATE):
        return cast_texts(pa.array(values, STRING), dtype)
    if pa.types.is_decimal(dtype):
        return _decimals(values, dtype)
    if pa.types.is_list(dtype):
        return _lists(values, dtype)
    if pa.types.is_struct(dtype):
        return _structs(values, dtype)
    if dtype == DOUBLE and any(isinstance(v, str) for v in values):
        values = [_DOUBLES[v] if isinstance(v, str) else v for v in values]
    return pa.array(values, dtype), {}


def _decimals(values: list[object], dtype: pa.DataType) -> tuple[pa.Array, Misfits]:
    misfits = {}
    for row, value in enumerate(values):
        if isinstance(value, Decimal) and not _fits(value, dtype):
            misfits[row] = f"wanted {type_name(dtype)}, came {value}"
    kept = [None if row in misfits else value for row, value in enumerate(values)]
    return pa.array(kept, dtype), misfits


def _fits(value: Decimal, dtype: pa.DataType) -> bool:
    if not value.is_finite():
        return False
    _, digits, exponent = value.normalize().as_tuple()
    assert isinstance(exponent, int)
    whole_digits = len(digits) + exponent
    return bool(-exponent <= dtype.scale and whole_digits <= dtype.precision - dtype.scale)


def _lists(values: list[object], dtype: pa.DataType) -> tuple[pa.Array, Misfits]:
    lengths = np.array([len(v) if isinstance(v, list) else 0 for v in values], dtype=np.int64)
    offsets = np.zeros(len(values) + 1, dtype=np.int32)
    np.cumsum(lengths, out=offsets[1:])
    elements, wrong = values_as(
        [e for v in values if isinstance(v, list) for e in v], dtype.value_type
    )
    mask = pa.array([v is None for v in values], BOOLEAN)
    column = pa.ListArray.from_arrays(pa.array(offsets), elements, type=dtype, mask=mask)
    return column, {_owner(offsets, at): reason for at, reason in wrong.items()}


def _owner(offsets: npt.NDArray[np.int32], element: int) -> int:
    return int(np.searchsorted(offsets, element, side="right")) - 1


def _structs(values: list[object], dtype: pa.DataType) -> tuple[pa.Array, Misfits]:
    rows = [v if isinstance(v, msgspec.Struct) else None for v in values]
    parts = [values_as(_field(rows, i), f.type) for i, f in enumerate(dtype)]
    mask = pa.array([v is None for v in values], BOOLEAN)
    column = pa.StructArray.from_arrays([p[0] for p in parts], fields=list(dtype), mask=mask)
    misfits: dict[int, str] = {}
    for _, wrong in parts:
        misfits = {**wrong, **misfits}
    return column, misfits
