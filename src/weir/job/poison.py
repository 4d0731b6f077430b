"""Poison: rows at which a vertex kills its host, over and over.

A function of the user (or a library below a kernel) may exit, crash or take all memory on some
row. Its host dies, another one takes over, comes to the same row, and dies.

Rules
1. A host notes what it is at right before it does it (`Notes`), where its own death cannot erase
   it. Whoever looks after the host finds the note (`Death`), and the next host reports it. A death
   that nobody can tell of (a machine is lost) is nobody's fault.
2. A death in a step is laid to the vertex that was in it and to the rows that it was given:
   vertices that shared the host are not blamed. A death in no step is laid to nobody.
3. Steps are cut otherwise each time, and large: three kills from outside may well hit the same
   large step. So the vertex is run again in smaller pieces (`pieces_for`), down to a single row,
   or to one event time of rows that waited for a claim. Only deaths in pieces of one count, and
   only with those at the same row or time (`at_same_rows`).
4. With the `deaths`-th at one place the job ends. So it does when a vertex died `RELAPSES` times
   and got no further, whatever rows it was at.
5. A vertex is cleared of a death when it has stored a checkpoint from behind the place; or several
   checkpoints, each ahead of the one before, whatever it died of.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, Protocol, TypeAlias

import msgspec

from weir.events.batch import OPEN, START, Batch
from weir.kernels.expressions.evaluation import shown_value
from weir.reliable.vertex import RowSpan

PIECES = 256
"""Rows that a vertex died at are run in so many pieces next time."""
RELAPSES = 20
CLEARED_BY = 3
"""So many checkpoints; see rule 5."""
_NAMED = 3
_SHOWN = 200

Phase: TypeAlias = Literal["step", "load", "snapshot"]


class Step(msgspec.Struct, frozen=True):
    """What a host is at: a step of a vertex over some rows; loading it, or its snapshot."""

    vertex: str
    phase: Phase = "step"
    input: int = msgspec.field(default=0, name="place")
    """As in its `RowSpan`; stored records call it `place`."""
    first: int = 0
    end: int = 0
    claims: bool = False
    since: int = START
    until: int = START
    """As in its `RowSpan`; nothing before it got any rows."""
    pieces: int = 0
    """So many rows it is given at a time; 0: all that there are."""
    sample: str = ""
    """The row, if it is one, and if they are given one at a time."""
    seconds: float = 0.0
    """How long it has been at it."""

    @property
    def has_rows(self) -> bool:
        """Whether it is a step that has got any rows or claims so far."""
        return self.phase == "step" and (self.end > self.first or self.claims)

    @property
    def is_narrow(self) -> bool:
        """Whether it cannot be done in smaller pieces."""
        small = self.pieces == 1 and self.end - self.first <= 1
        return self.phase != "step" or (self.has_rows and small)

    @property
    def rows(self) -> str:
        if self.phase != "step":
            return f"while its state was {'loaded' if self.phase == 'load' else 'saved'}"
        if not self.has_rows:
            return "in a step that had no rows yet"
        if self.end - self.first > 1:
            return f"at rows {self.first} to {self.end - 1} of input {self.input}"
        if self.end > self.first:
            return f"at row {self.first} of input {self.input}"
        if self.until == OPEN:
            return "with the rows that waited for the end of its inputs"
        return f"with the rows that waited for event time {self.until}"


class Death(msgspec.Struct, frozen=True):
    """A host that died: its session, what it was at, and what is known of the cause."""

    session: str
    step: Step | None
    cause: str


class Suspect(msgspec.Struct, frozen=True):
    """A death that its vertex was not cleared of, with the number of the vertex's last checkpoint
    then, and how many that were ahead of it came since."""

    death: Death
    checkpoint: int
    since: int = 0


class Notes(Protocol):
    """Where a host notes what it is at; see the first rule."""

    def begin(self, vertex: str, phase: Phase, pieces: int) -> None: ...
    def see(self, span: RowSpan, rows: Batch) -> None: ...
    def end(self) -> None: ...


class MemoryNotes:
    """Notes of a host that is part of a larger world, which can look at them at any time."""

    def __init__(self) -> None:
        self.step: Step | None = None

    def begin(self, vertex: str, phase: Phase, pieces: int) -> None:
        self.step = Step(vertex, phase, pieces=pieces)

    def see(self, span: RowSpan, rows: Batch) -> None:
        assert self.step is not None
        shown = sample(rows) if self.step.pieces == 1 else ""
        self.step = Step(
            self.step.vertex, "step", span.input, span.first, span.end, span.claims,
            span.since, span.until, self.step.pieces, shown,
        )  # fmt: skip

    def end(self) -> None:
        self.step = None


def sample(rows: Batch) -> str:
    """The values of a single row, as far as they are short."""
    if len(rows) != 1:
        return ""
    values = ", ".join(repr(shown_value(column[0])) for column in rows.columns)
    return values if len(values) <= _SHOWN else f"{values[:_SHOWN]}…"


# --- which deaths belong together ----------------------------------------------------------------


def at_same_rows(one: Step, other: Step) -> bool:
    """Whether two deaths in pieces of one were at the same: a row, or (in another order of the
    inputs it may be another one's claim) an event time that rows waited for.

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
    """With how many rows at a time the vertex is to be run; 0: as many as there are."""
    steps = [s.death.step for s in suspects if s.death.step is not None]
    sizes = [max(1, (s.end - s.first) // PIECES) for s in steps if s.has_rows]
    return min(sizes, default=0)


# --- suspicion, and being cleared of it ----------------------------------------------------------


def suspect(suspects: Sequence[Suspect], death: Death, checkpoint: int) -> tuple[Suspect, ...]:
    """Those of a vertex after another death of it."""
    return (*suspects, Suspect(death, checkpoint))[-2 * RELAPSES :]


def cleared(
    suspects: Sequence[Suspect], inputs: Sequence[int], before: Sequence[int] | None
) -> tuple[Suspect, ...]:
    """Those that are left when the vertex has stored a checkpoint at these input positions; those
    of the checkpoint before it, if there was one."""
    ahead = before is None or sum(inputs) > sum(before)
    counted = (
        msgspec.structs.replace(s, since=s.since + 1) if ahead else s
        for s in suspects
    )  # fmt: skip
    return tuple(s for s in counted if s.since < CLEARED_BY and not _is_behind(s, inputs))


def _is_behind(one: Suspect, inputs: Sequence[int]) -> bool:
    step = one.death.step
    if step is None or step.phase != "step" or step.input >= len(inputs):
        return False
    reached = inputs[step.input]
    # A checkpoint at the very position may be from before the claim.
    return reached > step.end if step.claims else reached >= step.end


def verdict(suspects: Sequence[Suspect], deaths: int) -> tuple[Suspect, ...]:
    """The deaths for which the job ends, the last one included; none if it goes on."""
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


def sentence(found: Sequence[Suspect], titles: Mapping[str, str]) -> str:
    """Why the job ends."""
    step = found[-1].death.step
    assert step is not None
    title = titles.get(step.vertex, "")
    causes = dict.fromkeys(s.death.cause for s in reversed(found))
    shown = ", ".join(list(causes)[:_NAMED])
    row = f" ({step.sample})" if step.sample else ""
    return (
        f"vertex {step.vertex}{f', {title},' if title else ''} killed its host "
        f"{len(found)} times {step.rows}{row}: {shown}; everything is kept, so mend the function "
        "(--resume --accept-code-changes) or the row (--resume) and run again"
    )
