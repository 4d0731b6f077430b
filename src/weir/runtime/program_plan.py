"""Plans a program for every runner: rewrites it, cuts it into stages, wires stages to a topology.

Contract
1. Every runner, `explain`, `--check`, warming and the tests plan by `plan_program`, so the same
   program has the same plan everywhere. Only the parallelism, and which aggregates pay in two
   phases, may differ; neither changes an answer.
2. A plan depends on the program alone. The topology also depends on how many partitions each source
   has.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sized
from dataclasses import dataclass

from weir.errors import PlanError
from weir.plan.operators import Source
from weir.plan.program import Program
from weir.plan.rewrites.pruning import needed_columns
from weir.plan.rewrites.rewrite import rewrite
from weir.plan.rewrites.two_phase import Pays
from weir.plan.stages import StagedPlan, cut_stages
from weir.runtime.topology import Topology, make_topology


@dataclass(frozen=True, slots=True)
class PlannedProgram:
    """A `PlannedProgram` is a program as runners take it: rewritten, and cut into stages."""

    program: Program
    stages: StagedPlan

    def topology(self, partitions: Mapping[str, Sized], generation: int = 0) -> Topology:
        """Wire the stages to vertices and streams, for these partitions of the sources."""

        def partition_count(source: Source) -> int:
            if source.name not in partitions and not source.has_origins:
                hint = "weir.run_offline or to_spark"
                raise PlanError(f"{source.name} is a DataFrame, which only Spark reads", hint=hint)
            return len(partitions[source.name])

        return make_topology(self.stages, self.stages.vertex_counts(partition_count), generation)


def plan_program(
    program: Program, parallelism: int = 1, *, pays: Pays | None = None, optimise: bool = True
) -> PlannedProgram:
    """Plan a program; `pays` decides which aggregates are computed in two phases."""
    rewritten = rewrite(program, pays) if optimise else program
    return PlannedProgram(rewritten, cut_stages(rewritten, parallelism))


def columns_read(program: Program, sources: Iterable[Source]) -> dict[Source, tuple[str, ...]]:
    """Return which columns of these sources a program reads."""
    rewritten = rewrite(program)
    return {source: needed_columns(rewritten, source) for source in sources}
