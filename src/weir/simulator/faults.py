"""What can go wrong in a simulated world, and how often.

Rates of messages, writes, reads and deletes are per message, the others per second of simulated
time. Every kind can be switched off alone (`without`), which is how a failing seed is made small.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Self

import numpy as np

from weir.reliable.vertex import RowSpan

SETTLE = 60.0
"""Seconds of simulated time after which faults cease, so that every run can end."""

ALWAYS = ("delay", "until")
"""Not kinds of faults, but how long things take."""


@dataclass(frozen=True, slots=True)
class Faults:
    """See the module's docstring."""

    lose: float = 0.0
    """Control messages that are lost; channels break a tenth as often."""
    double: float = 0.0
    """Control messages and entries that come twice."""
    reorder: float = 0.0
    """Entries of a channel that overtake others, or are overtaken."""
    delay: float = 0.01
    """What messages, entries, writes and reads take, on average. Entries keep their order in a
    channel; all else overtakes."""
    crash: float = 0.0
    """Hosts that die, and come back later."""
    relapse: float = 0.0
    """Hosts and managers that die while they read or write in order to recover."""
    freeze: float = 0.0
    """Hosts that stand still, are given up, and wake up."""
    cut: float = 0.0
    """Hosts whose messages and channels are cut off for a while, but which go on."""
    manager_crash: float = 0.0
    manager_freeze: float = 0.0
    second_manager: float = 0.0
    """Managers, one or two at once, that begin beside the one there is."""
    stop: float = 0.0
    """Requests to stop; the job is resumed afterwards."""
    write_fails: float = 0.0
    """Writes that fail, or succeed and say that they failed."""
    read_fails: float = 0.0
    delete_fails: float = 0.0
    late_writes: float = 0.0
    """Writes of the dead that arrive long afterwards (each at this rate)."""
    full: float = 0.0
    """The store has no room for a while."""
    flips: float = 0.0
    """Bits that flip in checkpoints and segments, for each read."""
    slow: float = 0.0
    """Steps of a host that take 25 times as long."""
    jump: float = 0.0
    """Clocks that jump ahead."""
    harm: float = 0.0
    """What an adversary does to objects of the store; no seed draws it by itself."""
    fall: float = 0.0
    """Hosts that die in the middle of a step (for each piece of it): at no row more than twice,
    and with no vertex more than ten times, so that none may be taken for poisoned."""
    until: float = SETTLE

    def without(self, kind: str) -> Self:
        return replace(self, **{kind: 0.0})

    def only(self, kinds: tuple[str, ...]) -> Self:
        return replace(self, **{kind: 0.0 for kind in KINDS if kind not in kinds})

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of faults that happen."""
        return tuple(kind for kind in KINDS if getattr(self, kind) > 0)


@dataclass(frozen=True, slots=True)
class Poison:
    """A vertex that kills its host whenever it is given a row of an input (of a source: at an
    offset), or lets the rows of an event time go; but not more than so many times."""

    vertex: str
    row: int | None = None
    input: int = 0
    time: int | None = None
    times: int = 1_000_000

    def kills(self, vertex: str, span: RowSpan) -> bool:
        if vertex != self.vertex:
            return False
        if self.row is not None:
            return span.input == self.input and span.first <= self.row < span.end
        return self.time is not None and span.since <= self.time < span.until


KINDS = tuple(f.name for f in fields(Faults) if f.name not in ALWAYS)


def drawn_faults(rng: np.random.Generator) -> Faults:
    """What goes wrong in a world: some kinds of faults, not always all."""

    def rate(most: float, often: float = 0.5) -> float:
        # Two draws whatever comes: another `often` must not change the kinds behind it.
        happens, much = rng.random() < often, float(rng.random() * most)
        return much if happens else 0.0

    return Faults(
        lose=rate(0.3), double=rate(0.3), reorder=rate(0.1),
        delay=float(rng.choice([0.001, 0.01, 0.1])),
        crash=rate(1.5, 0.8), relapse=rate(0.2, 0.3), freeze=rate(0.5), cut=rate(0.3),
        manager_crash=rate(0.5), manager_freeze=rate(0.3, 0.3), second_manager=rate(0.2, 0.3),
        stop=rate(0.5, 0.15), write_fails=rate(0.2), read_fails=rate(0.2, 0.3),
        delete_fails=rate(0.5, 0.3), late_writes=rate(0.5), full=rate(0.2, 0.2),
        flips=rate(0.3, 0.1), slow=rate(0.5), jump=rate(0.2, 0.3),
        until=float(rng.choice([3.0, 8.0, 20.0])), fall=rate(0.1, 0.2),
    )  # fmt: skip
