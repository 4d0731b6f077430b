"""Adds the whole input row, and its place in the input, to the error of an event.

The row is read again, since a run does not read columns that it does not need. If that fails (the
file has changed, or the source is not a file), those columns are left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from weir.errors import EventFailed, InputRow, WeirError
from weir.files.chunks import Chunk, DataFile, PartitionSlice, SourcePartition
from weir.ingress.memory_partitions import MemoryPartition
from weir.kernels.expressions.evaluation import shown_value
from weir.runtime.partitions import Partitions


@contextmanager
def completing(partitions: Partitions) -> Iterator[None]:
    """Complete the errors of events of a program that reads these partitions."""
    try:
        yield
    except EventFailed as error:
        complete(error, partitions)
        raise


def complete(error: EventFailed, partitions: Partitions) -> None:
    """Show the whole input row in an error of an event, and say where it stood."""
    row = error.input_row
    if row is None or error.input or not isinstance(error.event, dict):
        return
    parts = partitions.get(row.source, ())
    if row.partition >= len(parts):
        return
    part = parts[row.partition]
    partition = part.whole if isinstance(part, PartitionSlice) else part
    read = _columns_read(partition, row)
    whole = None if row.offset is None else _read_again(partition, row.offset)
    if whole is not None and not _is_same(error.event, whole, row, read):
        whole = None
    where = "" if row.offset is None else _where(partition.name, row.offset, whole)
    error.complete(_merged(error.event, whole, row, read), where)


def row_place(part: SourcePartition, offset: int) -> str:
    """Say where a row of a partition stands: in which file, and on which line."""
    partition = part.whole if isinstance(part, PartitionSlice) else part
    return _where(partition.name, offset, _read_again(partition, offset))


@dataclass(frozen=True, slots=True)
class _WholeRow:
    """A `_WholeRow` has the values of all columns of a row, and its line, if its file has lines."""

    values: Mapping[str, object]
    line: int | None


def _columns_read(partition: SourcePartition, row: InputRow) -> frozenset[str]:
    if not isinstance(partition, DataFile):
        return frozenset(row.names)
    return frozenset(name for name, _ in partition.columns if partition.needs(name))


def _read_again(partition: SourcePartition, offset: int) -> _WholeRow | None:
    if isinstance(partition, DataFile):
        partition = replace(partition, needed=None, since=None)
    elif not isinstance(partition, MemoryPartition):
        return None
    try:
        chunk = _chunk_with(partition, offset)
    except (WeirError, OSError):  # the file is gone; the first error says more
        return None
    at = [] if chunk is None else (chunk.offsets == offset).nonzero()[0].tolist()
    if chunk is None or not at:
        return None
    names = chunk.rows.schema.names
    values = {name: shown_value(chunk.rows.column(name)[at[0]]) for name in names}
    return _WholeRow(values, chunk.line(at[0]))


def _chunk_with(partition: SourcePartition, offset: int) -> Chunk | None:
    return next((c for c in partition.chunks(start=offset) if c.stop > offset), None)


def _is_same(
    event: Mapping[str, object], whole: _WholeRow, row: InputRow, read: frozenset[str]
) -> bool:
    """Tell whether a row that was read again is what it was."""
    both = ((event[n], whole.values[c]) for n, c in row.columns.items() if n in event and c in read)
    return all(repr(was) == repr(now) for was, now in both)


def _where(name: str, offset: int, whole: _WholeRow | None) -> str:
    if whole is None or whole.line is None:
        return f"{name}, row {offset + 1}"
    return f"{name}, line {whole.line}"


def _merged(
    event: Mapping[str, object], whole: _WholeRow | None, row: InputRow, read: frozenset[str]
) -> dict[str, object]:
    """Return the event with the columns of its source that are known, in their order, then those
    that were computed."""
    shown = {name: event[name] for name in ("vs", "ve") if name in event}
    for column in row.names:
        own: Sequence[str] = [n for n, of in row.columns.items() if of == column and n in event]
        if whole is not None:
            own = own or [column] * (column not in event)
            shown |= dict.fromkeys(own, whole.values[column])
        elif column in read:
            shown |= {name: event[name] for name in own}
    unread = {name for name, column in row.columns.items() if column not in read}
    return shown | {n: v for n, v in event.items() if n not in shown and n not in unread}
