"""The hosts of a job as its manager knows them: which are connected, and which are lost.

Rules
1. A host is there from its first report on. A report with a smaller number than the last came late,
   and does not count; the same report again is a sign of life of a host that is busy, and so is
   what its companion sends.
2. A host that is lost stays lost: what it reports when it comes back no longer counts.
3. A host that was not heard of for `silence` seconds is lost: its machine or the way to it is. When
   the connections of the host and of its companion are both closed, it is lost after `HUNG_UP`
   seconds without a sign: the processes died.
4. When a host has reported for `parted` seconds that it does not reach another, though both reach
   the manager, one of the two is lost, so that they need not reach each other: the one with which
   more is wrong (others that it does not reach or that do not reach it, now, and hosts that were
   lost on its account), else the one that reports it. A host at a long step cannot answer: that
   does not mean that it is out of reach.
5. If the manager itself stood still for a while, it could hear of no host: that time does not count
   as the hosts' silence. On a machine that hardly gets on it stands still again and again, for
   fractions of a second: so of the time between two looks at the clock no more counts than `LOOKS`
   of `silence`.
6. A host that gets ready gives signs of it before its first report. While there are any, the job is
   not without hosts.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from weir.job.messages import Preparing, Pulse, Report
from weir.job.poison import Step

HUNG_UP = 0.1
"""Seconds; see rule 3."""
LOOKS = 0.1
"""A share; see rule 5."""


@dataclass(slots=True)
class HostState:
    """Holds what the manager knows of a host."""

    session: str
    report: Report
    """Its last report."""
    heard: float
    """When it was last heard of."""
    step: Step | None = None
    """The step that it was at when it was last heard of."""
    taken: int = 0
    """Up to which of its facts the manager has all."""
    hung_up: float | None = None
    """When it and its companion had hung up, if it was not heard of since."""


class HostRegistry:
    """Keeps the hosts by the module's rules. A method that returns a text returns why the job ends;
    None: it goes on."""

    def __init__(self, now: float) -> None:
        self.hosts: dict[str, HostState] = {}
        """The hosts that are there, by session."""
        self.lost: set[str] = set()
        """The sessions of hosts that are lost."""
        self.preparing: dict[int, tuple[Preparing, float]] = {}
        """The hosts that get ready, by slot: what was heard of them last, and when."""
        self.first_came_at: float | None = None
        """When the first host of this manager came."""
        self._parted: dict[tuple[str, str], float] = {}
        """Since when a host has not reached another: (the one that reports it, the other)."""
        self._blamed: Counter[str] = Counter()
        """How many hosts were lost by rule 4 on account of each host."""
        self._alone_since = self._ticked_at = now
        """Since when there has been no host; when the manager last looked at the clock."""

    def is_overtaken(self, report: Report) -> bool:
        """Say whether a later report of the host came before this one."""
        host = self.hosts.get(report.session)
        return host is not None and report.number < host.report.number

    def hear(self, report: Report, now: float) -> bool:
        """Take in a report; say whether it is a new one."""
        host = self.hosts.get(report.session)
        is_new = host is None or report.number > host.report.number
        if host is None:
            host = self.hosts[report.session] = HostState(report.session, report, now)
            self.first_came_at = now if self.first_came_at is None else self.first_came_at
        self.preparing.pop(report.slot, None)
        host.report, host.heard, host.step, host.hung_up = report, now, report.step, None
        return is_new

    def feel(self, pulse: Pulse, now: float) -> None:
        """Take in a sign of life."""
        host = self.hosts.get(pulse.session)
        if host is not None:
            host.heard, host.step, host.hung_up = now, pulse.step, None

    def hang_up(self, session: str, now: float) -> None:
        """Take in that a host and its companion have hung up."""
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
        """Add the time that the manager stood still to when hosts were last heard of (rule 5)."""
        passed = now - self._ticked_at
        self._ticked_at = now
        slept = passed - silence * LOOKS
        if slept <= 0.0:
            return
        is_long = passed > silence / 2
        self._alone_since += slept
        if is_long:
            self._parted.clear()
        for host in self.hosts.values():
            host.heard = min(host.heard + slept, now)
            if host.hung_up is not None:
                host.hung_up = now if is_long else min(host.hung_up + slept, now)
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

    def only_busy(self, now: float, silence: float, seconds: float) -> bool:
        """Say whether there are hosts, and all are at steps that have taken so many seconds."""
        steps = [host.step for host in self.hosts.values() if now - host.heard <= silence]
        return bool(steps) and all(s is not None and s.seconds >= seconds for s in steps)

    def parted(self, now: float, limit: float) -> tuple[str, str] | None:
        """Find a host that is lost by rule 4, and why it is."""
        host_at = {host.report.address: host for host in self.hosts.values() if host.step is None}
        pairs = {
            (host.session, host_at[address].session)
            for host in self.hosts.values()
            for address in host.report.unreached
            if address in host_at
        }
        self._parted = {pair: self._parted.get(pair, now) for pair in sorted(pairs)}
        for pair, since in self._parted.items():
            if now - since > limit:
                one, other = pair
                wrong = self._blamed + Counter(session for p in pairs for session in p)
                lost, kept = (other, one) if wrong[other] > wrong[one] else (one, other)
                self._blamed[kept] += 1
                self._parted.clear()
                return lost, f"it and host {kept} do not reach each other"
        return None

    def lose(self, session: str) -> bool:
        """Count a host as lost; say whether it was there."""
        if self.hosts.pop(session, None) is None:
            return False
        self.lost.add(session)
        return True

    def absence(self, now: float, limit: float) -> str | None:
        """End the job if there has been no host for longer than `limit` seconds."""
        if self.hosts or self.preparing:
            self._alone_since = now
        elif now - self._alone_since > limit:
            return (
                f"no host has come for {limit:.0f} s. On Spark a host is a "
                "task, and needs a free slot for as long as the job lives: ask for fewer --hosts, "
                "or give it more cores; everything is kept, so fix it and run again with --resume"
            )
        return None
