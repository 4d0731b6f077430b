"""Runs the serial loop over all events, and compares it with the files that the engine wrote.

Digests are compared, however many rows there are. The loop's rows are kept with their events and
lines: up to `HELD` rows in memory, the others in files. If the digests differ, the first row that
only one side has is looked up there.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from weir.events.batch import OPEN, Batch
from weir.events.value_text import parse_timestamps
from weir.files.output_diff import OnlyHere, first_difference, total_digest
from weir.files.saved_outputs import SavedOutput, open_outputs
from weir.files.sinks import json_values
from weir.files.writers import OutputWriter
from weir.plan.schema import Schema
from weir.reliable.digest import Digest, digest
from weir.shadow.comparison import NOTHING, SerialDifference
from weir.shadow.serial_loop import HandlerLine, LogEvent, LoopFailed, LoopRow, SerialLoop

LocatedDifference: TypeAlias = tuple[SerialDifference, "int | None"]
"""A difference, and the loop's number of the event, if it is known."""


class WholeLoop:
    """Runs a loop over a sequence of events, and keeps the rows that it emits.

    `shapes` has the schemas of the written files, by stream. The loop's own files go to `folder`.
    """

    def __init__(self, loop: SerialLoop, shapes: Mapping[str, Schema], folder: Path) -> None:
        self._loop = loop
        self._rows: dict[str, LoopRows] = {}
        for number, (name, shape) in enumerate(shapes.items()):
            (own := folder / str(number)).mkdir()
            self._rows[name] = LoopRows(name, shape, own)

    def take(self, event: LogEvent) -> LocatedDifference | None:
        """Process an event; return a difference if the engine cannot have done the same.

        The engine has already processed the event without an error.
        """
        try:
            emitted = self._loop.take(event)
        except LoopFailed as failed:
            return _fails(failed), failed.event
        for row in emitted:
            if row.name not in self._rows:
                what = f"`{row.name}`"
                return SerialDifference(what, str(row.values), NOTHING, row.at), row.event
            self._rows[row.name].add(row)
        return None

    def difference(self, written: Mapping[str, str]) -> LocatedDifference | None:
        """Compare the written files, by stream, with the rows that were emitted."""
        for name, path in written.items():
            if (located := self._rows[name].difference(path)) is not None:
                return located
        return None


def _fails(failed: LoopFailed) -> SerialDifference:
    return SerialDifference("", f"fails: {failed.cause}", "goes on", failed.at)


HELD = 50_000


class LoopRows:
    """Keeps the rows of one stream, with files in `folder`; see the module's text."""

    def __init__(self, name: str, shape: Schema, folder: Path) -> None:
        self.name, self._shape, self._folder = name, shape, folder
        self._held: list[LoopRow] = []
        self._digest = Digest()
        self._files: list[Path] = []

    def add(self, row: LoopRow) -> None:
        self._held.append(row)
        if len(self._held) == HELD:
            file = self._folder / f"{len(self._files)}.arrow"
            self._digest += digest(self._batch(self._held))
            record = self._record(self._held)
            with pa.ipc.new_file(os.fspath(file), record.schema) as writer:
                writer.write_batch(record)
            self._files.append(file)
            self._held = []

    def difference(self, path: str) -> tuple[SerialDifference, int | None] | None:
        """Compare with the rows of an output; return the difference, or None.

        It comes with the number of the event whose row the engine lacks, if there is one.
        """
        (saved,) = open_outputs([path])
        total = self._digest + digest(self._batch(self._held))
        if total_digest(saved, _ignored) == total:
            return None
        loops = self._folder / "rows.arrow"
        writer = OutputWriter(loops, self._shape)
        for batch, _ in self._batches():
            writer.write(0, batch)
        writer.close(total)
        (mine,) = open_outputs([os.fspath(loops)])
        rows = first_difference(saved, mine, _ignored)
        assert rows is not None, "outputs with different digests have different rows"
        event, at = self._emitted_at(mine, rows.only_b)
        what, sides = f"`{self.name}`", (_shown(rows.only_b), _shown(rows.only_a))
        return SerialDifference(what, *sides, at), event

    def _emitted_at(
        self, mine: SavedOutput, only: OnlyHere
    ) -> tuple[int | None, HandlerLine | None]:
        """Find the event and the line of the first row that only the loop has."""
        if not only.rows:
            return None, None
        expected = only.rows[0]
        time = _ticks(expected["vs"])
        for batch, lines in self._batches():
            at = np.flatnonzero(batch.vs == time)
            record = mine.form.record(batch.take(at))
            columns = zip(*(json_values(column) for column in record.columns), strict=True)
            for row, values in zip(at.tolist(), columns, strict=True):
                if dict(zip(record.schema.names, values, strict=True)) == expected:
                    return lines[row]
        return None, None

    def _batches(self) -> Iterator[tuple[Batch, Sequence[tuple[int, HandlerLine]]]]:
        """Yield all rows again, with the event and the line of each."""
        for file in self._files:
            with pa.OSFile(os.fspath(file)) as opened:
                record = pa.ipc.open_file(opened).get_batch(0)
            vs, ve, *columns, events, handlers, files, lines = record.columns
            emitted = zip(*(c.to_pylist() for c in (events, handlers, files, lines)), strict=True)
            batch = Batch(vs.to_numpy(), ve.to_numpy(), tuple(columns))
            yield batch, [(event, HandlerLine(*line)) for event, *line in emitted]
        yield self._batch(self._held), [(row.event, row.at) for row in self._held]

    def _batch(self, rows: Sequence[LoopRow]) -> Batch:
        ends = [OPEN if row.ve is None else row.ve for row in rows]
        return Batch(
            np.array([row.vs for row in rows], dtype=np.int64),
            np.array(ends, dtype=np.int64),
            tuple(
                pa.array([row.values[i] for row in rows], dtype)
                for i, dtype in enumerate(self._shape.types)
            ),
        )

    def _record(self, rows: Sequence[LoopRow]) -> pa.RecordBatch:
        batch = self._batch(rows)
        lines = (
            pa.array([row.event for row in rows], pa.int64()),
            pa.array([row.at.handler for row in rows], pa.string()),
            pa.array([row.at.file for row in rows], pa.string()),
            pa.array([row.at.line for row in rows], pa.int64()),
        )
        arrays = [pa.array(batch.vs), pa.array(batch.ve), *batch.columns, *lines]
        return pa.RecordBatch.from_arrays(arrays, names=[str(n) for n in range(len(arrays))])


def _shown(only: OnlyHere) -> str:
    if not only.rows:
        return NOTHING
    more = len(only.rows) - 1 + only.more
    return f"{only.rows[0]}" + (f", and {more:,} more rows at that time" if more else "")


def _ticks(time: object) -> int:
    """Return the ticks of a time in JSON's form."""
    return time if isinstance(time, int) else int(parse_timestamps(pa.array([time]))[0].value)


def _ignored(rows: int) -> None:
    """Ignore a number of rows that were read."""
