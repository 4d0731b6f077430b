"""Samples changed by a seed: bits, bytes, numbers, cuts, repeats, splices; an end for hangs."""

from __future__ import annotations

import random
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import pytest

Mutation = Callable[[random.Random, bytearray, Sequence[bytes]], None]

_NUMBERS = (
    0,
    1,
    0x7F,
    0x80,
    0xFF,
    2**15,
    2**16 - 1,
    2**31 - 1,
    2**31,
    2**32 - 1,
    2**62,
    2**63 - 1,
    2**63,
    2**64 - 1,
)
_BYTES = bytes((0, 1, 0x7F, 0x80, 0x90, 0xA0, 0xC0, 0xC1, 0xCA, 0xCF, 0xD3, 0xDC, 0xDF, 0xFE, 0xFF))
_BYTES += b'"\\{}[],:-0e'


def _flip(rng: random.Random, data: bytearray, _: Sequence[bytes]) -> None:
    if data:
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)


def _set(rng: random.Random, data: bytearray, _: Sequence[bytes]) -> None:
    if data:
        data[rng.randrange(len(data))] = rng.choice(_BYTES)


def _number(rng: random.Random, data: bytearray, _: Sequence[bytes]) -> None:
    size = rng.choice((1, 2, 4, 8))
    if len(data) >= size:
        at = rng.randrange(len(data) - size + 1)
        value = rng.choice(_NUMBERS) % 256**size
        data[at : at + size] = value.to_bytes(size, rng.choice(("little", "big")))


def _delete(rng: random.Random, data: bytearray, _: Sequence[bytes]) -> None:
    at = rng.randrange(len(data) + 1)
    del data[at : at + rng.choice((1, 1, 2, 4, 8, 64))]


def _insert(rng: random.Random, data: bytearray, _: Sequence[bytes]) -> None:
    at = rng.randrange(len(data) + 1)
    data[at:at] = rng.randbytes(rng.choice((1, 1, 2, 8)))


def _repeat(rng: random.Random, data: bytearray, _: Sequence[bytes]) -> None:
    at = rng.randrange(len(data) + 1)
    part = data[at : at + rng.choice((1, 4, 16, 64))]
    data[at:at] = part * rng.choice((1, 2, 50))


def _cut(rng: random.Random, data: bytearray, _: Sequence[bytes]) -> None:
    del data[rng.randrange(len(data) + 1) :]


def _splice(rng: random.Random, data: bytearray, samples: Sequence[bytes]) -> None:
    other = rng.choice(samples)
    data[rng.randrange(len(data) + 1) :] = other[rng.randrange(len(other) + 1) :]


MUTATIONS: tuple[Mutation, ...] = (
    _flip,
    _flip,
    _set,
    _set,
    _number,
    _number,
    _delete,
    _insert,
    _repeat,
    _cut,
    _splice,
)


def mutated(rng: random.Random, samples: Sequence[bytes]) -> bytes:
    data = bytearray(rng.choice(samples))
    for _ in range(rng.choice((0, 1, 1, 1, 2, 3, 5))):
        rng.choice(MUTATIONS)(rng, data, samples)
    return bytes(data)


LONGEST_SECONDS = 20


@contextmanager
def no_hang(current: Sequence[bytes] = ()) -> Iterator[None]:
    """Fails, with what `current` holds, when the alarm that the test sets goes off."""

    def stop(_signal: int, _frame: object) -> None:
        pytest.fail(f"still at work after {LONGEST_SECONDS} s: {list(current)}")

    before = signal.signal(signal.SIGALRM, stop)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
