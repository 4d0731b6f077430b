"""Reports and orders as differences, through a network that loses, doubles, delays and reorders."""

from __future__ import annotations

import random
from collections.abc import Iterator

import msgspec
import pytest

from machine.jobs import (
    CopyingSource,
    checkpoint,
    commit,
    entry,
    make,
    order,
    report,
    says,
    segment,
    stored,
    topology,
)
from weir.job.facts import Facts
from weir.job.host import SIGN_EVERY, Host
from weir.job.ledger import Ledger
from weir.job.manager import Manager
from weir.job.messages import Orders, Report, ServedBy, decode_orders, decode_report
from weir.job.settings import HostSettings, ManagerSettings
from weir.job.signals import (
    Answer,
    ChunkRead,
    Connect,
    Get,
    HostCommand,
    Loaded,
    ManagerCommand,
    OrdersArrived,
    Put,
    Reported,
    Stored,
)
from weir.reliable.objects import ObjectRef
from weir.reliable.strategies import CheckpointStrategy, ReplicateStrategy, Strategy
from whole_ledger import follow

JOB = topology()
STRATEGIES: dict[str, Strategy] = {
    "0.0": CheckpointStrategy(0.3),
    "1.0": ReplicateStrategy(0.3, copies=2),
    "sink.0": CheckpointStrategy(0.3),
}
HOSTS = HostSettings(flush_interval=0.1, commit_interval=0.3)
STEP = 0.05


# --- facts -------------------------------------------------------------------------------------


def test_facts_are_said_until_they_are_acknowledged_the_newest_of_each_key_alone() -> None:
    chance = random.Random(5)
    for _ in range(200):
        facts, said, has = Facts[str, int](), {}, 1
        got: dict[str, int] = {}
        for value in range(chance.randrange(40)):
            key = chance.choice("abcde")
            facts.say(key, value)
            said[key] = value
            if chance.random() < 0.3:
                news = facts.since(has)
                assert news is not None and len(dict(news)) == len(news)
                got |= news
                has = facts.number
                assert got == said
            if chance.random() < 0.3:
                facts.acknowledge(has)
                assert facts.acknowledged == has
                assert has == 1 or facts.since(has - 1) is None


def test_nobody_can_acknowledge_what_was_not_said() -> None:
    facts = Facts[str, int]()
    facts.acknowledge(99)
    assert facts.since(99) is None
    facts.say("a", 1)
    assert facts.since(1) == [("a", 1)]


# --- a manager and what it is told ---------------------------------------------------------------


class Told:
    """A manager whose records are durable at once."""

    def __init__(self, strategies: dict[str, Strategy] = STRATEGIES) -> None:
        settings = ManagerSettings(hosts=2, patience=0.0)
        self.machine = Manager(JOB, strategies, Ledger(), settings, 0.0, name="m")
        self.tick(0.0)

    def do(self, commands: list[ManagerCommand]) -> Orders | None:
        orders = None
        for command in commands:
            if isinstance(command, Put):
                orders = self.do(self.machine.handle(stored(command.key), 0.0)) or orders
            if isinstance(command, Answer):
                orders = command.orders
        return orders

    def tick(self, now: float) -> None:
        self.do(self.machine.tick(now))

    def hear(self, said: Report) -> Orders:
        orders = self.do(self.machine.handle(Reported(said), 0.0))
        assert orders is not None
        return orders

    def incarnation(self, vertex: str) -> int:
        return next(p.incarnation for p in self.machine.placements if p.vertex == vertex)


ONE: dict[str, Strategy] = {v: CheckpointStrategy(1.0) for v in STRATEGIES}


def two_differences() -> tuple[Told, Report, Report]:
    """The second report has what has changed since the first."""
    told = Told(ONE)
    told.hear(report("a", 1))
    source = told.incarnation("0.0")
    parts = [segment("0.0/0", n, n + 1) for n in range(2)]
    said = [
        msgspec.structs.replace(
            report("a", n + 2, says("0.0", source, segments={"0.0/0": (part,)})),
            since=n + 1,
            upto=n + 2,
        )
        for n, part in enumerate(parts)
    ]
    return told, said[0], said[1]


