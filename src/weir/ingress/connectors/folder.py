"""`PATH/` is a folder in which whole files appear: one partition, in order of arrival.

Rules
1. Which file comes next is a choice: it is offered for the log, and read when it is accepted. Of
   several new files, the first by name comes next. Names that begin with `.` or `_` do not count;
   after a file `.end` appears, the partition ends when all files are read. A listing is reused for
   a while (`SERVES`), or until all its files are read, so a large folder is not listed for each
   file.
2. The offset of a file's record is that of its first row, so the next record says where the file
   ended. If a file now ends elsewhere, or its earlier rows have changed (`source_integrity.py`),
   the job fails.
3. A file with rows only before the start may be missing.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Self

import msgspec

from weir.errors import InputError
from weir.files.chunks import Chunk, SourcePartition
from weir.files.paths import check_name
from weir.files.readers import open_partition
from weir.ingress.connectors.connector import Endless
from weir.ingress.source_integrity import FileMark, check_not_shorter, gone, marked_chunks
from weir.ingress.source_signals import Accept, Accepted, Finding, IngressRecord, Offer, Quiet, Rows
from weir.plan.operators import Source

POLL, POLL_BY_NAME = 0.05, 1e-5
"""The least pause between two listings when nothing is new, and the pause for each name in the
folder, in seconds."""
SERVES = 20
"""A listing with new files is reused for this many times the pause between listings."""


class FolderState(msgspec.Struct, frozen=True, array_like=True):
    """Where a reading of a folder stands: in the file whose first row has this offset."""

    offset: int = 0
    mark: FileMark = FileMark()
    """What was read of that file."""
    names: bytes = b""
    """The files found before it, each followed by a NUL."""


_decoder = msgspec.msgpack.Decoder(FolderState)


@dataclass(frozen=True, slots=True)
class GrowingFolder(Endless):
    """A folder into which whole files are renamed, as one partition."""

    source: Source
    name: str
    root: str = ""
    has_log = True
    has_free_rows = False

    @property
    def path(self) -> str:
        return os.path.join(self.root, self.name)

    @property
    def local_files(self) -> str:
        return os.path.join(self.path, "**")

    def rooted(self, root: str) -> Self:
        return replace(self, root=root)

    def open(self, state: bytes | None, start: int) -> FolderReading:
        return FolderReading(
            self, FolderState() if state is None else _decoder.decode(state), start
        )


class FolderReading:
    """Reads the folder once, by the module's rules."""

    def __init__(self, of: GrowingFolder, at: FolderState, start: int) -> None:
        self._of, self._start = of, start
        self.offset = at.offset
        self._mark = at.mark
        """What was read of the file in which the reading starts; nothing was read of the others."""
        self._names = at.names
        self._seen = {os.fsdecode(name) for name in at.names.split(b"\0")}
        self._file = self._last = ""
        """The file being read, and the file found last."""
        self._at = at
        """Where the first row of the file is."""
        self._chunks: Iterator[tuple[Chunk, FileMark | None]] | None = None
        """The rest of the file."""
        self._gave = False
        """Whether the file has given any rows."""
        self._new: list[str] = []
        """New files of the last listing, in reverse order of their names."""
        self._rest = POLL
        """The pause between two listings, in seconds."""
        self._listed_at = 0.0
        """When the folder was last listed."""

    def poll(self, most: int, until: int | None, now: float) -> Finding:
        rows = self._read(most, until) if self._file else None
        if rows is not None:
            return rows
        if until is not None:
            if self.offset != until:
                raise gone("has other rows now", self._path(self._last), until)
            return Quiet(self.offset, 0.0)
        new = self._look(now)
        return Quiet(self.offset, self._rest) if new is None else Offer(new)

    def accept(self, accept: Accept) -> Accepted:
        record = accept.record
        if self._file and self._read(1, record.offset) is not None:
            raise gone("has other rows now", self._path(self._file), record.offset)
        at = FolderState(record.offset, self._mark, self._names)
        if record.file:
            self._at, self._file, self._last = at, record.file, record.file
            self._names += os.fsencode(record.file) + b"\0"
            self._seen.add(record.file)
        return Accepted(self.offset, msgspec.msgpack.encode(at))

    def close(self) -> None:
        self._chunks = None

    def _read(self, most: int, until: int | None) -> Rows | None:
        """Read the next rows of the file; return None at its end."""
        path, base = self._path(self._file), self._at.offset
        rest = max(self._start - base, 0)
        if self._chunks is None:
            if not os.path.exists(os.path.join(self._of.root, path)):
                if until is None or until > self._start:
                    raise gone("is gone", path, rest)
                self._leave(until)  # rule 3
                return None
            self._chunks = marked_chunks(self._partition(path), most, rest, self._mark)
            self._gave = False
        marked = next(self._chunks, None)
        if marked is None:
            if rest and not self._gave:
                # All rows of the file are before the start. The next record says where it ended;
                # without one, it ended at the start.
                self.offset = self._start if until is None else until
                check_not_shorter(self._partition(path), self.offset - base)
            self._leave(self.offset)
            return None
        self._gave = True
        chunk = _shifted(marked[0], base)
        if until is not None and chunk.stop > until:
            raise gone("has other rows now", path, until)
        self.offset = chunk.stop
        state = msgspec.structs.replace(self._at, mark=marked[1] or FileMark())
        return Rows(replace(chunk, resume=msgspec.msgpack.encode(state)))

    def _leave(self, offset: int) -> None:
        self.offset, self._file, self._chunks = offset, "", None
        self._mark = FileMark()

    def _partition(self, path: str) -> SourcePartition:
        return open_partition(self._of.source, path, root=self._of.root)

    def _path(self, file: str) -> str:
        return os.path.join(self._of.name, file)

    def _look(self, now: float) -> IngressRecord | None:
        """Return the next choice, or None."""
        if now - self._listed_at >= SERVES * self._rest:
            self._new.clear()
        new, ends = self._next(), False
        if new is None:
            ends = self._list(now)
            new = self._next()
        if new is None and ends:
            # List again: a large folder is listed in pieces, so a file from before `.end` may be
            # missing.
            self._list(now)
            new = self._next()
        if new is not None:
            self._check_file(new)
            return IngressRecord(self.offset, file=new)
        return IngressRecord(self.offset, ends=True) if ends else None

    def _next(self) -> str | None:
        """Return the first new file of the last listing that still exists."""
        while self._new:
            name = self._new[-1]
            if name not in self._seen and os.path.lexists(os.path.join(self._of.path, name)):
                return name
            self._new.pop()
        return None

    def _list(self, now: float) -> bool:
        """List the folder; return whether it contains `.end`."""
        names = os.listdir(self._of.path)
        new = (n for n in names if n not in self._seen and n[0] not in "._")
        self._new = sorted(new, key=os.fsencode, reverse=True)
        self._rest, self._listed_at = max(POLL, POLL_BY_NAME * len(names)), now
        return ".end" in names

    def _check_file(self, name: str) -> None:
        """Raise InputError for anything that cannot be logged and read to an end, such as a pipe or
        a device."""
        path = self._path(name)
        if not os.path.isfile(os.path.join(self._of.root, path)):
            raise InputError("not a file; take it out of the folder", file=path)
        check_name(path)


def _shifted(chunk: Chunk, base: int) -> Chunk:
    """Return the chunk with its offsets shifted to continue those of the earlier files."""
    bad = tuple(replace(row, offset=row.offset + base) for row in chunk.bad)
    return replace(chunk, offsets=chunk.offsets + base, stop=chunk.stop + base, bad=bad)
