"""Poison: rows that kill the host of a vertex again and again.

A function of the user (or a library below a kernel) may exit, crash or take all memory on some
row. Its host dies, another one takes over, comes to the same row, and dies.

Rules
1. A host notes what it is about to do (`Notes`), where its own death cannot erase the note. The
   process that watches over the host reads the note when the host has died (`Death`), and the next
   host reports it. A death that nobody can report (a whole machine is lost) counts against nobody.
2. A death in a step counts against the vertex whose step it was, and against the rows that the
   vertex was given, but not against other vertices on the host. A death in no step counts against
   no vertex.
3. Steps are large, and are cut elsewhere each time: three kills from outside may well hit the
   same large step. So the vertex is run again with fewer rows at a time (`pieces_for`), down to a
   single row, or to a single event time of rows that waited for a claim. Only deaths in pieces that
   small count, and only together with those at the same row or time (`at_same_rows`).
4. The job ends with the `deaths`-th death at the same row or time. It also ends when a vertex has
   died `RELAPSES` times without storing another checkpoint, whatever rows it was at.
5. A vertex is cleared of a death when it has stored a checkpoint whose positions are past those
   rows; or `CLEARED_BY` checkpoints, each ahead of the one before, whatever it died of.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, Protocol, TypeAlias

import msgspec

from weir.events.batch import OPEN, START, Batch
from weir.kernels.expressions.evaluation import shown_value
from weir.reliable.vertex import RowSpan

PIECES = 256
"""After a death, the rows at which the vertex died are given to it in this many pieces."""
RELAPSES = 20
"""So many deaths without progress end the job; see rule 4."""
CLEARED_BY = 3
"""So many checkpoints clear a vertex; see rule 5."""
_NAMED = 3
"""So many different causes a message names."""
_SHOWN = 200
"""So many characters of a row a message shows."""

Phase: TypeAlias = Literal["step", "load", "snapshot"]


class Step(msgspec.Struct, frozen=True):
    """Says what a host is doing: a step of a vertex over some rows, or loading or saving its
    state."""

    vertex: str
    phase: Phase = "step"
    input: int = msgspec.field(default=0, name="place")
    """As in its `RowSpan`; stored records call it `place`."""
    first: int = 0
    end: int = 0
    claims: bool = False
    since: int = START
    until: int = START
    """The rows and the claim that the vertex was last given, as in its `RowSpan`."""
    pieces: int = 0
    """How many rows the vertex is given at a time; 0: all that there are."""
    sample: str = ""
    """The values of the row, if rows are given one at a time."""
    seconds: float = 0.0
    """How long the host has been doing this."""
    left_out: int = 0
    """How many numbers of [first, end) are not of those rows."""

    @property
    def count(self) -> int:
        """How many rows the vertex was given."""
        return self.end - self.first - self.left_out

    @property
    def has_rows(self) -> bool:
        """Whether this is a step in which the vertex was given rows or a claim."""
        return self.phase == "step" and (self.count > 0 or self.claims)

    @property
    def is_narrow(self) -> bool:
        """Whether it cannot be done in smaller pieces."""
        small = self.pieces == 1 and self.count <= 1
        return self.phase != "step" or (self.has_rows and small)

    @property
    def rows(self) -> str:
        """At which rows the vertex was, as messages say it."""
        if self.phase != "step":
            return f"while its state was {'loaded' if self.phase == 'load' else 'saved'}"
        if not self.has_rows:
            return "in a step that had no rows yet"
        if self.count > 1:
            return f"at rows {self.first} to {self.end - 1} of input {self.input}"
        if self.count:
            return f"at row {self.first} of input {self.input}"
        if self.until == OPEN:
            return "with the rows that waited for the end of its inputs"
        return f"with the rows that waited for event time {self.until}"


class Death(msgspec.Struct, frozen=True):
    """Tells of a host that died: its session, what it was doing, and what is known of the cause."""

    session: str
    step: Step | None
    cause: str


class Suspect(msgspec.Struct, frozen=True):
    """A death that counts against a vertex, because the vertex was not cleared of it yet."""

    death: Death
    checkpoint: int
    """The number of the vertex's last checkpoint when its host died; -1: it had none."""
    since: int = 0
    """How many checkpoints, each ahead of the one before, the vertex has stored since."""


class Notes(Protocol):
    """Takes the notes of a host on what it is doing; see rule 1."""

    def begin(self, vertex: str, phase: Phase, pieces: int) -> None: ...
    def see(self, span: RowSpan, rows: Batch) -> None: ...
    def end(self) -> None: ...


