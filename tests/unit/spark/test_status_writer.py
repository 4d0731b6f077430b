"""What onlookers are told, where the store is away or slow."""

from __future__ import annotations

import threading

import numpy as np

from weir.errors import RunError
from weir.job.history import History, read_history
from weir.job.status import JobStatus, read_status
from weir.job.story import StoryLine, read_story
from weir.reliable.store import Body
from weir.simulator.simulated_disk import SimulatedDisk
from weir.spark.live.status_writer import Onlookers


class Failing(SimulatedDisk):
    """A store that is away until it is back, and slow while it is held."""

    def __init__(self) -> None:
        super().__init__(np.random.default_rng(0))
        self.away = False
        self.go_on = threading.Event()
        self.go_on.set()
        self.written: list[str] = []

    def put(self, key: str, body: Body, *, new: bool = False) -> None:
        self.go_on.wait(10)
        if self.away:
            raise RunError("503")
        super().put(key, body, new=new)
        self.written.append(key)


def status(events: int) -> JobStatus:
    return JobStatus("running", 0.0, 1, 0, events, None, (), ())


def line(what: str) -> StoryLine:
    return StoryLine(0.0, "", what)


def test_lines_that_could_not_be_written_come_later() -> None:
    store = Failing()
    onlookers = Onlookers(store)
    store.away = True
    onlookers.tell(status(1), [line("a")], 1)
    onlookers.tell(status(2), [line("b")], 1)
    onlookers._pool.submit(lambda: None).result()
    assert store.written == []
    store.away = False
    onlookers.close()
    store.settle()
    assert [x.what for x in read_story(store)] == ["a", "b"]
    found = read_status(store)
    assert found is not None and found.events == 2


def test_a_slow_store_is_told_the_last_state_only() -> None:
    store = Failing()
    store.go_on.clear()
    onlookers = Onlookers(store)
    for events in range(50):
        onlookers.tell(status(events), [line(str(events))], 1)
    store.go_on.set()
    onlookers.close()
    store.settle()
    assert [x.what for x in read_story(store)] == [str(n) for n in range(50)]
    assert len(store.written) <= 4
    found = read_status(store)
    assert found is not None and found.events == 49


def test_the_last_history_is_written_when_the_store_is_back() -> None:
    store = Failing()
    onlookers = Onlookers(store)
    store.away = True
    onlookers.tell(status(1), [], 1, History(every=2.0))
    onlookers.tell(status(2), [], 1, History(every=4.0))
    onlookers._pool.submit(lambda: None).result()
    onlookers.tell(status(3), [], 1)  # without a new one, the one before still waits
    onlookers._pool.submit(lambda: None).result()
    assert store.written == []
    store.away = False
    onlookers.close()
    assert read_history(store) == History(every=4.0)
