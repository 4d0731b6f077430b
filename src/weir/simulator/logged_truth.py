"""The truth of a run with logs: what a run without faults answers over the logs that it wrote.

This is written apart from the source's machine: it takes the records of a log one after the other,
and the rows that the feeds brought, and puts claims between the rows where the records say.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from itertools import groupby

import msgspec
import numpy as np
import pyarrow as pa

from weir.errors import RunError
from weir.files.chunks import CHUNK_ROWS, Chunk
from weir.ingress.source_signals import IngressRecord
from weir.plan.operators import Source
from weir.reliable.codec import decode_record
from weir.reliable.objects import ObjectRef
from weir.simulator.feeds import Feed, LoggedRow
from weir.simulator.simulated_disk import SimulatedDisk

_decoder = msgspec.json.Decoder(IngressRecord)


def log_before(disk: SimulatedDisk, last: ObjectRef | None) -> list[IngressRecord]:
    """List all records of a log up to the last one, also those that were collected."""
    records: list[IngressRecord] = []
    seal = "" if last is None else last.seal
    while seal:
        if seal not in disk.log_records:
            raise RunError(f"nobody has written the record with the seal {seal} of a log")
        record = decode_record(*disk.log_records[seal], _decoder)
        records.append(record)
        seal = record.before
    return records[::-1]


class LoggedPartition:
    """A partition that has the rows of a feed, with the claims that its log has between them."""

    def __init__(self, name: str, source: Source, feed: Feed, log: Sequence[IngressRecord]) -> None:
        self.name = name
        rows = feed.logged(log)
        self.size = len(rows)
        claims = [(r.offset, 0, r.claim) for r in log if r.claim is not None]
        items: list[tuple[int, int, int | LoggedRow]] = [*claims, *((r.offset, 1, r) for r in rows)]
        self._source = source
        self._items = [item for *_, item in sorted(items, key=lambda i: i[:2])]

    def chunks(self, size: int = CHUNK_ROWS, start: int = 0) -> Iterator[Chunk]:
        assert start == 0
        stop = 0
        for is_claim, group in groupby(self._items, lambda item: isinstance(item, int)):
            if is_claim:
                times = np.array(list(group))
                yield self._chunk([], stop, times)
            else:
                rows = [row for row in group if isinstance(row, LoggedRow)]
                stop = rows[-1].offset + 1
                yield self._chunk(rows, stop, np.zeros(0, dtype=np.int64))

    def _chunk(self, rows: Sequence[LoggedRow], stop: int, claims: np.ndarray) -> Chunk:
        values = [json.loads(row.text) for row in rows]
        arrays = [pa.array([v.get(n) for v in values], t) for n, t in self._source.declared]
        batch = pa.RecordBatch.from_arrays(arrays, names=[n for n, _ in self._source.declared])
        positions = np.zeros(len(claims), dtype=np.int64)
        offsets = np.array([row.offset for row in rows], dtype=np.int64)
        lines = np.array([row.line for row in rows], dtype=np.int64)
        return Chunk(
            rows=batch,
            offsets=offsets,
            stop=stop,
            lines=lines,
            cti_times=claims,
            cti_indexes=positions,
        )
