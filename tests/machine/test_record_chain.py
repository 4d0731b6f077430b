"""Records as differences: what is read back, what is lost, and what may be deleted."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from machine.jobs import checkpoint, report, says, stored, topology
from weir.errors import SnapshotCorrupt
from weir.job.ledger import Ledger
from weir.job.ledger_difference import LedgerDifference, decode_written
from weir.job.manager import Manager
from weir.job.record_reader import last_record
from weir.job.settings import ManagerSettings
from weir.job.signals import Delete, Get, Listed, Loaded, ManagerCommand, Put, Refused, Reported
from weir.reliable.object_names import LATEST_RECORD, record_key
from weir.reliable.strategies import CheckpointStrategy
from weir.simulator.simulated_disk import SimulatedDisk

SETTINGS = ManagerSettings(hosts=1, patience=0.0, differences=4, kept_records=3)
STRATEGIES = {v: CheckpointStrategy(1.0) for v in ("0.0", "1.0", "sink.0")}


class Job:
    """A manager that writes its records to a disk, and a host that has ever more to report."""

    def __init__(self, disk: SimulatedDisk, settings: ManagerSettings = SETTINGS) -> None:
        self.disk, self.now, self.steps, self.reports = disk, 0.0, 0, 0
        ledger = last_record(disk) or Ledger()
        self.machine = Manager(topology(), STRATEGIES, ledger, settings, 0.0, name="m")
        self.do(self.machine.tick(0.0))
        self.hear()

    def hear(self, *vertices: object) -> None:
        self.reports += 1
        made = report("h1", self.reports, *vertices)  # type: ignore[arg-type]
        self.do(self.machine.handle(Reported(made), self.now))

    def do(self, commands: list[ManagerCommand]) -> None:
        for command in commands:
            if isinstance(command, Put):
                self.disk.put(command.key, command.encode(), new=command.new)
                self.do(self.machine.handle(stored(command.key), self.now))
            elif isinstance(command, Delete):
                self.disk.delete(command.keys)

    def step(self) -> Ledger:
        """Learn of another checkpoint, and write a record."""
        self.steps, self.now = self.steps + 1, self.now + 1.0
        (placement,) = (p for p in self.machine.placements if p.vertex == "1.0")
        at = self.machine.ledger.epoch * 100 + self.steps
        made = checkpoint("1.0", at, at, 0, placement.incarnation)
        self.hear(says("1.0", placement.incarnation, checkpoints=(made,)))
        self.do(self.machine.tick(self.now))
        return self.machine.ledger.copied()

    def sweep(self) -> None:
        self.disk.settle()
        keys = tuple(self.disk.list("records/"))
        self.do(self.machine.handle(Listed(keys), self.now))


def disk() -> SimulatedDisk:
    return SimulatedDisk(np.random.default_rng(0))


def kinds(store: SimulatedDisk) -> list[bool]:
    """Which of the records are bases."""
    store.settle()
    keys = [key for key in store.list("records/") if key != LATEST_RECORD]
    return [isinstance(decode_written(key, store.body(key)), Ledger) for key in keys]


def plain(ledger: Ledger | None) -> Ledger:
    assert ledger is not None
    return ledger.copied()


@pytest.mark.parametrize("hinted", [True, False])
def test_what_is_read_is_what_the_manager_knew_at_every_record(hinted: bool) -> None:
    store = disk()
    job = Job(store)
    for _ in range(20):
        ledger = job.step()
        if not hinted:
            store.delete([LATEST_RECORD])
        assert plain(last_record(store)) == ledger
    assert kinds(store)[:7] == [True, False, False, False, False, True, False]


def test_the_next_manager_begins_with_a_base() -> None:
    store = disk()
    first = Job(store)
    for _ in range(3):
        first.step()
    second = Job(store)
    assert kinds(store) == [True, False, False, False, True]
    assert second.machine.ledger.checkpoints == first.machine.ledger.checkpoints
    ledger = second.step()
    assert plain(last_record(store)) == ledger


@pytest.mark.parametrize("lost", [0, 1, 2])
@pytest.mark.parametrize("how", ["missing", "torn"])
@pytest.mark.parametrize("hinted", [True, False])
def test_a_record_that_a_later_one_needs_is_lost_with_it(lost: int, how: str, hinted: bool) -> None:
    store = disk()
    job = Job(store)
    for _ in range(3):
        job.step()
    key = record_key(lost)
    body = store.body(key)
    store.delete([key] if hinted else [key, LATEST_RECORD])
    if how == "torn":
        store.put(key, body[: len(body) // 2])
    store.settle()
    with pytest.raises(SnapshotCorrupt, match=f"{key}, which {record_key(lost + 1)} is a diff"):
        last_record(store)


def test_a_lost_record_that_a_later_base_does_without_is_none() -> None:
    store = disk()
    job = Job(store)
    for _ in range(7):
        ledger = job.step()
    assert kinds(store)[5]
    store.delete([record_key(n) for n in (0, 2)])
    assert plain(last_record(store)) == ledger


def test_records_are_deleted_with_all_that_lead_back_to_them() -> None:
    """Also one who has read the hint a while ago finds all that the record needs."""
    store = disk()
    job = Job(store)
    hints: list[bytes] = []
    for number in range(40):
        ledger = job.step()
        hints.append(store.body(LATEST_RECORD))
        if number % 3 == 0:
            job.sweep()
        assert plain(last_record(store)) == ledger
        late = SimulatedDisk(np.random.default_rng(0))
        for key in [record_key(n) for n in range(50)]:
            if store.has(key):
                late.put(key, store.body(key))
        late.put(LATEST_RECORD, hints[max(0, len(hints) - 4)])
        assert plain(last_record(late)) == ledger
    assert not store.has(record_key(0)) and not store.has(record_key(20))
    assert store.has(record_key(40))


def test_what_is_in_the_way_of_a_difference_is_followed_by_a_base() -> None:
    store = disk()
    job = Job(store)
    job.step()
    key = record_key(job.machine.ledger.number + 1)
    (placement,) = (p for p in job.machine.placements if p.vertex == "1.0")
    made = checkpoint("1.0", 500, 500, 0, placement.incarnation)
    job.hear(says("1.0", placement.incarnation, checkpoints=(made,)))
    (put,) = [c for c in job.machine.tick(9.0) if isinstance(c, Put)]
    assert put.key == key and isinstance(decode_written(key, put.encode()), LedgerDifference)
    store.put(key, b"junk")
    assert job.machine.handle(Refused(key), 9.0) == [Get(key)]
    job.now = 9.0
    job.do(job.machine.handle(Loaded(key, b"junk"), 9.0))
    read = plain(last_record(store))
    assert read == job.machine.ledger.copied() and read.base == read.number
    assert [c.number for c in read.checkpoints["1.0"]] == [500]


def test_a_job_with_much_to_say_has_few_bases() -> None:
    store = disk()
    job = Job(store, replace(SETTINGS, differences=64, kept_records=100))
    for _ in range(50):
        job.step()
    assert kinds(store).count(True) == 1
