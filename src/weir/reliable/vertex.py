"""rVertex: a deterministic computation over numbered streams, in steps.

Rules (StreamScope §3.2)
1. `execute` takes the next entry of each input, runs the chain and writes what came out. What
   is written, and under which numbers, depends on the inputs alone.
2. `snapshot` = (input positions, output positions, state as Arrow tables), at any step.
3. `load` of a snapshot makes the vertex go on from there: it reads its inputs from those
   positions and writes the same rows under the same numbers as before.
4. A hash split sends a row to part (hash of its key columns) mod parts; every part is a stream
   of its own, with its own numbers and the chain's CTI.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from weir.events.batch import START, Batch
from weir.events.hashing import by_part, hash_rows
from weir.kernels.kernel import Tables
from weir.reliable.chain import Chain
from weir.reliable.stream import Entry, StreamReader, StreamWriter


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Where a vertex stands: next numbers of its inputs and outputs, and its state."""

    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    tables: Tables


@dataclass(frozen=True, slots=True)
class Outlet:
    """Where a vertex writes: one stream, or one for each part of a hash split by `keys`
    (positions of the key columns)."""

    streams: tuple[StreamWriter, ...]
    keys: tuple[int, ...] | None = None


class Vertex:
    """See the module's rules."""

    def __init__(
        self, name: str, chain: Chain, inputs: Sequence[StreamReader], outlets: Sequence[Outlet]
    ) -> None:
        self.name = name
        self._chain = chain
        self._inputs = tuple(inputs)
        self._outlets = tuple(outlets)
        self._read = [0] * len(inputs)
        self._written = [0] * sum(len(o.streams) for o in outlets)
        self._cti = START
        for place, stream in enumerate(self._inputs):
            stream.register((self.name, place), 0)

    @property
    def cti(self) -> int:
        return self._cti

    @property
    def state_rows(self) -> int:
        return self._chain.state_rows

    @property
    def caught_up(self) -> bool:
        """Whether it stands where the snapshot was taken that it loaded, or behind: only then
        does it write, and have a snapshot of its own."""
        return True

    def wanted(self, most: int) -> Sequence[int]:
        """The inputs to read next, if not more than about `most` rows shall wait for others."""
        return self._chain.wanted(most)

    def execute(self, places: Iterable[int] | None = None) -> bool:
        """One step over these inputs (all, unless the caller knows which have anything new);
        whether there was anything to do."""
        progressed = False
        for i in range(len(self._inputs)) if places is None else places:
            entry = self._inputs[i].read_next((self.name, i))
            if entry is not None:
                progressed = True
                self._take(i, entry)
        if progressed:
            self._write()
        return progressed

    def _take(self, place: int, entry: Entry) -> None:
        self._read[place] = entry.end
        self._push(place, entry.rows, entry.cti)

    def _push(self, place: int, rows: Batch, cti: int) -> None:
        if len(rows):
            self._chain.push(place, rows, cti)
        else:  # a mere claim: over a channel it comes without any columns
            self._chain.claim(place, cti)

    def feed(self, rows: Batch, cti: int) -> None:
        """A step of a vertex that reads the outside world: rows that ingress accepted."""
        self._chain.push(0, rows, cti)
        self._write()

    def _write(self) -> None:
        rows, cti = self._chain.pull()
        if rows is None and cti <= self._cti:
            return
        self._cti = max(self._cti, cti)
        at = 0
        for outlet in self._outlets:
            parts = self._parts(outlet, rows if rows is not None else self._chain.empty())
            for stream, part in zip(outlet.streams, parts, strict=True):
                stream.write(Entry(self._written[at], part, self._cti))
                self._written[at] += len(part)
                at += 1

    @staticmethod
    def _parts(outlet: Outlet, rows: Batch) -> list[Batch]:
        count = len(outlet.streams)
        if outlet.keys is None or count == 1:
            return [rows]
        order, ends = by_part(parts_of(rows, outlet.keys, count), count)
        grouped = rows.take(order)
        return [grouped.slice(start, end) for start, end in pairwise([0, *ends.tolist()])]

    def snapshot(self) -> Snapshot:
        tables = self._chain.snapshot()
        tables["$vertex"] = pa.table({"cti": pa.array([self._cti], pa.int64())})
        return Snapshot(tuple(self._read), tuple(self._written), tables)

    def load(self, snapshot: Snapshot) -> None:
        self._chain.load({n: t for n, t in snapshot.tables.items() if n != "$vertex"})
        self._cti = snapshot.tables["$vertex"].column(0)[0].as_py()
        self._stand_at(snapshot.inputs, snapshot.outputs)

    def renew(self, chain: Chain) -> None:
        """Go on with a fresh chain, which loads what a snapshot has of this one."""
        chain.load(self._chain.snapshot())
        self._chain = chain

    def _stand_at(self, inputs: Sequence[int], outputs: Sequence[int]) -> None:
        """Read and write from these positions on."""
        self._read, self._written = list(inputs), list(outputs)
        for place, (stream, seq) in enumerate(zip(self._inputs, self._read, strict=True)):
            stream.register((self.name, place), seq)
        # The claim behind the last row: no step will make it again.
        writers = [stream for outlet in self._outlets for stream in outlet.streams]
        for writer, seq in zip(writers, self._written, strict=True):
            writer.write(Entry(seq, self._chain.empty(), self._cti))


def parts_of(rows: Batch, keys: Sequence[int], count: int) -> npt.NDArray[np.uint32]:
    """The part of each row under a hash split: stable across processes and releases."""
    _, second = hash_rows([rows.columns[k] for k in keys], len(rows))
    # The upper half: kernels use the lower bits of the first word for their own tables.
    upper = (second >> np.uint64(32)).astype(np.uint32)  # numbers of 32 bits divide faster
    return upper % np.uint32(count)
