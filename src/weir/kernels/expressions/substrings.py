"""Texts searched for a given text, and cut at it, at the speed of memory.

Both read the bytes of a column as one long text: the rows lie one behind the other. Arrow looks
at one text at a time, and at every byte of it alone.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from weir.events.compiled import compiled, in_place
from weir.events.hashing import binary_buffers
from weir.events.types import STRING
from weir.kernels.structures.rows import bitmap, valid_mask

_BLOCK = 64


def contains(column: pa.Array, sought: str) -> pa.Array:
    """Whether each text contains the sought one; NULL for NULL.

    >>> contains(pa.array(["abc", "b", None, ""]), "bc").to_pylist()
    [True, False, None, False]
    """
    pattern = np.frombuffer(sought.encode(), dtype=np.uint8)
    if not len(pattern):
        return pc.match_substring(column, sought)
    offsets, text = binary_buffers(column)
    found = pa.array(_contains(text, offsets.astype(np.uint64), pattern))
    return pc.if_else(column.is_valid(), found, None) if column.null_count else found


def split(column: pa.Array, separator: str) -> pa.Array:
    """The parts of each text between the separators, which must not be empty; NULL for NULL.

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
    places = offsets.astype(np.uint64)
    if len(between) == 1:
        used = _split_at_byte(text, places, valid, between[0], data, ends, cuts)
    else:
        used = _split(text, places, valid, between, data, ends, cuts)
    texts = [pa.py_buffer(ends), pa.py_buffer(data[:used])]
    parts = pa.StringArray.from_buffers(int(cuts[-1]), *texts)
    buffers = [bitmap(valid), pa.py_buffer(cuts)]
    return pa.ListArray.from_buffers(pa.list_(STRING), len(column), buffers, children=[parts])


@compiled
def _contains(text, places, pattern):  # type: ignore[no-untyped-def]
    """Blocks in which the first and the last byte stand nowhere at their distance are skipped:
    sixty-four places cost a few instructions. Numbers are unsigned, or they would not."""
    found = np.zeros(len(places) - 1, dtype=np.bool_)
    one, block, last = np.uint64(1), np.uint64(_BLOCK), np.uint64(len(pattern) - 1)
    first_byte, last_byte = pattern[0], pattern[-1]
    at, end, row = places[0], places[-1], 0
    while at + last < end:
        while at + last + block <= end:
            candidates = np.uint8(0)
            for i in range(block):
                starts = np.uint8(text[at + i] == first_byte)
                candidates |= starts & np.uint8(text[at + i + last] == last_byte)
            if candidates:
                break
            at += block
        stop = min(at + block, end - last)
        while at < stop:
            if text[at] == first_byte and text[at + last] == last_byte:
                same = one
                while same < last and text[at + same] == pattern[same]:
                    same += one
                if same >= last:
                    while places[row + 1] <= at:
                        row += 1
                    if at + last < places[row + 1]:
                        found[row] = True
                        at = places[row + 1]  # once is enough
                        break
            at += one
    return found


@in_place
def _split_at_byte(text, places, valid, separator, data, ends, cuts):  # type: ignore[no-untyped-def]
    """Every byte is written, and a separator written over: no branch to guess wrong."""
    one = np.uint64(1)
    used = part = np.uint64(0)
    for row in range(len(valid)):
        if valid[row]:
            for at in range(places[row], places[row + 1]):
                byte = text[at]
                data[used] = byte
                is_cut = np.uint64(byte == separator)
                used += one - is_cut
                ends[part + one] = used
                part += is_cut
            part += one
            ends[part] = used
        cuts[row + 1] = part
    return used


@in_place
def _split(text, places, valid, between, data, ends, cuts):  # type: ignore[no-untyped-def]
    one, width = np.uint64(1), np.uint64(len(between))
    used = part = np.uint64(0)
    for row in range(len(valid)):
        if valid[row]:
            at, stop = places[row], places[row + 1]
            while at < stop:
                same = np.uint64(0)
                while same < width and at + same < stop and text[at + same] == between[same]:
                    same += one
                if same == width:
                    part += one
                    ends[part] = used
                    at += width
                else:
                    data[used] = text[at]
                    used += one
                    at += one
            part += one
            ends[part] = used
        cuts[row + 1] = part
    return used
