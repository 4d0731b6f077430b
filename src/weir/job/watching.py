"""The hosts of a job as its manager sees them: who is there, who is lost, and what they wait for.

Rules
1. A host comes with its first report. A report with a smaller number than the last is overtaken;
   the same one again is a sign of life of a host that is busy.
2. A host that is lost stays lost: what it says when it comes back counts no longer.
3. A manager that stood still itself has no reason to think that all hosts did: it gives them the
   time that it slept.
"""

from __future__ import annotations

from dataclasses import dataclass

from weir.job.messages import Pulse, Report
from weir.job.poison import Step


@dataclass(slots=True)
class HostState:
    """What is known of a host."""

    session: str
    report: Report
    heard: float
    trouble_since: float | None = None
    step: Step | None = None
    """What it is at, as last heard."""


class HostWatch:
    """Keeps the hosts by the module's rules. Whatever ends the job is said by a sentence; else it
    is empty."""

    def __init__(self, now: float) -> None:
        self.hosts: dict[str, HostState] = {}
        """The hosts that are there, by session."""
        self.lost: set[str] = set()
        """Sessions that were there."""
        self.first_came_at: float | None = None
        """When the first host of this manager came."""
        self._alone_since = self._ticked_at = now

    def is_overtaken(self, report: Report) -> bool:
        known = self.hosts.get(report.session)
        return known is not None and report.number < known.report.number

    def hear(self, report: Report, now: float) -> bool:
        """Take in a report; whether it says anything new."""
        known = self.hosts.get(report.session)
        is_new = known is None or report.number > known.report.number
        if known is None:
            known = self.hosts[report.session] = HostState(report.session, report, now)
            self.first_came_at = now if self.first_came_at is None else self.first_came_at
        known.report, known.heard, known.step = report, now, report.step
        if not report.trouble:
            known.trouble_since = None
        elif known.trouble_since is None:
            known.trouble_since = now
        return is_new

    def feel(self, pulse: Pulse, now: float) -> None:
        """Take in a sign of life."""
        host = self.hosts.get(pulse.session)
        if host is not None:
            host.heard, host.step = now, pulse.step

    def allow_for_sleep(self, now: float, silence: float) -> None:
        """Rule 3: move on what was last heard by the time that the manager stood still."""
        slept = now - self._ticked_at
        self._ticked_at = now
        if slept > silence / 2:
            self._alone_since += slept
            for host in self.hosts.values():
                host.heard = min(host.heard + slept, now)

    def silent(self, now: float, silence: float) -> list[str]:
        """The sessions that were not heard of for so many seconds."""
        return [s for s, host in self.hosts.items() if now - host.heard > silence]

    def lose(self, session: str) -> bool:
        """Give a host up; whether it was there."""
        if self.hosts.pop(session, None) is None:
            return False
        self.lost.add(session)
        return True

    def trouble(self, now: float, limit: float) -> str:
        """A host that has been in trouble for longer than so many seconds."""
        for host in self.hosts.values():
            if host.trouble_since is not None and now - host.trouble_since > limit:
                return (
                    f"host {host.session} cannot go on: {host.report.trouble}; everything is "
                    "kept, so mend it and run again with --resume"
                )
        return ""

    def absence(self, now: float, limit: float) -> str:
        """That there has been no host for longer than so many seconds."""
        if self.hosts:
            self._alone_since = now
        elif now - self._alone_since > limit:
            return (
                f"no host has come for {limit:.0f} s. On Spark a host is a "
                "task, and needs a free slot for as long as the job lives: ask for fewer --hosts, "
                "or give it more cores; everything is kept, so mend it and run again with --resume"
            )
        return ""
