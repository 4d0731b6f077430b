"""rVertex: a deterministic computation over numbered streams, in steps.

Rules (StreamScope §3.2)
1. `execute` takes the next entry of each input, runs the chain and writes what came out. What
   is written, and under which numbers, depends on the inputs alone.
2. `snapshot` = (input positions, output positions, state as Arrow tables), at any step.
3. `load` of a snapshot makes the vertex go on from there: it reads its inputs from those
   positions and writes the same rows under the same numbers as before.
4. A hash split sends a row to part (hash of its key columns) mod parts; every part is a stream
   of its own, with its own numbers and the chain's CTI.
5. `see` is told of all rows and claims right before the chain gets them. With `pieces` it gets so
   many rows at a time, and claims by themselves, each for so many of the times at which rows wait:
   cuts mean nothing, and what a chain dies of (`job/poison.py`) is found in a smaller place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from weir.events.batch import START, Batch, Int64s
from weir.events.hashing import hash_rows
from weir.events.hashing_loops import by_part
from weir.kernels.kernel import Tables
from weir.reliable.chain import Chain
from weir.reliable.stream import Entry, StreamReader, StreamWriter


@dataclass(frozen=True, slots=True)
class RowSpan:
    """What a chain is given: rows [first, end) of an input (of a source: offsets), and whether
    the claim behind them too, with which all its inputs together have come from event time
    `since` to `until`."""

    place: int
    first: int
    end: int
    claims: bool
    since: int
    until: int


See = Callable[[RowSpan, Batch], None]


def see_nothing(span: RowSpan, rows: Batch) -> None:
    """Nobody looks."""


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
        self._claims = [START] * max(len(inputs), 1)
        self.see: See = see_nothing
        self.pieces = 0
        """So many rows at a time; 0: all that there are."""
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

    def _push(
        self, place: int, rows: Batch, cti: int, numbers: Sequence[int] | Int64s | None = None
    ) -> None:
        """`numbers` of the rows, where they are not the last that were read of the input."""
        end = self._read[place]
        if self.pieces:
            known = range(end - len(rows), end) if numbers is None else numbers
            self._push_pieces(place, rows, known)
            self._claim_pieces(place, end, cti, partial(self._chain.claim, place))
            return
        first = int(numbers[0]) if numbers is not None and len(numbers) else end - len(rows)
        self._show(place, first, end, rows, cti)
        if len(rows):
            self._chain.push(place, rows, cti)
        else:  # a mere claim: over a channel it comes without any columns
            self._chain.claim(place, cti)

    def _push_pieces(self, place: int, rows: Batch, numbers: Sequence[int] | Int64s) -> None:
        for start in range(0, len(rows), self.pieces):
            piece, those = rows.slice(start, start + self.pieces), numbers[start:][: self.pieces]
            self._show(place, int(those[0]), int(those[-1]) + 1, piece, None)
            self._chain.push(place, piece, self._claims[place])

    def _claim_pieces(self, place: int, end: int, cti: int, claim: Callable[[int], None]) -> None:
        """A claim as several: each lets so many of the times go at which rows wait for it."""
        nothing = self._chain.empty()
        reached = min([cti, *self._claims[:place], *self._claims[place + 1 :]])
        for time in (*self._chain.waiting(reached)[self.pieces :: self.pieces].tolist(), cti):
            self._show(place, end, end, nothing, time)
            claim(time)

    def _show(self, place: int, first: int, end: int, rows: Batch, cti: int | None) -> None:
        since = until = min(self._claims)
        if cti is not None:
            self._claims[place] = max(self._claims[place], cti)
            until = min(self._claims)
        self.see(RowSpan(place, first, end, cti is not None, since, until), rows)

    def feed(self, rows: Batch, cti: int, stop: int = 0) -> None:
        """A step of a vertex that reads the outside world: rows that ingress accepted, up to the
        offset `stop`."""
        if self.pieces:
            nothing = rows.slice(len(rows), len(rows))
            self._push_pieces(0, rows, rows.origin[1])
            self._claim_pieces(0, stop, cti, lambda time: self._chain.push(0, nothing, time))
        else:
            first = int(rows.origin[1][0]) if len(rows) and len(rows.origin) > 1 else stop
            self._show(0, first, stop, rows, cti)
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
