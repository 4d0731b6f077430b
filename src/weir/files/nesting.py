"""How deep JSON is nested: counted before anything goes down, on the record alone.

Decoders follow nesting by calls, and how far they get depends on who called them. So no text of
more than `MAX_NESTING` levels is given to one: it is bad in every process alike.
"""

from __future__ import annotations

import numpy as np

from weir.events.batch import Int64s
from weir.events.compiled import in_place

MAX_NESTING = 128
_QUOTE, _BACKSLASH, _NEWLINE = b'"\\\n'
_OPEN_LIST, _CLOSE_LIST, _OPEN_OBJECT, _CLOSE_OBJECT = b"[]{}"
_OBJECT_FROM_LIST = _OPEN_LIST ^ _OPEN_OBJECT
"""The one bit that is set in `{` and not in `[`."""


def is_too_deep(text: bytes) -> bool:
    """Whether a JSON text has more than `MAX_NESTING` levels."""
    if text.count(b"[") + text.count(b"{") <= MAX_NESTING:
        return False
    return bool(_goes_beyond(np.frombuffer(text, dtype=np.uint8), MAX_NESTING, False))


def has_too_deep(lines: bytes, ends: Int64s) -> bool:
    """Whether one of these lines, each a text of its own, has."""
    data = np.frombuffer(lines, dtype=np.uint8)
    # What opens is quickly counted; only where it is much must it be followed.
    return _most_opened(data, ends) > MAX_NESTING and bool(_goes_beyond(data, MAX_NESTING, True))


@in_place
def _most_opened(data, ends):  # type: ignore[no-untyped-def]
    most = begin = 0
    for row in range(len(ends)):
        opened = 0
        for i in range(begin, ends[row]):
            opened += (data[i] | _OBJECT_FROM_LIST) == _OPEN_OBJECT
        most = max(most, opened)
        begin = ends[row]
    return most


@in_place
def _goes_beyond(data, limit, by_line):  # type: ignore[no-untyped-def]
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
