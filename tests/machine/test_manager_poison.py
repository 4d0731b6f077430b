"""The manager and deaths of hosts: who is lost, who is suspected, when the job ends."""

from dataclasses import replace

import msgspec

from machine.jobs import checkpoint, report
from machine.test_manager import SETTINGS, Job, running
from weir.job.messages import Pulse, Report
from weir.job.poison import RELAPSES, Death, Step
from weir.job.signals import Delete, EndJob, HungUp, Pulsed, Reported
from weir.job.status import status_of

ROW = Step("1.0", first=6, end=7, pieces=1, sample="17")
WIDE = Step("1.0", first=0, end=600, claims=True)


def died(session: str, step: Step | None = ROW) -> Death:
    return Death(session, step, "exit code 3")


def comes(job: Job, session: str, *deaths: Death, number: int = 1) -> None:
    """A host reports, and tells of those that were there before it."""
    made: Report = msgspec.structs.replace(report(session, number), deaths=deaths)
    job.do(job.machine.handle(Reported(made), job.now))


def ended(job: Job) -> list[str]:
    job.tick(job.now + 0.3)
    job.tick(job.now + 0.3)
    return [c.error for c in job.out if isinstance(c, EndJob)]


def test_a_host_that_is_known_to_be_dead_is_lost_at_once() -> None:
    job = running()
    comes(job, "h2", died("h1"))
    assert list(job.machine.hosts) == ["h2"] and job.where("1.0") == ["h2"]


def test_three_deaths_at_one_row_end_the_job_and_keep_everything() -> None:
    job = running()
    for number in range(1, 4):
        assert not ended(job)
        comes(job, f"h{number + 1}", died(f"h{number}"))
    (error,) = ended(job)
    assert "vertex 1.0 killed its host 3 times at row 6 of input 0 (17): exit code 3" in error
    assert "--resume" in error and not any(isinstance(c, Delete) for c in job.out)
    assert job.records[-1].suspects and not job.records[-1].finished


def test_a_death_that_is_told_again_and_again_counts_once() -> None:
    job = running()
    for number in range(1, 9):
        comes(job, "h2", died("h1"), number=number)
    comes(job, "h3", died("h1"))
    assert not ended(job)
    assert len(job.machine.ledger.suspects["1.0"]) == 1
    job.numbers["h2"] = 8
    job.report("h2", job.says("1.0", checkpoints=(checkpoint("1.0", 0, 9, 0),)))
    comes(job, "h2", died("h1"), number=10)  # which its vertex has been cleared of
    assert not job.machine.ledger.suspects
    for number in range(11, 11 + RELAPSES):
        comes(job, "h2", died("h0", None), number=number)
    assert not ended(job)


def test_vertices_that_shared_the_host_are_not_blamed() -> None:
    job = running()
    comes(job, "h2", died("h1"))
    assert list(job.machine.ledger.suspects) == ["1.0"]
    orders = job.report("h2")
    assert orders is not None
    assert {v.vertex: v.pieces for v in orders.vertices} == {"0.0": 0, "1.0": 1, "sink.0": 0}


def test_deaths_count_over_managers() -> None:
    job = running()
    comes(job, "h2", died("h1"))
    comes(job, "h3", died("h2"))
    assert not ended(job)
    later = running(ledger=job.records[-1])
    comes(later, "h4", died("h2"))  # which the manager before has counted
    assert not ended(later)
    comes(later, "h5", died("h4"))
    (error,) = ended(later)
    assert "3 times" in error


def test_large_steps_are_run_in_pieces_until_a_checkpoint_is_behind_them() -> None:
    job = running()
    for number in range(1, 9):
        comes(job, f"h{number + 1}", died(f"h{number}", WIDE))
    assert not ended(job)
    orders = job.report("h9")
    assert orders is not None and [v.pieces for v in orders.vertices] == [0, 2, 0]
    job.report("h9", job.says("1.0", checkpoints=(checkpoint("1.0", 0, 601, 0),)))
    assert not job.machine.ledger.suspects
    orders = job.report("h9")
    assert orders is not None and [v.pieces for v in orders.vertices] == [0, 0, 0]


def test_kills_of_a_healthy_job_between_two_checkpoints_do_not_end_it() -> None:
    job = running()
    for number in range(1, RELAPSES):
        step = Step("1.0", first=number, end=number + 1, pieces=1) if number % 2 else None
        comes(job, f"h{number + 1}", died(f"h{number}", step))
    assert not ended(job)


