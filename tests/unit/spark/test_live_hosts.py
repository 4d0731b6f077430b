"""What Spark must offer to the hosts of a live run, and what happens when it gives up on them."""

from __future__ import annotations

import time

import pytest

from weir.errors import PlanError, RunError
from weir.spark.live import host_tasks as live_hosts
from weir.spark.live.host_tasks import ABORTS, Hosts, Setting, check_spark, live_master


def settings(master: str, **more: str) -> Setting:
    given = {"spark.master": master} | {f"spark.{k.replace('_', '.')}": v for k, v in more.items()}
    return lambda name, otherwise: given.get(name, otherwise)


@pytest.mark.parametrize(
    ("master", "hosts"),
    [("local", 2), ("local[2]", 3), ("local[2,9]", 3), ("local-cluster[2,2,1024]", 5)],
)
def test_too_few_slots_are_refused(master: str, hosts: int) -> None:
    with pytest.raises(PlanError, match=f"{hosts} hosts need {hosts} task slots.*--hosts"):
        check_spark(settings(master), hosts)


def test_a_task_may_need_several_cores() -> None:
    assert check_spark(settings("local[4,9]", task_cpus="2"), 2) is None
    with pytest.raises(PlanError, match="has 2"):
        check_spark(settings("local[4,9]", task_cpus="2"), 3)


@pytest.mark.parametrize(
    "master", [live_master(3), "local-cluster[2,2,1024]", "spark://head:7077", "yarn", ""]
)
def test_what_starts_lost_hosts_again_is_taken(master: str) -> None:
    assert check_spark(settings(master), 3) is None


def test_speculation_is_refused() -> None:
    with pytest.raises(PlanError, match=r"spark\.speculation=false"):
        check_spark(settings("yarn", speculation="true"), 2)


def test_a_spark_that_tries_nothing_again_is_warned_of() -> None:
    assert "local[4,1000]" in check_spark(settings("local[4]"), 2)
    assert "spark.task.maxFailures" in check_spark(settings("yarn", task_maxFailures="1"), 2)


class BrokenSpark:
    """Fails at once, as a session whose JVM is gone does."""

    def addTag(self, tag: str) -> None:  # noqa: N802
        raise ConnectionError("no Java")


def submitted(hosts: Hosts, times: int) -> None:
    for _ in range(times):
        while not hosts.gone:
            time.sleep(0.001)
        hosts.check()


def test_a_job_that_is_aborted_again_and_again_ends_with_spark_s_reason() -> None:
    hosts = Hosts(BrokenSpark(), lambda: None, 2)  # type: ignore[arg-type]
    hosts.start()
    submitted(hosts, ABORTS)
    with pytest.raises(RunError, match=r"--resume: no Java"):
        submitted(hosts, 1)


def test_a_job_that_lasted_is_submitted_again_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_hosts, "LASTING", 0.0)
    hosts = Hosts(BrokenSpark(), lambda: None, 2)  # type: ignore[arg-type]
    hosts.start()
    submitted(hosts, 3 * ABORTS)
