"""A vertex that can rebuild its state from its input, so a mark is enough of a snapshot.

Rules (StreamScope §4.4; what a stage's state depends on is in `plan/horizon.py`)
1. A mark says where the vertex stands: positions of its inputs and outputs, the CTIs it has, and
   for each input the earliest position still *needed*: all rows before it start before the edge,
   which is the smallest CTI less the stage's horizon.
2. A fresh vertex that loads a mark *rehearses*: it reads from the needed positions up to exactly
   the marked ones, takes rows that start at the edge or later, and throws away what comes out.
   With the marked CTIs it then stands where the mark was taken, and goes on from the marked output
   positions: it writes the same rows under the same numbers as a vertex that never failed.
3. In a rehearsal, an operator lacks some of the rows that its first results are made of. Such
   results are not computed, or are dropped right after the operator: no later operator, and no
   code of the user, sees a row that never was.
4. Until it has caught up it writes nothing and has no snapshot.
5. The mark also says up to which time each operator had come. After the rehearsal this is compared:
   a vertex that has come elsewhere raises `DeterminismViolation`; it never gives another answer.
6. It loads marks and whole snapshots alike, and takes marks if it is asked to (`marks`). A whole
   snapshot has a time for each input: all rows of it that were read so far start before it. As long
   as the edge is not past that time, no position is known from which to rebuild, and the next
   snapshots are whole.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa

from weir.errors import DeterminismViolation
from weir.events.batch import OPEN, START
from weir.plan.horizon import Horizon
from weir.reliable.chain import Chain
from weir.reliable.differences import SUSPICION
from weir.reliable.stream import Entry, StreamReader, StreamWriter
from weir.reliable.vertex import Snapshot, Vertex

_INPUTS, _STEPS = "$mark", "$steps"
_READ = "$read"
"""The table of a whole snapshot that has, for each input, a time before which all rows start that
were read, and the CTI."""
_GRAINS = 64
"""Positions are noted every horizon / `_GRAINS` of event time: so only few of them are kept."""
_NO_GRAIN = 1 << 65
"""A grain longer than all of time: no position is kept but the first."""


def needs_of(snapshot: Snapshot) -> tuple[int, ...]:
    """Say from which positions a vertex that loads this snapshot reads its inputs."""
    mark = snapshot.tables.get(_INPUTS)
    return snapshot.inputs if mark is None else tuple(mark.column("needs").to_pylist())


class Starts:
    """Knows of one input up to which position all rows start before a given time."""

    def __init__(self, position: int, before: int, grain: int) -> None:
        """All rows before `position` start before the time `before`; further positions are noted
        whenever the starts have moved on by `grain`."""
        self._grain = max(grain, 1)
        self._positions, self._latest = [position], [before - 1]
        """All rows before `_positions[i]` start at `_latest[i]` or earlier; both only grow."""
        self._end, self.newest = position, before - 1
        """The next position to read, and the latest start of all rows before it."""

    def note(self, entry: Entry) -> None:
        """Take in the next rows of the input."""
        self._end = entry.end
        if len(entry.rows):
            self.newest = max(self.newest, int(entry.rows.vs.max()))
        if self.newest == self._latest[-1]:
            self._positions[-1] = self._end
        elif self.newest - self._latest[-1] >= self._grain:
            self._positions.append(self._end)
            self._latest.append(self.newest)

    def position_before(self, time: int) -> int | None:
        """Find a position before which all rows start before this time; None: such a position lies
        before all that are noted. From call to call the time only grows."""
        if self.newest < time:
            return self._end
        at = bisect_left(self._latest, time) - 1
        if at > 0:
            del self._positions[:at], self._latest[:at]
        return None if at < 0 else self._positions[0]


@dataclass(slots=True)
class _Rehearsal:
    """What the mark says that a vertex rehearses up to."""

    edge: int
    """Rows that start before this time are not needed."""
    inputs: tuple[int, ...]
    """The position of each input at which the rehearsal ends."""
    ctis: tuple[int, ...]
    """The CTI of each input there."""
    steps: list[int]
    """How far each operator had come; see `Chain.stands_at`."""
    ahead: dict[int, Entry] = field(default_factory=dict)
    """For each input the rest of the entry that reached the mark: rows after it, a claim."""


class RebuildableVertex(Vertex):
    """A vertex that goes on from a mark by reading again what its state was made of."""

    def __init__(
        self,
        name: str,
        chain: Chain,
        inputs: Sequence[StreamReader],
        outlets: Sequence[StreamWriter],
        horizon: Horizon,
        *,
        marks: bool,
    ) -> None:
        assert horizon.ticks is not None
        super().__init__(name, chain, inputs, outlets)
        self._horizon, self._marks = horizon, marks
        self._grain = horizon.ticks // _GRAINS if marks else _NO_GRAIN
        self._ctis = [START] * len(inputs)
        """The last claim of each input."""
        self._starts = [Starts(0, START, self._grain) for _ in inputs]
        self._rehearsal: _Rehearsal | None = None
        """The rehearsal under way, if there is one."""

    @property
    def caught_up(self) -> bool:
        return self._rehearsal is None

    # --- marks -------------------------------------------------------------------------------

    def snapshot(self) -> Snapshot:
        assert self._rehearsal is None, f"{self.name} has not caught up"
        edge = self._edge()
        positions = [s.position_before(edge) for s in self._starts]
        needs = [position for position in positions if position is not None]
        if not self._marks or len(needs) < len(positions):
            return self._whole()
        inputs = {"needs": pa.array(needs, pa.int64()), "cti": pa.array(self._ctis, pa.int64())}
        steps = [edge, self._cti, *self._chain.stands_at()]
        tables = {
            _INPUTS: pa.table(inputs),
            _STEPS: pa.table({"time": pa.array(steps, pa.int64())}),
        }
        return Snapshot(tuple(self._read), self._outputs, tables)

    def _whole(self) -> Snapshot:
        whole = super().snapshot()
        before = pa.array([s.newest + 1 for s in self._starts], pa.int64())
        read = pa.table({"before": before, "cti": pa.array(self._ctis, pa.int64())})
        return Snapshot(whole.inputs, whole.outputs, whole.tables | {_READ: read})

    def _edge(self) -> int:
        """Compute the edge: no result that is still to come depends on rows that start before
        it."""
        assert self._horizon.ticks is not None
        reached = min(self._ctis)
        if self._horizon.ticks < 0 or reached == OPEN:
            return OPEN
        return max(reached - self._horizon.ticks, START)

    def load(self, snapshot: Snapshot) -> None:
        if _INPUTS not in snapshot.tables:
            self._load_whole(snapshot)
            return
        needs = needs_of(snapshot)
        ctis = tuple(snapshot.tables[_INPUTS].column("cti").to_pylist())
        edge, self._cti, *steps = snapshot.tables[_STEPS].column("time").to_pylist()
        self._ctis = list(ctis)
        self._starts = [Starts(n, edge, self._grain) for n in needs]
        self._rehearsal = _Rehearsal(edge, snapshot.inputs, ctis, steps)
        self._chain.rehearse(
            [edge + r if START < edge < OPEN else edge for r in self._horizon.reaches]
        )
        self._stand_at(needs, snapshot.outputs)
        self._end_rehearsal()

    def _load_whole(self, snapshot: Snapshot) -> None:
        read = snapshot.tables[_READ]
        self._ctis = read.column("cti").to_pylist()
        before = read.column("before").to_pylist()
        self._starts = [
            Starts(position, time, self._grain)
            for position, time in zip(snapshot.inputs, before, strict=True)
        ]
        super().load(snapshot)

    # --- rehearsing --------------------------------------------------------------------------

    def execute(self, inputs: Iterable[int] | None = None) -> bool:
        """Take one step; in a rehearsal over the inputs that are not at their mark yet, whatever is
        asked for."""
        rehearsal = self._rehearsal
        if rehearsal is not None:
            goals = enumerate(rehearsal.inputs)
            inputs = [i for i, goal in goals if self._read[i] < goal]
        return super().execute(inputs)

    def _take(self, input: int, entry: Entry) -> None:
        rehearsal = self._rehearsal
        if rehearsal is None:
            self._starts[input].note(entry)
            self._ctis[input] = max(self._ctis[input], entry.cti)
            super()._take(input, entry)
            return
        goal = rehearsal.inputs[input]
        self._repeat(input, entry.before(goal), rehearsal)
        if entry.end >= goal:  # with the claim after the mark, if there is no row
            rehearsal.ahead[input] = entry.since(goal)
        self._end_rehearsal()

    def _repeat(self, input: int, entry: Entry, rehearsal: _Rehearsal) -> None:
        self._starts[input].note(entry)
        self._read[input] = entry.end
        cti = min(entry.cti, rehearsal.ctis[input])
        kept = entry.rows.vs >= rehearsal.edge
        if kept.all():
            self._push(input, replace(entry, cti=cti))
        else:
            left_out = entry.left_out + int(len(kept) - np.count_nonzero(kept))
            numbers = entry.row_numbers[kept]
            self._push(
                input,
                Entry(entry.seq, entry.rows.take(kept), cti, numbers=numbers, left_out=left_out),
            )
        self._chain.pull()

    def _end_rehearsal(self) -> None:
        """End the rehearsal, if all inputs have been read up to the mark."""
        rehearsal = self._rehearsal
        assert rehearsal is not None
        if tuple(self._read) != rehearsal.inputs:
            return
        for input, cti in enumerate(rehearsal.ctis):
            self._chain.claim(input, cti)
        self._chain.pull()
        self._chain.perform()
        if other := self._chain.why_elsewhere(rehearsal.steps):
            raise DeterminismViolation(f"vertex {self.name}: {other}; {SUSPICION}")
        self._rehearsal = None
        for input, entry in rehearsal.ahead.items():
            self._take(input, entry)

    def _write(self) -> None:
        if self._rehearsal is None:
            super()._write()
