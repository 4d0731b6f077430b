"""The horizon of a stage is how far back its state reaches: what replay has to read again.

A stage that has processed everything before T can be rebuilt without a snapshot if its later output
does not depend on rows that start before T − `ticks`. Two numbers follow the rows through its
operators:

    reach   If the input is right from time a on (before a, it may be anything), then rows are
            right from a + reach on. A row is valid for L at most. A result that it is part of
            starts less than L after it; a result that begins where it ends, at most L after it.
    lag     At T, the operator has processed its own input up to T − lag, because of the holds
            before it.

Everything that an operator returns later starts at T − lag or later, and is right from a + reach
on. So the horizon is reach + lag at the last operator with state. An operator that depends on all
of history has no horizon, nor has one that needs L if the program does not bound L.

Each operator states in its own module what it adds (`Operator.horizon_step`).
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
    """How far back a stage depends on its input.

    `ticks` is None if the stage depends on all of history; then `why` has the reason.

    `reaches` has the reach after each operator of the stage. A stage without state has a horizon of
    −1: it needs no row again, not even rows that wait.
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
    """Return a duration as text, rounded up to the millisecond if that is shorter."""
    return duration_text(-(-ticks // 1000) * 1000 if ticks > 1000 else ticks)


def horizons(plan: StagedPlan) -> tuple[Horizon, ...]:
    """Compute the horizon of each stage."""
    operators = [o for s in plan.stages for o in s.operators if not isinstance(o, Branch)]
    lives = longest_lifetimes(operators)
    return tuple(_horizon(stage, lives) for stage in plan.stages)


def _horizon(stage: Stage, lives: Mapping[Node, Span]) -> Horizon:
    reach = lag = 0
    ticks, reaches = -1, []
    unknown = ""  # why the reach is unknown from here on, if a stateful operator follows
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
