"""`PATH/` is a folder in which whole files appear: one partition, in the order in which they are
found.

Rules
1. Which file comes next is a choice: it is offered for the log, and read when it is accepted. Names
   that begin with `.` or `_` are no files; a file `.end` ends the partition, once all are read.
2. The offset of a file's record is that of its first row, so the next record says where the file
   ended. A file that now ends elsewhere, or began with other rows (`source_integrity.py`), ends the
   job.
3. A file whose rows all lie before the start may be gone.
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

POLL = 0.05


class FolderState(msgspec.Struct, frozen=True, array_like=True):
    """Says where a reading of a folder stands: in the file whose first row has this offset."""

    offset: int = 0
    mark: FileMark = FileMark()
    """What was read of that file."""
    names: bytes = b""
    """The files that were found before it, each with a NUL behind it."""


_decoder = msgspec.msgpack.Decoder(FolderState)


@dataclass(frozen=True, slots=True)
class GrowingFolder(Endless):
    """Names a folder into which whole files are renamed; it is one partition."""

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
        """What was read of the file that it starts in; of all others nothing was."""
        self._names = at.names
        self._seen = {os.fsdecode(name) for name in at.names.split(b"\0")}
        self._file = self._last = ""
        """The file that is read, and the one that was found last."""
        self._at = at
        """Where its first row is."""
        self._chunks: Iterator[tuple[Chunk, FileMark | None]] | None = None
        """What is left of it."""
        self._gave = False
        """Whether any rows of the file were given."""

    def poll(self, most: int, until: int | None, now: float) -> Finding:
        found = self._read(most, until) if self._file else None
        if found is not None:
            return found
        if until is not None:
            if self.offset != until:
                raise gone("has other rows now", self._path(self._last), until)
            return Quiet(self.offset, 0.0)
        new = self._look()
        return Quiet(self.offset, POLL) if new is None else Offer(new)

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
        """Read the next rows of the file; None at its end."""
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
        found = next(self._chunks, None)
        if found is None:
            if rest and not self._gave:
                # Where a file that lies before the start ended the next record says; if there is
                # none, it ended at the start.
                self.offset = self._start if until is None else until
                check_not_shorter(self._partition(path), self.offset - base)
            self._leave(self.offset)
            return None
        self._gave = True
        chunk = _shifted(found[0], base)
        if until is not None and chunk.stop > until:
            raise gone("has other rows now", path, until)
        self.offset = chunk.stop
        state = msgspec.structs.replace(self._at, mark=found[1] or FileMark())
        return Rows(replace(chunk, resume=msgspec.msgpack.encode(state)))

    def _leave(self, offset: int) -> None:
        self.offset, self._file, self._chunks = offset, "", None
        self._mark = FileMark()

    def _partition(self, path: str) -> SourcePartition:
        return open_partition(self._of.source, path, root=self._of.root)

    def _path(self, file: str) -> str:
        return os.path.join(self._of.name, file)

    def _look(self) -> IngressRecord | None:
        """Return the next choice, if there is one."""
        new, ends = self._listed()
        if new is None and ends:
            # A large folder is listed in pieces: a file that came before `.end` may be missed.
            new, _ = self._listed()
        if new is not None:
            self._check_file(new)
            return IngressRecord(self.offset, file=new)
        return IngressRecord(self.offset, ends=True) if ends else None

    def _listed(self) -> tuple[str | None, bool]:
        """Return the first new file that a listing has, if any, and whether it has `.end`."""
        found = os.listdir(self._of.path)
        new = (n for n in found if n not in self._seen and n[0] not in "._")
        return min(new, key=os.fsencode, default=None), ".end" in found

    def _check_file(self, name: str) -> None:
        """Raise InputError for what cannot be logged and read to an end, such as a pipe or a
        device."""
        path = self._path(name)
        if not os.path.isfile(os.path.join(self._of.root, path)):
            raise InputError("it is no file; take it out of the folder", file=path)
        check_name(path)


def _shifted(chunk: Chunk, base: int) -> Chunk:
    """Return the chunk with offsets that go on behind the files before."""
    bad = tuple(replace(row, offset=row.offset + base) for row in chunk.bad)
    return replace(chunk, offsets=chunk.offsets + base, stop=chunk.stop + base, bad=bad)
