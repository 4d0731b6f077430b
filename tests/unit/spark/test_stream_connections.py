"""Links between hosts: what goes over one, and what is left when it breaks."""

from __future__ import annotations

import queue
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import TypeVar
from urllib.parse import urlsplit

import pyarrow as pa
import pytest

from machine.jobs import entry
from weir.events.batch import empty_batch
from weir.job.signals import (
    Arrived,
    Connect,
    Deliver,
    HostSignal,
    Lost,
    MakeRoom,
    Misled,
    Subscribed,
    Taken,
    Unsubscribed,
)
from weir.reliable.stream import Entry
from weir.spark.live import stream_connections as linking
from weir.spark.live.addresses import Endpoint
from weir.spark.live.flight import ChannelErrors, Client, Security, Server
from weir.spark.live.link_messages import Bring, pack_hello, pack_message
from weir.spark.live.outgoing import MESSAGE_BYTES, OutgoingQueue
from weir.spark.live.stream_connections import HostLinks

SECRET = Security("secret")
CREDIT = 1 << 20
Signal = TypeVar("Signal", bound=HostSignal)


class Way:
    """A way to a server on which everything gets lost, without a word, once it is broken."""

    def __init__(self, port: int) -> None:
        self._port, self.is_broken = port, False
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._ends: list[socket.socket] = []
        self.url = f"grpc://127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                far = socket.create_connection(("127.0.0.1", self._port))
                self._ends += (near, far)
                for ends in ((near, far), (far, near)):
                    threading.Thread(target=self._carry, args=ends, daemon=True).start()

    def _carry(self, come: socket.socket, go: socket.socket) -> None:
        was_broken = False
        with suppress(OSError):
            while data := come.recv(1 << 16):
                was_broken |= self.is_broken  # as with a server that has given the connection up
                if not was_broken:
                    go.sendall(data)

    def close(self) -> None:
        self._listener.close()
        for end in self._ends:
            end.close()


class Host:
    """What a host has of links, and the signals that they give."""

    def __init__(self) -> None:
        self.given: queue.SimpleQueue[HostSignal] = queue.SimpleQueue()
        self.links = HostLinks(SECRET, lambda _: (pa.int64(),), self.given.put)
        self.server = Server(Endpoint("127.0.0.1"), SECRET, link=self.links.attend)
        self.url = self.links.address = self.server.url

    def connect(self, address: str, connection: int, seq: int = 0) -> None:
        self.links.connect(
            Connect(
                vertex="v",
                input=0,
                connection=connection,
                address=address,
                stream="s",
                seq=seq,
                credit=CREDIT,
            )
        )

    def gets(self, kind: type[Signal], within: float = 5.0) -> Signal:
        """Watch over the links until a signal comes, which must be of this kind."""
        until = time.monotonic() + within
        while self.given.empty() and time.monotonic() < until:
            time.sleep(0.01)
            self.links.watch(time.monotonic())
        signal = self.given.get_nowait()
        assert isinstance(signal, kind), signal
        return signal

    def serve(self, *entries: Entry) -> str:
        """Wait for a subscription and send it some entries; return its name."""
        name = self.gets(Subscribed).subscription
        for each in entries:
            self.links.deliver(Deliver(name, each, 8 * len(each.rows)))
        return name

    def close(self) -> None:
        self.links.close()
        self.server.end()


@pytest.fixture
def hosts(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Host, Host]]:
    """Two hosts; the address of the first is the smaller one."""
    monkeypatch.setattr(linking, "SIGN_EVERY", 0.1)
    monkeypatch.setattr(linking, "SILENCE", 0.3)
    monkeypatch.setattr(linking, "WATCH_EVERY", 0.05)
    monkeypatch.setattr(linking, "UNREACHED", 1.2)
    first, second = sorted((Host(), Host()), key=lambda h: h.url)
    yield first, second
    for host in (first, second):
        host.close()


@pytest.fixture
def way(hosts: tuple[Host, Host]) -> Iterator[Way]:
    """A way to the second host."""
    made = Way(urlsplit(hosts[1].url).port or 0)
    yield made
    made.close()


def claim(seq: int, cti: int) -> Entry:
    return Entry(seq, empty_batch(()), cti)


def link_threads() -> int:
    return sum(t.name.startswith("link") for t in threading.enumerate())


