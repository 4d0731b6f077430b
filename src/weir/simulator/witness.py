"""The truth about every stream of a run, and a witness that compares all that is read with it.

The run without faults says which rows each stream has under which numbers. The witness compares
whatever an instance reads in a world of faults with that at once: so a gap, a row read twice, a row
under another number or a different row is found when it is first read, not at the end.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from weir.errors import RunError
from weir.events.batch import Batch, concat_batches
from weir.local.runner import LocalRun
from weir.reliable.cursor import Cursor
from weir.reliable.digest import Digest, row_hashes
from weir.reliable.stream import Entry, MemoryStream
from weir.runtime.instance import Instance
from weir.runtime.topology import Topology
from weir.simulator.workloads import Workload


@dataclass(frozen=True, slots=True)
class Truth:
    """The digests of the outputs, and the hashes (two words) of each row of each stream."""

    digests: tuple[Digest, ...]
    streams: dict[str, np.ndarray]


def truth_of(workload: Workload, parallelism: int) -> Truth:
    """Run a workload without faults, and keep what its streams and outputs hold."""
    nowhere = [lambda vertex, rows: None for _ in workload.program.outputs]
    run = LocalRun(
        workload.program, workload.partitions, nowhere, parallelism=parallelism, keep=True
    )
    run.run()
    streams = {name: _words(stream) for name, stream in run.streams.items()}
    return Truth(tuple(egress.digest for egress in run.egress), streams)


def _words(stream: MemoryStream) -> np.ndarray:
    filled = [e.rows for e in stream.entries if len(e.rows)]
    return _row_words(concat_batches(filled)) if filled else np.zeros((2, 0), dtype=np.uint64)


def _row_words(rows: Batch) -> np.ndarray:
    return np.stack(row_hashes(rows))


class Witness:
    """Compares all that instances read with the truth. If there is none yet (that of sources with a
    log is known when the log is whole), all readers must read what the first one read; in the end
    `unlike` compares that with the truth.

    Where an adversary takes records of a log away that nothing refers to, they were never written,
    and what was read of them does not count: then (`forgets`) only the outputs can be judged."""

    def __init__(self, truth: Truth | None, topology: Topology, *, forgets: bool = False) -> None:
        self._truth, self._topology = truth, topology
        self._forgets = truth is None and forgets
        self._first: dict[str, np.ndarray] = {}
        """Without a truth, the hashes of each stream's rows as they were first read."""
        self._read: dict[tuple[str, str], int] = {}
        """For each stream and reader, the number after the last row that was read."""

    def watch(self, instance: Instance) -> Instance:
        """Compare from now on what this instance reads."""
        for cursor in instance.cursors if not self._forgets else ():
            if self._truth is None or cursor.stream in self._truth.streams:
                cursor.on_read = self._saw
        return instance

    def _saw(self, cursor: Cursor, entry: Entry) -> None:
        where = f"stream {cursor.stream}, read by {cursor.reader}"
        if entry.seq != cursor.position:
            raise RunError(f"{where}: row {entry.seq} came, wanted row {cursor.position}")
        if len(entry.rows):
            words = _row_words(entry.rows)
            expected = self._expected(cursor.stream, entry, words)[:, entry.seq : entry.end]
            if not np.array_equal(words, expected):
                raise RunError(f"{where}: other rows under {entry.seq} to {entry.end}")
        reader = (cursor.stream, str(cursor.reader))
        self._read[reader] = max(self._read.get(reader, 0), entry.end)

    def _expected(self, stream: str, entry: Entry, words: np.ndarray) -> np.ndarray:
        """Return the hashes that a stream's rows must have; without a truth, those of an entry that
        nobody has read before are added first."""
        if self._truth is not None:
            return self._truth.streams[stream]
        first = self._first.get(stream, np.zeros((2, 0), dtype=np.uint64))
        new = first.shape[1] - entry.seq
        if 0 <= new < words.shape[1]:
            first = self._first[stream] = np.concatenate([first, words[:, new:]], axis=1)
        return first

    def unlike(self, truth: Truth) -> str | None:
        """Name a stream of which other rows were read than it has in truth; None: there is
        none."""
        self._truth = truth
        for stream, words in self._first.items():
            expected = truth.streams.get(stream, words)
            if not np.array_equal(words, expected[:, : words.shape[1]]):
                return f"{stream} has other rows than the run over its log"
        return None

    def unread(self) -> str | None:
        """Name a stream that a reader has not read to its end; None: there is none."""
        assert self._truth is not None
        for stream, words in self._truth.streams.items():
            for reader in self._topology.readers_of.get(stream, ()):
                count = self._read.get((stream, str(reader)), 0)
                if count < words.shape[1]:
                    return f"{reader[0]} read {count} of {words.shape[1]} rows of {stream}"
        return None
