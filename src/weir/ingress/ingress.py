"""Turns rows into events, rejects late and bad ones, and computes a partition's CTIs.

Rules (docs/reference/semantics.md, Ingress), for one partition, in offset order
1. `now` is the larger of (largest vs so far − delay) and the largest explicit CTI so far; it only
   grows. An event is late if its vs is below the `now` before it.
2. `late`: fail raises an InputError; drop drops and counts the event; adjust moves its vs to `now`
   and keeps its end, or drops it if no time is left. Dropped rows form the LATE stream.
3. A row is bad if its start is NULL or infinite, its end is not after its start, its lifetime goes
   beyond the largest time, or the reader could not read it. `bad`: fail raises an InputError; skip
   drops and counts the row. Bad rows form the BAD stream, and never move `now`.
4. The result depends on the partition's rows alone, never on how they are cut into chunks. Of two
   errors, the one with the smaller offset is raised.
5. The partition's CTI after a chunk is `now`; at the end of a finite partition it is `OPEN`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from weir.errors import InputError
from weir.events.batch import LATEST, OPEN, START, Batch, Int64s, empty_batch, ticks, times
from weir.events.types import BIGINT, STRING, TIMESTAMP
from weir.files.chunks import BadRow, Chunk, shown
from weir.files.text_chunks import told_row
from weir.files.time_units import in_ticks
from weir.ingress.ingress_loops import judge
from weir.kernels.expressions.evaluation import shown_value
from weir.plan.durations import duration_text, rounded_up
from weir.plan.operators import Source, schema
from weir.plan.operators.source import PARTITION_BITS
from weir.plan.program import LATE_ORIGIN
from weir.plan.schema import Schema

Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Admitted:
    """The result of a chunk: its events, the CTI after them, and the rejected rows."""

    batch: Batch
    cti: int
    late: Batch
    bad: Batch


def late_schema(source: Source) -> Schema:
    """Return the columns of the LATE stream: the row's columns with its original lifetime, where
    the row stood, and the time that the partition had reached."""
    below = schema(source)
    origin = zip(LATE_ORIGIN, (STRING, BIGINT, BIGINT, below.time), strict=True)
    return Schema((*below.columns, *origin), below.time)


def bad_schema(source: Source) -> Schema:
    """Return the columns of the BAD stream: where the row stood, its text, and what is wrong.

    Bad rows have no lifetime. As events they are points at their offset; outputs leave this out.
    """
    origin = (("file", STRING), ("offset", BIGINT), ("line", BIGINT), ("column", STRING))
    return Schema((*origin, ("row", STRING), ("reason", STRING)), BIGINT)


class Ingress:
    """Admits the rows of one partition, by the module's rules."""

    def __init__(self, source: Source, partition: int, file: str, *, now: int = START) -> None:
        self.source, self.partition, self.file = source, partition, file
        self.now = now
        """The event time that the partition has reached (rule 1)."""
        self.next_offset = 0
        """The offset of the next row to feed."""
        self.event_count = 0
        """The number of admitted rows."""
        self.late_count = 0
        """The number of late rows that were dropped."""
        self.bad_count = 0
        """The number of bad rows."""
        self._explicit = START
        """The largest explicit CTI so far, for messages only."""
        self._no_late = empty_batch(late_schema(source).types)
        self._no_bad = empty_batch(bad_schema(source).types)

    def feed(self, chunk: Chunk) -> Admitted:
        """Admit the next rows of the partition."""
        if chunk.judged is not None:
            return self._judged(chunk, *chunk.judged)
        at_once = self._all_good(chunk)
        if at_once is not None:
            return at_once
        vs, ve, bad = self._lifetimes(chunk)
        before = self._now_before(chunk, vs, bad.mask)
        late = ~bad.mask & (vs < before[:-1])
        self._raise_first(chunk=chunk, bad=bad, late=late, vs=vs, before=before)
        self._explicit = max((self._explicit, *chunk.cti_times.tolist()))
        admitted_vs, dropped = self._late_rows(vs, ve, late, before)
        self.now = int(before[-1])
        self.next_offset = chunk.stop
        self.bad_count += len(bad.rows)
        self.late_count += int(dropped.sum())
        kept = ~(bad.mask | dropped)
        self.event_count += int(kept.sum())
        batch = self._batch(chunk, admitted_vs, ve)
        return Admitted(
            batch if kept.all() else batch.take(kept),
            self.now,
            self._late_batch(chunk=chunk, vs=vs, ve=ve, dropped=dropped, before=before),
            self._bad_batch(bad.rows),
        )

    def end(self) -> int:
        """Note the end of the partition, and return its last CTI."""
        self.now = OPEN
        return self.now

    def snapshot(self) -> dict[str, int]:
        """Return the state of the ingress by name, for `load`."""
        return {
            "now": self.now,
            "next_offset": self.next_offset,
            "event_count": self.event_count,
            "late_count": self.late_count,
            "bad_count": self.bad_count,
        }

    def load(self, state: Mapping[str, int]) -> None:
        self.now, self.next_offset = state["now"], state["next_offset"]
        self.event_count = state["event_count"]
        self.late_count, self.bad_count = state["late_count"], state["bad_count"]

    def _all_good(self, chunk: Chunk) -> Admitted | None:
        """Admit a chunk in one pass if every row is a good event on time, the usual case; else
        return None."""
        options = self.source.options
        if chunk.bad or len(chunk.cti_indexes):
            return None
        vs = _ticks(chunk, options.vs, options.unit)
        lifetime = 1 if options.lifetime is None else options.lifetime
        ends = options.ve is not None
        ve = np.empty(len(vs), dtype=np.int64)
        if options.ve is not None:
            ve = _ticks(chunk, options.ve, options.unit)
        good, now = judge(vs, ve, ends, lifetime, options.delay, self.now)
        if not good:
            return None
        self.now, self.next_offset = now, chunk.stop
        self.event_count += len(vs)
        return Admitted(self._batch(chunk, vs, ve), now, self._no_late, self._no_bad)

    def _judged(self, chunk: Chunk, vs: Int64s, ve: Int64s) -> Admitted:
        """Admit rows that another ingress has already judged, when it had reached the chunk's
        CTIs."""
        self.now = max((self.now, *chunk.cti_times.tolist()))
        self.next_offset = chunk.stop
        self.event_count += len(vs)
        return Admitted(self._batch(chunk, vs, ve), self.now, self._no_late, self._no_bad)

    # --- steps of feed ---------------------------------------------------------------------

    def _lifetimes(self, chunk: Chunk) -> tuple[Int64s, Int64s, _Bad]:
        """Return starts and ends, and which rows are bad."""
        options = self.source.options
        vs = _ticks(chunk, options.vs, options.unit)
        if options.ve is not None:
            ve = _ticks(chunk, options.ve, options.unit)
            wrong_end = (ve <= vs) | ((ve > LATEST) & (ve != OPEN))
        else:
            lifetime = 1 if options.lifetime is None else options.lifetime
            # OPEN would mean that the event never ends.
            wrong_end = vs >= OPEN - lifetime
            ve = np.where(wrong_end, OPEN, vs) + np.where(wrong_end, 0, lifetime)
        no_start = (vs > LATEST) | (vs < -LATEST)
        mask = no_start | wrong_end
        if not mask.any():
            return vs, ve, _Bad(mask, chunk.bad)
        early = ve <= vs
        bad_rows = [
            self._bad_row(chunk, int(row), no_start=bool(no_start[row]), early=bool(early[row]))
            for row in np.flatnonzero(mask)
        ]
        together = sorted((*chunk.bad, *bad_rows), key=lambda b: b.offset)
        return vs, ve, _Bad(mask, together)

    def _bad_row(self, chunk: Chunk, row: int, *, no_start: bool, early: bool) -> BadRow:
        options = self.source.options
        names = chunk.rows.schema.names
        values = {n: shown_value(chunk.rows.column(n)[row]) for n in names}
        if no_start:
            column, reason = options.vs, f"a start must be a time, came {values[options.vs]}"
        elif options.ve is not None:
            column = options.ve
            wrong = f"not after the start {values[options.vs]}" if early else "beyond ±2⁶² ticks"
            reason = f"the end {values[column]} is {wrong}"
        else:
            column, reason = options.vs, f"no time is left after the start {values[options.vs]}"
        offset, line = int(chunk.offsets[row]), chunk.line(row)
        return BadRow(
            offset=offset, line=line, column=column, text=shown(repr(values)), reason=reason
        )

    def _now_before(self, chunk: Chunk, vs: Int64s, bad: Bools) -> Int64s:
        """Return `now` before each row and after the last one."""
        delay = self.source.options.delay
        now = np.full(len(vs) + 1, START, dtype=np.int64)
        now[0] = self.now
        # vs − delay, or the smallest time if that is below it
        reached = np.where(bad, START, np.maximum(vs, START + delay) - delay)
        now[1:] = reached
        np.maximum.at(now, chunk.cti_indexes, chunk.cti_times)
        return np.maximum.accumulate(now)

    def _raise_first(
        self, chunk: Chunk, bad: _Bad, late: Bools, vs: Int64s, before: Int64s
    ) -> None:
        errors: list[tuple[int, InputError]] = []
        if bad.rows and self.source.options.bad == "fail":
            row = bad.rows[0]
            error = InputError(told_row(row), file=self.file, line=row.line, column=row.column)
            errors.append((row.offset, error))
        if self.source.options.late == "fail" and late.any():
            at = int(np.argmax(late))
            errors.append((int(chunk.offsets[at]), self._late_error(chunk, at, vs, before)))
        if errors:
            raise min(errors, key=lambda e: e[0])[1]

    def _late_error(self, chunk: Chunk, row: int, vs: Int64s, before: Int64s) -> InputError:
        start, now = int(vs[row]), int(before[row])
        time, column = schema(self.source).time, self.source.options.vs
        start_text, now_text = (shown_value(pa.scalar(t, BIGINT).cast(time)) for t in (start, now))
        lag = now + self.source.options.delay - start
        text = duration_text(rounded_up(lag)) if time == TIMESTAMP else str(lag)
        admits = f"delay = {text} would admit it, "
        if now in (self._explicit, *chunk.cti_times[chunk.cti_indexes <= row]):
            admits = "a CTI in the data rules it out; "
        message = (
            f"late: the event's start {start_text} is before {now_text}, which the partition "
            f"had reached (offset {chunk.offsets[row]}); {admits}late = 'drop' or 'adjust' would "
            "go on without it, or move it"
        )
        return InputError(message, file=self.file, line=chunk.line(row), column=column)

    def _late_rows(
        self, vs: Int64s, ve: Int64s, late: Bools, before: Int64s
    ) -> tuple[Int64s, Bools]:
        """Return the starts of all events, and which late rows are dropped."""
        if self.source.options.late == "drop" or not late.any():
            return vs, late
        adjusted = np.where(late, before[:-1], vs)
        return adjusted, late & (ve <= adjusted)

    # --- batches ---------------------------------------------------------------------------

    def _batch(self, chunk: Chunk, vs: Int64s, ve: Int64s) -> Batch:
        columns = self._payload(chunk)
        partition = (self.source.index << PARTITION_BITS) | self.partition
        origin = (np.full(len(vs), partition, dtype=np.int64), chunk.offsets)
        return Batch(vs, ve, columns, origin)

    def _payload(self, chunk: Chunk) -> tuple[pa.Array, ...]:
        """Return the payload columns; NULLs for a column that is not needed."""
        rows, read = chunk.rows, frozenset(chunk.rows.schema.names)
        return tuple(
            rows.column(name) if name in read else pa.nulls(rows.num_rows, dtype)
            for name, dtype in schema(self.source).columns
        )

    def _late_batch(
        self, chunk: Chunk, vs: Int64s, ve: Int64s, dropped: Bools, before: Int64s
    ) -> Batch:
        if not dropped.any():
            return self._no_late
        rows = np.flatnonzero(dropped)
        payload = (column.take(pa.array(rows)) for column in self._payload(chunk))
        origin = (
            pa.repeat(self.file, len(rows)),
            pa.array(chunk.offsets[rows]),
            pa.array([chunk.line(int(row)) for row in rows], BIGINT),
            times(before[rows], schema(self.source).time),
        )
        return Batch(vs[rows], ve[rows], (*payload, *origin))

    def _bad_batch(self, bad: Sequence[BadRow]) -> Batch:
        if not bad:
            return self._no_bad
        offsets = np.array([b.offset for b in bad], dtype=np.int64)
        columns = (
            pa.repeat(self.file, len(bad)),
            pa.array(offsets),
            pa.array([b.line for b in bad], BIGINT),
            pa.array([b.column for b in bad], STRING),
            pa.array([b.text for b in bad], STRING),
            pa.array([b.reason for b in bad], STRING),
        )
        return Batch(offsets, offsets + 1, columns)


def _ticks(chunk: Chunk, column: str, unit: str | None) -> Int64s:
    values = chunk.rows.column(column)
    numbers = ticks(values)
    largest = numbers == OPEN
    if np.count_nonzero(largest) > values.null_count:  # only NULL is open, not this number
        numbers = np.where(largest & np.asarray(values.is_valid()), OPEN - 1, numbers)
    return in_ticks(numbers, unit)


@dataclass(frozen=True, slots=True)
class _Bad:
    """The bad rows of a chunk: a mask over the rows that could be read, and all bad rows in offset
    order."""

    mask: Bools
    rows: Sequence[BadRow]
