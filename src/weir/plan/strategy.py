"""Chooses the strategy by which the vertices of a stage recover (StreamScope §4.4).

    checkpoint(every)   its snapshot goes to the store at this interval, in seconds
    replay              no state is kept, only positions: the state is rebuilt from input
    replicate(k)        k instances run at once; one of them takes checkpoints

Here, a strategy is a name with numbers; `reliable/strategies.py` implements it.

Rules
1. A strategy that the user sets for a stage (`Stream.with_strategy`) comes first, then that of the
   program (SET strategy). Otherwise the planner chooses: replay if nothing is kept, or if the
   horizon is shorter than the time between two checkpoints; else checkpoint.
2. Replay of a stage that depends on all of history is refused.
3. A source keeps its position in its partition, which is small and cannot be rebuilt. So it takes
   checkpoints, in one instance, whatever the user or the program sets.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, TypeAlias, assert_never

import pyarrow as pa

from weir.errors import PlanError
from weir.plan.durations import UNITS, parse_duration
from weir.plan.horizon import Horizon, horizons
from weir.plan.operators import Recovery
from weir.plan.program import Program
from weir.plan.stages import Stage, StagedPlan, stage_schema

DEFAULT_EVERY = 10.0
StrategyName: TypeAlias = Literal["checkpoint", "replay", "replicate"]


@dataclass(frozen=True, slots=True)
class NamedStrategy:
    """A strategy as a program names it; `every` is in seconds."""

    name: StrategyName = "checkpoint"
    every: float = DEFAULT_EVERY
    copies: int = 1

    @property
    def needs_horizon(self) -> bool:
        """Tell whether it only works for stages that look back over a bounded time."""
        match self.name:
            case "replay":
                return True
            case "checkpoint" | "replicate":
                return False
        assert_never(self.name)

    def __str__(self) -> str:
        match self.name:
            case "checkpoint":
                return f"checkpoint({self.every:g}s)"
            case "replay":
                return "replay"
            case "replicate":
                return f"replicate({self.copies})"


def parse_strategy(text: str) -> NamedStrategy:
    """Read the strategy that a program names.

    >>> parse_strategy("checkpoint(500ms)")
    NamedStrategy(name='checkpoint', every=0.5, copies=1)
    >>> str(parse_strategy("replicate(2)"))
    'replicate(2)'
    """
    match = re.fullmatch(r"\s*(\w+)\s*(?:\(\s*([^()]*?)\s*\))?\s*", text)
    name, argument = match.groups() if match else (text, None)
    if name == "replay" and argument is None:
        return NamedStrategy("replay")
    if name == "checkpoint":
        if argument is None:
            return NamedStrategy()
        ticks = parse_duration(argument)
        if ticks > 0:
            return NamedStrategy("checkpoint", ticks / 1e6)
    if name == "replicate" and argument is not None and argument.isdigit() and int(argument) > 1:
        return NamedStrategy("replicate", copies=int(argument))
    hint = "checkpoint(10s), replay or replicate(2)"
    raise PlanError(f"unknown strategy '{text}'", hint=hint)


@dataclass(frozen=True, slots=True)
class Choice:
    """The strategy of a stage, and the reason for it."""

    strategy: NamedStrategy
    why: str
    horizon: Horizon


def default_strategy(program: Program) -> NamedStrategy | None:
    """Return the strategy that the program sets for all its stages, or None."""
    text = dict(program.settings).get("strategy")
    return None if text is None else parse_strategy(str(text))


def choose_strategies(plan: StagedPlan, default: NamedStrategy | None = None) -> tuple[Choice, ...]:
    """Choose the strategy of each stage, by the rules at the head of this module."""
    stage_horizons = horizons(plan)
    return tuple(_choose(stage, stage_horizons[stage.number], default) for stage in plan.stages)


def _choose(stage: Stage, horizon: Horizon, default: NamedStrategy | None) -> Choice:
    own = _wanted_for(stage)
    if not stage.ports:
        if own is not None and own.name != "checkpoint":
            raise PlanError(
                f"stage {stage.number} reads an input, and such a stage takes checkpoints: it "
                f"cannot be recovered by {own}",
                hint="set it on a stream that is computed from the input, or use checkpoint(d)",
            )
        every = next((s.every for s in (own, default) if s is not None), DEFAULT_EVERY)
        return Choice(NamedStrategy("checkpoint", every), "a source keeps its position", horizon)
    wanted = own or default
    if wanted is None:
        return _planned(stage, horizon)
    if wanted.needs_horizon and not horizon.known:
        raise PlanError(
            f"stage {stage.number} cannot be recovered by replay, for it depends on all of "
            f"history: {horizon.why}",
            hint="checkpoint(10s), or no strategy: then the planner chooses",
        )
    whose = "stage" if own is not None else "program"
    why = f"set for the {whose}"
    return Choice(wanted, f"{why}; {horizon.why}" if wanted.needs_horizon else why, horizon)


def _planned(stage: Stage, horizon: Horizon) -> Choice:
    checkpoint = NamedStrategy()
    if horizon.ticks is None:
        return Choice(checkpoint, f"it depends on all of history: {horizon.why}", horizon)
    if horizon.ticks < 0:
        return Choice(NamedStrategy("replay"), horizon.why, horizon)
    if not pa.types.is_timestamp(stage_schema(stage).time):
        return Choice(checkpoint, f"{horizon.why}, and nobody knows how long a tick is", horizon)
    if horizon.ticks > checkpoint.every * UNITS["s"]:
        return Choice(checkpoint, f"{horizon.why}, which is long", horizon)
    return Choice(NamedStrategy("replay"), horizon.why, horizon)


def _wanted_for(stage: Stage) -> NamedStrategy | None:
    """Return the strategy that `with_strategy` sets for the stage's operators, or None."""
    wanted = [o.strategy for o in stage.operators if isinstance(o, Recovery)]
    if len(set(wanted)) > 1:
        raise PlanError(f"stage {stage.number} has two strategies: {', '.join(wanted)}")
    return parse_strategy(wanted[0]) if wanted else None
