"""Bytes that are nearly right: a corpus, cut, repeated, spliced and garbled by a seed alone."""

from __future__ import annotations

import random
import struct
from collections.abc import Sequence

_NUMBERS = (0, 1, 0x7F, 0x80, 0xFF, 0x7FFF, 0xFFFF, 0x7FFFFFFF, 0xFFFFFFFF, 2**31, 2**63 - 1)


def mutated(rng: random.Random, corpus: Sequence[bytes], pieces: Sequence[bytes]) -> bytes:
    """One of the corpus after one to four changes; `pieces` are put in now and then."""
    data = bytearray(rng.choice(corpus))
    for _ in range(rng.choice((1, 1, 2, 3, 4))):
        at = rng.randrange(len(data) + 1)
        match rng.randrange(9):
            case 0:
                data[at : at + rng.choice((1, 1, 2, 8, 64))] = b""
            case 1:
                data[at:at] = data[at : at + rng.randint(1, 40)] * rng.choice((1, 2, 5))
            case 2:
                data[at:at] = rng.choice(pieces)
            case 3:
                data[at : at + 4] = rng.choice(pieces)
            case 4 if data:
                data[at % len(data)] = rng.randrange(256)
            case 5 if data:
                data[at % len(data)] ^= 1 << rng.randrange(8)
            case 6:
                del data[at:]
            case 7:
                other = rng.choice(corpus)
                data[at:] = other[rng.randrange(len(other) + 1) :]
            case _:
                data[at:at] = rng.choice(pieces) * rng.choice((1, 2, 3, 200))
    return bytes(data)


def damaged(rng: random.Random, corpus: Sequence[bytes]) -> bytes:
    """A binary file with some bytes changed, in place mostly, so that much of it still reads."""
    data = bytearray(rng.choice(corpus))
    for _ in range(rng.choice((1, 1, 1, 2, 4, 16))):
        at = rng.randrange(len(data))
        match rng.randrange(8):
            case 0 | 1:
                data[at] = rng.randrange(256)
            case 2 | 3:
                data[at] ^= 1 << rng.randrange(8)
            case 4:
                number = rng.choice(_NUMBERS) + rng.randint(-1, 1)
                packed = struct.pack("<q", max(-(2**63), min(number, 2**63 - 1)))
                size = rng.choice((1, 2, 4, 8))
                data[at : at + size] = packed[:size]
            case 5:
                source = rng.randrange(len(data))
                size = rng.choice((1, 4, 8, 64))
                data[at : at + size] = data[source : source + size]
            case 6 if rng.random() < 0.3:
                del data[max(at, 1) :]
            case 7 if rng.random() < 0.3:
                del data[at : at + rng.choice((1, 4, 8))]
        if not data:
            data = bytearray(b"\0")
    return bytes(data)
