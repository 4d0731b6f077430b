"""A source is a machine that decides what is read, logged, claimed and given, and in which order.

Rules
1. A source with a log first goes through the records that are there, from the one that it resumes
   from. It reads one record ahead, and gives the rows before a record's offset, and no others,
   before the record takes effect. So it repeats what it did before.
2. At the end of the log it polls its connector. Rows that can be read again are given at once.
   What the connector offers is appended, accepted when it is durable, and takes effect then.
3. When another instance's record stands under the next number, it writes nothing, goes through the
   records that are there, and polls again; the connector then offers again what still has to be
   logged.
4. A partition that has been silent for `idle` claims the clock's time less `idle`: a record, which
   takes effect like any other. Silence counts up to the time at which the last poll began: the
   source has not looked for what came later (if the process stood still, say). A missing
   partition counts as silent; when it appears, its time starts at its last claim.
5. Each chunk says where to resume: the last record that took effect, and the connector's state.
   Claims before the offset at which a source starts were made before its snapshot.
6. Where rows come without a record before them (`Connector.has_free_rows`), a claim of one
   instance could stand before a row that another gives. So only one may claim, the *owner*:
   a. An instance takes the log over with a record of its incarnation before it polls at the end of
      the log. One that finds a record of a later incarnation has fallen behind (`LogCollected`).
   b. An owner that has not looked into the log for half of `idle` does so before it gives rows.
   c. It claims no sooner than `idle` after it took the log over.
   So when it claims, every row that an earlier owner could still give has come, and it has seen it.
   These times are measured by a clock that does not jump.
7. A request at which the store fails is repeated for `patience` seconds, unless the failure lasts;
   then the source fails.
8. The partition ends by a record, or when the connector ends it. Records that stand after its end
   mean that rows are gone.
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
"""Seconds for which a source asks a store that fails, and between two times."""

_T = TypeVar("_T")
_Steps: TypeAlias = Generator[SourceCommand, SourceSignal | None, _T]


class Resume(msgspec.Struct, frozen=True, array_like=True):
    """Says where a source goes on: at this record of its log, with this state of its connector."""

    record: ObjectRef | None
    state: bytes | None


_decoder = msgspec.msgpack.Decoder(Resume)


def log_record(resume: bytes | None) -> ObjectRef | None:
    """Return the first record of its log that a source needs when it resumes here. None: it has no
    log, or stands before its first record."""
    return None if resume is None else _decoder.decode(resume).record


@dataclass(frozen=True, slots=True)
class SourceStart:
    """Says where a source starts."""

    offset: int = 0
    """The offset of the first row that is given."""
    resume: bytes | None = None
    """The resume state that the last chunk before it carried."""
    log: IngressLog | None = None
    """The log, from the record on that `resume` names, or the first; None: there is none."""
    incarnation: int = 0
    """The number of the instance, by which it owns the log; see rule 6."""
    owns_log: bool = False
    """Whether its connector has rows that no record stands before; see rule 6."""


class SourceMachine:
    """Runs one source by the module's rules: `next` takes the answer to its last command and gives
    the next."""

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
        """Seconds for which a store that fails is asked again."""
        resume = Resume(None, None) if start.resume is None else _decoder.decode(start.resume)
        self._start, self._log = start.offset, start.log
        """The offset of the first row that is given, and the log, if there is one."""
        self._record, self._state = resume.record, resume.state
        """The last record that took effect, and the connector's state that goes with it."""
        self._offset = 0
        """The offset of the next row."""
        idle = source.options.idle
        self._idle = None if idle is None or self._log is None else idle / 1e6
        """Seconds of silence before a claim; None: the source never claims."""
        self._heard = 0.0
        """When something came last, or was claimed."""
        self._owns_log = start.owns_log and self._idle is not None
        """Whether rule 6 holds for this source."""
        self._incarnation, self._is_owner = start.incarnation, False
        """The number of this instance, and whether its own record made it the owner."""
        self._looked = 0.0
        """When it was last known that nobody else has written to the log."""
        self._now, self._clock = 0.0, 0
        """The seconds and the clock's ticks at the last call of `next`."""
        self._polled, self._polled_clock = 0.0, 0
        """The same when the last poll began."""
        self._over = False
        """Whether the partition has ended."""
        self._steps = self._run()

    def next(self, signal: SourceSignal | None, now: float, clock: int) -> SourceCommand:
        """Take the answer to the last command (None at first, and when nothing is answered); `now`
        is in seconds from anywhere, `clock` in ticks. `Give(None)` is the last command."""
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
        """Poll the connector by rule 2, until somebody else's record is there, or the end."""
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
        """Give all rows before an offset at which a record stands."""
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
        """Go through the records that are there, by rule 1."""
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
        """Append a record by rule 3; return whether it was written."""
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
        """Take the log over by rule 6a; return whether this instance may go on at the end of the
        log."""
        if not self._owns_log or self._is_owner:
            return True
        record = IngressRecord(self._offset, owner=self._incarnation)
        self._is_owner = yield from self._append(record)
        return self._is_owner

    def _look(self) -> _Steps[None]:
        """Look into the log by rule 6b."""
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
        """Return the time to claim now by rule 4, if any."""
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
        """Let the log talk with the store; ask again for what fails."""
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
