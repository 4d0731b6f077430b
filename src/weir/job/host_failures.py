"""Decides which host failures count against a vertex, and which end the job.

Rules
1. A death counts once, however often the manager hears of it. The next manager does not count
   those again that are in the ledger.
2. A death in a step of a vertex is kept in the ledger until the vertex is cleared of it
   (`poison.py`).
3. `RELAPSES` deaths in no step, each less than `RELAPSES_WITHIN` seconds after the one before and
   with no checkpoint stored in between, end the job too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from weir.job.host_registry import HostState
from weir.job.ledger import Ledger
from weir.job.poison import RELAPSES, Death, cleared, sentence, suspect, verdict

RELAPSES_WITHIN = 60.0
"""Seconds: deaths in no step that are further apart do not count together."""


class HostFailures:
    """Keeps deaths by the module's rules. A method that returns a text returns why the job ends;
    None: it goes on."""

    def __init__(self, ledger: Ledger, titles: Mapping[str, str], deaths: int) -> None:
        self._ledger, self._titles, self._deaths = ledger, titles, deaths
        self._counted = {s.death.session for suspects in ledger.suspects.values() for s in suspects}
        """The sessions of hosts whose deaths have counted."""
        self._idle: list[float] = []
        """When the last deaths in no step were heard of, in short succession."""

    def is_news(self, death: Death) -> bool:
        """Say whether this death has not counted yet; from now on it has."""
        is_new = death.session not in self._counted
        self._counted.add(death.session)
        return is_new

    def blame(self, vertex: str, death: Death) -> str | None:
        """Count a death in a step of this vertex against the vertex."""
        checkpoints = self._ledger.checkpoints.get(vertex, ())
        number = checkpoints[-1].number if checkpoints else -1
        suspects = suspect(self._ledger.suspects.get(vertex, ()), death, number)
        self._ledger.suspects[vertex] = suspects
        guilty = verdict(suspects, self._deaths)
        return sentence(guilty, self._titles) if guilty else None

    def note_idle(self, death: Death, now: float) -> str | None:
        """Count a death in no step: one may happen, many in short succession end the job."""
        recent = self._idle and now - self._idle[-1] < RELAPSES_WITHIN
        self._idle = [*self._idle, now] if recent else [now]
        if len(self._idle) < RELAPSES:
            return None
        return (
            f"hosts died {RELAPSES} times in short succession without storing anything in "
            f"between, and in no step of a vertex: {death.cause}; everything is kept, so fix "
            "it and run again with --resume"
        )

    def clear(self, vertex: str, before: tuple[int, ...] | None) -> None:
        """Clear a vertex of deaths, as far as its new checkpoint allows. `before` are the input
        positions of the checkpoint before that one, if there was one."""
        self._idle = []
        suspects = self._ledger.suspects.get(vertex)
        if suspects is None:
            return
        left = cleared(suspects, self._ledger.checkpoints[vertex][-1].inputs, before)
        if left:
            self._ledger.suspects[vertex] = left
        else:
            del self._ledger.suspects[vertex]

    def overdue(self, hosts: Iterable[HostState], limit: float) -> str | None:
        """Find a step that has taken longer than `limit` seconds: it ends the job."""
        for step in (host.step for host in hosts):
            if step is not None and step.phase == "step" and step.seconds > limit:
                title = self._titles.get(step.vertex, "")
                return (
                    f"vertex {step.vertex}{f', {title},' if title else ''} has been at one step "
                    f"for {step.seconds:.0f} s, {step.rows}, and step_limit is {limit:g} s; "
                    "everything is kept, so fix it or raise the limit, and run again with "
                    "--resume"
                )
        return None
