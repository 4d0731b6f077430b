"""Makes keys that the stable hash (`events/hashing.py`) takes for equal, or puts side by side.

    PYTHONPATH=tests:src python -m attack.key_collisions

prints two (BIGINT, BIGINT) keys of equal 128-bit hash, within a minute. The hash has no secret and
all its steps can be inverted, so this needs no luck: see `find_collision`. Kernels must not use it
to tell keys apart; `tests/unit/kernels/test_crafted_keys.py` has keys that were found so.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

UInt64s = npt.NDArray[np.uint64]

# The numbers of `events/hashing.py` and `hashing_loops.py`, which are a format.
SEEDS = (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F)
FACTOR, ADDEND = 0x9FB21C651E98DF25, 0x632BE59BD9B4E019
MULTIPLIERS = (0xBF58476D1CE4E5B9, 0x94D049BB133111EB)
_WORD, _HALF = 2**64 - 1, 2**32 - 1
_BITS = 32
_BIRTHDAY = 1 << 24
_TRIES, _ROUNDS = 1 << 21, 16


def _mixed(word: UInt64s) -> UInt64s:
    word = (word ^ (word >> np.uint64(30))) * np.uint64(MULTIPLIERS[0])
    word = (word ^ (word >> np.uint64(27))) * np.uint64(MULTIPLIERS[1])
    return word ^ (word >> np.uint64(31))


def _unmixed(word: UInt64s) -> UInt64s:
    word = word ^ (word >> np.uint64(31)) ^ (word >> np.uint64(62))
    word = word * np.uint64(pow(MULTIPLIERS[1], -1, 2**64))
    word = word ^ (word >> np.uint64(27)) ^ (word >> np.uint64(54))
    word = word * np.uint64(pow(MULTIPLIERS[0], -1, 2**64))
    return word ^ (word >> np.uint64(30)) ^ (word >> np.uint64(60))


def crowded_numbers(count: int, bits: int = 20) -> npt.NDArray[np.int64]:
    """Return BIGINTs whose hashes agree in as many of the lowest bits: in a table by the stable
    hash they all begin their search at one slot."""
    hashes = np.arange(count, dtype=np.uint64) << np.uint64(bits)
    words = (_unmixed(hashes) ^ np.uint64(SEEDS[0])) * np.uint64(pow(FACTOR, -1, 2**64))
    return words.view(np.int64)


def crowded_priorities(count: int) -> npt.NDArray[np.int64]:
    """Return numbers in the order of a hash of their positions, by which trees were once balanced:
    a list came of these."""
    positions = np.arange(1, count + 1, dtype=np.uint64) * np.uint64(SEEDS[0])
    ranks = np.empty(count, dtype=np.int64)
    ranks[np.argsort(_mixed(positions))] = np.arange(count)
    return ranks


def equal_tuples(count: int) -> list[tuple[int, int]]:
    """Return pairs of BIGINTs that have one `hash()`: Python hashes numbers and tuples without a
    secret, by xxHash, step by step invertible."""
    primes = 11400714785074694791, 14029467366897019727, 2870177450012600261
    inverse = [pow(prime, -1, 2**64) for prime in primes]
    found: list[tuple[int, int]] = []
    first = 0
    while len(found) < count:
        first += 1
        state = (primes[2] + first * primes[1]) & _WORD
        state = ((state << 31 | state >> 33) & _WORD) * primes[0] & _WORD
        # The state before the last lane is added, for a hash of 0 before the length is.
        second = -state * inverse[1] & _WORD
        if second < 2**61 - 1:  # a larger number is hashed as another one
            found.append((first, second))
    return found


def find_collision(seed: int = 0) -> tuple[tuple[int, int], tuple[int, int]]:
    """Find two (BIGINT, BIGINT) keys of equal hash.

    A key (v, w) has the hash (mix(A(v) ^ w·FACTOR), mix(B(v) + x(w))), with x(w) = w ^ (w >> 32);
    equality before the outer, bijective mix is enough. Take v and v′ with equal lower halves of A,
    by birthday, and w = (h, l), w′ = (h′, l) with equal lower halves. Then with d = B(v) − B(v′)
    and y = l ^ h it remains to solve, in 32 bits,

        h′ = h + q, where q is the upper half of d, plus the carry of y + (lower half of d)
        y ^ (y + lower half of d) = h ^ (h + q)                                             (1)
        z ^ (z + q·FACTOR) = upper half of A(v) ^ A(v′), where z = h·FACTOR + (l·FACTOR >> 32)  (2)

    In equations like these a bit depends on lower bits only. So it is seen at once whether some z
    solves (2); and solutions of (1) are drawn bit by bit, until one has such a z.
    """
    chance = np.random.default_rng(seed)
    while True:
        for key in _drawn_collisions(chance):
            return key


def _drawn_collisions(
    chance: np.random.Generator,
) -> Iterator[tuple[tuple[int, int], tuple[int, int]]]:
    words = chance.integers(0, 2**64, _BIRTHDAY, dtype=np.uint64)
    a = _mixed(np.uint64(SEEDS[0]) ^ words * np.uint64(FACTOR))
    order = np.argsort(a & np.uint64(_HALF), kind="stable")
    lower = a[order] & np.uint64(_HALF)
    for at in np.flatnonzero(lower[1:] == lower[:-1]).tolist():
        v, other = words[order[at : at + 2]].tolist()
        yield from _second_words(v, other, chance)


def _second_words(
    v: int, other: int, chance: np.random.Generator
) -> Iterator[tuple[tuple[int, int], tuple[int, int]]]:
    firsts = np.array([v, other], dtype=np.uint64)
    spread = firsts ^ (firsts >> np.uint64(_BITS))
    a = _mixed(np.uint64(SEEDS[0]) ^ firsts * np.uint64(FACTOR)).tolist()
    b = _mixed(np.uint64((SEEDS[1] + ADDEND) & _WORD) + spread).tolist()
    wanted, difference = (a[0] ^ a[1]) >> _BITS, (b[0] - b[1]) & _WORD
    low = difference & _HALF
    for carry in (0, 1):
        q = ((difference >> _BITS) + carry) & _HALF
        step = q * FACTOR & _HALF
        if (low ^ q) & 1 or not _is_possible(step, wanted):
            continue
        for _ in range(_ROUNDS):
            y, h = _equal_changes(low, q, chance)
            half = y ^ h
            z = h * np.uint64(FACTOR & _HALF) + (half * np.uint64(FACTOR) >> np.uint64(_BITS))
            fits = ((z ^ (z + np.uint64(step))) & np.uint64(_HALF)) == wanted
            fits &= (y + np.uint64(low)) >> np.uint64(_BITS) == carry
            for i in np.flatnonzero(fits).tolist():
                upper, lower = int(h[i]), int(half[i])
                words = [(upper << _BITS) | lower, (((upper + q) & _HALF) << _BITS) | lower]
                yield (_signed(v), _signed(words[0])), (_signed(other), _signed(words[1]))


def _is_possible(step: int, wanted: int) -> bool:
    """Say whether some z has z ^ (z + step) = wanted, in 32 bits.

    Where a bit of it is 0, the carry into the next is the step's bit; where it is 1, z chooses.
    """
    if (step ^ wanted) & 1:
        return False
    forced = ~wanted & (_HALF >> 1)
    return not ((step >> 1) ^ step ^ (wanted >> 1)) & forced


def _equal_changes(low: int, q: int, chance: np.random.Generator) -> tuple[UInt64s, UInt64s]:
    """Draw many y and h with y ^ (y + low) = h ^ (h + q), in 32 bits.

    Where a bit changes in both, each chooses its next carry, and so whether the next bit changes.
    Where it does not, the carry is the bit of `low` or `q`: then these must agree on the next one.
    """
    may_rest = _may_rest(low, q)
    y, h = chance.integers(0, 2**_BITS, (2, _TRIES), dtype=np.uint64)
    changes = np.full(_TRIES, low & 1, dtype=np.uint64)
    if not (low & 1 or may_rest[0]):
        return y[:0], h[:0]
    for bit in range(_BITS - 1):
        next_low, next_q = (low >> (bit + 1)) & 1, (q >> (bit + 1)) & 1
        free = chance.integers(0, 2, _TRIES, dtype=np.uint64)
        chosen = free if may_rest[bit + 1] else np.ones_like(free)
        y = np.where(changes == 1, _with_bit(y, bit, chosen ^ np.uint64(next_low)), y)
        h = np.where(changes == 1, _with_bit(h, bit, chosen ^ np.uint64(next_q)), h)
        forced = np.uint64(next_low ^ ((low >> bit) & 1))
        changes = np.where(changes == 1, chosen, forced)
    return y, h


def _may_rest(low: int, q: int) -> list[bool]:
    """Say of each bit whether the draw can be finished if it does not change there."""
    result = [True] * _BITS
    for bit in reversed(range(_BITS - 1)):
        follows = ((low >> (bit + 1)) ^ (low >> bit)) & 1
        agree = follows == ((q >> (bit + 1)) ^ (q >> bit)) & 1
        result[bit] = agree and (bool(follows) or result[bit + 1])
    return result


def _with_bit(words: UInt64s, bit: int, values: UInt64s) -> UInt64s:
    return (words & ~np.uint64(1 << bit)) | (values << np.uint64(bit))


def _signed(word: int) -> int:
    return word - 2**64 if word >> 63 else word


if __name__ == "__main__":
    for key in find_collision():
        print(key)
