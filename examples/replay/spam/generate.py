"""Makes the logs of the ReStream paper's workload: friendships and messages of a social network.

    python generate.py DIR [--events 200_000] [--users 100_000] [--alpha 2.0] [--seed 1] [--files 1]

Users are as active and as popular as a power law of exponent `alpha` says: the user of rank r
has the weight r^(−1/(alpha − 1)), so that the density of weights falls as w^(−alpha). Most write to
friends, often to the newest ones; a few are spammers, who write to anybody and advertise e-mail
addresses, from a few IP addresses. An event has about 125 bytes. Time goes by tenths of a second,
at 20 events a second: about half of all events share theirs with others.

The logs are `DIR/friendship/part-00.parquet` … and `DIR/message/part-00.parquet` …, each file one
range of time, in order. They follow from the arguments alone.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

FRIENDSHIPS = 0.2
"""The share of friendships among the events."""
SPAM = 0.05
"""The share of spammers' messages among the messages."""
SPAMMERS = 500
SPAM_ADDRESSES = 200
TO_FRIENDS = 0.8
"""The share of messages that others than spammers want to send to a friend."""
RATE = 20
"""Events a second."""
TICK = 100_000
"""Times are multiples of so many microseconds."""
CHUNK = 500_000
EMAIL_BYTES = 24


@dataclass(frozen=True)
class People:
    """The users: how active each is (as a cumulative share), and where they write from."""

    cumulated: np.ndarray
    order: np.ndarray
    addresses: pa.Array
    home: np.ndarray

    def draw(self, rng: np.random.Generator, count: int) -> np.ndarray:
        """Users, by how active they are."""
        ranks = np.searchsorted(self.cumulated, rng.random(count), side="right")
        return self.order[np.minimum(ranks, len(self.order) - 1)]


