"""Deaths of hosts as the manager keeps them: which count against a vertex, and when the job ends.

Rules
1. A death is mourned once, whichever manager hears of it, and however often.
2. Deaths in a step are kept in the ledger until their vertex is cleared of them (`poison.py`).
3. Deaths in no step, in short succession and with nothing stored in between, end the job too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from weir.job.ledger import Ledger
from weir.job.poison import RELAPSES, Death, cleared, sentence, suspect, verdict
from weir.job.watching import HostState

RELAPSES_WITHIN = 60.0
"""Deaths in no step that are further apart do not count together."""


class Mourning:
    """Keeps deaths by the module's rules. Whatever ends the job is said by a sentence; else it is
    empty."""

    def __init__(self, ledger: Ledger, titles: Mapping[str, str], deaths: int) -> None:
        self._ledger, self._titles, self._deaths = ledger, titles, deaths
        self._mourned = {s.death.session for known in ledger.suspects.values() for s in known}
        self._idle: list[float] = []

    def is_news(self, death: Death) -> bool:
        """Whether this death was not mourned yet; from now on it is."""
        is_new = death.session not in self._mourned
        self._mourned.add(death.session)
        return is_new

    def blame(self, vertex: str, death: Death) -> str:
        """It died in a step of this vertex."""
        checkpoints = self._ledger.checkpoints.get(vertex, ())
        number = checkpoints[-1].number if checkpoints else -1
        known = suspect(self._ledger.suspects.get(vertex, ()), death, number)
        self._ledger.suspects[vertex] = known
        found = verdict(known, self._deaths)
        return sentence(found, self._titles) if found else ""

    def note_idle(self, death: Death, now: float) -> str:
        """It died in no step. That happens; but not again and again."""
        recent = self._idle and now - self._idle[-1] < RELAPSES_WITHIN
        self._idle = [*self._idle, now] if recent else [now]
        if len(self._idle) < RELAPSES:
            return ""
        return (
            f"hosts died {RELAPSES} times in short succession without storing anything in "
            f"between, and in no step of a vertex: {death.cause}; everything is kept, so mend "
            "it and run again with --resume"
        )

    def clear(self, vertex: str, before: tuple[int, ...] | None) -> None:
        """The vertex has stored a checkpoint, behind one at these positions."""
        self._idle = []
        known = self._ledger.suspects.pop(vertex, ())
        left = cleared(known, self._ledger.checkpoints[vertex][-1].inputs, before)
        if left:
            self._ledger.suspects[vertex] = left

    def overdue(self, hosts: Iterable[HostState], limit: float) -> str:
        """A step that has taken longer than so many seconds."""
        for step in (host.step for host in hosts):
            if step is not None and step.phase == "step" and step.seconds > limit:
                title = self._titles.get(step.vertex, "")
                return (
                    f"vertex {step.vertex}{f', {title},' if title else ''} has been at one step "
                    f"for {step.seconds:.0f} s, {step.rows}, and step_limit is {limit:g} s; "
                    "everything is kept, so mend it or raise the limit, and run again with "
                    "--resume"
                )
        return ""