def relapse(job: Job, first: int, count: int, apart: float = 0.3) -> None:
    for number in range(first, first + count):
        job.now += apart
        comes(job, f"h{number + 1}", died(f"h{number}", None))


def test_hosts_that_die_and_die_and_store_nothing_end_the_job() -> None:
    job = running()
    relapse(job, 1, RELAPSES)
    (error,) = ended(job)
    assert "in no step of a vertex: exit code 3" in error and "--resume" in error


def test_deaths_in_no_step_do_not_count_if_anything_was_stored_or_they_are_far_apart() -> None:
    job = running()
    relapse(job, 1, RELAPSES - 1)
    job.numbers["h20"] = 1
    job.report("h20", job.says("1.0", checkpoints=(checkpoint("1.0", 0, 2, 0),)))
    relapse(job, 20, RELAPSES - 1)
    relapse(job, 39, RELAPSES - 1, apart=61.0)
    assert not ended(job)


def test_a_vertex_that_nobody_knows_is_blamed_for_nothing() -> None:
    job = running()
    for number in range(1, 6):
        comes(job, f"h{number + 1}", died(f"h{number}", msgspec.structs.replace(ROW, vertex="9.9")))
    assert not ended(job) and not job.machine.ledger.suspects


# --- slow is not dead ----------------------------------------------------------------------------


def at_step(seconds: float) -> Report:
    return msgspec.structs.replace(report("h1", 1), step=replaced(seconds))


def replaced(seconds: float) -> Step:
    return msgspec.structs.replace(WIDE, seconds=seconds)


def test_a_long_step_ends_nothing_and_is_shown() -> None:
    job = running()
    for half in range(1, 400):  # a manager that slept for longer would have its own reason
        job.now = half / 2
        job.do(job.machine.handle(Reported(at_step(job.now)), job.now))
        job.tick(job.now)
    assert not ended(job) and job.where("1.0") == ["h1"]
    shown = {v.id: v for v in status_of(job.machine, 0.0, 0.0).vertices}
    assert shown["1.0"].step_seconds == 199.5
    assert shown["1.0"].step_rows == "at rows 0 to 599 of input 0"
    assert shown["0.0"].step_seconds is None


def test_signs_of_life_from_beside_a_host_keep_it() -> None:
    job = running()
    for half in range(1, 60):
        job.now = half / 2
        job.do(job.machine.handle(Pulsed(Pulse("h1", replaced(job.now))), job.now))
        job.tick(job.now)
    assert job.where("1.0") == ["h1"]
    assert any(v.step_seconds == 29.5 for v in status_of(job.machine, 0.0, 0.0).vertices)
    job.do(job.machine.handle(Pulsed(Pulse("h7", ROW)), job.now))  # one that was given up
    assert list(job.machine.hosts) == ["h1"]


def test_a_host_that_hangs_up_is_lost_unless_it_is_heard_of() -> None:
    job = running()
    job.do(job.machine.handle(HungUp("h1"), 0.5))
    job.tick(0.55)
    job.do(job.machine.handle(Pulsed(Pulse("h1")), 0.55))  # it has called again
    job.tick(0.9)
    assert job.where("1.0") == ["h1"]
    job.do(job.machine.handle(HungUp("h1"), 1.0))
    job.tick(1.05)
    assert list(job.machine.hosts) == ["h1"]
    job.tick(1.11)
    assert not job.machine.hosts


def test_a_death_that_a_companion_tells_counts_at_once_and_once() -> None:
    job = running()
    death = Death("h1", ROW, "killed by signal 9 (Killed)")
    job.do(job.machine.handle(Pulsed(Pulse("h1", ROW, death)), 0.5))
    assert not job.machine.hosts and len(job.machine.ledger.suspects["1.0"]) == 1
    job.do(job.machine.handle(Pulsed(Pulse("h1", ROW, death)), 0.6))
    assert len(job.machine.ledger.suspects["1.0"]) == 1


def test_a_step_beyond_its_limit_ends_the_job() -> None:
    job = running(settings=replace(SETTINGS, step_limit=5.0))
    job.do(job.machine.handle(Reported(at_step(4.0)), 0.5))
    assert not ended(job)
    job.do(job.machine.handle(Reported(at_step(5.5)), job.now))
    (error,) = ended(job)
    assert "vertex 1.0 has been at one step for 6 s, at rows 0 to 599 of input 0" in error
    assert "step_limit is 5 s" in error and "--resume" in error
