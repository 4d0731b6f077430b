"""Lines of flat JSON objects to columns of texts, without an object for each value.

Contract
1. `LineScanner.texts` takes UTF-8 lines of which each is an object of plain values, and gives the
   values of each column as they are written, without quotes; NULL for null and for a name that
   is missing.
2. It gives up (None) at all else: bad syntax, a blank line, an escape, a list or object, a value
   of another kind than the column's, a name of `refused`, a name twice (the last one counts, but
   the first must fit too).
3. Every loop stops at a line end, and the data ends with one: so none looks where it stops.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from weir.events.batch import Int64s
from weir.events.compiled import in_place
from weir.events.types import BIGINT, BOOLEAN, DATE, DOUBLE, INT, STRING, TIMESTAMP
from weir.files.chunks import Columns

_NULL, _TEXT, _WHOLE, _NUMBER, _TRUTH, _REFUSED = range(6)
KINDS = {
    STRING: _TEXT,
    TIMESTAMP: _TEXT,
    DATE: _TEXT,
    BIGINT: _WHOLE,
    INT: _WHOLE,
    DOUBLE: _NUMBER,
    BOOLEAN: _TRUTH,
}
"""The types that can be scanned, and the kind of value that each is written as."""

_QUOTE, _BACKSLASH, _COLON, _COMMA, _OPEN, _CLOSE = b'"\\:,{}'
_TAB, _NEWLINE, _RETURN, _BLANK = b"\t\n\r "
_MINUS, _PLUS, _DOT, _ZERO, _NINE, _E, _LARGE_E = b"-+.09eE"
_T, _F, _N = b"tfn"
_WORDS = np.frombuffer(b"truefalsenull", dtype=np.uint8)


class LineScanner:
    """Reads lines of these columns (of types in `KINDS`), for the values of those `wanted`."""

    def __init__(self, columns: Columns, wanted: Collection[str], refused: Sequence[str]) -> None:
        names = [name.encode() for name in (*(n for n, _ in columns), *refused)]
        self._names = np.frombuffer(b"".join(names), dtype=np.uint8)
        self._ends = np.cumsum([len(name) for name in names])
        kinds = (*(KINDS[dtype] for _, dtype in columns), *(_REFUSED for _ in refused))
        self._kinds = np.array(kinds, dtype=np.int64)
        self._places = {name: i for i, (name, _) in enumerate(columns) if name in wanted}

    def texts(self, data: bytes, lines: int) -> dict[str, pa.Array] | None:
        """The columns of so many lines; None if they are not as the contract says."""
        whole = data if data.endswith(b"\n") else data + b"\n"
        characters = np.frombuffer(whole, dtype=np.uint8)
        begins = np.zeros((len(self._kinds), lines), dtype=np.int64)
        ends = np.zeros_like(begins)
        if not _scan(characters, self._names, self._ends, self._kinds, _WORDS, begins, ends):
            return None
        return {
            name: _gathered(characters, begins[place], ends[place])
            for name, place in self._places.items()
        }


def _gathered(characters: npt.NDArray[np.uint8], begins: Int64s, ends: Int64s) -> pa.Array:
    """The texts between these places; NULL where one begins at 0, as none can."""
    offsets = np.zeros(len(begins) + 1, dtype=np.int64)
    np.cumsum(ends - begins, out=offsets[1:])
    data = np.empty(offsets[-1], dtype=np.uint8)
    _copy(characters, begins, ends, data)
    is_there = begins > 0
    validity = None if is_there.all() else pa.py_buffer(np.packbits(is_there, bitorder="little"))
    buffers = [validity, pa.py_buffer(offsets.astype(np.int32)), pa.py_buffer(data)]
    return pa.Array.from_buffers(STRING, len(begins), buffers)


@in_place
def _copy(characters, begins, ends, out):  # type: ignore[no-untyped-def]
    at = 0
    for row in range(len(begins)):
        for place in range(begins[row], ends[row]):
            out[at] = characters[place]
            at += 1


# --- the scan ------------------------------------------------------------------------------
# Places are of `data`; −1 is no place: something is not as the contract says.


@in_place
def _scan(data, names, name_ends, kinds, words, begins, ends):  # type: ignore[no-untyped-def]
    at = 0
    for row in range(begins.shape[1]):
        at = _object(data, at, names, name_ends, kinds, words, begins, ends, row)
        if at < 0:
            return False
    return True


@in_place
def _object(data, at, names, name_ends, kinds, words, begins, ends, row):  # type: ignore[no-untyped-def]
    """Where the line behind this one begins."""
    at = _skip(data, at)
    if data[at] != _OPEN:
        return -1
    at = _skip(data, at + 1)
    if data[at] == _CLOSE:
        return _next_line(data, at + 1)
    expected = 0
    while data[at] == _QUOTE:
        end = _text_end(data, at + 1)
        if end < 0:
            return -1
        column = _column(data, at + 1, end, names, name_ends, expected)
        at = _skip(data, end + 1)
        if data[at] != _COLON:
            return -1
        at = _skip(data, at + 1)
        kind, end = _value(data, at, words)
        if end < 0:
            return -1
        if column < len(kinds):
            wanted = kinds[column]
            fits = kind in (wanted, _NULL) or (kind == _WHOLE and wanted == _NUMBER)
            if not fits or wanted == _REFUSED:
                return -1
            if begins[column, row] > 0:
                return -1
            inside = kind == _TEXT
            begins[column, row] = 0 if kind == _NULL else at + inside
            ends[column, row] = 0 if kind == _NULL else end - inside
            expected = column + 1
        at = _skip(data, end)
        if data[at] == _CLOSE:
            return _next_line(data, at + 1)
        if data[at] != _COMMA:
            return -1
        at = _skip(data, at + 1)
    return -1


@in_place
def _skip(data, at):  # type: ignore[no-untyped-def]
    while data[at] == _BLANK or data[at] == _TAB:
        at += 1
    return at


@in_place
def _next_line(data, at):  # type: ignore[no-untyped-def]
    at = _skip(data, at)
    if data[at] == _RETURN:
        at += 1
    return at + 1 if data[at] == _NEWLINE else -1


@in_place
def _text_end(data, at):  # type: ignore[no-untyped-def]
    """The quote behind a text without escapes."""
    while data[at] != _QUOTE:
        if data[at] < _BLANK or data[at] == _BACKSLASH:
            return -1
        at += 1
    return at


@in_place
def _column(data, begin, end, names, name_ends, expected):  # type: ignore[no-untyped-def]
    """The column with the name that stands here, which mostly is the expected one."""
    count = len(name_ends)
    for i in range(count):
        column = expected + i if expected + i < count else expected + i - count
        first = name_ends[column - 1] if column else 0
        if name_ends[column] - first != end - begin:
            continue
        same = True
        for k in range(end - begin):
            same &= data[begin + k] == names[first + k]
        if same:
            return column
    return count


@in_place
def _value(data, at, words):  # type: ignore[no-untyped-def]
    """The kind of a value and where it ends."""
    first = data[at]
    if first == _QUOTE:
        end = _text_end(data, at + 1)
        return _TEXT, (end + 1 if end >= 0 else -1)
    if first == _MINUS or _ZERO <= first <= _NINE:
        return _number(data, at)
    if first == _T:
        return _TRUTH, _word_end(data, at, words[:4])
    if first == _F:
        return _TRUTH, _word_end(data, at, words[4:9])
    if first == _N:
        return _NULL, _word_end(data, at, words[9:])
    return _NULL, -1


@in_place
def _word_end(data, at, word):  # type: ignore[no-untyped-def]
    for k in range(len(word)):
        if data[at + k] != word[k]:
            return -1
    return at + len(word)


@in_place
def _number(data, at):  # type: ignore[no-untyped-def]
    is_negative = data[at] == _MINUS
    at += is_negative
    end = _digits_end(data, at)
    if end == at or (data[at] == _ZERO and end > at + 1):
        return _NUMBER, -1
    kind = _WHOLE
    if data[end] == _DOT:
        kind, at = _NUMBER, end + 1
        end = _digits_end(data, at)
        if end == at:
            return _NUMBER, -1
    if data[end] == _E or data[end] == _LARGE_E:
        kind, at = _NUMBER, end + 1
        if data[at] == _MINUS or data[at] == _PLUS:
            at += 1
        end = _digits_end(data, at)
        if end == at:
            return _NUMBER, -1
    # The integer −0 is 0, but as a DOUBLE's text it would be −0.0.
    if is_negative and kind == _WHOLE and data[at] == _ZERO:
        return _NUMBER, -1
    return kind, end


@in_place
def _digits_end(data, at):  # type: ignore[no-untyped-def]
    while _ZERO <= data[at] <= _NINE:
        at += 1
    return at