def test_a_difference_after_a_gap_is_not_taken_and_the_answer_says_where_to_begin() -> None:
    told, first, second = two_differences()
    assert told.hear(second).taken == 1
    assert told.machine.ledger.segments == {}
    both = msgspec.structs.replace(
        second, number=4, since=1, vertices=(*first.vertices, *second.vertices)
    )
    assert told.hear(both).taken == 3
    assert [s.first for s in told.machine.ledger.segments["0.0/0"]] == [0, 1]


def test_a_difference_counts_once_and_an_older_one_not_at_all() -> None:
    told, first, second = two_differences()
    assert told.hear(first).taken == 2
    assert told.hear(second).taken == 3
    assert told.do(told.machine.handle(Reported(first), 0.0)) is None
    assert told.hear(second).taken == 3
    events = says("0.0", told.incarnation("0.0"), "loading", events=1)
    told.hear(msgspec.structs.replace(second, vertices=(events,)))
    (source,) = (p for p in told.machine.placements if p.vertex == "0.0")
    assert source.report is not None and source.report.status == "running"


def test_a_segment_that_was_said_once_waits_for_what_is_before_it() -> None:
    """It is said by whoever takes over the log, while the one before it is on its way."""
    told = Told()
    told.hear(report("a", 1))
    told.hear(report("b", 1))
    ahead, behind = segment("1.0/0", 3, 5), segment("1.0/0", 0, 3)
    copies = [p for p in told.machine.placements if p.vertex == "1.0"]
    for number, (placement, part) in enumerate(zip(copies, (ahead, behind), strict=True)):
        assert placement.session is not None
        said = says("1.0", placement.incarnation, segments={"1.0/0": (part,)})
        told.hear(report(placement.session, number + 2, said))
    assert told.machine.ledger.segments["1.0/0"] == (behind,)
    again = says("1.0", copies[0].incarnation, segments={"1.0/0": (segment("1.0/0", 5, 6),)})
    assert copies[0].session is not None
    told.hear(report(copies[0].session, 9, again))
    assert told.machine.ledger.segments["1.0/0"][-1].end == 6


def test_orders_say_what_is_new_to_the_host_and_everything_to_a_stranger() -> None:
    told = Told(ONE)
    orders = told.hear(report("a", 1))
    assert orders.since == 0 and {v.vertex for v in orders.vertices} == set(ONE)

    def after(number: int, taken: int, epoch: int = 1, manager: str = "m") -> Orders:
        heard = report("a", number, epoch=epoch, manager=manager)
        return told.hear(msgspec.structs.replace(heard, taken=taken))

    quiet = after(2, orders.upto)
    assert (quiet.since, quiet.upto, quiet.vertices) == (orders.upto, orders.upto, ())
    inner, sink = told.incarnation("1.0"), told.incarnation("sink.0")
    told.hear(
        report(
            "a",
            3,
            says("1.0", inner, checkpoints=(checkpoint("1.0", 0, 3, 0),)),
            says("sink.0", sink),
        )
    )
    told.tick(1.0)
    assert after(4, orders.upto).collect == {"0.0/0": 3}
    assert after(5, orders.upto).collect == {"0.0/0": 3}, "it may not have heard it"
    last = after(6, orders.upto)
    assert after(7, last.upto).collect == {}
    old = after(8, orders.upto)
    assert old.since == 0 and len(old.vertices) == 3, "what it knew is forgotten"
    other = after(9, last.upto, epoch=0)
    assert other.since == 0 and len(other.vertices) == 3, "it has that of another manager"
    twin = after(10, last.upto, manager="another")
    assert twin.since == 0 and len(twin.vertices) == 3, "of one with the same epoch"


