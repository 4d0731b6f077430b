"""A host's notes on its current step, in memory shared with the process that watches it.

Contract
1. The memory belongs to both processes: the other one can read what the host noted last when the
   host is dead, whatever it died of. It is not a file, and is gone when both processes are.
2. Only the host writes, very often: each note puts some numbers at fixed positions, and takes a
   microsecond or two. Rows that are being noted while the host dies, or while somebody else reads,
   count as not noted.
3. `beat` counts signs of life: the reader sees whether the host still gives any.
"""

from __future__ import annotations

import mmap
import struct
import time
from collections.abc import Sequence
from typing import get_args

from weir.events.batch import Batch
from weir.job.poison import Phase, Step, sample
from weir.reliable.vertex import RowSpan

_PHASES: tuple[Phase, ...] = get_args(Phase)
_BEATS = struct.Struct("<q")
_BEGUN = struct.Struct("<BBiid")
"""The phase, from 1 on (0: it is doing nothing), whether rows were seen, the vertex, pieces, since
when."""
_SPAN = struct.Struct("<iqqBqqq")
"""The fields of a `RowSpan`."""
_AT_BEATS, _AT_SPANS, _AT_BEGUN, _AT_SPAN, _AT_SESSION, _AT_SAMPLE = 0, 8, 16, 64, 128, 256
_TEXT = 768
_SIZE = 1024


class SharedNotes:
    """The `Notes` of a host (`poison.py`) in shared memory, by the module's contract."""

    def __init__(self, vertices: Sequence[str]) -> None:
        self._vertices = tuple(vertices)
        self._numbers = {vertex: number for number, vertex in enumerate(vertices)}
        self._memory = mmap.mmap(-1, _SIZE)
        self._pieces = 0

    # --- the host ----------------------------------------------------------------------------

    def begin(self, vertex: str, phase: Phase, pieces: int) -> None:
        self._pieces = pieces
        number = self._numbers[vertex]
        begun = (_PHASES.index(phase) + 1, 0, number, pieces, time.monotonic())
        _BEGUN.pack_into(self._memory, _AT_BEGUN, *begun)

    def see(self, span: RowSpan, rows: Batch) -> None:
        self._memory[_AT_BEGUN + 1] = 0
        _BEATS.pack_into(self._memory, _AT_SPANS, self._spans + 1)
        _SPAN.pack_into(
            self._memory,
            _AT_SPAN,
            span.input,
            span.first,
            span.end,
            span.claims,
            span.since,
            span.until,
            span.left_out,
        )
        if self._pieces == 1:
            self._write_text(_AT_SAMPLE, sample(rows))
        self._memory[_AT_BEGUN + 1] = 1

    def end(self) -> None:
        self._memory[_AT_BEGUN] = 0

    def open_session(self, session: str) -> None:
        """Note that a host begins: its session, and that it is doing nothing yet."""
        self.end()
        self._write_text(_AT_SESSION, session)

    def beat(self) -> None:
        """Give a sign of life."""
        _BEATS.pack_into(self._memory, _AT_BEATS, self.beats + 1)

    def _write_text(self, at: int, text: str) -> None:
        body = text.encode()[: _TEXT - 2] if at == _AT_SAMPLE else text.encode()
        self._memory[at : at + 2 + len(body)] = len(body).to_bytes(2, "little") + body

    # --- the process that watches over it -----------------------------------------------------

    @property
    def beats(self) -> int:
        return int(_BEATS.unpack_from(self._memory, _AT_BEATS)[0])

    @property
    def _spans(self) -> int:
        """How many spans of rows were noted so far."""
        return int(_BEATS.unpack_from(self._memory, _AT_SPANS)[0])

    @property
    def session(self) -> str:
        return self._text(_AT_SESSION)

    def read(self) -> Step | None:
        """Read what the host is doing, or was doing when it died; None: nothing."""
        phase, seen, vertex, pieces, begun = _BEGUN.unpack_from(self._memory, _AT_BEGUN)
        if not phase:
            return None
        step = Step(
            self._vertices[vertex],
            _PHASES[phase - 1],
            pieces=pieces,
            seconds=time.monotonic() - begun,
        )
        spans = self._spans
        input, first, end, claims, since, until, left_out = _SPAN.unpack_from(
            self._memory, _AT_SPAN
        )
        row = self._text(_AT_SAMPLE) if pieces == 1 else ""
        if not seen or not self._memory[_AT_BEGUN + 1] or self._spans != spans:
            return step
        return Step(
            vertex=step.vertex,
            phase=step.phase,
            input=input,
            first=first,
            end=end,
            claims=bool(claims),
            since=since,
            until=until,
            left_out=left_out,
            pieces=pieces,
            sample=row,
            seconds=step.seconds,
        )

    def _text(self, at: int) -> str:
        size = int.from_bytes(self._memory[at : at + 2], "little")
        return self._memory[at + 2 : at + 2 + size].decode(errors="replace")
