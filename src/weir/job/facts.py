"""Facts, numbered by whoever finds them out, until the other side has acknowledged them.

Rules
1. A sender numbers its facts: a host within its session, a manager for each session within its
   epoch. A fact that replaces another one gets a new number, and the other is left out.
2. A message says all facts after a number that are still true. It is taken only by who has all up
   to that number; from then on the receiver has all up to the last one. What comes late, twice or
   out of order is not taken, and what was lost is said again.
3. The receiver acknowledges the number up to which it has all, with every message of its own. The
   sender forgets facts that were acknowledged. Who needs one of these all the same (a new manager,
   say) is told everything, from 0 on.

So a message that is lost, late or doubled costs time and nothing else: the next one says all that
the other side does not have.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, TypeVar

_Key = TypeVar("_Key", bound=Hashable)
_Value = TypeVar("_Value")


class Facts(Generic[_Key, _Value]):
    """Keeps the facts of a sender that were not acknowledged, by key.

    >>> facts = Facts[str, int]()
    >>> facts.say("a", 1); facts.say("b", 2); facts.say("a", 3)
    >>> facts.since(1), facts.since(3), facts.number
    ([('b', 2), ('a', 3)], [('a', 3)], 4)
    >>> facts.acknowledge(3)
    >>> facts.since(3), facts.since(2)
    ([('a', 3)], None)
    """

    def __init__(self) -> None:
        self.number = 1
        """The number of the last fact. The first stands for what was so at the beginning: who has
        been told everything has at least that."""
        self.acknowledged = 0
        """The number up to which all facts were acknowledged."""
        self._facts: dict[_Key, tuple[int, _Value]] = {}
        """The facts after that, in the order of their numbers."""

    def say(self, key: _Key, value: _Value) -> None:
        """Add a fact, in place of the last one of this key."""
        self.number += 1
        self._facts.pop(key, None)
        self._facts[key] = (self.number, value)

    def since(self, number: int) -> list[tuple[_Key, _Value]] | None:
        """List the facts after a number, in order; None: some are forgotten, or there is no such
        number, so say everything."""
        if not self.acknowledged <= number <= self.number:
            return None
        later: list[tuple[_Key, _Value]] = []
        for key, (said, value) in reversed(self._facts.items()):
            if said <= number:
                break
            later.append((key, value))
        later.reverse()
        return later

    def acknowledge(self, number: int) -> None:
        """Take in that the receiver has all facts up to a number."""
        if not self.acknowledged < number <= self.number:
            return
        self.acknowledged = number
        over: list[_Key] = []
        for key, (said, _) in self._facts.items():
            if said > number:
                break
            over.append(key)
        for key in over:
            del self._facts[key]