def test_one_that_an_earlier_instance_is_ahead_of_learns_from_where_on_rows_are_kept() -> None:
    """Its checkpoint counts once what its vertex wrote before it is needed by nobody any more."""
    told = Told(ONE)
    told.hear(report("a", 1))
    inner, sink = told.incarnation("1.0"), told.incarnation("sink.0")
    saved = checkpoint("1.0", 0, 3, 3, inner)
    told.hear(report("a", 2, says("1.0", inner, checkpoints=(saved,))))
    told.machine.lose("a", 0.0, "it died")
    orders = told.hear(report("b", 1))
    (placed,) = (v for v in orders.vertices if v.vertex == "1.0")
    assert placed.restart is None
    read = msgspec.structs.replace(commit(0, 3), incarnation=told.incarnation("sink.0"))
    said = says("sink.0", told.incarnation("sink.0"), checkpoints=(read,))
    since = {"taken": orders.upto}
    told.hear(msgspec.structs.replace(report("b", 2, said, epoch=1, manager="m"), **since))
    told.tick(1.0)
    orders = told.hear(msgspec.structs.replace(report("b", 3, epoch=1, manager="m"), **since))
    assert orders.since > 0 and orders.floors == {"0.0/0": 3}
    assert orders.collect == {"0.0/0": 3, "1.0/0": 3}
    assert sink not in (p.incarnation for p in told.machine.placements)


# --- a host and what it is told ------------------------------------------------------------------


def hosting(*vertices: str) -> Host:
    host = Host("h1", JOB, ONE, make, HOSTS)
    hear(host, vertices=tuple(order(v) for v in vertices), upto=4)
    return host


def hear(host: Host, number: int = 1, epoch: int = 1, **more: object) -> list[HostCommand]:
    given = Orders(epoch, number, "h1", **more)  # type: ignore[arg-type]
    return host.handle(OrdersArrived(given), 0.0)


def test_orders_after_a_gap_are_not_obeyed_and_the_next_report_says_what_is_there() -> None:
    host = hosting("0.0")
    hear(host, 2, since=5, upto=6, dropped=("0.0",))
    assert list(host.running) == ["0.0"] and host.report().taken == 4
    hear(host, 3, since=4, upto=6, dropped=("0.0",))
    assert not host.running and host.report().taken == 6


def test_what_a_manager_of_another_epoch_had_said_does_not_count() -> None:
    host = hosting("0.0")
    hear(host, 1, epoch=2, since=3, upto=5, vertices=(order("1.0"),))
    assert list(host.running) == ["0.0"] and host.report().taken == 0
    hear(host, 2, epoch=2, since=0, upto=2, vertices=(order("1.0"),))
    assert list(host.running) == ["1.0"] and host.report().taken == 2


def test_what_another_manager_of_the_same_epoch_had_said_does_not_count() -> None:
    """The store can lose the records that would have given the second one a larger epoch."""
    host = hosting("0.0")
    hear(host, 1, manager="second", since=3, upto=5, vertices=(order("1.0"),))
    assert list(host.running) == ["0.0"]
    assert (host.report().taken, host.report().manager) == (0, "second")
    hear(host, 2, manager="second", since=0, upto=2, vertices=(order("1.0"),))
    assert list(host.running) == ["1.0"] and host.report().taken == 2


def test_a_reader_learns_who_serves_its_input_now() -> None:
    host = hosting("1.0")
    (connect,) = (
        c
        for c in hear(host, 2, since=4, upto=5, served={"0.0": (ServedBy("b", "b:1", 1),)})
        if isinstance(c, Connect)
    )
    assert (connect.address, connect.stream) == ("b:1", "0.0/0")


def test_an_instance_that_still_loads_learns_what_is_collected_meanwhile() -> None:
    saved = checkpoint("1.0", 0, 5, 5)
    host = Host("h1", JOB, ONE, make, HOSTS)
    parts = tuple(segment("1.0/0", n, n + 1) for n in range(3, 6))
    hear(
        host,
        upto=4,
        vertices=(order("1.0", restart=saved, segments={"1.0/0": parts[:2]}),),
    )
    hear(host, 2, since=4, upto=5, segments={"1.0/0": parts}, collect={"1.0/0": 4})
    running = host.running["1.0"].order
    assert running.segments["1.0/0"] == parts and running.collect["1.0/0"] == 4


