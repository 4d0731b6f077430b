"""The horizon of a stage is how far back its state reaches: what replay has to read again.

A stage that has taken in everything before T can be rebuilt without a snapshot if nothing that
comes out of it later depends on rows that start before T − `ticks`. Two numbers follow the rows
through its operators:

    reach   input that is right from time a on (below it: anything) makes rows right from a + reach
            on. A row lives L at most: a result that it is part of starts less than L after it, one
            that begins where it ends at most L after it.
    lag     at T the operator has taken in its own input up to T − lag: the holds before it.

All that an operator gives later starts at T − lag or later, and is right if that is a + reach or
later. So the horizon is reach + lag at the last operator with state. An operator that looks at
all of history has no horizon, nor has one that asks for L where the program does not bound it.

Each operator says in its own module what it adds (`Operator.horizon_step`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from weir.plan.durations import duration_text
from weir.plan.holds import longest_lifetimes
from weir.plan.operators import Node
from weir.plan.operators.facts import NO_STEP
from weir.plan.operators.spans import Span
from weir.plan.stages import Branch, Stage, StagedPlan


@dataclass(frozen=True, slots=True)
class Horizon:
    """A `Horizon` says how far back a stage depends on its input.

    `ticks` is None where the stage depends on all of history; `why` says by what.

    `reaches` has, for each operator of the stage, the reach after it. A stage without state has a
    horizon of −1: it needs no row again, waiting ones included.
    """

    ticks: int | None
    why: str
    reaches: tuple[int, ...] = ()

    @property
    def known(self) -> bool:
        return self.ticks is not None

    def __str__(self) -> str:
        if self.ticks is None:
            return "all of history"
        return _shown(self.ticks) if self.ticks >= 0 else "nothing"


def _shown(ticks: int) -> str:
    """Write a duration, rounded up to the millisecond where that is shorter to read."""
    return duration_text(-(-ticks // 1000) * 1000 if ticks > 1000 else ticks)


def horizons(plan: StagedPlan) -> tuple[Horizon, ...]:
    """Compute the horizon of each stage."""
    operators = [o for s in plan.stages for o in s.operators if not isinstance(o, Branch)]
    lives = longest_lifetimes(operators)
    return tuple(_horizon(stage, lives) for stage in plan.stages)


def _horizon(stage: Stage, lives: Mapping[Node, Span]) -> Horizon:
    reach = lag = 0
    ticks, reaches = -1, []
    unknown = ""  # why the reach is not known from here on, if a stateful operator follows
    for operator in stage.operators:
        step, stateless = NO_STEP, True
        if not isinstance(operator, Branch):
            step = operator.horizon_step([lives[i] for i in operator.inputs])
            stateless = operator.stateless
        unknown = unknown or step.endless
        reach, lag = reach + step.reach, lag + step.lag
        reaches.append(reach)
        if not stateless:
            if unknown:
                return Horizon(None, unknown)
            ticks = reach + lag
    why = "it keeps nothing" if ticks < 0 else f"what comes depends on {_shown(ticks)} of input"
    return Horizon(ticks, why, tuple(reaches))
