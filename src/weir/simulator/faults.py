"""What can go wrong in a simulated world, and how often.

The rate of a fault of messages, writes, reads or deletes is its probability for each of them; other
rates are per second of simulated time. Every kind of fault can be switched off alone (`without`):
so a failing seed is made small.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Self

import numpy as np

from weir.reliable.vertex import RowSpan

SETTLE = 60.0
"""Seconds of simulated time after which faults cease, so that every run can end."""

LONGEST_BUSY = 300.0
"""Seconds for which a host can be busy."""

ALWAYS = ("delay", "until")
"""The fields of `Faults` that are not kinds of faults."""


@dataclass(frozen=True, slots=True)
class Faults:
    """The rate of each kind of fault; see the module's docstring for what a rate means."""

    lose: float = 0.0
    """Control messages are lost; channels break a tenth as often."""
    double: float = 0.0
    """Control messages and entries come twice."""
    reorder: float = 0.0
    """Entries of a channel overtake others, or are overtaken."""
    delay: float = 0.01
    """How many seconds messages, entries, writes and reads take, on average. Entries keep their
    order in a channel; everything else may overtake."""
    crash: float = 0.0
    """Hosts die, and come back later."""
    relapse: float = 0.0
    """Hosts and managers die while they read or write in order to recover."""
    freeze: float = 0.0
    """Hosts stand still until the manager counts them as lost, and wake up later."""
    cut: float = 0.0
    """Hosts are cut off from messages and channels for a while, but go on running."""
    manager_crash: float = 0.0
    manager_freeze: float = 0.0
    """Managers die, or stand still for a while."""
    second_manager: float = 0.0
    """One or two managers begin beside the one there is."""
    stop: float = 0.0
    """Somebody asks the job to stop; it is resumed afterwards."""
    write_fails: float = 0.0
    """Writes fail, or succeed and are said to have failed."""
    read_fails: float = 0.0
    delete_fails: float = 0.0
    """Reads and deletes fail."""
    late_writes: float = 0.0
    """Writes that a process began before it died arrive long afterwards."""
    full: float = 0.0
    """The store has no room for a while."""
    flips: float = 0.0
    """A bit flips in a checkpoint or a segment when it is read."""
    slow: float = 0.0
    """Steps of a host take 25 times as long."""
    jump: float = 0.0
    """Clocks jump ahead."""
    harm: float = 0.0
    """An adversary changes objects of the store; no seed draws this by itself."""
    fall: float = 0.0
    """Hosts die in the middle of a step (the rate is for each piece of it): at no row more than
    twice, and at no vertex more than ten times, so that no vertex is taken for poisoned."""
    busy: float = 0.0
    """Hosts are busy, half a minute on average and `LONGEST_BUSY` at most: they do nothing else,
    but their companions give signs of life for them."""
    hang_up: float = 0.0
    """The connections of a host and its companion to the manager break, and are made again."""
    apart: float = 0.0
    """Hosts cannot use the store for a while, or hear none of its answers; others can."""
    until: float = SETTLE
    """The simulated second after which nothing goes wrong any more."""

    def without(self, kind: str) -> Self:
        """Switch one kind of fault off."""
        return replace(self, **{kind: 0.0})

    def only(self, kinds: tuple[str, ...]) -> Self:
        """Switch all kinds of faults off but these."""
        return replace(self, **{kind: 0.0 for kind in KINDS if kind not in kinds})

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of faults that happen."""
        return tuple(kind for kind in KINDS if getattr(self, kind) > 0)


@dataclass(frozen=True, slots=True)
class Poison:
    """Makes a vertex kill its host whenever it is given a certain row of an input (a source: the
    row at an offset), or when rows of a certain event time are let go; at most `times` times."""

    vertex: str
    row: int | None = None
    input: int = 0
    time: int | None = None
    times: int = 1_000_000

    def kills(self, vertex: str, span: RowSpan) -> bool:
        """Say whether a vertex that is given this span kills its host."""
        if vertex != self.vertex:
            return False
        if self.row is not None:
            return span.input == self.input and span.first <= self.row < span.end
        return self.time is not None and span.since <= self.time < span.until


KINDS = tuple(f.name for f in fields(Faults) if f.name not in ALWAYS)


def drawn_faults(rng: np.random.Generator) -> Faults:
    """Draw the faults of a world: some of the kinds, each at a rate of its own."""

    def rate(most: float, often: float = 0.5) -> float:
        # Always two draws, so that another `often` does not change the kinds that are drawn later.
        happens, much = rng.random() < often, float(rng.random() * most)
        return much if happens else 0.0

    return Faults(
        lose=rate(0.3),
        double=rate(0.3),
        reorder=rate(0.1),
        delay=float(rng.choice([0.001, 0.01, 0.1])),
        crash=rate(1.5, 0.8),
        relapse=rate(0.2, 0.3),
        freeze=rate(0.5),
        cut=rate(0.3),
        manager_crash=rate(0.5),
        manager_freeze=rate(0.3, 0.3),
        second_manager=rate(0.2, 0.3),
        stop=rate(0.5, 0.15),
        write_fails=rate(0.2),
        read_fails=rate(0.2, 0.3),
        delete_fails=rate(0.5, 0.3),
        late_writes=rate(0.5),
        full=rate(0.2, 0.2),
        flips=rate(0.3, 0.1),
        slow=rate(0.5),
        jump=rate(0.2, 0.3),
        until=float(rng.choice([3.0, 8.0, 20.0])),
        fall=rate(0.1, 0.2),
        busy=rate(0.1, 0.3),
        hang_up=rate(0.5, 0.3),
        apart=rate(0.2, 0.2),
    )
