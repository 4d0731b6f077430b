"""The compiled loop that gathers bytes of held rows."""

from __future__ import annotations

import numpy as np

from weir.loops.argument_types import I64s, U8s
from weir.loops.compiled import compiled


@compiled
def gather_bytes(buffer: U8s, starts: I64s, offsets: I64s):
    """Concatenate pieces of a buffer; the length of piece i is `offsets[i + 1] − offsets[i]`."""
    result = np.empty(offsets[-1], dtype=np.uint8)
    for i in range(len(starts)):
        start = starts[i]
        for at in range(offsets[i], offsets[i + 1]):
            result[at] = buffer[start]
            start += 1
    return result
