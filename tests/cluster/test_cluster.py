"""A live job on machines in a box: it starts, loses a machine, and has the local runner's answer.

More faults are in `make cluster`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from cluster.cluster import Cluster, cluster, loops_of
from cluster.faults import Faulty, job_on
from cluster.machines import why_not

pytestmark = pytest.mark.xdist_group("processes")

MISSING = why_not()


@pytest.fixture
def machines(tmp_path: Path) -> Iterator[Cluster]:
    if MISSING and os.environ.get("CI") != "true":
        pytest.skip(f"no machines in a box: {MISSING}")
    assert not MISSING, f"CI must be able to make machines: {MISSING}"
    with cluster(tmp_path, workers=2) as made:
        yield made


def test_a_lost_machine_changes_nothing(machines: Cluster) -> None:
    job = job_on(machines, hosts=3)
    faulty = Faulty(machines, job)
    try:
        job.start()
        job.start_feeding()
        faulty.wait_until_whole(3)
        for worker in machines.workers:  # the driver's code has come with the job
            assert [*loops_of(worker, machines.folder).rglob("*_loops.*")]
        victim = faulty.busiest()
        felt = faulty.suffer("a machine is lost", victim, victim.lose)
        assert felt.sessions
        faulty.wait_until_lost(felt)
        faulty.must_progress(10.0)
        found = job.finish(90.0)
        assert found == job.run_locally()
        felt.measure(job.story())
        assert felt.found is not None and felt.found < 2.5
    finally:
        job.close()
