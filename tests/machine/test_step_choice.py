"""Which instances step: those for which enough waits, or that nobody else keeps waiting."""

from __future__ import annotations

import math

import pytest

from weir.job.step_choice import CLAIMS_WAIT, MOST_WAIT, SHARE, StepChoice
from weir.reliable.cursor import STEP_ROWS

WAIT = 0.002


class Job:
    """Instances that may step, and those that claims let go on."""

    def __init__(self) -> None:
        self.unable: set[str] = set()
        self.gone_on: set[str] = set()
        self.asked: list[str] = []
        self.steps = StepChoice(WAIT, lambda v: v not in self.unable, self._lets_go_on)

    def _lets_go_on(self, vertex: str) -> bool:
        self.asked.append(vertex)
        return vertex in self.gone_on

    def run(self, now: float, *, seconds: float = 0.0) -> list[str]:
        chosen = self.steps.choose(now)
        for vertex in chosen:
            self.steps.stepped(vertex, seconds, has_more=False, now=now)
        return chosen


def test_nothing_to_do() -> None:
    job = Job()
    assert job.run(0.0) == []
    assert job.steps.next_due == math.inf


def test_one_that_is_alone_steps_at_once_and_only_once() -> None:
    job = Job()
    job.steps.note("a", 1, 0.0)
    assert job.run(0.0) == ["a"]
    assert job.run(9.0) == []


def test_one_with_enough_goes_first_and_the_others_wait_for_more() -> None:
    job = Job()
    job.steps.note("a", 10, 0.0)
    job.steps.note("source", STEP_ROWS, 0.0)
    assert job.run(0.0) == ["source"]
    job.steps.note("source", STEP_ROWS, 0.001)
    assert job.run(0.001) == ["source"]
    assert job.steps.next_due == pytest.approx(WAIT)
    job.steps.note("source", STEP_ROWS, WAIT)
    assert job.run(WAIT) == ["source", "a"]


def test_rows_add_up() -> None:
    job = Job()
    for _ in range(4):
        job.steps.note("a", STEP_ROWS // 4, 0.0)
    job.steps.note("source", STEP_ROWS, 0.0)
    assert job.run(0.0) == ["a", "source"]


def test_of_several_with_little_the_one_that_has_waited_longest_steps() -> None:
    job = Job()
    for number, vertex in enumerate("abc"):
        job.steps.note(vertex, 1, number * 1e-4)
    assert [job.run(5e-4) for _ in range(4)] == [["a"], ["b"], ["c"], []]


def test_costly_steps_wait_for_more_rows_but_not_for_long() -> None:
    job = Job()
    for vertex in "ab":
        job.steps.note(vertex, STEP_ROWS, 0.0)
    assert job.run(0.0, seconds=0.004) == ["a", "b"]
    for vertex in "ab":
        job.steps.note(vertex, 1, 1.0)
    wait = SHARE * 0.008
    for now in (1.0, 1.0 + WAIT, 1.0 + 0.9 * wait):
        job.steps.note("source", STEP_ROWS, now)
        assert job.run(now) == ["source"]
    job.steps.note("source", STEP_ROWS, 1.0 + wait)
    assert job.run(1.0 + wait, seconds=30.0) == ["source", "a", "b"]
    job.steps.note("a", 1, 2.0)
    job.steps.note("source", STEP_ROWS, 2.0)
    assert job.run(2.0 + MOST_WAIT) == ["source", "a"]


def test_claims_that_change_nothing_wait_until_they_do_or_for_a_while() -> None:
    job = Job()
    job.steps.note("a", 0, 0.0)
    assert [job.run(0.0), job.run(0.001)] == [[], []]
    assert job.asked == ["a"], "it is asked once"
    assert job.steps.next_due == pytest.approx(CLAIMS_WAIT)
    job.gone_on.add("a")
    job.steps.note("a", 0, 0.002)
    assert job.run(0.002) == ["a"]
    job.gone_on.clear()
    job.steps.note("a", 0, 1.0)
    assert job.run(1.0) == []
    assert job.run(1.0 + CLAIMS_WAIT) == ["a"]


def test_one_that_is_held_up_keeps_nobody_waiting() -> None:
    job = Job()
    job.unable.add("full")
    job.steps.note("full", STEP_ROWS, 0.0)
    job.steps.note("a", 1, 0.0)
    assert job.run(0.0) == ["a"]
    assert job.steps.next_due == math.inf
    job.unable.clear()
    assert job.run(0.0) == ["full"]


def test_one_that_has_more_stays() -> None:
    job = Job()
    job.steps.note("a", 2 * STEP_ROWS, 0.0)
    job.steps.stepped("a", 0.0, has_more=True, now=0.0)
    assert job.run(0.0) == ["a"]
    job.steps.note("a", 1, 0.0)
    job.steps.forget("a")
    assert job.steps.forced("a") == []
    assert job.run(1.0) == []