def test_rows_claims_and_credit_come_over_a_link(hosts: tuple[Host, Host]) -> None:
    reader, writer = hosts
    reader.connect(writer.url, 1, seq=3)
    asked = writer.gets(Subscribed)
    assert (asked.stream, asked.seq, asked.credit) == ("s", 3, CREDIT)
    writer.links.deliver(Deliver(asked.subscription, entry(3, 2), 99))
    came = reader.gets(Arrived)
    assert (came.connection, came.entry.seq, came.size) == (1, 3, 99)
    assert came.entry.rows.vs.tolist() == [3, 4]
    writer.links.deliver(Deliver(asked.subscription, claim(5, 17), 0))
    came = reader.gets(Arrived)
    assert (came.entry.seq, came.entry.cti, came.size) == (5, 17, 0)
    reader.links.make_room(MakeRoom("v", 0, 1, 99))
    assert writer.gets(Taken) == Taken(asked.subscription, 99)


def test_many_subscriptions_of_both_hosts_share_one_link(hosts: tuple[Host, Host]) -> None:
    first, second = hosts
    before = link_threads()
    for number in range(1, 20):
        first.connect(second.url, number)
        second.serve(claim(0, number))
        assert first.gets(Arrived).entry.cti == number
        second.connect(first.url, 100 + number)
        first.serve(claim(0, 100 + number))
        assert second.gets(Arrived).entry.cti == 100 + number
    # One of the four threads of the two sides is the server's own, without a name here.
    assert link_threads() - before == 3


@pytest.mark.parametrize("number", range(5))
def test_hosts_that_make_links_at_the_same_time_keep_one(
    hosts: tuple[Host, Host], number: int
) -> None:
    both = [
        threading.Thread(target=host.connect, args=(other.url, 1))
        for host, other in (hosts, hosts[::-1])
    ]
    for thread in both:
        thread.start()
    for host in hosts:
        host.serve(claim(0, number))
    for host in hosts:
        assert host.gets(Arrived).entry.cti == number
    links = [link for host in hosts for link in host.links._links.values()]
    assert sorted(link.own for link in links) == [False, True]


def test_a_host_that_is_refused_takes_the_link_that_comes(hosts: tuple[Host, Host]) -> None:
    first, second = hosts
    link = first.links._begin(second.url, own=True, now=time.monotonic())  # it is being made
    second.connect(first.url, 7, seq=5)
    time.sleep(0.2)
    threading.Thread(target=first.links._make, args=(link,), daemon=True).start()
    name = first.gets(Subscribed).subscription
    assert len(second.links._links) == 1 and second.given.empty()
    time.sleep(0.5)  # signs of life come over it, or it would be given up
    for cti in (6, 7):
        first.links.deliver(Deliver(name, claim(5, cti), 0))
        assert second.gets(Arrived).entry.cti == cti
    second.links.make_room(MakeRoom("v", 0, 7, 11))
    assert first.gets(Taken) == Taken(name, 11)


def test_a_subscription_that_ends_on_either_side_leaves_the_others(
    hosts: tuple[Host, Host],
) -> None:
    reader, writer = hosts
    names = []
    for number in (1, 2, 3):
        reader.connect(writer.url, number)
        names.append(writer.gets(Subscribed).subscription)
    writer.links.end(names[0])
    assert reader.gets(Lost).connection == 1
    reader.links.disconnect(2)
    assert writer.gets(Unsubscribed).subscription == names[1]
    for name in names:
        writer.links.deliver(Deliver(name, claim(0, 5), 0))
    assert reader.gets(Arrived).connection == 3
    time.sleep(0.1)
    assert reader.given.empty()


def test_a_link_over_which_nothing_comes_is_given_up(hosts: tuple[Host, Host], way: Way) -> None:
    reader, writer = hosts
    reader.connect(way.url, 1, seq=3)
    reader.connect(way.url, 2, seq=4)
    names = {writer.serve(claim(3, 7)), writer.serve(claim(4, 7))}
    assert {reader.gets(Arrived).connection for _ in range(2)} == {1, 2}
    with pytest.raises(queue.Empty):
        reader.gets(Arrived, within=1.0)  # there are no rows, but signs of life
    way.is_broken = True
    assert {reader.gets(Lost).connection for _ in range(2)} == {1, 2}
    assert {writer.gets(Unsubscribed).subscription for _ in range(2)} == names
    way.is_broken = False
    reader.connect(way.url, 3, seq=5)
    assert writer.gets(Subscribed).seq == 5
    assert not reader.links.unreached(time.monotonic())


