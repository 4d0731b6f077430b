"""The truth about every stream of a run, and a witness that compares all that is read with it.

The run without faults says which rows each stream has under which numbers. The witness compares
whatever an instance reads in a world of faults with that at once: so a gap, a row read twice, a row
under another number or a different row is found when it is first read, not at the end.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from weir.errors import RunError
from weir.events.batch import Batch, concat_batches, empty_batch
from weir.events.hashing import buckets_of
from weir.local.runner import LocalRun
from weir.reliable.cursor import Cursor
from weir.reliable.digest import Digest, row_hashes
from weir.reliable.stream import Entry
from weir.reliable.views import View
from weir.runtime.instance import Instance
from weir.runtime.topology import Topology
from weir.simulator.workloads import Workload


@dataclass(frozen=True, slots=True)
class Truth:
    """The digests of the outputs, and of each stream the hashes (two words) of its rows, and their
    buckets by each split."""

    digests: tuple[Digest, ...]
    streams: dict[str, np.ndarray]
    buckets: dict[tuple[str, tuple[int, ...]], np.ndarray]

    def numbers(self, stream: str, view: View | None, seq: int, end: int) -> np.ndarray:
        """Return the numbers in [seq, end) of a stream's rows that are in a view."""
        if view is None:
            return np.arange(seq, end)
        buckets = self.buckets[stream, view.keys][seq:end]
        return seq + np.flatnonzero((view.first <= buckets) & (buckets < view.end))


def truth_of(workload: Workload, parallelism: int) -> Truth:
    """Run a workload without faults, and keep what its streams and outputs hold."""
    nowhere = [lambda vertex, rows: None for _ in workload.program.outputs]
    run = LocalRun(
        workload.program, workload.partitions, nowhere, parallelism=parallelism, keep=True
    )
    run.run()
    streams: dict[str, np.ndarray] = {}
    buckets: dict[tuple[str, tuple[int, ...]], np.ndarray] = {}
    for name, stream in run.streams.items():
        filled = [e.rows for e in stream.entries if len(e.rows)]
        rows = concat_batches(filled) if filled else empty_batch(())
        streams[name] = _row_words(rows)
        for cells in run.topology.writer_of(name).layout(name).cells:
            columns = [rows.columns[k] for k in cells.keys] if len(rows) else []
            buckets[name, cells.keys] = buckets_of(columns, len(rows))
    return Truth(tuple(egress.digest for egress in run.egress), streams, buckets)


def _row_words(rows: Batch) -> np.ndarray:
    return np.stack(row_hashes(rows))


class _FirstRead:
    """What was read of a stream of which no truth is known yet."""

    def __init__(self) -> None:
        self.words = np.zeros((2, 0), dtype=np.uint64)
        """The hashes of its rows as they were first read."""
        self.known = np.zeros(0, dtype=np.bool_)
        """Which rows were read."""
        self.seen: list[tuple[Cursor, int, int, np.ndarray]] = []
        """Who has read which numbers [seq, end), and the numbers of the rows that came."""

    def agrees(self, numbers: np.ndarray, words: np.ndarray) -> bool:
        """Take in rows, and say whether they are those that were first read."""
        missing = int(max(numbers, default=-1)) + 1 - len(self.known)
        if missing > 0:
            self.words = np.pad(self.words, ((0, 0), (0, missing)))
            self.known = np.pad(self.known, (0, missing))
        new = ~self.known[numbers]
        self.words[:, numbers[new]] = words[:, new]
        self.known[numbers] = True
        return np.array_equal(self.words[:, numbers], words)

    def is_of(self, stream: str, truth: Truth) -> bool:
        """Say whether what was read is what the stream has in truth."""
        expected, known = truth.streams[stream], len(self.known)
        return (
            known <= expected.shape[1]
            and np.array_equal(self.words[:, self.known], expected[:, :known][:, self.known])
            and all(
                np.array_equal(numbers, truth.numbers(stream, cursor.view, seq, end))
                for cursor, seq, end, numbers in self.seen
            )
        )


class Witness:
    """Compares all that instances read with the truth. If there is none yet (that of sources with a
    log is known when the log is whole), all readers must read what the first one read; in the end
    `unlike` compares that with the truth. A reader of a view must get just the rows of the view.

    Where an adversary takes records of a log away that nothing refers to, they were never written,
    and what was read of them does not count: then (`forgets`) only the outputs can be judged."""

    def __init__(self, truth: Truth | None, topology: Topology, *, forgets: bool = False) -> None:
        self._truth, self._topology = truth, topology
        self._forgets = truth is None and forgets
        self._first: dict[str, _FirstRead] = {}
        """Without a truth, what was read of each stream."""
        self._read: dict[tuple[str, str], int] = {}
        """For each stream and reader, the number up to which it was read."""

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
        numbers = entry.row_numbers
        words = _row_words(entry.rows)
        if self._truth is None:
            first = self._first.setdefault(cursor.stream, _FirstRead())
            first.seen.append((cursor, entry.seq, entry.end, numbers))
            right = first.agrees(numbers, words)
        else:
            expected = self._truth.numbers(cursor.stream, cursor.view, entry.seq, entry.end)
            right = np.array_equal(numbers, expected) and np.array_equal(
                words, self._truth.streams[cursor.stream][:, numbers]
            )
        if not right:
            raise RunError(f"{where}: other rows under {entry.seq} to {entry.end}")
        reader = (cursor.stream, str(cursor.reader))
        self._read[reader] = max(self._read.get(reader, 0), entry.end)

    def unlike(self, truth: Truth) -> str | None:
        """Name a stream of which other rows were read than it has in truth; None: there is
        none."""
        self._truth = truth
        for stream, first in self._first.items():
            if stream in truth.streams and not first.is_of(stream, truth):
                return f"{stream} has other rows than the run over its log"
        return None

    def unread(self) -> str | None:
        """Name a stream that a reader has not read to its end; None: there is none."""
        assert self._truth is not None
        for stream, words in self._truth.streams.items():
            for reader in self._topology.readers_of.get(stream, ()):
                count = self._read.get((stream, str(reader)), 0)
                if count < words.shape[1]:
                    return f"{reader[0]} read {stream} up to row {count} of {words.shape[1]}"
        return None
