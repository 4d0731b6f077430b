"""How a vertex is recovered (StreamScope §4.4).

checkpoint(every)   its snapshot goes to the store every so many seconds
replay              no state is kept, only positions: the state is rebuilt from input
replicate(k)        k instances run at once; one of them takes checkpoints
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from weir.errors import PlanError
from weir.plan.durations import parse_duration

DEFAULT_EVERY = 10.0


@dataclass(frozen=True, slots=True)
class Strategy:
    """See the module's docstring. `every` is in seconds."""

    kind: Literal["checkpoint", "replay", "replicate"] = "checkpoint"
    every: float = DEFAULT_EVERY
    copies: int = 1

    def __str__(self) -> str:
        match self.kind:
            case "checkpoint":
                return f"checkpoint({self.every:g}s)"
            case "replay":
                return "replay"
            case "replicate":
                return f"replicate({self.copies})"


def parse_strategy(text: str) -> Strategy:
    """The strategy that a script names.

    >>> parse_strategy("checkpoint(500ms)")
    Strategy(kind='checkpoint', every=0.5, copies=1)
    >>> str(parse_strategy("replicate(2)"))
    'replicate(2)'
    """
    match = re.fullmatch(r"\s*(\w+)\s*(?:\(\s*([^()]*?)\s*\))?\s*", text)
    kind, argument = match.groups() if match else (text, None)
    if kind == "replay" and argument is None:
        return Strategy("replay")
    if kind == "checkpoint":
        if argument is None:
            return Strategy()
        ticks = parse_duration(argument)
        if ticks > 0:
            return Strategy("checkpoint", ticks / 1e6)
    if kind == "replicate" and argument is not None and argument.isdigit() and int(argument) > 1:
        return Strategy("replicate", copies=int(argument))
    hint = "checkpoint(10s), replay or replicate(2)"
    raise PlanError(f"unknown strategy '{text}'", hint=hint)
