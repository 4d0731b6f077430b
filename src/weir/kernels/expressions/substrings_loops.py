"""Compiled loops over the bytes of texts: searching, splitting."""

from __future__ import annotations

import numpy as np

from weir.loops.argument_types import U8, Booleans, I32s, ReadBytes, U8s, U64s
from weir.loops.compiled import compiled, in_place

_BLOCK = 64


@compiled
def find_in_rows(text: U8s, places: U64s, pattern: ReadBytes):
    """Tell whether each row contains the pattern.

    A match has the pattern's first and last byte at a fixed distance. A block of 64 bytes is
    skipped if it has no such pair, which costs a few instructions. That is so fast only because the
    numbers are unsigned.
    """
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
                        at = places[row + 1]  # one match per row is enough
                        break
            at += one
    return found


@in_place
def split_at_byte(
    text: U8s, places: U64s, valid: Booleans, separator: U8, data: U8s, ends: I32s, cuts: I32s
):
    """Write the parts between the separators end to end; return their length in bytes.

    Every byte is written, and the next byte overwrites a separator: so there is no branch to
    mispredict.
    """
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
def split_at_text(
    text: U8s, places: U64s, valid: Booleans, between: ReadBytes, data: U8s, ends: I32s, cuts: I32s
):
    """Like `split_at_byte`, for a separator of several bytes."""
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
