"""The manager and hosts that do not reach each other, though all of them reach it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import msgspec

from machine.jobs import report
from machine.test_manager import SETTINGS, Job, running
from weir.job.messages import Pulse
from weir.job.poison import Step
from weir.job.signals import Pulsed, Reported

STEP = 0.25


def together(hosts: int) -> Job:
    job = running(settings=replace(SETTINGS, hosts=hosts, patience=10.0))
    for number in range(1, hosts):
        job.report(f"h{number + 1}")
    assert len(job.machine.hosts) == hosts and job.where("1.0") != [None]
    return job


def pass_time(job: Job, seconds: float, unreached: Mapping[str, Sequence[str]]) -> list[str]:
    """Let all hosts report for so long, some of them that they do not reach others; return who is
    there in the end."""
    until = job.now + seconds
    while job.now < until:
        job.tick(job.now + STEP)
        for session in list(job.machine.hosts):
            job.numbers[session] += 1
            made = report(session, job.numbers[session])
            made = msgspec.structs.replace(made, unreached=tuple(unreached.get(session, ())))
            job.do(job.machine.handle(Reported(made), job.now))
    return sorted(job.machine.hosts)


def test_one_of_two_hosts_that_do_not_reach_each_other_is_lost() -> None:
    job = together(3)
    assert pass_time(job, 2.0, {"h2": ["h1"]}) == ["h1", "h2", "h3"]
    assert pass_time(job, 3.0, {"h2": ["h1"]}) == ["h1", "h3"]
    assert all("h2" not in job.where(v) for v in ("0.0", "1.0", "sink.0"))
    assert any("it and host h1 do not reach each other" in line.what for line in job.machine.story)


def test_who_is_reached_again_in_time_is_not_lost() -> None:
    job = together(2)
    for _ in range(5):
        pass_time(job, 2.0, {"h2": ["h1"]})
        pass_time(job, 0.5, {})
    assert len(job.machine.hosts) == 2


def test_the_host_that_several_do_not_reach_is_lost_and_no_other() -> None:
    job = together(3)
    assert pass_time(job, 8.0, {"h1": ["h3"], "h2": ["h3"]}) == ["h1", "h2"]


def test_one_that_nobody_reaches_does_not_cost_one_host_after_another() -> None:
    job = together(4)
    assert pass_time(job, 4.0, {"h1": ["h4"]}) == ["h2", "h3", "h4"]
    assert pass_time(job, 4.0, {"h2": ["h4"]}) == ["h2", "h3"]


def test_a_host_at_a_long_step_is_not_out_of_reach() -> None:
    job = together(2)
    for _ in range(40):
        job.do(job.machine.handle(Pulsed(Pulse("h1", Step("1.0", seconds=9.0))), job.now))
        job.tick(job.now + STEP)
        job.numbers["h2"] += 1
        made = msgspec.structs.replace(report("h2", job.numbers["h2"]), unreached=("h1",))
        job.do(job.machine.handle(Reported(made), job.now))
    assert len(job.machine.hosts) == 2
    assert pass_time(job, 2.0, {"h2": ["h1"]}) == ["h1", "h2"]  # the step has just ended


def test_addresses_of_nobody_do_not_matter() -> None:
    job = together(2)
    assert pass_time(job, 8.0, {"h1": ["h9"], "h2": ["h9", ""]}) == ["h1", "h2"]