def test_each_link_in_vain_may_take_longer(hosts: tuple[Host, Host], way: Way) -> None:
    reader, _ = hosts
    way.is_broken = True
    waited = []
    for number in range(3):
        began = time.monotonic()
        reader.connect(way.url, number)
        assert reader.gets(Lost) == Lost("v", 0, number)
        waited.append(time.monotonic() - began)
        assert reader.links.unreached(time.monotonic()) == ((way.url,) if number == 2 else ())
    assert 0.3 < waited[0] < 0.6 < waited[1] < 1.2 < waited[2]


def test_a_host_that_stood_still_gives_up_no_link(hosts: tuple[Host, Host]) -> None:
    reader, writer = hosts
    reader.connect(writer.url, 1)
    writer.serve(claim(0, 7))
    reader.gets(Arrived)
    reader.links.watch(time.monotonic() + 60.0)
    assert reader.given.empty()


def test_a_host_that_ends_takes_its_subscriptions_along(hosts: tuple[Host, Host]) -> None:
    for reader, writer in (hosts, hosts[::-1]):
        reader.connect(writer.url, 1)
        name = writer.gets(Subscribed).subscription
        writer.links.close()
        assert writer.gets(Unsubscribed).subscription == name
        assert reader.gets(Lost).connection == 1
        time.sleep(0.2)


def test_rows_of_other_columns_fail_their_input_alone(hosts: tuple[Host, Host]) -> None:
    reader, writer = hosts
    reader.links._types_of = lambda stream: (pa.string(),)
    reader.connect(writer.url, 1)
    name = writer.serve(entry(0, 3))
    assert "that cannot be used" in reader.gets(Misled).why
    assert writer.gets(Unsubscribed).subscription == name
    reader.connect(writer.url, 2)
    writer.serve(claim(0, 7))
    assert reader.gets(Arrived).connection == 2


def test_what_is_no_message_ends_the_link_with_a_reason(hosts: tuple[Host, Host]) -> None:
    host, _ = hosts
    exchange = Client(host.url, SECRET).exchange(pack_hello("grpc://other:1"))
    assert exchange.receive() is not None
    host.connect("grpc://other:1", 1)
    assert exchange.receive() is not None
    exchange.send(b"\xc1", b"")
    assert "cannot be used" in host.gets(Misled).why
    with pytest.raises(ChannelErrors, match="a message between hosts that cannot be used"):
        _ = [exchange.receive() for _ in range(9)]
    exchange.close()


# --- what waits to be sent -----------------------------------------------------------------------


def test_streams_take_turns_and_words_come_first() -> None:
    waiting = OutgoingQueue()
    large = MESSAGE_BYTES // 2 + 1
    for seq in range(3):
        waiting.put(1, entry(seq, 1), large)
    waiting.put(2, entry(0, 1), 10)
    taken = waiting.take(0.0)
    assert taken is not None
    assert [(s, e.seq) for s, e, _ in taken.entries] == [(1, 0), (2, 0), (1, 1)]
    taken = waiting.take(0.0)
    assert taken is not None and [e.seq for _, e, _ in taken.entries] == [2]
    assert (empty := waiting.take(0.0)) is not None and not empty.entries


def test_a_claim_joins_what_waits_and_overtakes_nothing() -> None:
    waiting = OutgoingQueue()
    waiting.put(1, entry(0, 2, cti=1), 16)
    for cti in (3, 5):
        waiting.put(1, claim(2, cti), 0)
    waiting.put(2, claim(0, 4), 0)
    waiting.put(2, claim(0, 6), 0)
    taken = waiting.take(0.0)
    assert taken is not None
    assert [(s, e.seq, len(e.rows), e.cti, size) for s, e, size in taken.entries] == [
        (1, 0, 2, 5, 16),
        (2, 0, 0, 6, 0),
    ]
    words, body = pack_message(taken.words, taken.entries)
    assert words and body


def test_what_waits_for_a_subscription_that_ends_is_forgotten() -> None:
    waiting = OutgoingQueue()
    waiting.put(1, entry(0, 2), 16)
    waiting.put(2, entry(0, 2), 16)
    waiting.drop(1)
    taken = waiting.take(0.0)
    assert taken is not None and [s for s, _, _ in taken.entries] == [2]
    waiting.say(Bring(1, 0, 0))
    waiting.put(2, entry(2, 2), 16)
    waiting.close()
    taken = waiting.take(0.0)
    assert taken is not None and (len(taken.words), taken.entries) == (1, [])
    assert waiting.take(0.0) is None
