"""A source as a machine: decides what is read, logged and claimed, and the order of rows.

Rules
1. A source with a log first replays the existing records, from the one at which it resumes. It
   reads one record ahead. Before a record takes effect, the source gives exactly the rows before
   the record's offset. So it repeats what it did before.
2. At the end of the log it polls its connector. Rows that can be read again are given at once. An
   offer of the connector is appended to the log; when it is durable, the connector accepts it, and
   it takes effect.
3. If another instance's record already has the next number, the source writes nothing, replays the
   existing records, and polls again. The connector then repeats its offer if that is still needed.
4. A partition that has been silent for `idle` claims the clock's time less `idle`, by a record that
   takes effect like any other. Silence is measured up to the beginning of the last poll, because
   the source has not seen what came later (the process may have been suspended). A missing
   partition counts as silent; when it appears, its time starts at its last claim.
5. Each chunk carries where to resume: the last record that took effect, and the connector's state.
   Claims before a source's first offset are in its snapshot already, and are not repeated.
6. If rows come without a record before them (`Connector.has_free_rows`), one instance could log a
   claim before a row that another instance still gives. So only one may claim, the *owner*:
   a. Before it polls at the end of the log, an instance takes over the log with a record of its
      incarnation. An instance that finds a record of a later incarnation has fallen behind
      (`LogCollected`).
   b. An owner reads the log again before it gives rows, if its last look was half of `idle` ago.
   c. It first claims `idle` after it took over the log, or later. So when it claims, it has already
      seen every row that an earlier owner could still give. These times are measured with a
      monotonic clock.
7. A failed request to the store is retried for `patience` seconds; then, or if the failure is
   permanent, the source fails.
8. The partition ends with a record, or when the connector ends it. Records after its end mean that
   rows are gone.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, replace
from typing import TypeAlias, TypeVar

import msgspec
import numpy as np
import pyarrow as pa

from weir.errors import RunError
from weir.files.chunks import Chunk
from weir.ingress.ingress_log import IngressLog, LogCollected, Logged
from weir.ingress.source_integrity import gone
from weir.ingress.source_signals import (
    Accept,
    Accepted,
    Appended,
    Finding,
    Finished,
    Give,
    IngressRecord,
    LogAnswer,
    LogCommand,
    LogTalk,
    Offer,
    Open,
    Opened,
    Poll,
    Quiet,
    RecordRead,
    RecordsListed,
    Rows,
    SourceCommand,
    SourceSignal,
    StoreFailed,
    Wait,
)
from weir.plan.operators import Source
from weir.reliable.objects import ObjectRef

PATIENCE, RETRY = 30.0, 0.2
"""How long a source retries failed requests to the store, and the pause between retries, in
seconds."""

_T = TypeVar("_T")
_Steps: TypeAlias = Generator[SourceCommand, SourceSignal | None, _T]


class Resume(msgspec.Struct, frozen=True, array_like=True):
    """Where a source resumes: a record of its log, and its connector's state there."""

    record: ObjectRef | None
    state: bytes | None


_decoder = msgspec.msgpack.Decoder(Resume)


def log_record(resume: bytes | None) -> ObjectRef | None:
    """Return the first record of its log that a source needs if it resumes here. None: there is no
    log, or the source has not reached its first record."""
    return None if resume is None else _decoder.decode(resume).record


@dataclass(frozen=True, slots=True)
class SourceStart:
    """Where a source starts."""

    offset: int = 0
    """The offset of the first row to give."""
    resume: bytes | None = None
    """The resume state of the last chunk before."""
    log: IngressLog | None = None
    """The log, starting at the record in `resume` or at the first record; None if there is none."""
    incarnation: int = 0
    """The number of the instance, with which it owns the log (rule 6)."""
    owns_log: bool = False
    """Whether the connector gives rows without a record before them (rule 6)."""


