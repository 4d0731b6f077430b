"""JSON lines: one object a line, one partition a file.

Fields that are not declared are ignored; missing ones are NULL. `{"$cti": T}` is an explicit CTI; T
is in ticks or ISO 8601. Values are written as:

    BIGINT, INT   numbers without fraction         TIMESTAMP, DATE   ISO 8601 texts
    DOUBLE        numbers; "NaN", "Infinity",      DECIMAL           numbers or texts, exact
                  "-Infinity"                      BINARY            base64
    LIST, STRUCT  arrays, objects

A torn line, one longer than `max_record`, or one nested too deep is a bad row; the lines around it
are not affected.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from operator import attrgetter
from types import GenericAlias
from typing import Annotated, Any, Literal

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from weir.errors import PlanError
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
from weir.files.chunks import CHUNK_ROWS, Chunk, Columns, DataFile, shown
from weir.files.json_nesting import MAX_NESTING, has_too_deep, is_too_deep
from weir.files.json_scan import KINDS, LineScanner
from weir.files.record_frames import TextChunk, read_text_chunks, skip_byte_order_mark
from weir.files.sinks import UNPLAIN_NAME
from weir.files.text_chunks import (
    EPOCH_HINT,
    Misfits,
    Typed,
    UntypedRows,
    cast_texts,
    exact_chunk,
    is_utf8,
    plain_chunk,
    too_long_faults,
)
from weir.files.time_units import WANTED_CTI, cti_ticks
from weir.kernels.expressions.evaluation import numbers

Decoder = msgspec.json.Decoder[msgspec.Struct]

_CTI = "$cti"
_A_NUMBER = "got `int`"
_cti_of = attrgetter("cti")
_PLACE = re.compile(r" - at `\$\.([^`]*)`$")
_DOUBLES = {"NaN": float("nan"), "Infinity": float("inf"), "-Infinity": float("-inf")}
_SETTLED = frozenset((BIGINT, INT, DOUBLE, BOOLEAN, STRING, BINARY))
"""Types whose values fit whenever they could be decoded."""
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


class JsonLines(DataFile):
    """Reads a `.jsonl` file as a partition."""

    def chunks(self, size: int = CHUNK_ROWS, start: int = 0) -> Iterator[Chunk]:
        read = self.chunk_reader()
        seen = 0
        with self.open_text() as file:
            skip_byte_order_mark(file)
            if self.since is not None:
                seen = self.since.offset
                file.seek(self.since.position)
            for text_chunk in read_text_chunks(file, size, self.max_record):
                chunk = read(text_chunk, seen, start)
                seen = chunk.stop
                if len(chunk.offsets) or len(chunk.cti_times) or chunk.bad:
                    yield chunk

    def chunk_reader(self) -> Callable[[TextChunk, int, int], Chunk]:
        """Return a function `read(text_chunk, first, start)` that makes a chunk. `first` is the
        offset of the first row; rows before offset `start` are left out."""
        decoder = msgspec.json.Decoder(_form(self.columns, cti=True))
        scanner = self._scanner()

        def read(text_chunk: TextChunk, first: int, start: int) -> Chunk:
            chunk = None
            if text_chunk.fits(self.max_record):
                chunk = self._scanned(scanner, text_chunk, first, start)
                chunk = chunk or self._decoded(decoder, text_chunk, first, start)
            return chunk or self._exact(decoder, text_chunk, first, start)

        return read

    def _scanner(self) -> LineScanner | None:
        if not all(dtype in KINDS for _, dtype in self.columns):
            return None
        needed = [n for n, dtype in self.columns if self.needs(n) or dtype != STRING]
        return LineScanner(self.columns, needed, refused=(_CTI,))

    def _scanned(
        self, scanner: LineScanner | None, text_chunk: TextChunk, first: int, start: int
    ) -> Chunk | None:
        if scanner is None or not is_utf8(text_chunk.data):
            return None
        texts = scanner.texts(text_chunk.data, len(text_chunk))
        if texts is None:
            return None
        types = dict(self.columns)
        typed = {name: cast_texts(column, types[name]) for name, column in texts.items()}
        # The decoder decides about words ("Infinity") and numbers that are too large (1e400).
        doubles = (typed[name] for name, dtype in self.columns if dtype == DOUBLE)
        if any(wrong or not np.isfinite(numbers(column)).all() for column, wrong in doubles):
            return None
        return plain_chunk(self, typed, text_chunk, first, start)

    def _decoded(
        self, decoder: Decoder, text_chunk: TextChunk, first: int, start: int
    ) -> Chunk | None:
        rows = _plain_rows(decoder, text_chunk)
        return (
            None if rows is None else plain_chunk(self, self._typed(rows), text_chunk, first, start)
        )

    def _exact(self, decoder: Decoder, text_chunk: TextChunk, first: int, start: int) -> Chunk:
        records, ctis = _one_by_one(decoder, text_chunk, self.max_record, self.columns, self.unit)
        skipped = min(max(start - first, 0), len(records))
        kept = [(time, at - skipped) for time, at in ctis if first + at >= start]
        times, indexes = np.array(kept, dtype=np.int64).reshape(-1, 2).T
        records = records.since(skipped)
        typed = self._typed(records.readable())
        return exact_chunk(self, records, typed, first + skipped, (times, indexes), text_chunk.stop)

    def _typed(self, rows: Sequence[msgspec.Struct]) -> Typed:
        return {
            name: values_as(list(map(attrgetter(f"f{i}"), rows)), dtype)
            for i, (name, dtype) in enumerate(self.columns)
            if self.needs(name) or dtype not in _SETTLED
        }


# --- lines ---------------------------------------------------------------------------------

Ctis = list[tuple[int, int]]
"""CTIs, each with the number of data rows before it."""


def _plain_rows(decoder: Decoder, text_chunk: TextChunk) -> list[msgspec.Struct] | None:
    """Decode a text chunk in which each line is one object of the columns and none is a CTI; None
    for any other text chunk."""
    data = text_chunk.data
    # Inside a value no `{` can follow a `}`. So all line ends are between values, and if there are
    # as many values as lines, each line has one.
    between = b"}\r\n{" if data.endswith(b"\r\n") else b"}\n{"
    if data.count(between) != len(text_chunk) - 1 or has_too_deep(data, text_chunk.ends):
        return None
    try:
        rows = decoder.decode_lines(data)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    # A name can be written with escapes too: \u0024cti.
    may_have_cti = b"$cti" in data or b"\\u00" in data
    if may_have_cti and any(cti is not msgspec.UNSET for cti in map(_cti_of, rows)):
        return None
    return rows if len(rows) == len(text_chunk) else None


def _one_by_one(
    decoder: Decoder, text_chunk: TextChunk, limit: int, columns: Columns, unit: str | None
) -> tuple[UntypedRows[msgspec.Struct], Ctis]:
    data: list[tuple[int, bytes, msgspec.Struct]] = []
    numbers, lines, too_long = text_chunk.records(limit)
    long_faults = too_long_faults(too_long, limit)
    faults: dict[int, tuple[str, str]] = {}
    ctis: Ctis = []
    nothing = decoder.decode(b"{}")
    for index, (number, line) in enumerate(zip(numbers, lines, strict=True)):
        row = nothing
        if index in long_faults:
            faults[len(data)] = long_faults[index]
        elif is_too_deep(line):
            faults[len(data)] = ("", f"nested deeper than {MAX_NESTING} levels")
        else:
            try:
                row = decoder.decode(line)
            except (msgspec.DecodeError, UnicodeDecodeError) as error:
                faults[len(data)] = _fault(error, columns)
        cti = _cti_of(row)
        if cti is msgspec.UNSET:
            data.append((number, line, row))
        elif (time := cti_ticks(cti, unit)) is not None:
            ctis.append((time, len(data)))
        else:
            faults[len(data)] = (_CTI, f"{WANTED_CTI}, came {shown(repr(cti))}")
            data.append((number, line, nothing))
    records = UntypedRows(
        [number for number, _, _ in data],
        [line for _, line, _ in data],
        [row for _, _, row in data],
        faults,
    )
    return records, ctis


def _fault(error: Exception, columns: Columns) -> tuple[str, str]:
    """Return the column and the reason of a decoding error."""
    message = str(error)
    match = _PLACE.search(message)
    path = match[1] if match else ""
    # Names may contain dots: the column is the longest name that fits.
    names = [n for n, _ in columns if path == n or path.startswith((f"{n}.", f"{n}["))]
    name = max(names, key=len, default=path)
    if not names:
        return name, f"wanted a row: {_PLACE.sub('', message)}"
    dtype = dict(columns)[name]
    reason = f"wanted {type_name(dtype)}: {_PLACE.sub('', message)}"
    if dtype == TIMESTAMP and path == name and _A_NUMBER in message:
        return name, f"wanted TIMESTAMP, an ISO 8601 text, came a number; {EPOCH_HINT}"
    return name, reason


# --- values --------------------------------------------------------------------------------


def _form(columns: Columns, *, cti: bool = False) -> type[msgspec.Struct]:
    """Make a struct with fields f0, f1, … for the columns, whatever their names."""
    fields: list[tuple[str, object, object]] = [
        (f"f{i}", _value_form(dtype) | None, None) for i, (_, dtype) in enumerate(columns)
    ]
    names = {f"f{i}": name for i, (name, _) in enumerate(columns)}
    for name in names.values():
        if UNPLAIN_NAME.search(name):
            raise PlanError(
                f"column '{name}': JSON lines are not read by a name with quotes, backslashes or "
                "control characters",
                hint="call it something else, or use another format",
            )
    if cti:
        fields.append(("cti", int | float | str | None | msgspec.UnsetType, msgspec.UNSET))
        names["cti"] = _CTI
    return msgspec.defstruct("Row", fields, rename=names, gc=False)


def value_decoder(dtype: pa.DataType) -> msgspec.json.Decoder[object]:
    """Make a decoder of single values, for `values_as`."""
    return msgspec.json.Decoder(_value_form(dtype))


def _value_form(dtype: pa.DataType) -> Any:
    """Return the Python type that values of this type are decoded to."""
    if pa.types.is_decimal(dtype):
        return Decimal
    if pa.types.is_list(dtype):
        return GenericAlias(list, _value_form(dtype.value_type) | None)
    if pa.types.is_struct(dtype):
        return _form([(f.name, f.type) for f in dtype])
    if pa.types.is_null(dtype):
        return type(None)
    return _FORMS[dtype]


def _field(rows: Sequence[msgspec.Struct | None], index: int) -> list[object]:
    name = f"f{index}"
    return [None if row is None else getattr(row, name) for row in rows]


def values_as(values: list[object], dtype: pa.DataType) -> tuple[pa.Array, Misfits]:
    """Make a column of decoded values. Rows whose text is not a value of the type are misfits."""
    if dtype in (TIMESTAMP, DATE):
        return cast_texts(pa.array(values, STRING), dtype)
    if pa.types.is_decimal(dtype):
        return _decimals(values, dtype)
    if pa.types.is_list(dtype):
        return _lists(values, dtype)
    if pa.types.is_struct(dtype):
        return _structs(values, dtype)
    if dtype == DOUBLE:
        return _doubles(values), {}
    return pa.array(values, dtype), {}


def _doubles(values: list[object]) -> pa.Array:
    try:
        return pa.array(values, DOUBLE)
    except (pa.ArrowInvalid, pa.ArrowTypeError):  # NaN and infinities are texts
        return pa.array([_DOUBLES[v] if isinstance(v, str) else v for v in values], DOUBLE)


def _decimals(values: list[object], dtype: pa.DataType) -> tuple[pa.Array, Misfits]:
    misfits = {}
    for row, value in enumerate(values):
        if isinstance(value, Decimal) and not _fits(value, dtype):
            misfits[row] = f"wanted {type_name(dtype)}, came {shown(str(value))}"
    kept = [None if row in misfits else value for row, value in enumerate(values)]
    return pa.array(kept, dtype), misfits


def _fits(value: Decimal, dtype: pa.DataType) -> bool:
    if not value.is_finite():
        return False
    _, digits, exponent = value.as_tuple()  # normalize() would round to 28 digits
    assert isinstance(exponent, int)
    text = "".join(map(str, digits)).lstrip("0")
    exponent += len(text) - len(text.rstrip("0"))
    whole_digits = len(text.rstrip("0")) + exponent
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
