"""The requests of a host to the store, and who waits for each answer.

Rules
1. Of several writes of one object, only one is under way at a time, and the rest wait in turn; the
   same holds for reads. An answer names only the object, so with two under way it could be taken
   for the answer to the other.
2. An answer goes to whoever asked, if that instance or stream is still there.
3. A request that failed is repeated after a while, unless nobody wants the answer any more.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeAlias, TypeVar

from weir.job.signals import Get, Put

RETRY_AFTER = 0.2
"""Seconds until a write, a read or a connection that failed is tried again."""

_Owner = TypeVar("_Owner")
Line: TypeAlias = tuple[type[Put] | type[Get], str]
"""Requests that wait in turn: the writes, or the reads, of one object."""


@dataclass(frozen=True, slots=True)
class _OwnedCommand(Generic[_Owner]):
    """A request and whoever made it."""

    command: Put | Get
    owner: _Owner


class Requests(Generic[_Owner]):
    """Keeps the requests of a host that wait for an answer. The host takes from `ready` what is to
    be sent to the store now."""

    def __init__(self, is_present: Callable[[_Owner], bool]) -> None:
        """`is_present` says whether an owner is still there."""
        self._is_present = is_present
        self._lines: dict[Line, deque[_OwnedCommand[_Owner]]] = {}
        """The requests in turn; the first of each line is under way."""
        self._again: list[tuple[float, Line]] = []
        """When to repeat the first request of a line, which has failed."""
        self.ready: list[Put | Get] = []

    def ask(self, command: Put | Get, owner: _Owner) -> None:
        """Add a request, which is sent as soon as it is its turn."""
        line = self._lines.setdefault((type(command), command.key), deque())
        line.append(_OwnedCommand(command, owner))
        if len(line) == 1:
            self.ready.append(command)

    def waits(self, command: Put | Get, owner: _Owner) -> bool:
        """Say whether this owner has made this request, and was not answered yet."""
        line = self._lines.get((type(command), command.key), ())
        return any(request.owner is owner for request in line)

    def answered(self, kind: type[Put] | type[Get], key: str) -> _Owner | None:
        """Take in that an answer came; return who asked for it, if anybody still wants it."""
        line = self._lines.get((kind, key))
        if line is None:
            return None
        self._again = [(at, waiting) for at, waiting in self._again if waiting != (kind, key)]
        owner = line.popleft().owner
        self._next((kind, key))
        return owner if self._is_present(owner) else None

    def failed(self, kind: type[Put] | type[Get], key: str, now: float) -> bool:
        """Take in that a request failed; say whether it will be repeated."""
        if (kind, key) not in self._lines:
            return False
        if all(line != (kind, key) for _, line in self._again):
            self._again.append((now + RETRY_AFTER, (kind, key)))
        return True

    def retry(self, now: float) -> None:
        """Repeat the requests that failed long enough ago."""
        due = [line for when, line in self._again if when <= now]
        self._again = [(when, line) for when, line in self._again if when > now]
        for line in due:
            self._next(line)

    @property
    def next_due(self) -> float:
        """When to repeat a request again, if any has failed."""
        return min((when for when, _ in self._again), default=math.inf)

    def _next(self, key: Line) -> None:
        """Send the first request of a line whose owner is still there."""
        line = self._lines[key]
        while line and not self._is_present(line[0].owner):
            line.popleft()
        if line:
            self.ready.append(line[0].command)
        else:
            del self._lines[key]
