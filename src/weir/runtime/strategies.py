"""Gives every vertex of a job the strategy of its stage; see `weir.plan.strategy`."""

from __future__ import annotations

from collections.abc import Mapping

from weir.plan.stages import StagedPlan
from weir.plan.strategy import NamedStrategy, choose_strategies
from weir.reliable.strategies import CheckpointStrategy, Strategy, make_strategy
from weir.runtime.topology import Topology, VertexId


def strategies(
    plan: StagedPlan, topology: Topology, default: NamedStrategy | None = None
) -> Mapping[VertexId, Strategy]:
    """Say how each vertex is recovered. `default` is what the program says for all stages (None:
    the planner chooses); sinks commit, whatever it says."""
    chosen = [make_strategy(choice.strategy) for choice in choose_strategies(plan, default)]
    return {
        v.id: CheckpointStrategy() if v.kind == "sink" else chosen[v.stage] for v in topology.order
    }