class SourceMachine:
    """Runs one source by the module's rules. `next` takes the answer to the last command, and
    returns the next command."""

    def __init__(
        self,
        source: Source,
        partition: str,
        start: SourceStart,
        size: int,
        *,
        patience: float = PATIENCE,
    ) -> None:
        self._source, self._partition, self._size = source, partition, size
        self._patience = patience
        """How long failed requests to the store are retried, in seconds."""
        resume = Resume(None, None) if start.resume is None else _decoder.decode(start.resume)
        self._start, self._log = start.offset, start.log
        """The offset of the first row to give, and the log, if there is one."""
        self._record, self._state = resume.record, resume.state
        """The last record that took effect, and the connector's state after it."""
        self._offset = 0
        """The offset of the next row."""
        idle = source.options.idle
        self._idle = None if idle is None or self._log is None else idle / 1e6
        """Seconds of silence before a claim; None if the source never claims."""
        self._heard = 0.0
        """When something last came or was claimed."""
        self._owns_log = start.owns_log and self._idle is not None
        """Whether rule 6 holds for this source."""
        self._incarnation, self._is_owner = start.incarnation, False
        """The number of this instance, and whether its own record made it the owner."""
        self._looked = 0.0
        """The last time at which nobody else had written to the log."""
        self._now, self._clock = 0.0, 0
        """The monotonic seconds and the clock's ticks at the last call of `next`."""
        self._polled, self._polled_clock = 0.0, 0
        """The same two times at the beginning of the last poll."""
        self._over = False
        """Whether the partition has ended."""
        self._steps = self._run()

    def next(self, signal: SourceSignal | None, now: float, clock: int) -> SourceCommand:
        """Take the answer to the last command (None at first, or if it needs none), and return the
        next command. `now` is in seconds from any start, `clock` in ticks. The last command is
        `Give(None)`."""
        self._now, self._clock = now, clock
        return self._steps.send(signal)

    def _run(self) -> _Steps[None]:
        if self._log is not None:
            yield from self._talk(self._log.begin())
        opened = yield Open(self._state, self._start)
        assert isinstance(opened, Opened)
        self._offset = opened.offset
        while not self._over:
            yield from self._replay()
            if not self._over and (yield from self._own()):
                yield from self._go_on()
        yield Give(None)

    # --- rows --------------------------------------------------------------------------------

    def _go_on(self) -> _Steps[None]:
        """Poll the connector by rule 2, until the end or until another instance has written a
        record."""
        self._heard = self._now
        while not self._over:
            match (yield from self._poll()):
                case Offer(record):
                    if not (yield from self._append(record)):
                        return
                case Quiet(_, again_in, _, why):
                    claim = self._due_claim()
                    if claim is None:
                        yield Wait(again_in, why)
                    elif not (yield from self._append(IngressRecord(self._offset, claim=claim))):
                        return
                case Finished():
                    self._over = True
                case Rows(chunk):
                    yield from self._look()
                    yield from self._give(chunk)

    def _rows_until(self, offset: int) -> _Steps[None]:
        """Give all rows before the offset of a record."""
        while self._offset < offset:
            match (yield from self._poll(offset)):
                case Rows(chunk):
                    yield from self._give(chunk)
                case Quiet(_, again_in, _, why):
                    if self._offset < offset:
                        yield Wait(again_in, why)
                case Finished():
                    raise gone("was truncated", self._partition, offset)
                case Offer():
                    raise AssertionError("a connector offers nothing before the end of the log")

    def _poll(self, until: int | None = None) -> _Steps[Finding]:
        self._polled, self._polled_clock = self._now, self._clock
        finding = yield Poll(self._size, until)
        assert isinstance(finding, Rows | Offer | Quiet | Finished)
        if isinstance(finding, Quiet):
            self._offset = finding.offset
        if not isinstance(finding, Quiet) or finding.heard:
            self._heard = self._now
        return finding

    def _give(self, chunk: Chunk) -> _Steps[None]:
        self._offset, self._state = chunk.stop, chunk.resume
        if self._record is not None or chunk.resume is not None:
            resume = msgspec.msgpack.encode(Resume(self._record, chunk.resume))
            chunk = replace(chunk, resume=resume)
        yield Give(chunk)

    # --- the log -----------------------------------------------------------------------------

    def _replay(self) -> _Steps[None]:
        """Replay the existing records (rule 1)."""
        logged = yield from self._read()
        while logged is not None and not self._over:
            following = yield from self._read()
            yield from self._rows_until(logged.record.offset)
            stop = None if following is None else following.record.offset
            yield from self._take(logged, stop=stop)
            logged = following

    def _read(self) -> _Steps[Logged | None]:
        return None if self._log is None else (yield from self._talk(self._log.read()))

    def _append(self, record: IngressRecord) -> _Steps[bool]:
        """Append a record (rule 3); return whether it was written."""
        assert self._log is not None
        self._heard = self._looked = self._now
        ref = yield from self._talk(self._log.append(record))
        if ref is not None:
            yield from self._take(Logged(record, ref), own=True)
        return ref is not None

    def _take(self, logged: Logged, *, own: bool = False, stop: int | None = None) -> _Steps[None]:
        """Let a record take effect."""
        record, again = logged.record, logged.ref == self._record
        if self._owns_log and record.owner > self._incarnation:
            raise self._overtaken(record.owner)
        accepted = yield Accept(record, own, stop)
        assert isinstance(accepted, Accepted)
        self._record = logged.ref
        self._over = record.ends
        if record.claim is not None:
            if record.offset < self._offset and not again:
                raise LogCollected(f"a claim of the log of {self._partition} is before its rows")
            if record.offset >= self._start:
                yield from self._give(self._claiming(record.claim, accepted.state))
        self._offset, self._state = accepted.offset, accepted.state

    def _own(self) -> _Steps[bool]:
        """Take over the log (rule 6a); return whether this instance may go on at the end of the
        log."""
        if not self._owns_log or self._is_owner:
            return True
        record = IngressRecord(self._offset, owner=self._incarnation)
        self._is_owner = yield from self._append(record)
        return self._is_owner

    def _look(self) -> _Steps[None]:
        """Read the log again if that is due (rule 6b)."""
        if not self._owns_log or self._idle is None or self._now - self._looked < self._idle / 2:
            return
        looked = self._now
        logged = yield from self._read()
        if logged is not None:
            raise self._overtaken(logged.record.owner)
        self._looked = looked

    def _overtaken(self, by: int) -> LogCollected:
        return LogCollected(f"incarnation {by} has taken over the log of {self._partition}")

    def _due_claim(self) -> int | None:
        """Return the time to claim now (rule 4), or None."""
        if self._idle is None or self._polled - self._heard < self._idle:
            return None
        return self._polled_clock - int(self._idle * 1e6)

    def _claiming(self, claim: int, state: bytes | None) -> Chunk:
        """Make a chunk without rows that claims a time."""
        none, zero = np.empty(0, dtype=np.int64), np.zeros(1, dtype=np.int64)
        rows = pa.RecordBatch.from_pylist([], schema=pa.schema(list(self._source.declared)))
        return Chunk(
            rows=rows,
            offsets=none,
            stop=self._offset,
            lines=none,
            cti_times=np.array([claim]),
            cti_indexes=zero,
            resume=state,
        )

    # --- the store ---------------------------------------------------------------------------

    def _talk(self, talk: LogTalk[_T]) -> _Steps[_T]:
        """Run a conversation of the log with the store, with retries."""
        try:
            command = next(talk)
            while True:
                command = talk.send((yield from self._asked(command)))
        except StopIteration as done:
            result: _T = done.value
            return result

    def _asked(self, command: LogCommand) -> _Steps[LogAnswer]:
        until = self._now + self._patience
        while True:
            answer = yield command
            if not isinstance(answer, StoreFailed):
                assert isinstance(answer, RecordRead | Appended | RecordsListed)
                return answer
            if answer.lasts or self._now > until:
                raise RunError(answer.why)
            yield Wait(RETRY, answer.why)
