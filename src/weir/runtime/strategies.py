"""The strategy of every vertex of a job: what its stage has; see `weir.plan.strategy`."""

from __future__ import annotations

from collections.abc import Mapping

from weir.plan.stages import StagedPlan
from weir.plan.strategy import DEFAULT_EVERY, Strategy, choose_strategies, parse_strategy
from weir.runtime.topology import Topology, VertexId

__all__ = ["DEFAULT_EVERY", "Strategy", "parse_strategy", "strategies"]


def strategies(
    plan: StagedPlan, topology: Topology, default: Strategy | None = None
) -> Mapping[VertexId, Strategy]:
    """How each vertex is recovered. `default` is what the program says for all stages (None: the
    planner chooses); sinks commit, whatever it says."""
    chosen = choose_strategies(plan, default)
    return {
        v.id: Strategy() if v.kind == "sink" else chosen[v.stage].strategy for v in topology.order
    }