class MemoryNotes:
    """Keeps the notes of a host in its own memory, for tests and the simulator."""

    def __init__(self) -> None:
        self.step: Step | None = None

    def begin(self, vertex: str, phase: Phase, pieces: int) -> None:
        self.step = Step(vertex, phase, pieces=pieces)

    def see(self, span: RowSpan, rows: Batch) -> None:
        assert self.step is not None
        shown = sample(rows) if self.step.pieces == 1 else ""
        self.step = Step(
            vertex=self.step.vertex,
            phase="step",
            input=span.input,
            first=span.first,
            end=span.end,
            claims=span.claims,
            since=span.since,
            until=span.until,
            left_out=span.left_out,
            pieces=self.step.pieces,
            sample=shown,
        )

    def end(self) -> None:
        self.step = None


def sample(rows: Batch) -> str:
    """Write the values of a single row, cut off where that gets long; empty for several rows."""
    if len(rows) != 1:
        return ""
    values = ", ".join(repr(shown_value(column[0])) for column in rows.columns)
    return values if len(values) <= _SHOWN else f"{values[:_SHOWN]}…"


# --- which deaths belong together ----------------------------------------------------------------


def at_same_rows(one: Step, other: Step) -> bool:
    """Say whether two deaths in pieces of one were at the same row, or at the same event time that
    rows waited for (whichever input's claim let them go: that depends on the inputs' order).

    >>> row = Step("1.0", first=6, end=7)
    >>> at_same_rows(row, row), at_same_rows(row, Step("1.0", first=7, end=8))
    (True, False)
    """
    if one.phase != "step" or other.phase != "step":
        return one.phase == other.phase
    if one.claims and other.claims and one.since < one.until and other.since < other.until:
        return max(one.since, other.since) < min(one.until, other.until)
    mine, others = ((s.input, s.first, s.end, s.claims) for s in (one, other))
    return mine == others


def pieces_for(suspects: Iterable[Suspect]) -> int:
    """Say how many rows at a time a vertex is to be given; 0: as many as there are."""
    steps = [s.death.step for s in suspects if s.death.step is not None]
    sizes = [max(1, s.count // PIECES) for s in steps if s.has_rows]
    return min(sizes, default=0)


# --- suspicion, and being cleared of it ----------------------------------------------------------


def suspect(suspects: Sequence[Suspect], death: Death, checkpoint: int) -> tuple[Suspect, ...]:
    """Add a death to those that count against a vertex, whose last checkpoint has this number."""
    return (*suspects, Suspect(death, checkpoint))[-2 * RELAPSES :]


def cleared(
    suspects: Sequence[Suspect], inputs: Sequence[int], before: Sequence[int] | None
) -> tuple[Suspect, ...]:
    """List the deaths that still count against a vertex that has stored a checkpoint at these input
    positions. `before` are those of the checkpoint before that one, if there was one."""
    ahead = before is None or sum(inputs) > sum(before)
    counted = (msgspec.structs.replace(s, since=s.since + 1) if ahead else s for s in suspects)
    return tuple(s for s in counted if s.since < CLEARED_BY and not _is_behind(s, inputs))


def _is_behind(one: Suspect, inputs: Sequence[int]) -> bool:
    """Say whether these input positions are past the rows of a death."""
    step = one.death.step
    if step is None or step.phase != "step" or step.input >= len(inputs):
        return False
    reached = inputs[step.input]
    # A checkpoint at that very position may have been taken before the claim.
    return reached > step.end if step.claims else reached >= step.end


def verdict(suspects: Sequence[Suspect], deaths: int) -> tuple[Suspect, ...]:
    """Find the deaths because of which the job ends, the last one included; none if it goes on."""
    last = suspects[-1]
    step = last.death.step
    assert step is not None
    if step.is_narrow:
        same = tuple(s for s in suspects if _counts_with(s, step))
        if len(same) >= deaths:
            return same
    stuck = tuple(s for s in suspects if s.checkpoint == last.checkpoint)
    return stuck if len(stuck) >= RELAPSES else ()


def _counts_with(one: Suspect, step: Step) -> bool:
    other = one.death.step
    return other is not None and other.is_narrow and at_same_rows(other, step)


def sentence(guilty: Sequence[Suspect], titles: Mapping[str, str]) -> str:
    """Write the message that says because of which deaths the job ends."""
    step = guilty[-1].death.step
    assert step is not None
    title = titles.get(step.vertex, "")
    causes = dict.fromkeys(s.death.cause for s in reversed(guilty))
    shown = ", ".join(list(causes)[:_NAMED])
    row = f" ({step.sample})" if step.sample else ""
    return (
        f"vertex {step.vertex}{f', {title},' if title else ''} killed its host "
        f"{len(guilty)} times {step.rows}{row}: {shown}; everything is kept, so fix the function "
        "(--resume --accept-code-changes) or the row (--resume) and run again"
    )
