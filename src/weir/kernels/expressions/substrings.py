"""Searches texts for a pattern, and splits texts, at the speed of memory.

Both functions read the bytes of a column as one long text: rows are stored one after the other.
Arrow's own functions read one text at a time, and one byte at a time.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from weir.events.hashing import binary_buffers
from weir.events.types import STRING
from weir.kernels.expressions.substrings_loops import find_in_rows, split_at_byte, split_at_text
from weir.kernels.structures.rows import bitmap, valid_mask


def contains(column: pa.Array, sought: str) -> pa.Array:
    """Return whether each text contains the sought one; NULL for NULL.

    >>> contains(pa.array(["abc", "b", None, ""]), "bc").to_pylist()
    [True, False, None, False]
    """
    pattern = np.frombuffer(sought.encode(), dtype=np.uint8)
    if not len(pattern):
        return pc.match_substring(column, sought)
    offsets, text = binary_buffers(column)
    has_pattern = pa.array(find_in_rows(text, offsets.astype(np.uint64), pattern))
    return pc.if_else(column.is_valid(), has_pattern, None) if column.null_count else has_pattern


def split(column: pa.Array, separator: str) -> pa.Array:
    """Split each text at the separator, which must not be empty; NULL for NULL.

    >>> split(pa.array(["a b", "", None, " c"]), " ").to_pylist()
    [['a', 'b'], [''], None, ['', 'c']]
    """
    between = np.frombuffer(separator.encode(), dtype=np.uint8)
    offsets, text = binary_buffers(column)
    valid = valid_mask(column)
    size = int(offsets[-1]) - int(offsets[0])
    begun = int(np.count_nonzero(text[offsets[0] : offsets[-1]] == between[0]))
    data = np.empty(size, dtype=np.uint8)
    ends = np.zeros(begun + len(column) + 1, dtype=np.int32)
    cuts = np.zeros(len(column) + 1, dtype=np.int32)
    starts = offsets.astype(np.uint64)
    if len(between) == 1:
        used = split_at_byte(text, starts, valid, between[0], data, ends, cuts)
    else:
        used = split_at_text(text, starts, valid, between, data, ends, cuts)
    texts = [pa.py_buffer(ends), pa.py_buffer(data[:used])]
    parts = pa.StringArray.from_buffers(int(cuts[-1]), *texts)
    buffers = [bitmap(valid), pa.py_buffer(cuts)]
    return pa.ListArray.from_buffers(pa.list_(STRING), len(column), buffers, children=[parts])
