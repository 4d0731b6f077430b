"""A live job on a cluster of real processes, some of them killed: the local runner's answer.

The same job under many more kills is `make chaos`.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from chaos.job import Job
from chaos.kills import Chaos, Kind

pytestmark = pytest.mark.xdist_group("processes")

LIMIT = 90.0


@pytest.fixture
def job(tmp_path: Path) -> Iterator[Job]:
    made = Job(tmp_path, "local-cluster[2,2,1024]", hosts=2)
    yield made
    made.close()


def test_a_killed_executor_and_a_killed_worker_change_nothing(job: Job) -> None:
    chaos = Chaos(job, random.Random(1), LIMIT)
    job.start()
    job.start_feeding()
    chaos.wait_until_whole()
    for kind in (Kind.executor, Kind.worker):
        kill = chaos.strike(kind)
        chaos.wait_until_whole()
        assert kill.sessions
    found = job.finish(LIMIT)
    assert found == job.run_locally()
    status = job.status()
    assert status is not None
    assert status.recoveries == sum(v.recoveries for v in status.vertices) > 0
    assert all(v.snapshots > 0 for v in status.vertices if v.kind == "sink")
