"""The manager, and processes that cannot use the store."""

from __future__ import annotations

from dataclasses import replace

from machine.jobs import checkpoint, stored
from machine.test_manager import SETTINGS, Job, running
from weir.job.messages import Pulse
from weir.job.signals import EndJob, Pulsed, Put, Reported, Unstored


def test_a_host_in_trouble_for_too_long_ends_the_job() -> None:
    job = running(settings=replace(SETTINGS, trouble_limit=1.0))
    for step in range(4):
        job.now = step / 2
        job.report("h1", trouble="no space left")
        job.tick(step / 2)
    assert any(isinstance(c, EndJob) and "no space left" in c.error for c in job.out)


def test_a_busy_host_is_not_in_trouble_for_as_long_as_it_says_nothing_new() -> None:
    """Its last report comes again and again, and its companion gives signs of life."""
    job = running(settings=replace(SETTINGS, trouble_limit=1.0))
    job.report("h1", trouble="no space left")
    last = job.machine.hosts["h1"].report
    for half in range(1, 100):
        job.now = half / 2
        again = Reported(last) if half % 2 else Pulsed(Pulse("h1"))
        job.do(job.machine.handle(again, job.now))
        job.tick(job.now)
    assert not any(isinstance(c, EndJob) for c in job.out)
    job.report("h1")
    job.now = 60.0
    job.report("h1", trouble="no space left")
    job.tick(60.5)
    assert not any(isinstance(c, EndJob) for c in job.out)


def test_trouble_that_lasts_ends_the_job_at_once() -> None:
    job = running()
    job.report("h1", trouble="access is denied", trouble_lasts=True)
    job.tick(0.1)
    (ended,) = [c for c in job.out if isinstance(c, EndJob)]
    assert "host h1 cannot go on: access is denied" in ended.error and "--resume" in ended.error


def test_a_record_that_will_never_be_written_stops_the_manager_at_once() -> None:
    job = running()
    job.report("h1", job.says("1.0", checkpoints=(checkpoint("1.0", 0, 2, 0),)))
    (put,) = [c for c in job.machine.tick(1.0) if isinstance(c, Put)]
    out = job.machine.handle(Unstored(put.key, "there is no bucket", lasts=True), 1.0)
    (ended,) = [c for c in out if isinstance(c, EndJob)]
    assert "there is no bucket" in ended.error and job.machine.resigned


def in_trouble(until: float, *, others: str = "") -> Job:
    """A job of two hosts, of which the first cannot use the store; the other one goes on."""
    job = Job(settings=replace(SETTINGS, hosts=2, patience=5.0, apart_limit=10.0))
    job.tick(0.0)
    job.report("h1")
    job.report("h2")
    number = 0
    while job.now < until:
        number += 1
        job.now += 0.5
        job.report("h1", trouble="it does not answer")
        vertex = next(v for v in ("0.0", "1.0") if job.where(v) == ["h2"])
        made = checkpoint(vertex, number, number, number)
        job.report("h2", job.says(vertex, checkpoints=(made,)), trouble=others)
        job.tick(job.now)
    return job


def lines(job: Job) -> list[str]:
    return [line.what for line in job.machine.story]


def test_a_host_that_alone_cannot_use_the_store_is_given_up() -> None:
    assert not any("lost" in line for line in lines(in_trouble(9.0)))
    job = in_trouble(12.0)
    why = "it cannot use the store, and others can: it does not answer"
    assert f"host h1 lost: {why}" in lines(job)
    assert set(job.machine.hosts) == {"h2"} and not any(isinstance(c, EndJob) for c in job.out)


def test_no_host_is_given_up_when_nobody_can_use_the_store() -> None:
    job = in_trouble(30.0, others="it does not answer")
    assert set(job.machine.hosts) == {"h1", "h2"}


def test_trouble_is_told_and_its_end() -> None:
    job = in_trouble(0.5)
    told = "host h1 cannot use the store: it does not answer"
    assert told not in lines(job)
    job = in_trouble(3.0)
    assert lines(job).count(told) == 1
    assert job.machine.trouble(3.0) == "it does not answer (1 host, for 2 s)"
    job.report("h1")
    job.tick(3.5)
    assert "host h1 can use the store again, after 2.5 s" in lines(job)
    assert job.machine.trouble(3.5) is None


def test_the_managers_own_trouble_is_told() -> None:
    job = running()
    job.report("h1", job.says("1.0", checkpoints=(checkpoint("1.0", 0, 2, 0),)))
    (put,) = [c for c in job.machine.tick(1.0) if isinstance(c, Put)]
    job.machine.handle(Unstored(put.key, "503"), 1.0)
    job.now = 1.5
    job.report("h1", trouble="429")
    job.machine.tick(2.5)
    assert "the job manager cannot use the store: 503" in lines(job)
    assert job.machine.trouble(2.5) == "503 (the job manager and 1 host, for 2 s)"
    job.machine.handle(stored(put.key), 3.0)
    job.machine.tick(3.1)
    assert "the job manager can use the store again, after 2.0 s" in lines(job)
