"""Many instances of one source at its log, and a collector: all that is believed is one story."""

import numpy as np
import pytest

from weir.errors import SnapshotCorrupt
from weir.files.chunks import LogPlace
from weir.ingress.ingress_log import IngressLog, IngressRecord, LogCollected, begin_log
from weir.reliable.codec import encode_record
from weir.reliable.keys import ingress_key
from weir.reliable.objects import ObjectRef
from weir.simulator.simulated_disk import SimulatedDisk


class Instances:
    """Instances begin at the last checkpoint, or hang and go on much later. The collector deletes
    what lies before the checkpoint, some of it at a time, the smallest first."""

    def __init__(self, seed: int) -> None:
        self._rng = np.random.default_rng(seed)
        self._disk = SimulatedDisk(np.random.default_rng(0))
        self._checkpoint = begin_log(self._disk, "0.0", "job")
        self._logs: list[IngressLog] = []
        self._deleted = 0
        self.story: dict[int, ObjectRef] = {}
        self.behind = 0

    def step(self) -> None:
        match int(self._rng.integers(6)):
            case 0:
                self._logs.append(IngressLog(self._disk, "0.0", self._checkpoint))
            case 1 if self._deleted < self._checkpoint.number:
                self._disk.delete([ingress_key("0.0", self._deleted)])
                self._deleted += 1
            case _ if self._logs:
                log = self._logs[int(self._rng.integers(len(self._logs)))]
                try:
                    self._go_on(log)
                except LogCollected:
                    self.behind += 1
                    self._logs.remove(log)

    def _go_on(self, log: IngressLog) -> None:
        if log.read() is None and not log.append(IngressRecord(0)):
            return
        place: LogPlace = log.place(0)
        assert self.story.setdefault(place.number, place.ref) == place.ref
        if place.number > self._checkpoint.number and self._rng.random() < 0.3:
            self._checkpoint = place


@pytest.mark.parametrize("seed", range(100))
def test_no_two_instances_believe_different_records(seed: int) -> None:
    instances = Instances(seed)
    for _ in range(400):
        instances.step()
    assert len(instances.story) > 20
    assert instances.behind > 0


def replayed(disk: SimulatedDisk, start: LogPlace, end: ObjectRef) -> list[int]:
    log = IngressLog(disk, "0.0", start, end)
    found = []
    while (record := log.read()) is not None:
        found.append(record.offset)
    return found


@pytest.mark.parametrize("seed", range(100))
def test_harm_to_a_log_is_found_or_changes_nothing(seed: int) -> None:
    """The manager's record knows of the sixth record; eight were written."""
    rng = np.random.default_rng(seed)
    disk = SimulatedDisk(np.random.default_rng(0))
    begin = begin_log(disk, "0.0", "job")
    log = IngressLog(disk, "0.0", begin)
    places = []
    for offset in range(8):
        assert log.append(IngressRecord(offset))
        places.append(log.place(offset))
    disk.settle()
    start = begin if seed % 2 else places[2]
    for _ in range(int(rng.integers(1, 3))):
        disk.harm(rng)
    disk.settle()
    whole = list(range(8)) if seed % 2 else list(range(2, 8))
    try:
        found = replayed(disk, start, places[5].ref)
    except (SnapshotCorrupt, LogCollected) as error:
        assert any(key in str(error) for key in disk.harmed) or "is gone" in str(error)
        return
    # The last ones, of which nothing knows, may count as never written.
    assert len(found) >= len(whole) - 2 and found == whole[: len(found)]


def test_a_damaged_last_record_that_nothing_knows_of_is_written_anew() -> None:
    disk = SimulatedDisk(np.random.default_rng(0))
    begin = begin_log(disk, "0.0", "job")
    disk.put(ingress_key("0.0", 1), b"torn")
    log = IngressLog(disk, "0.0", begin)
    assert log.read() is None
    assert log.append(IngressRecord(4))
    assert replayed(disk, begin, log.place(4).ref) == [4]


def logged(count: int) -> tuple[SimulatedDisk, LogPlace, list[LogPlace]]:
    disk = SimulatedDisk(np.random.default_rng(0))
    begin = begin_log(disk, "0.0", "job")
    log = IngressLog(disk, "0.0", begin)
    places = []
    for offset in range(count):
        assert log.append(IngressRecord(offset))
        places.append(log.place(offset))
    disk.settle()
    return disk, begin, places


def test_the_last_record_that_the_job_has_heard_of_must_be_there() -> None:
    disk, begin, places = logged(4)
    end = places[-1].ref
    assert end is not None and replayed(disk, begin, end) == [0, 1, 2, 3]
    disk.delete([end.key])
    with pytest.raises(SnapshotCorrupt, match=end.key):
        replayed(disk, begin, end)


def test_a_record_that_is_another_is_found_by_the_one_behind_it() -> None:
    """It is whole, under its own name, and follows the one before it."""
    disk, begin, places = logged(4)
    before, third, end = (places[i].ref for i in (1, 2, 3))
    assert before is not None and third is not None and end is not None
    other = IngressRecord(2, b"other rows", writer="x", before=before.seal)
    disk.put(third.key, encode_record(third.key, other))
    with pytest.raises(SnapshotCorrupt, match=f"{end.key} does not follow"):
        replayed(disk, begin, end)
