"""Many instances of one source at its log, and a collector: all that is believed is one story."""

from itertools import count

import numpy as np
import pytest

from log_talk import talked
from weir.errors import SnapshotCorrupt
from weir.ingress.ingress_log import IngressLog, LogCollected, begin_log
from weir.ingress.source_signals import IngressRecord
from weir.reliable.codec import encode_record
from weir.reliable.object_names import ingress_key, number_of
from weir.reliable.objects import ObjectRef
from weir.simulator.simulated_disk import SimulatedDisk


class SyncLog:
    """A log and its store, without a source."""

    def __init__(
        self, disk: SimulatedDisk, start: ObjectRef, end: ObjectRef | None = None, name: str = "w"
    ) -> None:
        self._disk = disk
        self._log = IngressLog("0.0", start, end, writer=name)
        talked(self._log.begin(), disk)

    def read(self) -> tuple[int, ObjectRef] | None:
        found = talked(self._log.read(), self._disk)
        return None if found is None else (found.record.offset, found.ref)

    def append(self, offset: int = 0) -> ObjectRef | None:
        return talked(self._log.append(IngressRecord(offset)), self._disk)


class Instances:
    """Instances begin at the last checkpoint, or hang and go on much later. The collector deletes
    what lies before the checkpoint, some of it at a time, the smallest first."""

    def __init__(self, seed: int) -> None:
        self._rng = np.random.default_rng(seed)
        self._disk = SimulatedDisk(np.random.default_rng(0))
        self._checkpoint = begin_log(self._disk, "0.0", "job")
        self._logs: list[SyncLog] = []
        self._names = 0
        self._deleted = 0
        self.story: dict[int, ObjectRef] = {}
        self.behind = 0

    def step(self) -> None:
        match int(self._rng.integers(6)):
            case 0:
                self._names += 1
                name = f"writer {self._names}"
                self._logs.append(SyncLog(self._disk, self._checkpoint, name=name))
            case 1 if self._deleted < number_of(self._checkpoint.key):
                self._disk.delete([ingress_key("0.0", self._deleted)])
                self._deleted += 1
            case _ if self._logs:
                log = self._logs[int(self._rng.integers(len(self._logs)))]
                try:
                    self._go_on(log)
                except LogCollected:
                    self.behind += 1
                    self._logs.remove(log)

    def _go_on(self, log: SyncLog) -> None:
        found = log.read()
        ref = log.append() if found is None else found[1]
        if ref is None:
            return
        number = number_of(ref.key)
        assert self.story.setdefault(number, ref) == ref
        if number > number_of(self._checkpoint.key) and self._rng.random() < 0.3:
            self._checkpoint = ref


@pytest.mark.parametrize("seed", range(100))
def test_no_two_instances_believe_different_records(seed: int) -> None:
    instances = Instances(seed)
    for _ in range(400):
        instances.step()
    assert len(instances.story) > 20
    assert instances.behind > 0


def replayed(disk: SimulatedDisk, start: ObjectRef, end: ObjectRef) -> list[int]:
    log = SyncLog(disk, start, end)
    found = []
    while (record := log.read()) is not None:
        found.append(record[0])
    return found


def logged(count: int) -> tuple[SimulatedDisk, ObjectRef, list[ObjectRef]]:
    disk = SimulatedDisk(np.random.default_rng(0))
    begin = begin_log(disk, "0.0", "job")
    log = SyncLog(disk, begin)
    written = [log.append(offset) for offset in range(count)]
    disk.settle()
    return disk, begin, [ref for ref in written if ref is not None]


