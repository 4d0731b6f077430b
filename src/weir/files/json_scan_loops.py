"""The compiled scan of flat JSON lines (see `json_scan.py` for its contract).

Positions are indexes of bytes in `data`; −1 means that the scan gives up (rule 2).
"""

from __future__ import annotations

import numpy as np

from weir.loops.argument_types import I64s, I64Table, ReadBytes, U8s
from weir.loops.compiled import in_place

NULL, TEXT, WHOLE, NUMBER, TRUTH, REFUSED = range(6)
"""Kinds of values; REFUSED is the kind of a name that must not occur."""
_QUOTE, _BACKSLASH, _COLON, _COMMA, _OPEN, _CLOSE = b'"\\:,{}'
_TAB, _NEWLINE, _RETURN, _BLANK = b"\t\n\r "
_MINUS, _PLUS, _DOT, _ZERO, _NINE, _E, _LARGE_E = b"-+.09eE"
_T, _F, _N = b"tfn"
WORDS = np.frombuffer(b"truefalsenull", dtype=np.uint8)


@in_place
def copy_texts(characters: ReadBytes, begins: I64s, ends: I64s, out: U8s):
    """Write the texts between these positions end to end."""
    at = 0
    for row in range(len(begins)):
        for place in range(begins[row], ends[row]):
            out[at] = characters[place]
            at += 1


@in_place
def scan_lines(
    data: ReadBytes,
    names: ReadBytes,
    name_ends: I64s,
    kinds: I64s,
    words: ReadBytes,
    begins: I64Table,
    ends: I64Table,
):
    """Write where each value begins and ends; return whether every line could be scanned."""
    at = np.int64(0)  # a literal has a type of its own: `_object` would be compiled again
    for row in range(begins.shape[1]):
        at = _object(data, at, names, name_ends, kinds, words, begins, ends, row)
        if at < 0:
            return False
    return True


@in_place
def _object(data, at, names, name_ends, kinds, words, begins, ends, row):
    """Scan one object; return where the next line begins."""
    at = _skip(data, at)
    if data[at] != _OPEN:
        return -1
    at = _skip(data, at + 1)
    if data[at] == _CLOSE:
        return _next_line(data, at + 1)
    expected = np.int64(0)
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
            fits = kind in (wanted, NULL) or (kind == WHOLE and wanted == NUMBER)
            if not fits or wanted == REFUSED:
                return -1
            if begins[column, row] > 0:
                return -1
            inside = kind == TEXT
            begins[column, row] = 0 if kind == NULL else at + inside
            ends[column, row] = 0 if kind == NULL else end - inside
            expected = column + 1
        at = _skip(data, end)
        if data[at] == _CLOSE:
            return _next_line(data, at + 1)
        if data[at] != _COMMA:
            return -1
        at = _skip(data, at + 1)
    return -1


@in_place
def _skip(data, at):
    while data[at] == _BLANK or data[at] == _TAB:
        at += 1
    return at


@in_place
def _next_line(data, at):
    at = _skip(data, at)
    if data[at] == _RETURN:
        at += 1
    return at + 1 if data[at] == _NEWLINE else -1


@in_place
def _text_end(data, at):
    """Return the position of the quote after a text without escapes."""
    while data[at] != _QUOTE:
        if data[at] < _BLANK or data[at] == _BACKSLASH:
            return -1
        at += 1
    return at


@in_place
def _column(data, begin, end, names, name_ends, expected):
    """Return the number of the column with this name; try the expected column first."""
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
def _value(data, at, words):
    """Return the kind of a value and where it ends."""
    first = data[at]
    if first == _QUOTE:
        end = _text_end(data, at + 1)
        return TEXT, (end + 1 if end >= 0 else -1)
    if first == _MINUS or _ZERO <= first <= _NINE:
        return _number(data, at)
    if first == _T:
        return TRUTH, _word_end(data, at, words[:4])
    if first == _F:
        return TRUTH, _word_end(data, at, words[4:9])
    if first == _N:
        return NULL, _word_end(data, at, words[9:])
    return NULL, -1


@in_place
def _word_end(data, at, word):
    for k in range(len(word)):
        if data[at + k] != word[k]:
            return -1
    return at + len(word)


@in_place
def _number(data, at):
    is_negative = data[at] == _MINUS
    at += is_negative
    end = _digits_end(data, at)
    if end == at or (data[at] == _ZERO and end > at + 1):
        return NUMBER, -1
    kind = WHOLE
    if data[end] == _DOT:
        kind, at = NUMBER, end + 1
        end = _digits_end(data, at)
        if end == at:
            return NUMBER, -1
    if data[end] == _E or data[end] == _LARGE_E:
        kind, at = NUMBER, end + 1
        if data[at] == _MINUS or data[at] == _PLUS:
            at += 1
        end = _digits_end(data, at)
        if end == at:
            return NUMBER, -1
    # The integer −0 is 0, but as a DOUBLE's text it would be −0.0.
    if is_negative and kind == WHOLE and data[at] == _ZERO:
        return NUMBER, -1
    return kind, end


@in_place
def _digits_end(data, at):
    while _ZERO <= data[at] <= _NINE:
        at += 1
    return at
