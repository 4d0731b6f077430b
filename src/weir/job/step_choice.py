"""Chooses which instances of a host step, so that a step has enough to do.

Rules
1. Only instances for which something came are looked at; `note` says what.
2. An instance steps when `STEP_ROWS` rows wait for it, when what waits came a while ago, or when no
   other instance of the host can step. So a host without other work steps at once, and one that has
   much to do takes larger steps. Cuts change no answer, so the host may choose.
3. A while is `wait` seconds, and `SHARE` times what the waiting instances' last steps took in all,
   but at most `MOST_WAIT`: so many instances do not spend their time on many small steps.
4. Claims without rows count only if they let the instance go on: it must know more of all the
   inputs of a port (`lets_go_on`). Others are read after `CLAIMS_WAIT` seconds, or with rows.
5. An instance that is held up waits without a time, and holds up no other one by rule 2.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from weir.reliable.cursor import STEP_ROWS

SHARE = 4.0
MOST_WAIT = 0.1
CLAIMS_WAIT = 0.05


@dataclass(slots=True)
class _StepReason:
    """What waits for an instance: since when, how many rows, and whether it lets it go on (None:
    that was not asked since something came)."""

    since: float
    rows: int = 0
    goes_on: bool | None = None


class StepChoice:
    """Keeps what waits for which instance, by the module's rules."""

    def __init__(
        self,
        wait: float,
        is_able: Callable[[str], bool],
        lets_go_on: Callable[[str], bool],
    ) -> None:
        """`is_able` says whether an instance may step, `lets_go_on` whether the claims that came do
        what rule 4 says; both take a vertex."""
        self._wait, self._is_able, self._lets_go_on = wait, is_able, lets_go_on
        self._waiting: dict[str, _StepReason] = {}
        """What waits, by vertex; what has waited longest comes first."""
        self._cost: dict[str, float] = {}
        """How many seconds the last step of each vertex took."""
        self.next_due = math.inf
        """When an instance is to step, if nothing comes before."""

    def note(self, vertex: str, rows: int, now: float) -> None:
        """Take in that something came for an instance."""
        waiting = self._waiting.get(vertex)
        if waiting is None:
            self._waiting[vertex] = _StepReason(now, rows)
            return
        waiting.rows += rows
        waiting.goes_on = None

    def forget(self, vertex: str) -> None:
        """Take in that an instance is gone."""
        self._waiting.pop(vertex, None)
        self._cost.pop(vertex, None)

    def stepped(self, vertex: str, seconds: float, *, has_more: bool, now: float) -> None:
        """Take in that an instance took a step of so many seconds, and whether something waits."""
        self._cost[vertex] = seconds
        self._waiting.pop(vertex, None)
        if has_more:
            self._waiting[vertex] = _StepReason(now, 1)

    def forced(self, vertex: str) -> list[str]:
        """Name this vertex, if something waits for it and it may step."""
        return [vertex] if vertex in self._waiting and self._is_able(vertex) else []

    def choose(self, now: float) -> list[str]:
        """Name the instances that step now."""
        self.next_due = math.inf
        able = {v: w for v, w in self._waiting.items() if self._is_able(v)}
        cost = sum(self._cost.get(vertex, 0.0) for vertex in able)
        wait = max(self._wait, min(SHARE * cost, MOST_WAIT))
        due = [v for v, w in able.items() if w.rows >= STEP_ROWS]
        if not due:
            due = [v for v, w in able.items() if self._goes_on(v, w)][:1]
        for vertex, waiting in able.items():
            if vertex in due:
                continue
            most = wait if self._goes_on(vertex, waiting) else max(wait, CLAIMS_WAIT)
            if waiting.since + most <= now:
                due.append(vertex)
            else:
                self.next_due = min(self.next_due, waiting.since + most)
        return due

    def _goes_on(self, vertex: str, waiting: _StepReason) -> bool:
        if waiting.rows:
            return True
        if waiting.goes_on is None:
            waiting.goes_on = self._lets_go_on(vertex)
        return waiting.goes_on
