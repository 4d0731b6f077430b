"""The time and the chance of a simulated world: one queue of events, one generator, one story."""

from __future__ import annotations

import heapq
from collections.abc import Callable

import numpy as np

from weir.errors import RunError
from weir.simulator.faults import Faults


class Timeline:
    """Lets everything happen as an event of one queue, in an order that the seed decides."""

    def __init__(self, rng: np.random.Generator, faults: Faults) -> None:
        self.rng, self.faults = rng, faults
        self.apart, self.beside = rng.spawn(2)
        """More generators, for draws that were added later: so old seeds draw what they did."""
        self.now = 0.0
        """The simulated seconds that have passed."""
        self.log: list[str] = []
        """The story of the world, line by line."""
        self.job_ended = False
        """Whether the job has ended: nothing goes wrong any more then."""
        self._queue: list[tuple[float, int, Callable[[], None]]] = []
        """What is to happen: when, a number that breaks ties, and the event."""
        self._count = 0
        """How many events were put into the queue so far."""

    def after(self, delay: float, event: Callable[[], None]) -> None:
        """Let an event happen in so many seconds."""
        self._count += 1
        heapq.heappush(self._queue, (self.now + delay, self._count, event))

    def pass_time(self, limit: float, reached: Callable[[], bool]) -> None:
        """Let things happen until a state is reached; RunError when it is not by `limit`."""
        while not reached():
            if not self._queue:
                raise RunError("the job is stuck: nothing is left to happen")
            self.now, _, event = heapq.heappop(self._queue)
            if self.now > limit:
                raise RunError(f"the job is stuck: nothing happened until {limit} s")
            event()

    @property
    def is_empty(self) -> bool:
        return not self._queue

    def note(self, what: str) -> None:
        """Add a line to the story."""
        self.log.append(f"{self.now:9.3f}  {what}")

    @property
    def calm(self) -> bool:
        """Whether nothing goes wrong any more."""
        return self.now > self.faults.until or self.job_ended

    def happens(self, rate: float) -> bool:
        """Draw whether a fault of this rate happens now."""
        return not self.calm and self.rng.random() < rate

    def delay(self) -> float:
        """Draw how many seconds a message or a request takes."""
        scale = self.faults.delay if not self.calm else 0.001
        return float(self.rng.exponential(scale)) + 0.0001
