"""Tracks which of a job's processes cannot use the store, since when, and what follows.

Rules
1. A process is in trouble from the first request that failed until one succeeds. What it asked for
   is asked again all the while, and nothing is lost.
2. The story reports a process that has been in trouble for `TELL_AFTER` seconds, and the end of
   the trouble.
3. A host that alone is in trouble for long is given up: others can reach the store, so its vertices
   go to them. That others can is known when the manager has written a record meanwhile and another
   host has no trouble.
4. The job ends when the trouble will last, as the store says, or has lasted too long.
5. Trouble lasts until the process last reported it: while a host is busy, nobody knows whether
   its trouble is over.
"""

from __future__ import annotations

from dataclasses import dataclass

from weir.wording import counted

TELL_AFTER = 1.0
MANAGER = "the job manager"


@dataclass(slots=True)
class _Trouble:
    """What keeps a process from using the store."""

    since: float
    heard: float
    why: str
    lasts: bool
    is_told: bool = False

    @property
    def seconds(self) -> float:
        """How long it has lasted, by rule 5."""
        return self.heard - self.since


class StoreTrouble:
    """Keeps who is in trouble, by the module's rules; `who` is a host's session, or the manager."""

    def __init__(self, now: float) -> None:
        self._troubles: dict[str, _Trouble] = {}
        self._ended: list[str] = []
        """What the story is to say of troubles that have ended."""
        self._recorded_at = now
        """When the manager last wrote a record."""

    def hear(self, who: str, why: str | None, lasts: bool, now: float) -> None:
        """Take in what keeps a process from using the store; None: nothing does."""
        trouble = self._troubles.get(who)
        if not why:
            if trouble is not None and trouble.is_told:
                seconds = now - trouble.since
                self._ended.append(f"{_named(who)} can use the store again, after {seconds:.1f} s")
            self._troubles.pop(who, None)
        elif trouble is None:
            self._troubles[who] = _Trouble(now, now, why, lasts)
        else:
            trouble.heard, trouble.why, trouble.lasts = now, why, lasts

    def record_written(self, now: float) -> None:
        self._recorded_at = now
        self.hear(MANAGER, None, False, now)

    def forget(self, session: str) -> None:
        """Forget a host that is lost."""
        self._troubles.pop(session, None)

    def news(self, now: float) -> list[str]:
        """Say what the story does not know yet (rule 2)."""
        lines, self._ended = self._ended, []
        for who, trouble in self._troubles.items():
            if not trouble.is_told and now - trouble.since >= TELL_AFTER:
                trouble.is_told = True
                lines.append(f"{_named(who)} cannot use the store: {trouble.why}")
        return lines

    def alone(self, hosts: int, limit: float) -> dict[str, str]:
        """Find the hosts to give up by rule 3, of so many that are there, and why."""
        troubled = [who for who in self._troubles if who != MANAGER]
        if MANAGER in self._troubles or len(troubled) >= hosts:
            return {}
        trouble_of = {who: self._troubles[who] for who in troubled}
        return {
            who: f"it cannot use the store, and others can: {trouble.why}"
            for who, trouble in trouble_of.items()
            if trouble.seconds > limit and self._recorded_at > trouble.since + limit / 2
        }

    def why_job_ends(self, limit: float) -> str | None:
        """Say why the job ends by rule 4; None: it goes on. The manager's own end is for its
        records to say."""
        for who, trouble in self._troubles.items():
            if who != MANAGER and (trouble.lasts or trouble.seconds > limit):
                return (
                    f"{_named(who)} cannot go on: {trouble.why}; everything is kept, so fix it "
                    "and run again with --resume"
                )
        return None

    def text(self, now: float) -> str | None:
        """Describe the trouble for onlookers; None: there is none."""
        if not self._troubles:
            return None
        first = min(self._troubles.values(), key=lambda trouble: trouble.since)
        hosts = len([who for who in self._troubles if who != MANAGER])
        named = [MANAGER] if MANAGER in self._troubles else []
        named += [counted(hosts, "host")] if hosts else []
        return f"{first.why} ({' and '.join(named)}, for {now - first.since:.0f} s)"


def _named(who: str) -> str:
    return who if who == MANAGER else f"host {who}"
