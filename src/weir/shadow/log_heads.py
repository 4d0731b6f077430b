"""Reads the first rows that the logs of a live job have now, as finite partitions.

Files, growing files and folders are read as they are now; rows that a run would have to log first
count as logged. Input that cannot be read again, such as a socket's, comes from the job's own log.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from weir.files.chunks import CHUNK_ROWS, Chunk, SourcePartition
from weir.ingress.connectors.connector import Connector, Reading
from weir.ingress.connectors.registry import has_log, open_reading
from weir.ingress.source_signals import Accept, Finished, IngressRecord, Offer, Quiet, Rows

QUIET = 3
"""After this many polls without rows, reading stops.

One is not enough: a growing file may give no rows and ask to be polled again at once.
"""


@dataclass(frozen=True, slots=True)
class HeldChunks:
    """A partition of chunks that were already read."""

    name: str
    held: tuple[Chunk, ...]

    @property
    def size(self) -> int:
        return sum(len(chunk.offsets) for chunk in self.held)

    def chunks(self, size: int = CHUNK_ROWS, start: int = 0) -> Iterator[Chunk]:
        assert start == 0, "what is held is read from its beginning"
        return iter(self.held)


def is_only_logged(partition: SourcePartition) -> bool:
    """Tell whether a partition's rows exist only in the job's log."""
    return (
        isinstance(partition, Connector)
        and has_log(partition)
        and not partition.has_free_rows
        and partition.local_files is None
    )


def standing_rows(partition: SourcePartition, most: int) -> HeldChunks:
    """Read about `most` of the first rows that a partition has now."""
    reading = open_reading(partition, None, 0)
    try:
        return HeldChunks(partition.name, tuple(_polled(reading, most)))
    finally:
        reading.close()


def _polled(reading: Reading, most: int) -> Iterator[Chunk]:
    rows = quiet = polls = 0
    while rows < most and quiet < QUIET:
        polls += 1
        match reading.poll(min(most, CHUNK_ROWS), None, float(polls)):
            case Rows(chunk):
                rows, quiet = rows + len(chunk.offsets), 0
                yield chunk
            case Offer(record):
                if record.ends:
                    return
                reading.accept(Accept(record, own=True, stop=None))
            case Quiet():
                quiet += 1
            case Finished():
                return


def logged_rows(connector: Connector, records: Iterable[IngressRecord], most: int) -> HeldChunks:
    """Read about `most` of the first rows of a partition from its log."""
    reading, chunks, rows = connector.open(None, 0), [], 0
    for record in records:
        reading.accept(Accept(record, own=False, stop=None))
        while isinstance(finding := reading.poll(most, reading.offset, 0.0), Rows):
            chunks.append(finding.chunk)
            rows += len(finding.chunk.offsets)
        if rows >= most:
            break
    reading.close()
    return HeldChunks(connector.name, tuple(chunks))