def people(rng: np.random.Generator, users: int, alpha: float) -> People:
    weights = np.arange(1, users + 1, dtype=np.float64) ** (-1 / (alpha - 1))
    count = max(users // 2, 1) + SPAM_ADDRESSES
    numbers = rng.permutation(count)
    addresses = pa.array([f"10.{n >> 16}.{(n >> 8) & 255}.{n & 255}" for n in numbers.tolist()])
    home = rng.integers(SPAM_ADDRESSES, count, users)
    return People(np.cumsum(weights / weights.sum()), rng.permutation(users), addresses, home)


def generate(
    folder: Path, events: int, *, users: int = 100_000, alpha: float = 2.0, seed: int = 1,
    files: int = 1,
) -> None:  # fmt: skip
    """Write both logs, in `files` files each."""
    rng = np.random.default_rng([seed, events, users, int(alpha * 1000)])
    who = people(rng, users, alpha)
    ticks = np.cumsum(rng.exponential(1e6 / RATE / TICK, events)).astype(np.int64) * TICK
    is_friendship = rng.random(events) < FRIENDSHIPS
    friendships = _friendships(rng, who, ticks[is_friendship])
    at = np.cumsum(is_friendship)[~is_friendship]  # how many friendships lie before a message
    _write(folder / "friendship", pa.table(friendships), files)
    message_ticks = ticks[~is_friendship]
    known = _Known(friendships["a"], friendships["b"])
    text = _text(rng)
    cuts = np.linspace(0, len(message_ticks), files + 1).astype(np.int64)
    for number, (start, end) in enumerate(pairwise(cuts)):
        path = _path(folder / "message", number)
        chunks = [
            _messages(rng, who, known, text, message_ticks[a:b], at[a:b], a)
            for a in range(start, end, CHUNK)
            for b in [min(a + CHUNK, end)]
        ]
        _save(pa.concat_tables(chunks), path)


def _friendships(rng: np.random.Generator, who: People, ticks: np.ndarray) -> dict[str, np.ndarray]:
    return {"a": who.draw(rng, len(ticks)), "b": who.draw(rng, len(ticks)), "ts": ticks}


class _Known:
    """Who has befriended whom, by user and time."""

    def __init__(self, a: np.ndarray, b: np.ndarray) -> None:
        self._count = len(a) + 1
        order = np.argsort(a, kind="stable")
        self._keys = a[order] * self._count + order
        self._b = b[order]

    def friend(
        self, rng: np.random.Generator, users: np.ndarray, at: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """A friend of each user among those made before, and whether there is one."""
        start = np.searchsorted(self._keys, users * self._count)
        end = np.searchsorted(self._keys, users * self._count + at)
        has = end > start
        # Every second time the newest one; else anyone.
        back = np.where(rng.random(len(users)) < 0.5, 0.0, rng.random(len(users)))
        chosen = end - 1 - (back * (end - start)).astype(np.int64)
        return self._b[np.where(has, chosen, 0)], has


def _messages(
    rng: np.random.Generator, who: People, known: _Known, text: np.ndarray, ticks: np.ndarray,
    at: np.ndarray, first: int,
) -> pa.Table:  # fmt: skip
    count = len(ticks)
    senders = who.draw(rng, count)
    spam = rng.random(count) < SPAM
    senders[spam] = who.order[-1 - rng.integers(0, min(SPAMMERS, len(who.order)), spam.sum())]
    friends, has = known.friend(rng, senders, at)
    to_friend = ~spam & has & (rng.random(count) < TO_FRIENDS)
    recipients = np.where(to_friend, friends, rng.integers(0, len(who.order), count))
    away = rng.random(count) < 0.1
    homes = np.where(
        away, rng.integers(SPAM_ADDRESSES, len(who.addresses), count), who.home[senders]
    )
    ips = np.where(spam, rng.integers(0, SPAM_ADDRESSES, count), homes)
    advertises = rng.random(count) < np.where(spam, 0.5, 0.02)
    return pa.table(
        {
            "id": np.arange(first, first + count),
            "sender": senders,
            "recipient": recipients,
            "ip": who.addresses.take(pa.array(ips)),
            "content": _contents(rng, text, advertises),
            "ts": ticks,
        }
    )


def _text(rng: np.random.Generator) -> np.ndarray:
    """A megabyte of words, with figures, full stops and a lonely @ here and there."""
    alphabet = np.frombuffer(b"etaoinshrdlucmfwypvbgk", np.uint8)
    letters = alphabet[rng.integers(0, len(alphabet), 1 << 20)]
    ends = np.cumsum(rng.integers(3, 10, len(letters) // 7))
    letters[ends[ends < len(letters)]] = 32
    rare = rng.integers(0, len(letters), (3, len(letters) // 200))
    for place, sign in zip(rare, b"@.7", strict=True):
        letters[place] = sign
    # No address by chance: what follows an @ is a blank.
    signs = np.flatnonzero(letters[:-1] == 64)
    letters[signs + 1] = 32
    return letters


def _contents(rng: np.random.Generator, text: np.ndarray, advertises: np.ndarray) -> pa.Array:
    """Texts of 45 to 105 bytes; where wanted, with an e-mail address in their midst."""
    count = len(advertises)
    lengths = rng.integers(45, 106, count)
    offsets = np.concatenate(([0], np.cumsum(lengths)))
    starts = rng.integers(0, len(text) - 106, count)
    body = text[np.repeat(starts - offsets[:-1], lengths) + np.arange(offsets[-1])]
    rows = np.flatnonzero(advertises)
    room = lengths[rows] - EMAIL_BYTES
    places = offsets[rows] + (rng.random(len(rows)) * (room + 1)).astype(np.int64)
    emails = np.tile(
        np.frombuffer(b" deal1234567@mail.shop. "[:EMAIL_BYTES], np.uint8), (len(rows), 1)
    )
    emails[:, 5:12] = 48 + rng.integers(0, 10, (len(rows), 7))
    body[places[:, None] + np.arange(EMAIL_BYTES)] = emails
    buffers = [None, pa.py_buffer(offsets.astype(np.int32)), pa.py_buffer(body)]
    return pa.StringArray.from_buffers(count, buffers[1], buffers[2])


def _path(folder: Path, number: int) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return folder / f"part-{number:02}.parquet"


def _write(folder: Path, table: pa.Table, files: int) -> None:
    cuts = np.linspace(0, len(table), files + 1).astype(np.int64)
    for number, (start, end) in enumerate(pairwise(cuts)):
        _save(table.slice(start, end - start), _path(folder, number))


def _save(table: pa.Table, path: Path) -> None:
    pq.write_table(table, path, compression="snappy", row_group_size=1 << 18)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--events", type=int, default=200_000)
    parser.add_argument("--users", type=int, default=100_000)
    parser.add_argument("--alpha", type=float, default=2.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--files", type=int, default=1)
    given = parser.parse_args()
    generate(
        given.folder,
        given.events,
        users=given.users,
        alpha=given.alpha,
        seed=given.seed,
        files=given.files,
    )


if __name__ == "__main__":
    main()