@pytest.mark.parametrize("seed", range(100))
def test_harm_to_a_log_is_found_or_changes_nothing(seed: int) -> None:
    """The manager's record knows of the sixth record; eight were written."""
    rng = np.random.default_rng(seed)
    disk, begin, written = logged(8)
    assert len(written) == 8
    start = begin if seed % 2 else written[2]
    for _ in range(int(rng.integers(1, 3))):
        disk.harm(rng)
    disk.settle()
    whole = list(range(8)) if seed % 2 else list(range(2, 8))
    try:
        found = replayed(disk, start, written[5])
    except (SnapshotCorrupt, LogCollected) as error:
        assert any(key in str(error) for key in disk.harmed) or "is gone" in str(error)
        return
    # The last ones, of which nothing knows, may count as never written.
    assert len(found) >= len(whole) - 2 and found == whole[: len(found)]


def test_a_damaged_last_record_that_nothing_knows_of_is_written_anew() -> None:
    disk = SimulatedDisk(np.random.default_rng(0))
    begin = begin_log(disk, "0.0", "job")
    disk.put(ingress_key("0.0", 1), b"torn")
    log = SyncLog(disk, begin)
    assert log.read() is None
    ref = log.append(4)
    assert ref is not None and replayed(disk, begin, ref) == [4]


def test_the_last_record_that_the_job_has_heard_of_must_be_there() -> None:
    disk, begin, written = logged(4)
    end = written[-1]
    assert replayed(disk, begin, end) == [0, 1, 2, 3]
    disk.delete([end.key])
    with pytest.raises(SnapshotCorrupt, match=end.key):
        replayed(disk, begin, end)


def test_a_record_that_is_another_is_found_by_the_one_behind_it() -> None:
    """It is whole, under its own name, and follows the one before it."""
    disk, begin, written = logged(4)
    before, third, end = written[1:]
    other = IngressRecord(2, b"other rows", writer="x", before=before.seal)
    disk.put(third.key, encode_record(third.key, other))
    with pytest.raises(SnapshotCorrupt, match=f"{end.key} does not follow"):
        replayed(disk, begin, end)


# --- zombies -------------------------------------------------------------------------------------

NAMES = map("writer {}".format, count())


def written(log: SyncLog, records: int) -> list[ObjectRef]:
    made = [log.append(offset) for offset in range(records)]
    return [ref for ref in made if ref is not None]


def test_a_zombie_cannot_write_where_a_record_was_collected() -> None:
    store = SimulatedDisk(np.random.default_rng(0))
    begin = begin_log(store, "0.0", "job")
    zombie = SyncLog(store, begin, name=next(NAMES))
    (first,) = written(zombie, 1)
    late = SyncLog(store, first, name=next(NAMES))
    assert late.read() is not None
    ahead = SyncLog(store, begin, name=next(NAMES))
    assert ahead.read() is not None
    *_, last = written(ahead, 5)
    store.delete(ingress_key("0.0", number) for number in range(number_of(last.key)))
    with pytest.raises(LogCollected, match="record 1 "):
        zombie.append(1)  # makes record 2 anew
    with pytest.raises(LogCollected, match="record 1 "):
        late.read()  # and nobody believes it
    with pytest.raises(LogCollected, match="record 0 "):
        SyncLog(store, begin, name=next(NAMES))
    after = SyncLog(store, last, name=next(NAMES))
    assert after.read() is not None and after.read() is None
    assert after.append(6) and not ahead.append(6)
    assert ahead.read() is not None


def test_a_record_made_anew_is_not_the_one_that_was_there() -> None:
    store = SimulatedDisk(np.random.default_rng(0))
    begin = begin_log(store, "0.0", "job")
    one, other = SyncLog(store, begin, name=next(NAMES)), SyncLog(store, begin, name=next(NAMES))
    (first,) = written(one, 1)
    assert other.read() is not None
    written(other, 3)
    store.delete(ingress_key("0.0", number) for number in range(4))
    store.put(ingress_key("0.0", 1), store.get(ingress_key("0.0", 4)) or b"")
    with pytest.raises(LogCollected):
        one.append(9)
    with pytest.raises(LogCollected):
        SyncLog(store, first, name=next(NAMES))
