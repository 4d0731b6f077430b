"""rVertex: a deterministic computation over numbered streams, in steps.

Rules (StreamScope §3.2)
1. `execute` takes the next entry of each input, runs the chain and writes what came out. What
   is written, and under which numbers, depends on the inputs alone.
2. `snapshot` = (input positions, output positions, state as Arrow tables), at any step.
3. `load` of a snapshot makes the vertex go on from there: it reads its inputs from those
   positions and writes the same rows under the same numbers as before.
4. It writes each row once, under one number, with the chain's CTI. Who reads a part of the rows
   reads a view of the stream (`views.py`).
5. The vertex calls `see` with all rows and claims right before it gives them to the chain. With
   `pieces` = n it gives the chain n rows at a time, and claims apart from rows: a claim is given in
   steps, each of which releases the waiting rows of n different times. Such cuts change no result,
   and a row that kills the process (`job/poison.py`) is found in a smaller piece.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial

import pyarrow as pa

from weir.events.batch import START, Batch, Int64s
from weir.kernels.kernel import Tables
from weir.reliable.chain import Chain
from weir.reliable.stream import Entry, StreamReader, StreamWriter


@dataclass(frozen=True, slots=True)
class RowSpan:
    """A span says what a chain is given at one time: some rows of an input, a claim, or both."""

    input: int
    """The index of the input among those of the vertex."""
    first: int
    end: int
    """The rows are among [first, end) of the input; of a source these are offsets."""
    claims: bool
    """Whether the claim after the rows is given too."""
    since: int
    until: int
    """The event time that all inputs together had reached before the claim, and with it."""
    left_out: int = 0
    """How many numbers of [first, end) are not of these rows."""


See = Callable[[RowSpan, Batch], None]


def see_nothing(span: RowSpan, rows: Batch) -> None:
    """Do nothing: nobody wants to see what the chain gets."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A snapshot holds where a vertex stands: the number up to which it has read each input and
    written each outlet, and the state."""

    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    tables: Tables


class Vertex:
    """A vertex reads its inputs, runs a chain on them and writes what it makes, step by step."""

    def __init__(
        self,
        name: str,
        chain: Chain,
        inputs: Sequence[StreamReader],
        outlets: Sequence[StreamWriter],
    ) -> None:
        """`outlets` are the streams that get what the chain makes."""
        self.name = name
        self._chain = chain
        self._inputs = tuple(inputs)
        self._outlets = tuple(outlets)
        self._read = [0] * len(inputs)
        """The number up to which each input was read."""
        self._written = 0
        """The next number to write."""
        self._cti = START
        """The last claim that was written."""
        self._claims = [START] * max(len(inputs), 1)
        """The last claim of each input that the chain was given."""
        self._claimed = START
        """The least of them."""
        self.see: See = see_nothing
        """Is called with what the chain gets next; see rule 5."""
        self.pieces = 0
        """How many rows the chain gets at a time; 0: all that there are."""
        for input, stream in enumerate(self._inputs):
            stream.register((self.name, input), 0)

    @property
    def cti(self) -> int:
        return self._cti

    @property
    def state_rows(self) -> int:
        return self._chain.state_rows

    @property
    def caught_up(self) -> bool:
        """Whether the vertex has reached the point at which the snapshot that it loaded was taken.
        Only then does it write and can it take a snapshot."""
        return True

    def wanted(self, most: int) -> Sequence[int]:
        """Say which inputs to read next so that no more than about `most` rows wait for others."""
        return self._chain.wanted(most)

    def execute(self, inputs: Iterable[int] | None = None) -> bool:
        """Take one step over the inputs with these indices (None: over all of them); say whether
        there was anything to do."""
        progressed = False
        for i in range(len(self._inputs)) if inputs is None else inputs:
            entry = self._inputs[i].read_next((self.name, i))
            if entry is not None:
                progressed = True
                self._take(i, entry)
        if progressed:
            self._write()
        return progressed

    def _take(self, input: int, entry: Entry) -> None:
        self._read[input] = entry.end
        self._push(input, entry)

    def _push(self, input: int, entry: Entry) -> None:
        """Hand the rows and the claim of an entry to the chain."""
        if self.pieces:
            self._push_pieces(input, entry.rows, entry.row_numbers)
            self._claim_pieces(input, entry.end, entry.cti, partial(self._chain.claim, input))
            return
        self._show(
            input=input, first=entry.first_row, end=entry.end, rows=entry.rows, cti=entry.cti
        )
        if len(entry.rows):
            self._chain.push(input, entry.rows, entry.cti)
        else:  # a mere claim: over a channel it comes without any columns
            self._chain.claim(input, entry.cti)

    def _push_pieces(self, input: int, rows: Batch, numbers: Int64s) -> None:
        for start in range(0, len(rows), self.pieces):
            piece, those = rows.slice(start, start + self.pieces), numbers[start:][: self.pieces]
            self._show(
                input=input, first=int(those[0]), end=int(those[-1]) + 1, rows=piece, cti=None
            )
            self._chain.push(input, piece, self._claims[input])

    def _claim_pieces(self, input: int, end: int, cti: int, claim: Callable[[int], None]) -> None:
        """Hand a claim to the chain as several smaller ones, each of which lets rows go that wait
        at `pieces` different times."""
        nothing = self._chain.empty()
        reached = min([cti, *self._claims[:input], *self._claims[input + 1 :]])
        for time in (*self._chain.waiting(reached)[self.pieces :: self.pieces].tolist(), cti):
            self._show(input=input, first=end, end=end, rows=nothing, cti=time)
            claim(time)

    def _show(self, input: int, first: int, end: int, rows: Batch, cti: int | None) -> None:
        since = self._claimed
        if cti is not None:
            before, self._claims[input] = self._claims[input], max(self._claims[input], cti)
            if before == since:  # else it was not the least
                self._claimed = min(self._claims)
        until = self._claimed
        self.see(
            RowSpan(
                input=input,
                first=first,
                end=end,
                claims=cti is not None,
                since=since,
                until=until,
                left_out=end - first - len(rows),
            ),
            rows,
        )

    def feed(self, rows: Batch, cti: int, stop: int = 0) -> None:
        """Take one step of a vertex that reads a source: `rows` are those that the ingress
        admitted, up to the offset `stop`."""
        if self.pieces:
            nothing = rows.slice(len(rows), len(rows))
            self._push_pieces(0, rows, rows.origin[1])
            self._claim_pieces(0, stop, cti, lambda time: self._chain.push(0, nothing, time))
        else:
            first = int(rows.origin[1][0]) if len(rows) and len(rows.origin) > 1 else stop
            self._show(input=0, first=first, end=stop, rows=rows, cti=cti)
            self._chain.push(0, rows, cti)
        self._write()

    def _write(self) -> None:
        """Write to all outlets what has come out of the chain."""
        rows, cti = self._chain.pull()
        if rows is None and cti <= self._cti:
            return
        self._cti = max(self._cti, cti)
        entry = Entry(self._written, rows if rows is not None else self._chain.empty(), self._cti)
        for stream in self._outlets:
            stream.write(entry)
        self._written = entry.end

    def snapshot(self) -> Snapshot:
        tables = self._chain.snapshot()
        tables["$vertex"] = pa.table({"cti": pa.array([self._cti], pa.int64())})
        return Snapshot(tuple(self._read), self._outputs, tables)

    @property
    def _outputs(self) -> tuple[int, ...]:
        """The next number to write to each outlet."""
        return (self._written,) * len(self._outlets)

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
        self._read, self._written = list(inputs), max(outputs, default=0)
        for input, (stream, seq) in enumerate(zip(self._inputs, self._read, strict=True)):
            stream.register((self.name, input), seq)
        # The claim after the last row: no step will make it again.
        for writer in self._outlets:
            writer.write(Entry(self._written, self._chain.empty(), self._cti))
