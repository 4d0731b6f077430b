"""Opens the slices of each batch, and starts to read the next batch while one runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import Self

from weir.files.chunks import CHUNK_ROWS, SourcePartition
from weir.files.readers import open_partition
from weir.ingress.connectors.registry import open_any
from weir.replay.batch_cuts import LogCuts, RankedLog
from weir.replay.batch_programs import BatchProgram
from weir.replay.batch_runs import RunChoice
from weir.replay.chunk_prefetch import AheadPartition
from weir.replay.slices import slices_of
from weir.runtime.partitions import Partitions
from weir.runtime.program_plan import columns_read

WORTH_A_THREAD = 10_000
"""A batch of fewer events is read as fast as a thread is started."""


class BatchReading:
    """Gives the partitions of batches, one after the other. In this process they are read ahead;
    workers of Spark read theirs themselves."""

    def __init__(self, logs: Sequence[RankedLog], cuts: LogCuts, choice: RunChoice) -> None:
        self._logs, self._batches = logs, cuts.batches
        self._is_local, self._size = choice.runner == "local", choice.cut or CHUNK_ROWS
        self._next: tuple[int, Partitions] | None = None
        self._now, self._ahead = ExitStack(), ExitStack()
        """The threads that read the current batch, and the next one."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._now.close()
        self._ahead.close()

    def partitions(self, number: int) -> Partitions:
        """Return the partitions of a batch, and start to read the next one. The rows of the batch
        before it are dropped."""
        self._now.close()
        prefetched = self._next
        partitions = (
            prefetched[1]
            if prefetched is not None and prefetched[0] == number
            else self._sliced(number)
        )
        self._now, self._ahead = self._ahead, ExitStack()
        following = number + 1
        if following < len(self._batches):
            self._next = (following, self._sliced(following))
        return partitions

    def _sliced(self, number: int) -> Partitions:
        batch = self._batches[number]
        partitions: dict[str, list[SourcePartition]] = {}
        for part in slices_of(batch, self._logs):
            partition: SourcePartition = part
            if self._is_local and part.size >= WORTH_A_THREAD:
                partition = ahead = AheadPartition(part, self._size)
                self._ahead.callback(ahead.close)
            partitions.setdefault(part.source.name, []).append(partition)
        return partitions


def batch_partitions(
    program: BatchProgram, tables: Mapping[str, str], logs: Partitions
) -> Partitions:
    """Return what the sources of a batch's program read: logs, the states before it (`tables`, by
    their keys), and the other sources of the program's streams."""
    partitions: dict[str, Sequence[SourcePartition]] = {}
    others = [s for s in program.program.sources if s.name not in {*program.restored, *logs}]
    columns = columns_read(program.program, others) if others else {}
    for source in program.program.sources:
        if source.name in program.restored:
            partitions[source.name] = [
                open_partition(source, tables[program.restored[source.name][1]])
            ]
        elif source.name in logs:
            partitions[source.name] = logs[source.name]
        elif source.has_origins:  # else it is a DataFrame, which the runner brings
            partitions[source.name] = open_any(source, "", needed=columns[source])
    return partitions
