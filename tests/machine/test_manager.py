"""The job manager: placing, recovery, fencing, collection, stopping; signals in, commands out."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

import pytest

from machine.jobs import checkpoint, commit, report, says, segment, stored, topology
from weir.job.commit_log import Commit
from weir.job.garbage_sweep import EPOCH_BITS
from weir.job.ledger import Ledger
from weir.job.manager import Manager
from weir.job.messages import Orders, Preparing, VertexReport
from weir.job.record_reader import encode_hint
from weir.job.record_writer import TAKEN_OVER
from weir.job.settings import ManagerSettings
from weir.job.signals import (
    Answer,
    Delete,
    EndJob,
    Get,
    HungUp,
    List,
    Listed,
    Loaded,
    ManagerCommand,
    Prepares,
    Put,
    Refused,
    Reported,
    Unloaded,
    Unstored,
)
from weir.job.status import VertexStatus, status_of
from weir.reliable.codec import encode_record
from weir.reliable.object_names import (
    LATEST_RECORD,
    commit_key,
    ingress_key,
    number_of,
    part_key,
    record_key,
)
from weir.reliable.objects import ObjectRef
from weir.reliable.strategies import CheckpointStrategy, Feeding, ReplicateStrategy, Strategy
from whole_ledger import follow

ONE = {v: CheckpointStrategy(1.0) for v in ("0.0", "1.0", "sink.0")}
TWO = {**ONE, "1.0": ReplicateStrategy(1.0, copies=2)}
SETTINGS = ManagerSettings(hosts=1, patience=0.0)


class Job:
    """A manager with a store that always succeeds, unless told otherwise."""

    def __init__(
        self,
        ledger: Ledger | None = None,
        strategies: dict[str, Strategy] = ONE,
        settings: ManagerSettings = SETTINGS,
        name: str = "m",
        sinks: int = 1,
    ) -> None:
        self.now = 0.0
        plan = {f"sink.{n}": ONE["sink.0"] for n in range(sinks)} | strategies
        self.machine = Manager(topology(sinks), plan, ledger or Ledger(), settings, 0.0, name=name)
        self.numbers: dict[str, int] = {}
        self.out: list[ManagerCommand] = []
        self.records: list[Ledger] = []

    def do(self, commands: list[ManagerCommand]) -> list[ManagerCommand]:
        """Answer writes until none is left."""
        todo = list(commands)
        found: list[ManagerCommand] = []
        while todo:
            command = todo.pop(0)
            found.append(command)
            if isinstance(command, Put):
                if command.new:
                    last = self.records[-1].copied() if self.records else None
                    self.records.append(follow(last, command.key, command.encode()))
                todo += self.machine.handle(stored(command.key), self.now)
        self.out += found
        return found

    def tick(self, now: float) -> list[ManagerCommand]:
        """Time passes; all hosts that are there were heard of in between."""
        self.now = now
        return self.do(self.machine.tick(now))

    def report(self, session: str, *vertices: VertexReport, **more: object) -> Orders | None:
        self.numbers[session] = self.numbers.get(session, 0) + 1
        made = report(session, self.numbers[session], *vertices, **more)  # type: ignore[arg-type]
        for command in self.do(self.machine.handle(Reported(made), self.now)):
            if isinstance(command, Answer) and command.session == session:
                return command.orders
        return None

    def incarnation(self, vertex: str, copy: int = 0) -> int:
        return [p.incarnation for p in self.machine.placements if p.vertex == vertex][copy]

    def where(self, vertex: str) -> list[str | None]:
        return [p.session for p in self.machine.placements if p.vertex == vertex]

    def says(self, vertex: str, copy: int = 0, **what: object) -> VertexReport:
        return says(vertex, self.incarnation(vertex, copy), **what)  # type: ignore[arg-type]


def running(**given: object) -> Job:
    job = Job(**given)  # type: ignore[arg-type]
    job.tick(0.0)
    job.report("h1")
    return job


# --- records and fencing -----------------------------------------------------------------------


def test_nothing_is_ordered_before_the_first_record_is_durable() -> None:
    job = Job()
    (put,) = job.machine.tick(0.0)
    assert isinstance(put, Put) and put.new and put.key == record_key(0)
    assert job.report("h1") is None
    job.do(job.machine.handle(stored(put.key), 0.0))
    orders = job.report("h1")
    assert orders is not None and {v.vertex for v in orders.vertices} == {"0.0", "1.0", "sink.0"}


def test_two_that_begin_from_one_record_do_not_write_the_same_next_one() -> None:
    first, second = Job(name="a"), Job(name="b")
    (mine,), (other,) = first.machine.tick(0.0), second.machine.tick(0.0)
    assert isinstance(mine, Put) and isinstance(other, Put)
    assert second.machine.handle(Refused(other.key), 0.0) == [Get(other.key)]
    assert second.machine.handle(Loaded(other.key, mine.encode()), 0.0) == [EndJob(TAKEN_OVER)]


def test_its_own_record_whose_success_was_not_heard_counts() -> None:
    job = Job()
    (put,) = job.machine.tick(0.0)
    assert isinstance(put, Put)
    job.machine.handle(Unstored(put.key, "nobody knows"), 0.0)
    assert job.machine.tick(1.0) == [put]
    assert job.machine.handle(Refused(put.key), 1.0) == [Get(put.key)]
    job.machine.handle(Loaded(put.key, put.encode()), 1.0)
    assert job.machine.established


def test_one_that_hears_of_a_later_epoch_stops_and_says_nothing_to_hosts() -> None:
    job = running()
    made = report("h9", 1, epoch=5)
    assert job.machine.handle(Reported(made), 0.0) == [EndJob(TAKEN_OVER)]
    assert job.machine.handle(Reported(report("h1", 9)), 0.0) == []


def test_incarnations_grow_over_epochs() -> None:
    first = running()
    second = running(ledger=first.records[-1])
    assert second.incarnation("0.0") > max(first.incarnation(v) for v in ONE)
    assert second.incarnation("0.0") >> EPOCH_BITS == 2


# --- placing and recovery ------------------------------------------------------------------------


def test_copies_are_on_different_hosts_and_wait_for_one() -> None:
    job = running(strategies=TWO)
    assert job.where("1.0") == ["h1", None]
    job.report("h2")
    assert job.where("1.0") == ["h1", "h2"]
    orders = [job.report(h) for h in ("h1", "h2")]
    copies = [v for o in orders if o for v in o.vertices if v.vertex == "1.0"]
    assert [v.writes_log for v in copies] == [True, False]
    assert [v.takes_checkpoints for v in copies] == [False, True]


def test_a_silent_host_is_lost_its_vertices_alone_are_placed_anew() -> None:
    job = running(settings=replace(SETTINGS, hosts=2, patience=10.0))
    job.report("h2")
    before = {v: (job.where(v), job.incarnation(v)) for v in ONE}
    lost = [v for v, (where, _) in before.items() if where == ["h1"]]
    assert 0 < len(lost) < 3
    for step in range(1, 20):
        job.now = step / 10
        job.report("h2")
        job.tick(step / 10)
    for vertex in ONE:
        if vertex in lost:
            assert job.where(vertex) == ["h2"] and job.incarnation(vertex) > before[vertex][1]
        else:
            assert (job.where(vertex), job.incarnation(vertex)) == before[vertex]
    orders = job.report("h1")
    assert orders is not None and orders.stop and not orders.over


class SetsBackWriters(CheckpointStrategy):
    """Whoever writes what the vertex reads restarts with it."""

    def sets_back(self, vertex: str, feeding: Feeding) -> Collection[str]:
        return feeding(vertex)


def test_a_loss_sets_back_whom_the_strategy_says() -> None:
    job = running(
        strategies={**ONE, "1.0": SetsBackWriters()},
        settings=replace(SETTINGS, hosts=2, patience=10.0),
    )
    job.report("h2")
    (session,) = job.where("1.0")
    assert session is not None
    stays = [v for v in ONE if v != "1.0" and job.where(v) != [session]]
    before = {v: job.incarnation(v) for v in ONE}
    job.machine.lose(session, job.now, "killed")
    after = {v: job.incarnation(v) for v in ONE}
    assert {v for v in stays if after[v] == before[v]} == set(stays) - {"0.0"}
    assert after["0.0"] > before["0.0"] and after["1.0"] > before["1.0"]
    told = {(line.vertex, line.what) for line in job.machine.story}
    assert ("0.0" not in stays) or ("0.0", "set back by the loss of 1.0") in told


SETS_BACK: dict[str, Strategy] = {v: SetsBackWriters(1.0) for v in ONE}


def test_who_is_set_back_sets_back_others_in_turn() -> None:
    job = running(strategies=SETS_BACK, settings=replace(SETTINGS, hosts=3, patience=10.0))
    for host in ("h2", "h3"):
        job.report(host)
    (alone,) = job.where("sink.0")
    assert alone is not None and job.where("1.0") != [alone]
    before = {v: job.incarnation(v) for v in ONE}
    job.machine.lose(alone, job.now, "killed")
    assert all(job.incarnation(v) > before[v] for v in ONE)
    told = [(line.vertex, line.what) for line in job.machine.story]
    assert ("1.0", "set back by the loss of sink.0") in told
    assert ("0.0", "set back by the loss of 1.0") in told
    assert job.machine.ledger.recoveries == dict.fromkeys(ONE, 1)


def test_each_instance_of_a_lost_host_is_lost_once() -> None:
    job = running(strategies=SETS_BACK)
    job.machine.lose("h1", job.now, "killed")
    assert job.machine.ledger.recoveries == dict.fromkeys(ONE, 1)
    assert not any("set back" in line.what for line in job.machine.story)


def test_a_vertex_that_begins_again_sets_back_others() -> None:
    job = running(strategies=SETS_BACK)
    before = {v: job.incarnation(v) for v in ONE}
    job.report("h1", job.says("1.0", status="behind"), job.says("sink.0"))
    after = {v: job.incarnation(v) for v in ONE}
    assert {v for v in ONE if after[v] > before[v]} == {"0.0", "1.0"}


class SetsBackSink(CheckpointStrategy):
    """The sink restarts with the vertex."""

    def sets_back(self, vertex: str, feeding: Feeding) -> Collection[str]:
        return ("sink.0",)


def test_what_an_instance_that_was_set_back_reports_no_longer_counts() -> None:
    job = running(strategies={**ONE, "1.0": SetsBackSink(1.0)})
    behind = job.says("1.0", status="behind")
    job.report("h1", behind, job.says("sink.0", checkpoints=(commit(0, 3),)))
    told = [(line.vertex, line.what) for line in job.machine.story]
    assert ("sink.0", "set back by the loss of 1.0") in told
    assert "sink.0" not in job.machine.ledger.checkpoints
    assert not any("runs again" in what for _, what in told)


def test_a_vertex_that_goes_back_sets_back_others() -> None:
    job = running(strategies=SETS_BACK)
    bad = checkpoint("1.0", 0, 0, 0)
    job.report("h1", job.says("1.0", checkpoints=(bad,)))
    before = {v: job.incarnation(v) for v in ONE}
    failed = job.says("1.0", status="failed", corrupt=(bad.key,))
    job.report("h1", failed, job.says("0.0", checkpoints=(checkpoint("0.0", 0, 5, 5),)))
    after = {v: job.incarnation(v) for v in ONE}
    assert {v for v in ONE if after[v] > before[v]} == {"0.0", "1.0"}


def test_hosts_are_waited_for_from_when_the_first_came() -> None:
    """Spark may take its time to start; that is no reason to leave all to whoever is first."""
    job = Job(settings=replace(SETTINGS, hosts=2, patience=10.0))
    job.tick(0.0)
    job.tick(30.0)
    job.report("h1")
    assert job.where("1.0") == [None]
    job.tick(31.0)
    job.report("h1")
    job.report("h2")
    assert {job.where(v)[0] for v in ONE} == {"h1", "h2"}


def test_hosts_that_do_not_come_are_not_waited_for_for_ever() -> None:
    job = running(settings=replace(SETTINGS, hosts=2, patience=10.0))
    for step in range(11):
        assert job.where("1.0") == [None]
        job.now = float(step)
        job.tick(job.now)
        job.report("h1")
    assert job.where("1.0") == ["h1"]


def test_a_job_without_any_host_for_too_long_ends_and_says_what_to_do() -> None:
    job = Job(settings=replace(SETTINGS, host_limit=3.0))
    for step in range(30):
        job.tick(step / 10)
    assert not any(isinstance(c, EndJob) for c in job.out)
    for step in range(30, 40):
        job.tick(step / 10)
    (ended,) = (c for c in job.out if isinstance(c, EndJob))
    assert "free slot" in ended.error and "--resume" in ended.error
    assert not any(isinstance(c, Delete) for c in job.out)


def compiles(job: Job, now: float, slot: int = 0) -> None:
    job.now = now
    job.do(job.machine.handle(Prepares(Preparing(slot, "w1", 3, 30)), now))
    job.tick(now)


def test_a_host_that_compiles_is_waited_for() -> None:
    """However long it takes: but one that is no longer heard of does not count."""
    job = Job(settings=replace(SETTINGS, host_limit=3.0))
    for step in range(20):
        compiles(job, step / 2)
    assert not any(isinstance(c, EndJob) for c in job.out)
    assert status_of(job.machine, 9.5, 0.0).preparing == ("compiling loops on w1, 3 of 30",)
    for step in range(95, 150):
        job.tick(step / 10)
    assert any(isinstance(c, EndJob) for c in job.out)
    assert status_of(job.machine, 14.9, 0.0).preparing == ()


def test_a_host_that_compiles_gets_vertices_too() -> None:
    job = Job(settings=replace(SETTINGS, hosts=2, patience=1.0, host_limit=60.0))
    job.tick(0.0)
    for step in range(20):
        compiles(job, step / 2, slot=1)
        job.report("h1")
    assert job.where("1.0") == [None]
    job.report("h2")
    assert {job.where(v)[0] for v in ONE} == {"h1", "h2"}


def test_a_host_that_compiles_for_ever_does_not_keep_the_others_from_working() -> None:
    job = Job(settings=replace(SETTINGS, hosts=2, patience=1.0, host_limit=5.0))
    job.tick(0.0)
    for step in range(13):
        compiles(job, step / 2, slot=1)
        job.report("h1")
    assert {job.where(v)[0] for v in ONE} == {"h1"}


def test_a_host_that_has_come_no_longer_compiles() -> None:
    job = Job()
    compiles(job, 0.0)
    job.report("h1")
    assert job.machine.preparing == []
    assert [line.what for line in job.machine.story if "compiled" in line.what] == [
        "loops are compiled on w1"
    ]


def test_a_manager_that_slept_was_not_alone_for_so_long() -> None:
    job = Job(settings=replace(SETTINGS, host_limit=3.0))
    for now in (0.0, 0.5, 100.0, 100.5):
        job.tick(now)
    assert not any(isinstance(c, EndJob) for c in job.out)


def test_snapshots_and_recoveries_of_each_vertex_are_counted_over_managers() -> None:
    job = running()
    both = (checkpoint("1.0", 0, 2, 2), checkpoint("1.0", 1, 4, 4))
    job.report("h1", job.says("1.0", checkpoints=both))
    job.machine.lose("h1", 0.5, "not heard of")
    job.tick(1.0)
    later = running(ledger=job.records[-1])
    later.report("h1", later.says("1.0", checkpoints=(checkpoint("1.0", 0, 6, 6, 2),)))
    found = {v.id: (v.snapshots, v.recoveries) for v in status_of(later.machine, 0.0, 0.0).vertices}
    assert found == {"0.0": (0, 1), "1.0": (3, 1), "sink.0": (0, 1)}


def test_the_events_of_a_job_are_the_rows_that_its_sources_admitted() -> None:
    job = running()
    job.report("h1", job.says("0.0", inputs=(900,), events=7), job.says("1.0", events=5))
    assert status_of(job.machine, 0.0, 0.0).events == 7


def test_a_source_that_waits_is_told_of_once_and_does_not_end_the_job() -> None:
    job = running()

    def say(now: float, waits: str | None) -> VertexStatus:
        job.tick(now)
        job.report("h1", job.says("0.0", waits=waits))
        (found,) = (v for v in status_of(job.machine, now, 0.0).vertices if v.id == "0.0")
        return found

    def told() -> list[str]:
        return [line.what for line in job.machine.story if "waits" in line.what]

    found = say(1.0, "nobody listens")
    assert (found.waits, found.waits_seconds, told()) == ("nobody listens", 0.0, [])
    for second in range(2, 100):
        found = say(second, "nobody listens")
    assert (found.waits_seconds, told()) == (98.0, ["waits: nobody listens"])
    found = say(100.0, None)
    assert (found.waits, found.waits_seconds) == ("", None)
    say(101.0, "it went away")
    assert say(107.0, "it went away").waits_seconds == 6.0
    assert told() == ["waits: nobody listens", "waits: it went away"]
    assert not any(isinstance(c, EndJob) for c in job.out)


def test_a_manager_that_slept_does_not_give_up_its_hosts() -> None:
    job = running()
    job.tick(100.0)
    assert "h1" in job.machine.hosts


def test_a_manager_that_hardly_gets_on_does_not_give_up_its_hosts_so_soon() -> None:
    """All processes of its machine stand still for most of the time, the companions too."""
    job = running()
    for step in range(1, 10):
        job.tick(step * 0.6)
    assert "h1" in job.machine.hosts
    for step in range(10, 13):
        job.tick(step * 0.6)
    assert "h1" not in job.machine.hosts


@pytest.mark.parametrize(("look_every", "found"), [(0.02, 0.12), (0.5, 1.0)])
def test_a_host_whose_processes_are_gone_is_lost_at_once_also_by_a_manager_that_hardly_gets_on(
    look_every: float, found: float
) -> None:
    job = running()
    job.do(job.machine.handle(HungUp("h1"), 0.0))
    now = 0.0
    while "h1" in job.machine.hosts:
        now += look_every
        job.tick(now)
    assert now <= found + 1e-9


def test_what_a_lost_instance_says_does_not_count() -> None:
    job = running()
    old = job.says("1.0", checkpoints=(checkpoint("1.0", 0, 3, 0),))
    job.machine.lose("h1", 0.0, "killed")
    job.report("h2")
    job.report("h2", old)
    assert job.machine.ledger.checkpoints == {}


def test_a_vertex_restarts_from_its_newest_usable_checkpoint() -> None:
    job = running()
    made = checkpoint("1.0", 2, 3, 3)
    log = {"1.0/0": (segment("1.0/0", 0, 3),)}
    job.report("h1", job.says("1.0", checkpoints=(made,), segments=log))
    job.machine.lose("h1", 0.0, "killed")
    orders = job.report("h2")
    assert orders is not None
    by_vertex = {v.vertex: v for v in orders.vertices}
    assert by_vertex["1.0"].restart == made
    assert by_vertex["1.0"].segments == log
    assert by_vertex["0.0"].restart is None


def test_what_cannot_be_read_is_not_relied_on_whoever_speaks_of_it() -> None:
    job = running(strategies=TWO)
    job.report("h2")
    bad = segment("1.0/0", 0, 3)
    job.report("h1", job.says("1.0", segments={"1.0/0": (bad,)}))
    before = job.incarnation("1.0")
    job.report("h1", job.says("1.0", status="failed", corrupt=(bad.key,)))
    assert job.incarnation("1.0") > before
    job.report("h2", job.says("1.0", 1, segments={"1.0/0": (bad,)}))
    assert bad.key not in job.machine.ledger.names


def test_a_vertex_without_a_way_back_ends_the_job_with_everything_kept() -> None:
    ledger = Ledger(collected={"0.0/0": 5})
    job = Job(ledger)
    job.tick(0.0)
    job.report("h1")
    (ended,) = [c for c in job.tick(1.0) if isinstance(c, EndJob)]
    assert "no checkpoint that can be read" in ended.error


def test_the_end_of_a_vertex_without_a_way_back_names_what_could_not_be_read() -> None:
    job = running(strategies=TWO)
    job.report("h2")
    bad = segment("1.0/0", 0, 3)
    job.report("h1", job.says("1.0", segments={"1.0/0": (bad,)}))
    job.report("h1", job.says("1.0", status="failed", corrupt=(bad.key,)))
    assert not any(isinstance(c, EndJob) for c in job.out)
    job.machine.ledger.collected["0.0/0"] = 5
    job.machine.lose("h1", 1.0, "killed")
    job.report("h3")
    job.tick(2.0)
    (ended,) = [c for c in job.out if isinstance(c, EndJob)]
    assert "no checkpoint that can be read" in ended.error and bad.key in ended.error


def test_a_checkpoint_that_nothing_can_stand_in_for_can_be_put_back() -> None:
    """The job ends and names it; the record still refers to it, so `--resume` finds it again."""
    job = running()
    made = checkpoint("1.0", 0, 3, 0)
    job.report("h1", job.says("1.0", checkpoints=(made,)))
    job.tick(1.0)
    assert job.machine.ledger.collected["0.0/0"] == 3
    error = f"{made.key} is not in the store"
    job.report("h1", job.says("1.0", status="failed", corrupt=(made.key,), error=error))
    job.tick(2.0)
    (ended,) = [c for c in job.out if isinstance(c, EndJob)]
    assert error in ended.error and "put it back and run again with --resume" in ended.error
    assert made.key in job.records[-1].names


def test_an_error_of_a_vertex_ends_the_job_and_deletes_nothing_that_is_needed() -> None:
    job = running()
    made = checkpoint("1.0", 0, 3, 0)
    job.report("h1", job.says("1.0", checkpoints=(made,)))
    job.report("h1", job.says("1.0", status="failed", error="OperatorFailed: boom"))
    out = job.tick(1.0)
    assert [c.error for c in out if isinstance(c, EndJob)] == ["vertex 1.0: OperatorFailed: boom"]
    assert job.records[-1].names == {made.key}
    orders = job.report("h1")
    assert orders is not None and orders.stop and orders.over


# --- collection ----------------------------------------------------------------------------------


def collected_job() -> tuple[Job, list[ManagerCommand]]:
    job = running()
    first, second = checkpoint("1.0", 0, 2, 2), checkpoint("1.0", 1, 4, 4)
    log = (segment("1.0/0", 0, 3), segment("1.0/0", 3, 4))
    job.report("h1", job.says("1.0", checkpoints=(first, second), segments={"1.0/0": log}))
    job.report("h1", job.says("sink.0", checkpoints=(commit(0, 3),)))
    return job, job.machine.tick(1.0)


def test_garbage_is_deleted_and_forgotten_only_when_a_record_without_it_is_durable() -> None:
    job, commands = collected_job()
    (put,) = commands
    assert isinstance(put, Put)
    orders = job.report("h1")
    assert orders is not None and {s: n for v in orders.vertices for s, n in v.collect.items()} == {
        "0.0/0": 0,
        "1.0/0": 0,
    }
    out = job.machine.handle(stored(put.key), 1.0)
    (hint,) = [c for c in out if isinstance(c, Put)]
    (delete,) = [c for c in out if isinstance(c, Delete)]
    assert hint.key == LATEST_RECORD and hint.encode() == encode_hint(number_of(put.key))
    assert set(delete.keys) == {checkpoint("1.0", 0, 2, 2).key, segment("1.0/0", 0, 3).key}
    orders = job.report("h1")
    assert orders is not None and {s: n for v in orders.vertices for s, n in v.collect.items()} == {
        "0.0/0": 4,
        "1.0/0": 3,
    }


def test_a_manager_that_cannot_write_its_record_stops_and_says_what_to_do() -> None:
    job = running(settings=replace(SETTINGS, trouble_limit=1.0))
    job.report("h1", job.says("1.0", checkpoints=(checkpoint("1.0", 0, 2, 0),)))
    (put,) = [c for c in job.machine.tick(1.0) if isinstance(c, Put)]
    now, tries = 1.0, 0
    ended: list[EndJob] = []
    while not ended:
        out = job.machine.handle(Unstored(put.key, "no space left"), now)
        ended = [c for c in out if isinstance(c, EndJob)]
        now += 0.3
        tries += sum(c == put for c in job.machine.tick(now))
        assert now < 5.0
    assert "no space left" in ended[0].error and "--resume" in ended[0].error
    assert 2 <= tries <= 5
    assert job.report("h1") is None, "it may not be the manager any more: it orders nothing"


def test_a_job_that_ends_with_an_error_does_not_wait_a_second_time_for_its_store() -> None:
    job = running(settings=replace(SETTINGS, trouble_limit=30.0))
    job.report("h1", trouble="no space left")
    now = 0.0
    while now < 30.5:
        now += 0.5
        job.now = now
        job.report("h1", trouble="no space left")
        out = job.machine.tick(now)
        puts = [c for c in out if isinstance(c, Put)]
        if puts:
            break
    ended: list[EndJob] = []
    while not ended:
        out = job.machine.handle(Unstored(puts[0].key, "no space left"), now)
        ended = [c for c in out if isinstance(c, EndJob)]
        now += 0.3
        job.machine.tick(now)
        assert now < 32.0, "half a minute, and not twice that"
    assert "host h1 cannot go on: no space left" in ended[0].error and "--resume" in ended[0].error
    assert job.machine.resigned


def test_a_record_that_nobody_can_read_is_no_busy_loop() -> None:
    job = Job()
    (put,) = [c for c in job.machine.tick(0.0) if isinstance(c, Put)]
    assert job.machine.handle(Refused(put.key), 0.0) == [Get(put.key)]
    assert job.machine.handle(Unloaded(put.key, "out of reach"), 0.0) == []
    assert job.machine.tick(0.1) == []
    assert put in job.machine.tick(0.3)


def test_a_sweep_spares_what_the_durable_record_names() -> None:
    """The record to come does not name it any more, but if this manager dies the old one counts."""
    job = running()
    old = checkpoint("1.0", 0, 2, 0)
    job.report("h1", job.says("1.0", checkpoints=(old,)))
    job.tick(1.0)
    job.report("h1", job.says("1.0", checkpoints=(old, checkpoint("1.0", 1, 4, 0))))
    (put,) = [c for c in job.machine.tick(2.0) if isinstance(c, Put)]
    assert old.key not in follow(job.records[-1].copied(), put.key, put.encode()).names
    assert job.machine.handle(Listed((old.key,)), 2.0) == []
    job.do(job.machine.handle(stored(put.key), 2.0))
    assert job.machine.handle(Listed((old.key,)), 2.0) == [Delete((old.key,))]


def test_records_of_a_log_go_when_a_durable_record_says_so() -> None:
    job = running()
    keys = tuple(ingress_key("0.0", n) for n in range(4))
    job.report("h1", job.says("0.0", checkpoints=(checkpoint("0.0", 0, 5, 0, log=2),)))
    (put,) = [c for c in job.machine.tick(1.0) if isinstance(c, Put)]
    assert job.machine.handle(Listed(keys), 1.0) == [], "it is not durable yet"
    assert Delete(keys[:2]) in job.do(job.machine.handle(stored(put.key), 1.0))
    assert job.machine.handle(Listed(keys[::-1]), 1.0) == [Delete(keys[:2])]


def test_a_source_that_fell_behind_its_log_starts_again() -> None:
    job = running()
    before = job.incarnation("0.0")
    job.report("h1", job.says("0.0", checkpoints=(checkpoint("0.0", 0, 5, 0, log=2),)))
    job.tick(1.0)
    job.report("h1", job.says("0.0", status="behind", error="record 1 is gone"))
    assert job.incarnation("0.0") > before
    assert not any(isinstance(c, EndJob) for c in job.out)


def test_a_log_that_was_lost_ends_the_job() -> None:
    job = running()
    job.report("h1", job.says("0.0", status="behind", error="record 0 is gone"))
    job.tick(1.0)
    (ended,) = [c for c in job.out if isinstance(c, EndJob)]
    assert "record 0 is gone" in ended.error and "empty store" in ended.error
    assert "put it back from a version or a backup" in ended.error


def test_a_source_whose_checkpoints_are_gone_cannot_begin_where_its_log_no_longer_does() -> None:
    job = Job(Ledger(number=0, collected={"ingress/0.0": 2}))
    job.tick(0.0)
    job.report("h1")
    job.tick(1.0)
    (ended,) = [c for c in job.out if isinstance(c, EndJob)]
    assert "record 0 of its log" in ended.error


def test_a_sweep_deletes_what_the_dead_left_and_spares_the_living_and_the_later() -> None:
    job = running()
    alive, later = job.incarnation("1.0"), 7 << EPOCH_BITS
    keys = [checkpoint("1.0", 0, 2, 2, i).key for i in (1, alive, later)]
    logs = [segment("1.0/0", 0, 2, i).key for i in (1, alive, later)]
    assert job.machine.handle(Listed(tuple(keys)), 0.0) == [Delete((keys[0],))]
    assert job.machine.handle(Listed(tuple(logs)), 0.0) == [Delete((logs[0],))]
    reported = checkpoint("1.0", 3, 2, 2, alive)
    job.report("h1", job.says("1.0", checkpoints=(reported,)))
    assert job.machine.handle(Listed(tuple(keys)), 0.0) == [Delete((keys[0], keys[1]))]


def test_a_segment_that_was_collected_before_it_was_reported_is_deleted() -> None:
    job = running()
    alive = job.incarnation("1.0")
    early, held, under_way = (segment("1.0/0", i, i + 2, alive) for i in (0, 2, 4))
    segments = {"1.0/0": (held,)}
    job.report("h1", job.says("1.0", segments=segments, flushed={"1.0/0": 2}))
    out = job.machine.handle(Listed((early.key, held.key, under_way.key)), 0.0)
    assert out == [Delete((early.key,))]


def test_nobody_sweeps_before_its_record_is_durable() -> None:
    job = Job()
    assert job.machine.handle(Listed((segment("1.0/0", 0, 2).key,)), 0.0) == []


def test_it_lists_now_and_then() -> None:
    job = running(settings=replace(SETTINGS, sweep_every=5.0))
    assert not any(isinstance(c, List) for c in job.tick(1.0))
    listed = [c.prefix for c in job.tick(6.0) if isinstance(c, List)]
    assert listed == ["checkpoints/", "streams/", "parts/", "records/", "ingress/"]
    assert not any(isinstance(c, List) for c in job.tick(7.0))


def test_one_hint_is_under_way_at_a_time() -> None:
    """A hint that comes late must not come after a later one."""
    job = Job()

    def record(number: int) -> list[ManagerCommand]:
        job.machine._records.changed = True
        (put,) = [c for c in job.machine.tick(float(number)) if isinstance(c, Put)]
        assert put.key == record_key(number)
        return job.machine.handle(stored(put.key), float(number))

    (first,) = record(0)
    assert record(1) == record(2) == []
    assert isinstance(first, Put) and first.encode() == encode_hint(0)
    (second,) = job.machine.handle(stored(LATEST_RECORD), 2.0)
    assert isinstance(second, Put) and second.encode() == encode_hint(2)
    job.machine.handle(Unstored(LATEST_RECORD, "no"), 2.0)
    (third,) = record(3)
    assert isinstance(third, Put) and third.encode() == encode_hint(3)


def test_no_record_is_deleted_that_the_hint_does_not_lead_past() -> None:
    job = Job(ledger=Ledger(number=300))
    (put,) = [c for c in job.machine.tick(0.0) if isinstance(c, Put)]
    job.machine.handle(stored(put.key), 0.0)
    old = (record_key(7),)
    assert job.machine.handle(Listed(old), 0.0) == []
    job.machine.handle(stored(LATEST_RECORD), 0.0)
    assert job.machine.handle(Listed(old), 0.0) == [Delete(old)]


def test_old_records_are_deleted_the_oldest_first() -> None:
    job = running(ledger=Ledger(number=300))
    listed = (LATEST_RECORD, record_key(290), record_key(7), record_key(3))
    (delete,) = job.machine.handle(Listed(listed), 0.0)
    assert delete == Delete((record_key(3), record_key(7)))


def test_parts_that_their_commit_has_not_chosen_are_deleted() -> None:
    job = running()
    job.report("h1", job.says("sink.0", checkpoints=(commit(2, 3),)))
    parts = tuple(part_key("sink.0", i, n) for i, n in ((1, 1), (1, 2), (2, 2), (1, 3), (2, 3)))
    assert job.machine.handle(Listed(parts), 0.0) == [Get(commit_key("sink.0", 2))]
    key = commit_key("sink.0", 2)
    body = encode_record(key, Commit(2, 2, ObjectRef(parts[2]), 1, (3,), "0" * 32, 1))
    out = job.machine.handle(Loaded(key, body), 0.0)
    assert out == [Delete((parts[1],))]


# --- the end -------------------------------------------------------------------------------------


def test_it_is_finished_when_every_sink_is_and_then_nothing_is_kept() -> None:
    job = running()
    log = {"1.0/0": (segment("1.0/0", 0, 3),)}
    job.report("h1", job.says("1.0", segments=log, checkpoints=(checkpoint("1.0", 0, 3, 3),)))
    job.report("h1", job.says("sink.0", status="done", checkpoints=(commit(0, 3),)))
    out = job.tick(1.0)
    assert EndJob() in out
    assert job.records[-1].finished and job.records[-1].names == {commit_key("sink.0", 0)}
    deleted = {k for c in job.out if isinstance(c, Delete) for k in c.keys}
    assert deleted == {segment("1.0/0", 0, 3).key, checkpoint("1.0", 0, 3, 3).key}
    orders = job.report("h1")
    assert orders is not None and orders.stop and orders.over


@pytest.mark.parametrize("seconds", [0.0, 1.0])
def test_what_a_source_has_read_is_counted_also_when_it_tells_so_after_the_end(
    seconds: float,
) -> None:
    """Its host and that of the sinks report at different times."""
    job = running()
    job.report("h1", job.says("0.0", events=139_868))
    job.report("h1", job.says("sink.0", status="done", checkpoints=(commit(0, 3),)))
    if seconds:
        assert EndJob() in job.tick(seconds)
    late = report("h1", 1, job.says("0.0", events=7))
    job.report("h1", job.says("0.0", status="done", events=140_000))
    job.machine.handle(Reported(late), seconds)
    (source,) = (p for p in job.machine.placements if p.vertex == "0.0")
    assert source.report is not None and source.figures.events == 140_000


def test_it_is_not_finished_while_one_sink_is_not() -> None:
    job = running(sinks=2)
    job.report("h1", job.says("sink.0", status="done", checkpoints=(commit(0, 3),)))
    assert EndJob() not in job.tick(1.0)
    job.report("h1", *(job.says(f"sink.{n}", status="done") for n in range(2)))
    assert EndJob() in job.tick(2.0)


def test_sinks_are_held_until_they_are_released() -> None:
    job = Job()
    job.machine.held = True
    job.tick(0.0)
    orders = job.report("h1")
    assert orders is not None and orders.held
    job.machine.release("it is right", 0.1)
    orders = job.report("h1")
    assert orders is not None and not orders.held
    assert job.machine.story[-1].what == "it is right"


def test_sinks_are_not_held_unless_it_is_said() -> None:
    orders = running().report("h1")
    assert orders is not None and not orders.held


def test_a_stop_waits_for_a_checkpoint_of_every_vertex_taken_after_it() -> None:
    job = running()
    early = [job.says(v, checkpoints=(checkpoint(v, 0, 1, 0),)) for v in ("0.0", "1.0")]
    job.report("h1", *early, job.says("sink.0", checkpoints=(commit(0, 1),)))
    job.machine.stop(0.0)
    orders = job.report("h1")
    assert orders is not None and orders.checkpoint == 1
    assert not any(isinstance(c, EndJob) for c in job.tick(1.0))
    job.report("h1", job.says("0.0", kept=1), job.says("1.0", kept=1), job.says("sink.0"))
    assert not any(isinstance(c, EndJob) for c in job.tick(1.1))
    job.report("h1", *(job.says(v, kept=1) for v in ONE))
    assert EndJob(stopped=True) in job.tick(1.2)


def test_a_stop_does_not_wait_for_ever() -> None:
    job = running(settings=replace(SETTINGS, stop_limit=1.0))
    job.machine.stop(0.0)
    assert EndJob(stopped=True) in job.tick(1.1)


@pytest.mark.parametrize("numbers", [(2, 1), (2, 2)])
def test_only_newer_reports_count(numbers: tuple[int, int]) -> None:
    job = running()
    made = job.says("1.0", checkpoints=(checkpoint("1.0", 0, 3, 0),))
    job.machine.handle(Reported(report("h1", numbers[0])), 0.0)
    job.machine.handle(Reported(report("h1", numbers[1], made)), 0.0)
    assert job.machine.ledger.checkpoints == {}
