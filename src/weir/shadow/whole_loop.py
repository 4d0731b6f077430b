"""Runs the serial loop over all events, and compares it with the files that the engine wrote."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TypeAlias

from weir.plan.schema import Schema
from weir.shadow.comparison import NOTHING, SerialDifference
from weir.shadow.loop_rows import LoopRows
from weir.shadow.serial_loop import LogEvent, LoopFailed, SerialLoop

LocatedDifference: TypeAlias = tuple[SerialDifference, "int | None"]
"""What differs, and the number of the event, as the loop counts them, if it is known."""


class WholeLoop:
    """Runs a loop over a stretch of events, and holds what it emits: for files that have these
    shapes, by stream. Its own files are in `folder`."""

    def __init__(self, loop: SerialLoop, shapes: Mapping[str, Schema], folder: Path) -> None:
        self._loop = loop
        self._rows: dict[str, LoopRows] = {}
        for number, (name, shape) in enumerate(shapes.items()):
            (own := folder / str(number)).mkdir()
            self._rows[name] = LoopRows(name, shape, own)

    def take(self, event: LogEvent) -> LocatedDifference | None:
        """Take an event; return what the engine, which has gone on, cannot have done."""
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
        """Compare the files that were written, by stream, with what was emitted."""
        for name, path in written.items():
            if (located := self._rows[name].difference(path)) is not None:
                return located
        return None


def _fails(failed: LoopFailed) -> SerialDifference:
    return SerialDifference("", f"fails: {failed.cause}", "goes on", failed.at)