def written() -> Host:
    """A host of a source, which has stored a segment."""
    host = hosting("0.0")
    host.report(0.0)
    hear(host, 2, since=4, upto=4, taken=1)
    host.handle(ChunkRead("0.0", 1, entry(0, 3)), 0.0)
    host.work(0.0)
    for command in host.work(0.2)[1]:
        if isinstance(command, Put):
            host.handle(stored(command.key), 0.2)
    return host


def test_what_is_stored_is_said_until_the_manager_has_it() -> None:
    host = written()
    for number, now in enumerate((0.3, 0.4)):
        assert host.is_report_due(now)
        said = host.report(now)
        assert said.since > 0 and [list(v.segments) for v in said.vertices] == [["0.0/0"]]
        hear(host, 3 + number, since=4, upto=4, taken=said.since)
    hear(host, 9, since=4, upto=4, taken=said.upto)
    assert not host.is_report_due(0.5)
    assert host.is_report_due(0.4 + SIGN_EVERY)
    said = host.report(0.4 + SIGN_EVERY)
    assert (said.vertices, said.since, said.upto) == ((), said.upto, said.upto)


def test_a_manager_that_has_less_is_told_everything() -> None:
    host = written()
    hear(host, 1, epoch=2, upto=2, vertices=(order("0.0"),), taken=0)
    said = host.report(0.3)
    assert said.since == 0 and said.vertices[0].segments["0.0/0"]
    assert said.vertices[0].figures is not None


def test_figures_go_once_a_second_and_with_a_status_that_changes() -> None:
    host = written()
    hear(host, 3, since=4, upto=4, taken=host.report(0.0).upto)
    with_figures = []
    for step in range(1, 60):
        now = step * 0.05
        if host.is_report_due(now):
            said = host.report(now)
            with_figures += [now] if any(v.figures is not None for v in said.vertices) else []
    assert 2 <= len(with_figures) <= 3
    hear(host, 4, since=4, upto=4, taken=host.report(3.0).upto)
    host.running["0.0"].waits = "nobody comes"
    assert host.is_report_due(3.05) and host.report(3.05).vertices[0].figures is not None


# --- all of it, through a bad network ------------------------------------------------------------


