"""The links over which hosts read each other's streams: one for each pair of hosts.

Rules
1. A host makes a link to an address when it first wants a stream from there, unless the two hosts
   have one. A link carries the subscriptions of both hosts. It has two threads on each side: one
   that receives, one that sends.
2. When two hosts make links to each other at the same time, that of the host with the smaller
   address stays: this host refuses the other's (`Yours`), and the other one takes the link that
   comes instead, and asks over it for what it wanted. A link that the other host makes again
   replaces the old one, unless that is this host's own, by this rule, and is alive.
3. What arrives becomes signals at once: a reader's credit bounds it, so nothing waits in a link. A
   link that breaks is the loss of all its subscriptions: the signal `Lost` for each that this host
   asked for, `Unsubscribed` for each that it serves. The machine then asks for another connection.
4. Each side sends at least every `SIGN_EVERY` seconds. A link over which nothing came for a while
   is given up: the way may be broken without a word. What takes longer than that on a slow way must
   get through in the end: so a while is `SILENCE` seconds at first, and twice as long each time,
   until rows come.
5. An address from which nothing came for `UNREACHED` seconds, though rows are wanted from there, is
   reported to the manager as not reached.
6. Time in which the host itself stood still, in a step that holds Python's lock say, counts as
   nobody's silence.
7. Something that is no message ends the link, and fails the inputs that it could have been meant
   for (`Misled`); rows that cannot be used fail their input alone.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from typing import TypeAlias

import pyarrow as pa

from weir.errors import RunError
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
from weir.spark.live.flight import ChannelErrors, Client, Exchange, Security
from weir.spark.live.link_messages import (
    Bring,
    Bye,
    Gone,
    Leave,
    Room,
    Want,
    Word,
    Yours,
    pack_hello,
    pack_message,
    read_hello,
    read_rows,
    read_words,
)
from weir.spark.live.message_checks import bad_message
from weir.spark.live.outgoing import OutgoingQueue

SIGN_EVERY = 1.0
"""Seconds; see rule 4."""
SILENCE, LONGEST_SILENCE = 4.0, 64.0
"""Seconds; see rule 4."""
UNREACHED = 6.0
"""Seconds; see rule 5."""
WATCH_EVERY = 0.5
STILL_WANTED = 2.0
"""Seconds: so long after its last connection an address counts as wanted."""
MOST_SERVED = 100_000
"""So many subscriptions one host may have of another."""

GiveSignal: TypeAlias = Callable[[HostSignal], None]
Types: TypeAlias = Sequence[pa.DataType]


@dataclass(slots=True)
class _Way:
    """The way to an address: when something came from there last (or when it was wanted first), and
    when it was last wanted."""

    heard: float
    wanted: float


@dataclass(slots=True)
class _Input:
    """An input that reads over a link: what was asked for, and the types of the columns."""

    asked: Connect
    types: Types


_numbers = count(1)


class _Link:
    """A link, or one that is being made."""

    def __init__(self, address: str, patience: float, *, own: bool, now: float) -> None:
        """`own`: this host makes it."""
        self.number = next(_numbers)
        self.address, self.patience, self.own = address, patience, own
        self.heard, self.has_rows = now, False
        """When something came last, and whether rows have come."""
        self.stands = not own
        """Whether both hosts have it: what is said gets through."""
        self.refused = False
        """Whether the other host makes a link itself, for which this one waits."""
        self.is_over = False
        self.inputs: dict[int, _Input] = {}
        """Who reads over it here, by connection."""
        self.served: set[int] = set()
        """The subscriptions of the other host."""
        self.queue = OutgoingQueue()
        self.exchange: Exchange | None = None
        """What it goes over, if it is this host's own and was begun."""

    def name_of(self, subscription: int) -> str:
        """Name a subscription of the other host, as no other is named here."""
        return f"{self.number}.{subscription}"


