"""Commits of an output: which rows are there for good, and the parts that hold them."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from weir.events.batch import Batch, concat_batches
from weir.events.order import in_order
from weir.reliable.codec import decode_entries, decode_record, encode_entries
from weir.reliable.digest import Digest
from weir.reliable.store import Body
from weir.reliable.stream import Entry


class Commit(msgspec.Struct, frozen=True):
    """Rows of an output that are there for good: which part holds them (none: no rows), up to
    which positions of the sink's inputs, and the digest of all rows so far."""

    number: int
    incarnation: int
    part: str
    rows: int
    inputs: tuple[int, ...]
    total: str
    count: int

    @property
    def digest(self) -> Digest:
        return Digest(int(self.total, 16), self.count)


_decoder = msgspec.json.Decoder(Commit)


def decode_commit(body: bytes) -> Commit:
    return _decoder.decode(decode_record(body))


def encode_part(taken: Sequence[tuple[int, Batch]]) -> Body:
    """Rows of a commit as a part: one sorted run for each of the sink's inputs."""
    runs: dict[int, list[Batch]] = {}
    for place, rows in taken:
        runs.setdefault(place, []).append(Batch(rows.vs, rows.ve, rows.columns))
    entries = []
    for place, batches in sorted(runs.items()):
        rows = concat_batches(batches)
        entries.append(Entry(place, in_order(rows), 0))
    return encode_entries(entries)


def decode_part(body: bytes) -> list[tuple[int, Batch]]:
    """The sorted runs of a part with the inputs that they came from."""
    return [(entry.seq, entry.rows) for entry in decode_entries(body)]
