"""What the simulator takes for the truth is what the offline runner answers."""

from __future__ import annotations

from dataclasses import replace

import pytest
from pyspark.sql import SparkSession

from weir.conform.cases import Trial
from weir.simulator.witness import truth_of
from weir.simulator.workloads import make_workload, workload_names
from weir.spark.offline.trials import run_trials

pytestmark = pytest.mark.xdist_group("spark")

SEEDS = (3, 4)
PARALLELISM = 2


def test_the_simulators_workloads_offline(spark: SparkSession) -> None:
    made = (make_workload(name, seed) for name in workload_names() for seed in SEEDS)
    workloads = [w for w in made if w.feeds is None]  # others have no data before they run
    wanted, trials = [], []
    for workload in workloads:
        for output, digest in zip(
            workload.program.outputs, truth_of(workload, PARALLELISM).digests, strict=True
        ):
            wanted.append((f"{workload.name}, {output.path}", digest))
            alone = replace(workload.program, outputs=(output,))
            trials.append(Trial(alone, workload.partitions, None, PARALLELISM))
    for (name, digest), outcome in zip(wanted, run_trials(spark, trials), strict=True):
        assert outcome.error is None, name
        assert outcome.digest == str(digest), name
    assert sum(digest.count for _, digest in wanted) > 1_000