class HostLinks:
    """Keeps the links of a host, by the module's rules."""

    def __init__(
        self, security: Security, types_of: Callable[[str], Types], give: GiveSignal
    ) -> None:
        """`types_of` returns the types of a stream's columns; `give` takes the signals."""
        self._security, self._types_of, self._give = security, types_of, give
        self.address = ""
        """Where this host serves its streams; to be set before it connects."""
        self._lock = threading.RLock()
        self._links: dict[str, _Link] = {}
        """The links, by the address of the other host."""
        self._inputs: dict[int, _Link] = {}
        """The link of each connection that this host has asked for."""
        self._served: dict[str, tuple[_Link, int]] = {}
        """The subscriptions that this host serves, by name: their link and their number on it."""
        self._patience: dict[str, float] = {}
        """How long the next link to an address may be silent, if that is not `SILENCE`."""
        self._ways: dict[str, _Way] = {}
        """The ways to the addresses that are wanted."""
        self._watched_at = time.monotonic()

    # --- commands ----------------------------------------------------------------------------

    def connect(self, command: Connect) -> None:
        """Ask a host for a stream; make a link to it, if there is none."""
        types, now = self._types_of(command.stream), time.monotonic()
        with self._lock:
            self._ways.setdefault(command.address, _Way(now, now)).wanted = now
            link = self._links.get(command.address)
            if link is None:
                link = self._begin(command.address, own=True, now=now)
                threading.Thread(target=self._make, args=(link,), daemon=True, name="link").start()
            link.inputs[command.connection] = _Input(command, types)
            self._inputs[command.connection] = link
            link.queue.say(
                Want(
                    command.connection,
                    stream=command.stream,
                    seq=command.seq,
                    credit=command.credit,
                    view=command.view,
                )
            )

    def disconnect(self, connection: int) -> None:
        """End a connection, if it is there."""
        with self._lock:
            link = self._inputs.pop(connection, None)
            if link is not None:
                del link.inputs[connection]
                link.queue.say(Leave(connection))

    def make_room(self, room: MakeRoom) -> None:
        """Give credit back over a connection, if it is there."""
        link = self._inputs.get(room.connection)
        if link is not None:
            link.queue.say(Room(room.connection, room.size))

    def deliver(self, delivery: Deliver) -> None:
        """Send an entry to a subscriber, if it is there."""
        served = self._served.get(delivery.subscription)
        if served is not None:
            link, number = served
            link.queue.put(number, delivery.entry, delivery.size)

    def end(self, subscription: str) -> None:
        """End a subscription of another host."""
        with self._lock:
            served = self._served.pop(subscription, None)
            if served is not None:
                link, number = served
                link.served.discard(number)
                link.queue.drop(number)
                link.queue.say(Gone(number))

    def close(self) -> None:
        """End all links."""
        with self._lock:
            for link in list(self._links.values()):
                self._finish(link)

    # --- watching ----------------------------------------------------------------------------

    @property
    def next_watch(self) -> float:
        """When to call `watch` again."""
        return self._watched_at + WATCH_EVERY

    def watch(self, now: float) -> None:
        """Give up the links over which nothing came; see rule 4."""
        passed = now - self._watched_at
        if passed < WATCH_EVERY:
            return
        self._watched_at = now
        with self._lock:
            if passed > 2 * WATCH_EVERY:
                self._excuse(passed)
            for link in list(self._links.values()):
                if link.inputs and link.address in self._ways:
                    self._ways[link.address].wanted = now
                if link.has_rows:
                    self._patience.pop(link.address, None)
                if now - link.heard > link.patience:
                    self._patience[link.address] = min(2 * link.patience, LONGEST_SILENCE)
                    self._finish(link)
            self._ways = {a: w for a, w in self._ways.items() if now - w.wanted < STILL_WANTED}

    def _excuse(self, seconds: float) -> None:
        """See rule 6."""
        for link in self._links.values():
            link.heard += seconds
        for way in self._ways.values():
            way.heard += seconds
            way.wanted += seconds

    def unreached(self, now: float) -> tuple[str, ...]:
        """List the addresses of rule 5."""
        with self._lock:
            return tuple(a for a, way in self._ways.items() if now - way.heard > UNREACHED)

    def _hear(self, link: _Link) -> None:
        link.heard = time.monotonic()
        way = self._ways.get(link.address)
        if way is not None:
            way.heard = link.heard

    # --- links -------------------------------------------------------------------------------

    def _begin(self, address: str, *, own: bool, now: float) -> _Link:
        link = _Link(address, self._patience.get(address, SILENCE), own=own, now=now)
        self._links[address] = link
        return link

    def _make(self, link: _Link) -> None:
        """Make a link of this host's own, and receive what comes over it, in its thread."""
        exchange: Exchange | None = None
        client: Client | None = None
        try:
            client = Client(link.address, self._security)
            exchange = client.exchange(pack_hello(self.address))
            with self._lock:
                link.exchange = exchange
                is_over = link.is_over
            if not is_over:
                self._receive(link, exchange)
        except ChannelErrors:
            pass  # it does not matter what broke the link: the machine connects again
        except RunError as error:
            self._mislead(link, error)
        finally:
            self._finish(link, unless_refused=True)
            with suppress(*ChannelErrors):
                if exchange is not None:
                    exchange.close()
                if client is not None:
                    client.close()

    def attend(self, command: bytes, exchange: Exchange) -> None:
        """Receive what comes over a link that another host has made; a thread of the server calls
        this."""
        hello = read_hello(command)
        link = self._accepted(hello.address)
        if link is None:
            exchange.send(*pack_message([Yours()], ()))
            return
        try:
            self._receive(link, exchange)
        except ChannelErrors:
            pass  # as in `_make`
        except RunError as error:
            self._mislead(link, error)
            raise
        finally:
            self._finish(link)

    def _accepted(self, address: str) -> _Link | None:
        """Take a link that another host makes; None if it is refused, by rule 2."""
        now = time.monotonic()
        with self._lock:
            old = self._links.get(address)
            stays = old is not None and old.own and self.address < address
            if old is not None and stays and (not old.stands or now - old.heard < 2 * SIGN_EVERY):
                return None
            if old is None or old.stands:
                if old is not None:
                    self._finish(old)
                return self._begin(address, own=False, now=now)
            # Its own was being made: what was to go over it goes over the other.
            link = self._begin(address, own=False, now=now)
            link.inputs, link.queue = old.inputs, old.queue
            self._inputs.update(dict.fromkeys(link.inputs, link))
            old.inputs, old.queue, old.is_over = {}, OutgoingQueue(), True
            if old.exchange is not None:
                old.exchange.give_up()
            return link

    def _receive(self, link: _Link, exchange: Exchange) -> None:
        """Receive messages until the link ends. The other host's first one says that it stands; a
        host that accepts a link says so at once."""
        sender = threading.Thread(
            target=self._send, args=(link, exchange), daemon=True, name="link sender"
        )
        try:
            if not link.own:
                sender.start()
            while (message := exchange.receive()) is not None and not link.is_over:
                words, body = message
                self._hear(link)
                if self._take(link, read_words(words, len(body)), body):
                    return
                if not sender.ident:
                    link.stands = True
                    sender.start()
        finally:
            if not link.refused:  # else the other host's link takes the queue
                link.queue.close()
            if link.own:
                exchange.give_up()
            if sender.ident:
                sender.join()

    def _send(self, link: _Link, exchange: Exchange) -> None:
        """Send what waits in the queue of a link, and signs of life, until the link ends."""
        with suppress(*ChannelErrors):  # then the thread that receives knows it too
            if not link.own:
                exchange.send(*pack_message((), ()))
            while (outbound := link.queue.take(SIGN_EVERY)) is not None:
                exchange.send(*pack_message(outbound.words, outbound.entries))

    def _finish(self, link: _Link, *, unless_refused: bool = False) -> None:
        """End a link, and all that went over it; once."""
        with self._lock:
            if link.is_over or (unless_refused and link.refused):
                return
            link.is_over = True
            if self._links.get(link.address) is link:
                del self._links[link.address]
            for connection, input in link.inputs.items():
                del self._inputs[connection]
                self._give(Lost(input.asked.vertex, input.asked.input, connection))
            for subscription in link.served:
                del self._served[link.name_of(subscription)]
                self._give(Unsubscribed(link.name_of(subscription)))
            if not link.own:
                link.queue.say(Bye())  # only the side that has made a link can end it
            link.queue.close()
            if link.exchange is not None:
                link.exchange.give_up()

    def _mislead(self, link: _Link, error: RunError) -> None:
        """Fail the inputs that read over a link; see rule 7."""
        with self._lock:
            for connection in list(link.inputs):
                self._fail(link, connection, error)

    def _fail(self, link: _Link, connection: int, error: RunError) -> None:
        input = link.inputs.pop(connection)
        del self._inputs[connection]
        self._give(Misled(input.asked.vertex, input.asked.input, connection, str(error)))

    # --- words -------------------------------------------------------------------------------

    def _take(self, link: _Link, words: Sequence[Word], body: pa.Buffer) -> bool:
        """Take in the words of a message; say whether the link ends with them."""
        at = 0
        for word in words:
            match word:
                case Bring(subscription, length=length):
                    self._take_rows(link, subscription, word, body.slice(at, length))
                    at += length
                case Room(subscription, size):
                    if subscription in link.served:
                        self._give(Taken(link.name_of(subscription), size))
                case Want():
                    self._serve(link, word)
                case Leave(subscription):
                    self._leave(link, subscription)
                case Gone(subscription):
                    self._lose(link, subscription)
                case Yours():
                    link.refused = True
                    return True
                case Bye():
                    return True
        return False

    def _take_rows(self, link: _Link, connection: int, word: Bring, body: pa.Buffer) -> None:
        input = link.inputs.get(connection)
        if input is None:
            return  # it was given up meanwhile
        try:
            entry = read_rows(word, body, input.types)
        except RunError as error:
            with self._lock:
                if connection in link.inputs:
                    self._fail(link, connection, error)
                    link.queue.say(Leave(connection))
            return
        link.has_rows = True
        self._give(
            Arrived(
                vertex=input.asked.vertex,
                input=input.asked.input,
                connection=connection,
                entry=entry,
                size=word.size,
            )
        )

    def _serve(self, link: _Link, want: Want) -> None:
        with self._lock:
            if link.is_over:
                return
            if len(link.served) >= MOST_SERVED:
                raise bad_message("a request for a stream", f"{MOST_SERVED} are served already")
            name = link.name_of(want.subscription)
            link.served.add(want.subscription)
            self._served[name] = (link, want.subscription)
            self._give(
                Subscribed(
                    name, stream=want.stream, seq=want.seq, credit=want.credit, view=want.view
                )
            )

    def _leave(self, link: _Link, subscription: int) -> None:
        with self._lock:
            if subscription in link.served:
                link.served.discard(subscription)
                del self._served[link.name_of(subscription)]
                link.queue.drop(subscription)
                self._give(Unsubscribed(link.name_of(subscription)))

    def _lose(self, link: _Link, connection: int) -> None:
        with self._lock:
            input = link.inputs.pop(connection, None)
            if input is not None:
                del self._inputs[connection]
                self._give(Lost(input.asked.vertex, input.asked.input, connection))
