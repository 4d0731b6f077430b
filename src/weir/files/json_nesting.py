"""Counts how deep JSON is nested, before any decoder reads it.

Decoders recurse, and how deep they can go depends on their caller's stack. So text of more than
`MAX_NESTING` levels never reaches a decoder, and is bad in every process.
"""

from __future__ import annotations

import numpy as np

from weir.events.batch import Int64s
from weir.files.json_nesting_loops import goes_beyond, most_opened

MAX_NESTING = 128


def is_too_deep(text: bytes) -> bool:
    """Tell whether a JSON text has more than `MAX_NESTING` levels."""
    if text.count(b"[") + text.count(b"{") <= MAX_NESTING:
        return False
    return bool(goes_beyond(np.frombuffer(text, dtype=np.uint8), MAX_NESTING, False))


def has_too_deep(lines: bytes, ends: Int64s) -> bool:
    """Tell whether one of these lines, each a JSON text, has more than `MAX_NESTING` levels."""
    data = np.frombuffer(lines, dtype=np.uint8)
    # Counting what opens is fast; only lines that open much need the full check.
    return most_opened(data, ends) > MAX_NESTING and bool(goes_beyond(data, MAX_NESTING, True))
