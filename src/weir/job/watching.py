"""The hosts of a job as its manager sees them: who is there, who is lost, and who is in trouble.

Rules
1. A host is there from its first report on. A report with a smaller number than the last came late,
   and does not count; the same report again is a sign of life of a host that is busy, and so is
   what its companion sends.
2. A host that is lost stays lost: what it reports when it comes back no longer counts.
3. A host that was not heard of for `silence` seconds is lost: its machine or the way to it is. When
   its companion hangs up, that is so after `HUNG_UP` seconds without a sign: its processes died.
4. If the manager itself stood still for a while, it could hear of no host: that time does not count
   as the hosts' silence.
5. A host that gets ready gives signs of it before its first report. While there are any, the job is
   not without hosts.
"""

from __future__ import annotations

from dataclasses import dataclass

from weir.job.messages import Preparing, Pulse, Report
from weir.job.poison import Step

HUNG_UP = 0.15
"""Seconds; see rule 3."""


@dataclass(slots=True)
class HostState:
    """Holds what the manager knows of a host."""

    session: str
    report: Report
    """Its last report."""
    heard: float
    """When it was last heard of."""
    trouble_since: float | None = None
    """Since when it has reported that it is in trouble."""
    step: Step | None = None
    """The step that it was at when it was last heard of."""
    hung_up: float | None = None
    """When its companion hung up, if it was not heard of since."""


class HostWatch:
    """Keeps the hosts by the module's rules. A method that returns a text returns why the job ends,
    or an empty text if it goes on."""

    def __init__(self, now: float) -> None:
        self.hosts: dict[str, HostState] = {}
        """The hosts that are there, by session."""
        self.lost: set[str] = set()
        """The sessions of hosts that are lost."""
        self.preparing: dict[int, tuple[Preparing, float]] = {}
        """The hosts that get ready, by slot: what was heard of them last, and when."""
        self.first_came_at: float | None = None
        """When the first host of this manager came."""
        self._alone_since = self._ticked_at = now
        """Since when there has been no host; when the manager last looked at the clock."""

    def is_overtaken(self, report: Report) -> bool:
        """Say whether a later report of the host came before this one."""
        known = self.hosts.get(report.session)
        return known is not None and report.number < known.report.number

    def hear(self, report: Report, now: float) -> bool:
        """Take in a report; say whether it is a new one."""
        known = self.hosts.get(report.session)
        is_new = known is None or report.number > known.report.number
        if known is None:
            known = self.hosts[report.session] = HostState(report.session, report, now)
            self.first_came_at = now if self.first_came_at is None else self.first_came_at
        self.preparing.pop(report.slot, None)
        known.report, known.heard, known.step, known.hung_up = report, now, report.step, None
        if not report.trouble:
            known.trouble_since = None
        elif known.trouble_since is None:
            known.trouble_since = now
        return is_new

    def feel(self, pulse: Pulse, now: float) -> None:
        """Take in a sign of life."""
        host = self.hosts.get(pulse.session)
        if host is not None:
            host.heard, host.step, host.hung_up = now, pulse.step, None

    def hang_up(self, session: str, now: float) -> None:
        """Take in that the companion of a host is gone."""
        host = self.hosts.get(session)
        if host is not None:
            host.hung_up = now

    def see_preparing(self, preparing: Preparing, now: float) -> bool:
        """Take in that a host gets ready; say whether that is new."""
        is_new = preparing.slot not in self.preparing
        self.preparing[preparing.slot] = (preparing, now)
        return is_new

    def forget_preparing(self, now: float, silence: float) -> None:
        """Forget the hosts that got ready, and were not heard of for so many seconds."""
        for slot, (_, heard) in list(self.preparing.items()):
            if now - heard > silence:
                del self.preparing[slot]

    def allow_for_sleep(self, now: float, silence: float) -> None:
        """Add the time that the manager stood still to when hosts were last heard of (rule 4)."""
        slept = now - self._ticked_at
        self._ticked_at = now
        if slept > silence / 2:
            self._alone_since += slept
            for host in self.hosts.values():
                host.heard = min(host.heard + slept, now)
                host.hung_up = now if host.hung_up is not None else None
            for slot, (preparing, heard) in self.preparing.items():
                self.preparing[slot] = (preparing, min(heard + slept, now))

    def silent(self, now: float, silence: float) -> dict[str, str]:
        """Find the hosts that are lost by rule 3, and why they are."""
        lost = {}
        for session, host in self.hosts.items():
            if now - host.heard > silence:
                lost[session] = "not heard of"
            elif host.hung_up is not None and now - host.hung_up > HUNG_UP:
                lost[session] = "its processes are gone"
        return lost

    def lose(self, session: str) -> bool:
        """Count a host as lost; say whether it was there."""
        if self.hosts.pop(session, None) is None:
            return False
        self.lost.add(session)
        return True

    def trouble(self, now: float, limit: float) -> str:
        """Find a host that has been in trouble for longer than `limit` seconds: it ends the job."""
        for host in self.hosts.values():
            if host.trouble_since is not None and now - host.trouble_since > limit:
                return (
                    f"host {host.session} cannot go on: {host.report.trouble}; everything is "
                    "kept, so mend it and run again with --resume"
                )
        return ""

    def absence(self, now: float, limit: float) -> str:
        """End the job if there has been no host for longer than `limit` seconds."""
        if self.hosts or self.preparing:
            self._alone_since = now
        elif now - self._alone_since > limit:
            return (
                f"no host has come for {limit:.0f} s. On Spark a host is a "
                "task, and needs a free slot for as long as the job lives: ask for fewer --hosts, "
                "or give it more cores; everything is kept, so mend it and run again with --resume"
            )
        return ""
