"""Computes the events of an app whose event types are streams of a program.

The streams run over the first rows of the program's sources, and both sides of a comparison get the
resulting events. They need not be the first events of a longer run, because a window that is cut
short gives another row, but they are valid events.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from weir.events.batch import Batch
from weir.files.chunks import CHUNK_ROWS, Chunk, SourcePartition
from weir.kernels.expressions.evaluation import RowFailure
from weir.kernels.expressions.user_calls import python_values
from weir.local.runner import LocalRun
from weir.plan.operators import Node, Number
from weir.plan.program import Output
from weir.runtime.partitions import Partitions
from weir.runtime.programs import program_of
from weir.shadow.engine_run import engine_rows, kept_in
from weir.shadow.log_events import UnknownToPython
from weir.shadow.serial_loop import LogEvent


@dataclass(frozen=True, slots=True)
class StreamEvents:
    """The events of streams over some rows of their sources; see `ShadowEvents`."""

    events: Sequence[LogEvent]
    sources: Partitions
    can_be_cut = False
    are_all = False

    def partitions(self, count: int) -> Partitions:
        assert count == len(self.events), "what streams give cannot be cut"
        return self.sources

    def place(self, number: int) -> str:
        return ""


@dataclass(frozen=True, slots=True)
class PartitionHead:
    """The first rows of a partition, at most `most`."""

    whole: SourcePartition
    most: int

    @property
    def name(self) -> str:
        return self.whole.name

    @property
    def size(self) -> int:
        return self.whole.size

    def chunks(self, size: int = CHUNK_ROWS, start: int = 0) -> Iterator[Chunk]:
        return islice(self.whole.chunks(min(size, self.most), start), 1)


def stream_events(rows: Mapping[str, Node], sources: Partitions) -> StreamEvents:
    """Run the streams of event types, in order of declaration, over these rows.

    UnknownToPython if an event has a value that Python cannot represent.
    """
    # Operators that number rows get them in order.
    outputs = [Output(name, Number(node), "") for name, node in rows.items()]
    program = program_of(outputs)
    batches: list[list[Batch]] = [[] for _ in outputs]
    LocalRun(program, sources, [kept_in(received) for received in batches]).run()
    try:
        events = [
            LogEvent(name, vs, ve, values)
            for name, received in zip(rows, batches, strict=True)
            for batch in received
            for vs, ve, values in engine_rows(batch, python_values)
        ]
    except RowFailure as failure:
        raise UnknownToPython(f"the serial loop cannot take an event: {failure.why}") from None
    # Sorting is stable, so at one time event types stay in order of declaration.
    return StreamEvents(sorted(events, key=lambda event: event.vs), sources)
