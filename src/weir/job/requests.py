"""What a host has asked of the store, and who waits for the answer.

Rules
1. Of all that would write an object of one name, one is under way at a time, and so for reads:
   the answers name the object alone, so none may be taken for another's. The rest wait in turn.
2. An answer goes to whoever asked, if that is still there.
3. What failed is asked again after a while, unless nobody wants it any more.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeAlias, TypeVar

from weir.job.signals import Get, Put

RETRY_AFTER = 0.2
"""Seconds until a write, a read or a connection that failed is tried again."""

Owner = TypeVar("Owner")
Line: TypeAlias = tuple[type[Put] | type[Get], str]
"""Writes, or reads, of one name."""


@dataclass(frozen=True, slots=True)
class _OwnedCommand(Generic[Owner]):
    command: Put | Get
    owner: Owner


class Requests(Generic[Owner]):
    """The requests of a host that wait for an answer. What is to be handed to the store now is
    left in `ready`."""

    def __init__(self, wanted: Callable[[Owner], bool]) -> None:
        """`wanted` says whether an owner is still there."""
        self._wanted = wanted
        self._lines: dict[Line, deque[_OwnedCommand[Owner]]] = {}
        self._again: list[tuple[float, Line]] = []
        self.ready: list[Put | Get] = []

    def ask(self, command: Put | Get, owner: Owner) -> None:
        line = self._lines.setdefault((type(command), command.key), deque())
        line.append(_OwnedCommand(command, owner))
        if len(line) == 1:
            self.ready.append(command)

    def waits(self, command: Put | Get, owner: Owner) -> bool:
        """Whether this owner has asked for this, and was not answered yet."""
        line = self._lines.get((type(command), command.key), ())
        return any(request.owner is owner for request in line)

    def answered(self, kind: type[Put] | type[Get], key: str) -> Owner | None:
        """An answer came: whose it is, if anybody's."""
        line = self._lines.get((kind, key))
        if line is None:
            return None
        self._again = [(at, waiting) for at, waiting in self._again if waiting != (kind, key)]
        owner = line.popleft().owner
        self._next((kind, key))
        return owner if self._wanted(owner) else None

    def failed(self, kind: type[Put] | type[Get], key: str, now: float) -> bool:
        """It could not be done now; whether it will be tried again."""
        if (kind, key) not in self._lines:
            return False
        if all(line != (kind, key) for _, line in self._again):
            self._again.append((now + RETRY_AFTER, (kind, key)))
        return True

    def retry(self, now: float) -> None:
        """What failed long enough ago is ready again."""
        due = [line for when, line in self._again if when <= now]
        self._again = [(when, line) for when, line in self._again if when > now]
        for line in due:
            self._next(line)

    def _next(self, key: Line) -> None:
        line = self._lines[key]
        while line and not self._wanted(line[0].owner):
            line.popleft()
        if line:
            self.ready.append(line[0].command)
        else:
            del self._lines[key]
