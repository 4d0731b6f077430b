"""Compiled loops that count how deep JSON is nested."""

from __future__ import annotations

from weir.loops.argument_types import I64, Bool, I64s, ReadBytes
from weir.loops.compiled import in_place

_QUOTE, _BACKSLASH, _NEWLINE = b'"\\\n'
_OPEN_LIST, _CLOSE_LIST, _OPEN_OBJECT, _CLOSE_OBJECT = b"[]{}"
_OBJECT_FROM_LIST = _OPEN_LIST ^ _OPEN_OBJECT
"""The one bit that is set in `{` and not in `[`."""


@in_place
def most_opened(data: ReadBytes, ends: I64s):
    """Return the largest number of brackets and braces that one line opens."""
    most = begin = 0
    for row in range(len(ends)):
        opened = 0
        for i in range(begin, ends[row]):
            opened += (data[i] | _OBJECT_FROM_LIST) == _OPEN_OBJECT
        most = max(most, opened)
        begin = ends[row]
    return most


@in_place
def goes_beyond(data: ReadBytes, limit: I64, by_line: Bool):
    """Tell whether more than `limit` levels are open at a time; with `by_line`, each line is a text
    of its own."""
    depth = 0
    inside = escaped = False
    for i in range(len(data)):
        c = data[i]
        if c == _NEWLINE and by_line:
            depth, inside, escaped = 0, False, False
        elif escaped:
            escaped = False
        elif inside:
            escaped = c == _BACKSLASH
            inside = c != _QUOTE
        elif c == _QUOTE:
            inside = True
        elif c in (_OPEN_LIST, _OPEN_OBJECT):
            depth += 1
            if depth > limit:
                return True
        elif c in (_CLOSE_LIST, _CLOSE_OBJECT):
            depth -= 1
    return False
