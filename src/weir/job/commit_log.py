"""The commit log of an output: which rows are permanent, and the parts that hold them.

Rules
1. A commit refers to its part and to the commit before it, so the last commit vouches for all of
   them: whoever reads the chain (`read_chain`) notices a commit or a part that is lost or changed.
2. The manager's record refers to the last commit that the manager has heard of. Later commits count
   as long as each refers to the one before it. A commit that is missing or damaged while a later
   one is there is lost.
3. A commit says which of the manager's records was the newest when it was made; see
   `record_reader.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated

import msgspec

from weir.errors import SnapshotCorrupt
from weir.events.batch import Batch, concat_batches
from weir.events.order import in_order
from weir.reliable.codec import decode_entries, decode_record, encode_entries
from weir.reliable.digest import Digest, digest
from weir.reliable.object_names import commit_key, commits_of, number_of
from weir.reliable.objects import ObjectRef
from weir.reliable.store import Body, Store
from weir.reliable.stream import Entry

PUT_BACK = (
    "if the store keeps versions or there is a backup, put it back and run again with --resume; "
    "else start the job again with an empty store. weir store STORE --verify names all that is "
    "missing or changed"
)
LOST = f"committed rows are lost; {PUT_BACK}"


class Commit(msgspec.Struct, frozen=True):
    """A commit makes some rows of an output permanent: which part holds them (none: no
    rows), up to which positions of the sink's inputs, and the digest of all rows so far."""

    number: int
    incarnation: int
    part: ObjectRef | None
    rows: int
    inputs: tuple[int, ...]
    total: Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{1,32}$")]
    count: int
    before: ObjectRef | None = None
    """The commit before it."""
    record: int = -1
    """The number of the manager's newest record that the sink knew of."""

    @property
    def digest(self) -> Digest:
        return Digest(int(self.total, 16), self.count)


_decoder = msgspec.json.Decoder(Commit)


def decode_commit(key: str, body: bytes) -> Commit:
    """Decode the commit of this name; SnapshotCorrupt when the object is not that commit."""
    commit = decode_record(key, body, _decoder)
    if commit.number != number_of(key):
        raise SnapshotCorrupt(f"{key} says that it is commit {commit.number}")
    return commit


def encode_part(key: str, inputs: Sequence[tuple[int, Batch]]) -> Body:
    """Encode the rows of a commit as a part: one sorted run for each of the sink's inputs."""
    runs: dict[int, list[Batch]] = {}
    for input, rows in inputs:
        runs.setdefault(input, []).append(Batch(rows.vs, rows.ve, rows.columns))
    entries = []
    for input, batches in sorted(runs.items()):
        rows = concat_batches(batches)
        entries.append(Entry(input, in_order(rows), 0))
    return encode_entries(key, entries)


def decode_part(key: str, body: bytes) -> list[tuple[int, Batch]]:
    """Decode the sorted runs of a part, each with the input of the sink that it came from."""
    return [(entry.seq, entry.rows) for entry in decode_entries(key, body)]


# --- reading -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ChainedCommit:
    """A commit, the reference by which it is known, and the digest of all rows before it."""

    commit: Commit
    ref: ObjectRef
    before: Digest


def read_chain(
    store: Store,
    sink: str,
    named: ObjectRef | None = None,
    since: int = 0,
    *,
    thorough: bool = True,
) -> list[ChainedCommit]:
    """Read the commits of an output from a number on, in order.

    The record refers to `named`, which vouches for the commits before it; those after it follow
    one another, and nobody vouches for the last. If `thorough`, the store is listed where the chain
    ends, to see whether a commit is missing. A reader that looks again and again, until the record
    refers to the last commit, need not list it each time."""
    chain = [*_back_from(store, named, since)][::-1]
    number, last = 0 if named is None else number_of(named.key) + 1, named
    while (
        following := _next_commit(
            store=store, sink=sink, number=number, last=last, thorough=thorough
        )
    ) is not None:
        chain.append(following)
        number, last = number + 1, following[1]
    links: list[ChainedCommit] = []
    for commit, ref in chain:
        if commit.number >= since:
            total = links[-1].commit.digest if links else _digest_before(store, commit)
            links.append(ChainedCommit(commit, ref, total))
    return links


def _back_from(
    store: Store, ref: ObjectRef | None, since: int
) -> Iterator[tuple[Commit, ObjectRef]]:
    while ref is not None and number_of(ref.key) >= since:
        commit = decode_commit(ref.key, _vouched(store, ref))
        yield commit, ref
        ref = commit.before


def _vouched(store: Store, ref: ObjectRef) -> bytes:
    try:
        return ref.read(store)
    except SnapshotCorrupt as error:
        raise SnapshotCorrupt(f"{error}: {LOST}") from error


def _digest_before(store: Store, commit: Commit) -> Digest:
    if commit.before is None:
        return Digest()
    return decode_commit(commit.before.key, _vouched(store, commit.before)).digest


def _next_commit(
    store: Store, sink: str, number: int, last: ObjectRef | None, thorough: bool
) -> tuple[Commit, ObjectRef] | None:
    """Read the commit of this number, which follows `last`; None when there is none. Nobody
    vouches for it yet."""
    key = commit_key(sink, number)
    body = store.get(key)
    if body is None and thorough and (later := later_commit(store, sink, number)):
        body = store.get(key)  # both may have come since
        if body is None:
            raise SnapshotCorrupt(f"{key} is not in the store, but {later} is: {LOST}")
    if body is None:
        return None
    try:
        commit = decode_commit(key, body)
    except SnapshotCorrupt as error:
        if later := later_commit(store, sink, number):
            raise SnapshotCorrupt(f"{error}; {later} follows it: {LOST}") from error
        return None  # nothing refers to it, so it was never written
    if commit.before != last:
        before = last.key if last is not None else "none"
        raise SnapshotCorrupt(f"{key} does not follow {before} as it is in the store: {LOST}")
    return commit, ObjectRef.of(key, body)


def later_commit(store: Store, sink: str, number: int) -> str | None:
    """Name a whole commit with a larger number that is in the store; None: there is none."""
    for key in commits_of(store.list(f"commits/{sink}/"), sink):
        body = store.get(key) if number_of(key) > number else None
        if body is not None and _is_commit(key, body):
            return key
    return None


def _is_commit(key: str, body: bytes) -> bool:
    try:
        decode_commit(key, body)
    except SnapshotCorrupt:
        return False
    return True


def read_part(store: Store, link: ChainedCommit) -> list[tuple[int, Batch]]:
    """Read the sorted runs of a commit, each with the input of the sink that it came from;
    SnapshotCorrupt when their rows are not those that the commit says."""
    commit = link.commit
    part = commit.part
    runs = [] if part is None else decode_part(part.key, _vouched(store, part))
    total = link.before
    for _, rows in runs:
        total += digest(rows)
    if total != commit.digest or sum(len(rows) for _, rows in runs) != commit.rows:
        raise SnapshotCorrupt(
            f"{link.ref.key} stands for {commit.rows} rows up to digest {commit.digest}; those of "
            f"its part make {total}: {LOST}"
        )
    return runs
