"""The values with which operators state their facts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, TypeAlias

from weir.plan.expressions import Expr, columns_of
from weir.plan.operators.spans import Span

if TYPE_CHECKING:
    from weir.plan.operators import Node

LIFETIME = frozenset(("vs", "ve"))

Names = frozenset[str]
Predicates = tuple[Expr, ...]


class Meet(Enum):
    """Which rows an operator brings together, if not the rows of equal keys."""

    NEVER = "an operator that runs wherever its rows are"
    ALL = "an operator in which any two rows may meet"


Meeting: TypeAlias = Meet | tuple[tuple[str, ...], ...]
"""Which rows an operator brings together: for each input, the columns that such rows share."""


def meeting_by(*keys: tuple[str, ...]) -> Meeting:
    """State that rows of equal keys meet; without keys, all rows do."""
    return keys if keys[0] else Meet.ALL


# --- horizon -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class HorizonStep:
    """What an operator adds to the reach and the lag of its stage (`plan/horizon.py`).

    If it depends on all of history, `endless` is the reason, and `instead` is what a program can
    write that needs less.
    """

    reach: int = 0
    lag: int = 0
    endless: str = ""
    instead: str = ""


NO_STEP = HorizonStep()


def endless(why: str, instead: str) -> HorizonStep:
    """Return the step of an operator that depends on all of history."""
    return HorizonStep(endless=why, instead=instead)


def bounded(name: str, life: Span, step: Callable[[int], HorizonStep]) -> HorizonStep:
    """Return the step that follows from how long the input's rows are valid.

    It is endless if the program does not bound that.
    """
    if life.known:
        return step(life.ticks)
    return endless(
        f"{name} over events whose lifetime the program does not bound "
        "(CLIP_DURATION or CHOP before it would)",
        "CLIP_DURATION or CHOP before it",
    )


def last_instant(life: int) -> int:
    """Return the reach of operators that use rows while they are valid, but not their ends."""
    return max(life - 1, 0)


# --- filters that go down ------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Pushed:
    """Where the predicates that arrive at an operator go.

    Some stay `above` it; some go `below`, to each input. The operator is None if it was only a
    filter.
    """

    node: Node | None
    above: Predicates
    below: tuple[Predicates, ...]


def none_sinks(node: Node, arriving: Predicates) -> Pushed:
    """Let all predicates stay above the operator."""
    return Pushed(node, arriving, ((),) * len(node.inputs))


def reads_lifetime(predicate: Expr) -> bool:
    """Tell whether the predicate reads the lifetime of a row."""
    return bool(columns_of(predicate) & LIFETIME)


def sinking(node: Node, arriving: Predicates, sinks: Callable[[Expr], bool]) -> Pushed:
    """Let the predicates for which `sinks` holds go below an operator with one input."""
    below = tuple(p for p in arriving if sinks(p))
    above = tuple(p for p in arriving if p not in below)
    return Pushed(node, above, (below,))
