"""A vertex that can be rebuilt from its input: a mark is enough of a snapshot for it.

Rules (StreamScope §4.4; what a stage's state depends on is in `plan/horizon.py`)
1. A mark says where the vertex stands: positions of its inputs and outputs, the CTIs it has, and
   for each input the earliest position still *needed*: all rows before it start before the cut,
   which is the smallest CTI less the stage's horizon.
2. A fresh vertex that loads a mark *rehearses*: it reads from the needed positions up to exactly
   the marked ones, takes rows that start at the cut or later, and throws away what comes out.
   With the marked CTIs it then stands where the mark was taken, and goes on under the marked
   numbers: the same rows under the same numbers as one that never failed.
3. Rows at the edge of what it reads are made of too little. They are dropped behind the operator
   that made them, results that would be so are not computed: no later operator, and no code of
   the user, sees what never was.
4. Until it has caught up it writes nothing and has no snapshot.
5. Where each operator stands is in the mark too, and is compared: a vertex that comes out
   elsewhere is a `DeterminismViolation`, never another answer.

6. It loads a mark and a whole snapshot alike, and takes the ones that it is asked for (`marks`).
   A whole snapshot says up to which time rows before it start. As long as the cut is not past
   that, no position is known from which to rebuild, and snapshots are whole.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from weir.errors import DeterminismViolation
from weir.events.batch import OPEN, START
from weir.plan.horizon import Horizon
from weir.reliable.chain import Chain
from weir.reliable.stream import Entry, StreamReader
from weir.reliable.vertex import Outlet, Snapshot, Vertex

_INPUTS, _STEPS = "$mark", "$steps"
_READ = "$read"
"""In a whole snapshot: of each input, a time before which all rows start that were read, and the
CTI."""
_GRAINS = 64
"""A needed position is known to this part of the horizon: so few numbers are kept of it."""
_NO_GRAIN = 1 << 65
"""More than there is of time: no position is kept but the first."""


def needs_of(snapshot: Snapshot) -> tuple[int, ...]:
    """From where on a vertex that loads this snapshot reads its inputs."""
    mark = snapshot.tables.get(_INPUTS)
    return snapshot.inputs if mark is None else tuple(mark.column("needs").to_pylist())


class Starts:
    """Of one input: up to which position all rows start before a time."""

    def __init__(self, position: int, before: int, grain: int) -> None:
        """All rows before this position start before `before`."""
        self._grain = max(grain, 1)
        self._positions, self._latest = [position], [before - 1]
        self._end, self.newest = position, before - 1

    def note(self, entry: Entry) -> None:
        self._end = entry.end
        if len(entry.rows):
            self.newest = max(self.newest, int(entry.rows.vs.max()))
        if self.newest == self._latest[-1]:
            self._positions[-1] = self._end
        elif self.newest - self._latest[-1] >= self._grain:
            self._positions.append(self._end)
            self._latest.append(self.newest)

    def position_before(self, time: int) -> int | None:
        """A position that only rows starting before this time are before; None: it lies before
        all that is known. Times only grow."""
        if self.newest < time:
            return self._end
        at = bisect_left(self._latest, time) - 1
        if at > 0:
            del self._positions[:at], self._latest[:at]
        return None if at < 0 else self._positions[0]


@dataclass(slots=True)
class _Rehearsal:
    """The way back to a mark."""

    cut: int
    inputs: tuple[int, ...]
    ctis: tuple[int, ...]
    steps: list[int]
    ahead: dict[int, Entry] = field(default_factory=dict)
    """What came with rows before the mark and lies behind it: rows, a claim."""


class ReplayVertex(Vertex):
    """A vertex that goes on from a mark by reading again what its state was made of."""

    def __init__(
        self,
        name: str,
        chain: Chain,
        inputs: Sequence[StreamReader],
        outlets: Sequence[Outlet],
        horizon: Horizon,
        *,
        marks: bool,
    ) -> None:
        assert horizon.ticks is not None
        super().__init__(name, chain, inputs, outlets)
        self._horizon, self._marks = horizon, marks
        self._grain = horizon.ticks // _GRAINS if marks else _NO_GRAIN
        self._ctis = [START] * len(inputs)
        self._starts = [Starts(0, START, self._grain) for _ in inputs]
        self._rehearsal: _Rehearsal | None = None

    @property
    def caught_up(self) -> bool:
        return self._rehearsal is None

    # --- marks -------------------------------------------------------------------------------

    def snapshot(self) -> Snapshot:
        assert self._rehearsal is None, f"{self.name} has not caught up"
        cut = self._cut()
        known = [s.position_before(cut) for s in self._starts]
        needs = [position for position in known if position is not None]
        if not self._marks or len(needs) < len(known):
            return self._whole()
        inputs = {"needs": pa.array(needs, pa.int64()), "cti": pa.array(self._ctis, pa.int64())}
        steps = [cut, self._cti, *self._chain.stands_at()]
        tables = {
            _INPUTS: pa.table(inputs),
            _STEPS: pa.table({"time": pa.array(steps, pa.int64())}),
        }
        return Snapshot(tuple(self._read), tuple(self._written), tables)

    def _whole(self) -> Snapshot:
        whole = super().snapshot()
        before = pa.array([s.newest + 1 for s in self._starts], pa.int64())
        read = pa.table({"before": before, "cti": pa.array(self._ctis, pa.int64())})
        return Snapshot(whole.inputs, whole.outputs, whole.tables | {_READ: read})

    def _cut(self) -> int:
        """Nothing that is still to come depends on rows that start before this."""
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
        cut, self._cti, *steps = snapshot.tables[_STEPS].column("time").to_pylist()
        self._ctis = list(ctis)
        self._starts = [Starts(n, cut, self._grain) for n in needs]
        self._rehearsal = _Rehearsal(cut, snapshot.inputs, ctis, steps)
        self._chain.rehearse(
            [cut + r if START < cut < OPEN else cut for r in self._horizon.reaches]
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

    def execute(self, places: Iterable[int] | None = None) -> bool:
        """A rehearsal reads each input up to its mark, whatever is asked for."""
        rehearsal = self._rehearsal
        if rehearsal is not None:
            goals = enumerate(rehearsal.inputs)
            places = [i for i, goal in goals if self._read[i] < goal]
        return super().execute(places)

    def _take(self, place: int, entry: Entry) -> None:
        rehearsal = self._rehearsal
        if rehearsal is None:
            self._starts[place].note(entry)
            self._ctis[place] = max(self._ctis[place], entry.cti)
            super()._take(place, entry)
            return
        goal = rehearsal.inputs[place]
        known = min(goal - entry.seq, len(entry.rows))
        self._repeat(place, Entry(entry.seq, entry.rows.slice(0, known), entry.cti), rehearsal)
        if entry.end >= goal:  # with the claim behind the mark, if there is no row
            rest = entry.rows.slice(known, len(entry.rows))
            rehearsal.ahead[place] = Entry(goal, rest, entry.cti)
        self._end_rehearsal()

    def _repeat(self, place: int, entry: Entry, rehearsal: _Rehearsal) -> None:
        self._starts[place].note(entry)
        self._read[place] = entry.end
        cti = min(entry.cti, rehearsal.ctis[place])
        kept = entry.rows.vs >= rehearsal.cut
        if kept.all():
            self._push(place, entry.rows, cti)
        else:
            numbers = entry.seq + np.flatnonzero(kept)
            self._push(place, entry.rows.take(kept), cti, numbers)
        self._chain.pull()

    def _end_rehearsal(self) -> None:
        """If all inputs are where the mark was taken: so is the vertex."""
        rehearsal = self._rehearsal
        assert rehearsal is not None
        if tuple(self._read) != rehearsal.inputs:
            return
        for place, cti in enumerate(rehearsal.ctis):
            self._chain.claim(place, cti)
        self._chain.pull()
        self._chain.perform()
        found = self._chain.stands_at()
        if found != rehearsal.steps:
            raise DeterminismViolation(
                f"vertex {self.name}: rebuilt from its input it stands at {found}, its mark at "
                f"{rehearsal.steps}; is a user function not deterministic?"
            )
        self._rehearsal = None
        for place, entry in rehearsal.ahead.items():
            self._take(place, entry)

    def _write(self) -> None:
        if self._rehearsal is None:
            super()._write()
