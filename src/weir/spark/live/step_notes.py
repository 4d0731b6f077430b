"""Notes of a host in memory that it shares with the process which looks after it.

Contract
1. The memory belongs to both: what the host wrote last can be read when it is dead, whatever it
   died of. It is no file, and gone with the last of them.
2. One process writes, and does so all the time, for less than a microsecond or two: numbers into
   fixed places. What is being written at the moment of death is noted in part; a place that never
   was counts with no other.
3. `beat` counts signs of life: who reads sees whether the host still gives any.
"""

from __future__ import annotations

import mmap
import struct
import time
from collections.abc import Sequence
from typing import cast, get_args

from weir.events.batch import Batch
from weir.job.poison import Phase, Step, sample
from weir.reliable.vertex import RowSpan

_PHASES: tuple[str, ...] = ("", *get_args(Phase))
_BEATS = struct.Struct("<q")
_BEGUN = struct.Struct("<BBiid")
"""Phase (0: at nothing), whether rows were seen, vertex, pieces, since when."""
_SPAN = struct.Struct("<iqqBqq")
_AT_BEATS, _AT_BEGUN, _AT_SPAN, _AT_SESSION, _AT_SAMPLE = 0, 16, 64, 128, 256
_TEXT = 768
_SIZE = 1024


class SharedNotes:
    """See the module's contract; a `Notes` of `poison.py`."""

    def __init__(self, vertices: Sequence[str]) -> None:
        self._vertices = tuple(vertices)
        self._numbers = {vertex: number for number, vertex in enumerate(vertices)}
        self._memory = mmap.mmap(-1, _SIZE)
        self._pieces = 0

    # --- the host ----------------------------------------------------------------------------

    def begin(self, vertex: str, phase: Phase, pieces: int) -> None:
        self._pieces = pieces
        number = self._numbers[vertex]
        begun = (_PHASES.index(phase), 0, number, pieces, time.monotonic())
        _BEGUN.pack_into(self._memory, _AT_BEGUN, *begun)

    def see(self, span: RowSpan, rows: Batch) -> None:
        _SPAN.pack_into(
            self._memory, _AT_SPAN,
            span.input, span.first, span.end, span.claims, span.since, span.until,
        )  # fmt: skip
        if self._pieces == 1:
            self._write_text(_AT_SAMPLE, sample(rows))
        self._memory[_AT_BEGUN + 1] = 1

    def end(self) -> None:
        self._memory[_AT_BEGUN] = 0

    def open_session(self, session: str) -> None:
        """A host begins."""
        self.end()
        self._write_text(_AT_SESSION, session)

    def beat(self) -> None:
        _BEATS.pack_into(self._memory, _AT_BEATS, self.beats + 1)

    def _write_text(self, at: int, text: str) -> None:
        body = text.encode()[: _TEXT - 2] if at == _AT_SAMPLE else text.encode()
        self._memory[at : at + 2 + len(body)] = len(body).to_bytes(2, "little") + body

    # --- who looks after it ------------------------------------------------------------------

    @property
    def beats(self) -> int:
        return int(_BEATS.unpack_from(self._memory, _AT_BEATS)[0])

    @property
    def session(self) -> str:
        return self._text(_AT_SESSION)

    def read(self) -> Step | None:
        """What the host is at, or was at when it died."""
        phase, seen, vertex, pieces, begun = _BEGUN.unpack_from(self._memory, _AT_BEGUN)
        if not phase:
            return None
        step = Step(
            self._vertices[vertex], cast(Phase, _PHASES[phase]), pieces=pieces,
            seconds=time.monotonic() - begun,
        )  # fmt: skip
        if not seen:
            return step
        input, first, end, claims, since, until = _SPAN.unpack_from(self._memory, _AT_SPAN)
        row = self._text(_AT_SAMPLE) if pieces == 1 else ""
        return Step(
            step.vertex, step.phase, input, first, end, bool(claims), since, until, pieces, row,
            step.seconds,
        )  # fmt: skip

    def _text(self, at: int) -> str:
        size = int.from_bytes(self._memory[at : at + 2], "little")
        return self._memory[at + 2 : at + 2 + size].decode(errors="replace")
