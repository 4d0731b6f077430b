"""Counts how deep JSON is nested, before any decoder reads it.

Decoders recurse, and how deep they can go depends on their caller's stack. So no text of more than
`MAX_NESTING` levels reaches one: it is bad in every process alike.
"""

from __future__ import annotations

import numpy as np

from weir.events.batch import Int64s
from weir.files.json_nesting_loops import goes_beyond, most_opened

MAX_NESTING = 128


def is_too_deep(text: bytes) -> bool:
    """Say whether a JSON text has more than `MAX_NESTING` levels."""
    if text.count(b"[") + text.count(b"{") <= MAX_NESTING:
        return False
    return bool(goes_beyond(np.frombuffer(text, dtype=np.uint8), MAX_NESTING, False))


def has_too_deep(lines: bytes, ends: Int64s) -> bool:
    """Say whether one of these lines, each a text of its own, has more than `MAX_NESTING`
    levels."""
    data = np.frombuffer(lines, dtype=np.uint8)
    # What opens is quickly counted; only where it is much must it be followed.
    return most_opened(data, ends) > MAX_NESTING and bool(goes_beyond(data, MAX_NESTING, True))