class World:
    """Hosts, a manager and a network between them; everything is drawn by one seed."""

    def __init__(self, seed: int) -> None:
        self.chance, self.now, self.epochs = random.Random(seed), 0.0, 0
        self.hosts: dict[str, Host] = {}
        self.deliveries: list[tuple[float, str, bytes]] = []
        """What is under way: when it arrives, where ("" is the manager), and what it is."""
        self.objects: dict[str, bytes] = {}
        self.record: Ledger | None = None
        self.begin_manager()
        for _ in range(3):
            self.begin_host()

    def begin_host(self) -> None:
        name = f"h{len(self.objects)}-{self.chance.random()}"
        self.hosts[name] = Host(name, JOB, STRATEGIES, make, HOSTS)

    def begin_manager(self) -> None:
        self.epochs += 1
        ledger = self.record.copied() if self.record is not None else Ledger()
        settings = ManagerSettings(hosts=3, patience=1.0, silence=1e9, record_every=0.1)
        self.manager = Manager(JOB, STRATEGIES, ledger, settings, self.now, name=f"{self.epochs}")

    def send(self, to: str, message: object) -> None:
        for _ in range(self.chance.choice((0, 1, 1, 1, 2)) if self.bad else 1):
            delay = self.chance.expovariate(8.0) if self.bad else 0.0
            self.deliveries.append((self.now + delay, to, msgspec.msgpack.encode(message)))

    def step(self, *, bad: bool) -> None:
        self.bad, self.now = bad, self.now + STEP
        self.manager_does(self.manager.tick(self.now))
        for host in self.hosts.values():
            for vertex, running in host.running.items():
                source = running.instance
                if not isinstance(source, CopyingSource) or not source.wants_chunk:
                    continue
                if bad and self.chance.random() < 0.3:
                    chunk = entry(source.next_offset, 2)
                    said = ChunkRead(vertex, running.order.incarnation, chunk)
                    self.host_does(host, host.handle(said, self.now))
            self.host_does(host, host.work(self.now)[1])
            if host.is_report_due(self.now):
                self.send("", host.report(self.now, address=host.session))
        arrived = [d for d in self.deliveries if d[0] <= self.now]
        self.deliveries = [d for d in self.deliveries if d[0] > self.now]
        for _, to, body in arrived:
            if not to:
                self.manager_does(self.manager.handle(Reported(decode_report(body)), self.now))
            elif to in self.hosts:
                host = self.hosts[to]
                self.host_does(host, host.handle(OrdersArrived(decode_orders(body)), self.now))

    def manager_does(self, commands: list[ManagerCommand]) -> None:
        for command in commands:
            match command:
                case Put(key, encode):
                    if key.startswith("records/0"):
                        self.record = follow(self.record, key, bytes(encode()))
                    self.manager_does(self.manager.handle(stored(key), self.now))
                case Answer(session, orders):
                    self.send(session, orders)

    def host_does(self, host: Host, commands: list[HostCommand]) -> None:
        for command in commands:
            match command:
                case Put(key, encode):
                    body = self.objects.setdefault(key, bytes(encode()))
                    ref = ObjectRef.of(key, body)
                    self.host_does(host, host.handle(Stored(ref), self.now))
                case Get(key):
                    said = Loaded(key, self.objects.get(key))
                    self.host_does(host, host.handle(said, self.now))

    def check(self) -> None:
        """Both sides know all that a whole report and whole orders would say."""
        collected = self.manager._records.collected
        for session, host in self.hosts.items():
            whole = Orders(99, 0, session)
            orders = self.manager._placements.orders(whole, self.manager.hosts, collected, 0)
            assert set(host.running) == {o.vertex for o in orders.vertices}
            for told in orders.vertices:
                running = host.running[told.vertex]
                knows = running.order
                assert knows.incarnation == told.incarnation
                assert knows.inputs == told.inputs
                roles = (knows.writes_log, knows.takes_checkpoints, knows.log_end)
                assert roles == (told.writes_log, told.takes_checkpoints, told.log_end)
                instance = running.instance
                assert instance is not None
                for stream, log in instance.streams.items():
                    assert log.collected >= told.collect[stream]
                    ends = (s.end for s in told.segments[stream])
                    assert log.durable >= max(ends, default=0)
                placement = self.manager._placements.running(session, running.report())
                assert placement is not None and placement.report == running.report()
                for stream, log in instance.streams.items():
                    held = [s for s in log.segments if s.end > collected.get(stream, 0)]
                    mine = {s.key for s in held if f"{knows.incarnation:016}" in s.key}
                    assert mine <= {s.key for s in placement.segments.get(stream, ())}
        assert self.record is not None and self.record.number == self.manager.ledger.number
        assert self.record == self.manager.ledger


def misfortunes(world: World) -> Iterator[str]:
    if world.chance.random() < 0.02 and len(world.hosts) > 2:
        session = world.chance.choice(sorted(world.hosts))
        del world.hosts[session]
        world.manager.lose(session, world.now, "it died")
        world.begin_host()
        yield f"{session} died"
    if world.chance.random() < 0.01:
        world.begin_manager()
        yield "another manager"


@pytest.mark.parametrize("first", range(0, 60, 10))
def test_both_sides_know_all_whatever_the_network_does(first: int) -> None:
    happened: list[str] = []
    for seed in range(first, first + 10):
        world = World(seed)
        for _ in range(120):
            world.step(bad=True)
            happened += misfortunes(world)
        for _ in range(50):  # a host lets one vertex step at a time
            world.step(bad=False)
        world.manager._records.changed = True  # losses alone are no reason for a record
        world.step(bad=False)
        world.check()
    assert len(happened) > 10
