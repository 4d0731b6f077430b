"""Who gets what of a host's streams: rows for credit, claims after the rows before them."""

from __future__ import annotations

import math

import pytest

from machine.jobs import entry, rows
from weir.events.batch import START
from weir.job.signals import Deliver, EndSubscription, HostCommand
from weir.job.stream_server import CLAIM_COST, MOST_WAIT, PIECE_BYTES, Subscribers
from weir.reliable.log import LogStream, batch_bytes
from weir.reliable.stream import Entry

ROW = batch_bytes(rows(0, 1))
MUCH = 1 << 30
WAIT = 0.002


def served(streams: int = 1) -> tuple[list[LogStream], Subscribers]:
    logs = [LogStream(f"s{n}") for n in range(streams)]
    return logs, Subscribers({log.name: log for log in logs}, WAIT)


def serve(subscribers: Subscribers, now: float = 0.0) -> tuple[bool, list[HostCommand]]:
    """Serve until claims have waited for long enough."""
    began = subscribers.serve(now)
    ended = subscribers.serve(now + MOST_WAIT)
    return began[0] or ended[0], [*began[1], *ended[1]]


def sent(commands: list[HostCommand]) -> list[tuple[str, int, int, int]]:
    """For each delivery: to whom, the first number, how many rows, and the claim."""
    assert all(isinstance(c, Deliver) for c in commands)
    return [
        (c.subscription, c.entry.seq, len(c.entry.rows), c.entry.cti)
        for c in commands
        if isinstance(c, Deliver)
    ]


def claim(log: LogStream, cti: int) -> None:
    log.write(Entry(log.end, rows(0, 0), cti))


def test_rows_wait_for_credit_which_belongs_to_one_subscription() -> None:
    (log,), subscribers = served()
    subscribers.add("slow", "s0", 0, ROW)
    subscribers.add("fast", "s0", 0, MUCH)
    for first in range(4):
        log.write(entry(first, 1))
    assert sent(serve(subscribers)[1]) == [
        ("slow", 0, 1, 1),
        *(("fast", first, 1, first + 1) for first in range(4)),
    ]
    assert serve(subscribers) == (False, [])
    subscribers.taken("fast", 99 * ROW)
    assert serve(subscribers) == (False, [])
    subscribers.taken("slow", ROW)
    assert sent(serve(subscribers)[1]) == [("slow", 1, 1, 2)]
    subscribers.taken("slow", 2 * ROW)
    assert sent(serve(subscribers)[1]) == [("slow", 2, 1, 3), ("slow", 3, 1, 4)]


def test_what_is_delivered_says_how_much_credit_it_spends() -> None:
    (log,), subscribers = served()
    subscribers.add("a", "s0", 0, MUCH)
    log.write(entry(0, 5))
    (delivery,) = serve(subscribers)[1]
    assert isinstance(delivery, Deliver) and delivery.size == 5 * ROW
    claim(log, 9)
    (delivery,) = serve(subscribers)[1]
    assert isinstance(delivery, Deliver) and delivery.size == 0


def test_a_claim_needs_no_credit_but_waits_with_the_rows_before_it() -> None:
    (log,), subscribers = served()
    subscribers.add("a", "s0", 0, 0)
    claim(log, 3)
    assert sent(serve(subscribers)[1]) == [("a", 0, 0, 3)]
    log.write(entry(0, 1, cti=4))
    claim(log, 7)
    assert serve(subscribers) == (False, [])
    claim(log, 8)
    assert serve(subscribers) == (False, [])
    subscribers.taken("a", ROW)
    assert sent(serve(subscribers)[1]) == [("a", 0, 1, 8)]


def test_of_several_claims_the_last_is_delivered() -> None:
    (log,), subscribers = served()
    subscribers.add("a", "s0", 0, MUCH)
    for cti in (3, 5, 6):
        claim(log, cti)
    assert sent(serve(subscribers)[1]) == [("a", 0, 0, 6)]
    log.write(entry(0, 2, cti=7))
    for cti in (8, 9):
        claim(log, cti)
    assert sent(serve(subscribers)[1]) == [("a", 0, 2, 9)]


def test_a_large_entry_goes_in_pieces_and_its_claim_with_the_last() -> None:
    (log,), subscribers = served()
    subscribers.add("a", "s0", 0, 2 * PIECE_BYTES)
    count = 3 * PIECE_BYTES // ROW + 1
    log.write(entry(0, count, cti=5))
    first = serve(subscribers)[1]
    assert all(isinstance(c, Deliver) and c.size <= PIECE_BYTES + ROW for c in first)
    assert sum(size for _, _, size, _ in sent(first)) >= 2 * PIECE_BYTES // ROW - 2
    assert all(cti == START for _, _, _, cti in sent(first))
    subscribers.taken("a", sum(c.size for c in first if isinstance(c, Deliver)))
    last = serve(subscribers)[1]
    pieces = sent([*first, *last])
    assert pieces[-1][3] == 5
    assert [seq for _, seq, _, _ in pieces[1:]] == [seq + size for _, seq, size, _ in pieces[:-1]]
    assert pieces[-1][1] + pieces[-1][2] == count


def test_one_row_larger_than_all_credit_gets_through() -> None:
    (log,), subscribers = served()
    subscribers.add("a", "s0", 0, 1)
    log.write(entry(0, 2))
    assert sent(serve(subscribers)[1])[0][:2] == ("a", 0)


def test_only_subscriptions_with_something_new_are_looked_at(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    logs, subscribers = served(3)
    for log in logs:
        subscribers.add(log.name, log.name, 0, MUCH)
    serve(subscribers)
    looked: list[str] = []
    position = LogStream.position

    def noted(self: LogStream, reader: str) -> int:
        looked.append(self.name)
        return position(self, reader)

    monkeypatch.setattr(LogStream, "position", noted)
    assert serve(subscribers) == (False, [])
    assert not looked
    logs[1].write(entry(0, 1))
    assert [to for to, *_ in sent(serve(subscribers)[1])] == ["s1"]
    assert looked == ["s1"]


def test_a_subscriber_whose_rows_are_collected_is_let_go() -> None:
    (log,), subscribers = served()
    subscribers.add("a", "s0", 0, 1)
    for first in range(3):
        log.write(entry(first, 1))
    serve(subscribers)
    log.collect(3)
    subscribers.collected("s0")
    assert serve(subscribers) == (True, [EndSubscription("a")])
    assert subscribers.end("s0") == []


def test_a_stream_that_goes_ends_its_subscriptions_alone() -> None:
    logs, subscribers = served(2)
    for name in ("a", "b"):
        subscribers.add(name, "s0", 0, MUCH)
    subscribers.add("c", "s1", 0, MUCH)
    subscribers.remove("b")
    assert subscribers.end("s0") == [EndSubscription("a")]
    logs[1].write(entry(0, 1))
    assert [to for to, *_ in sent(serve(subscribers)[1])] == ["c"]


def test_claims_wait_the_longer_the_more_there_are_and_rows_do_not() -> None:
    for count in (2, 100, 5000):
        logs, subscribers = served(count)
        for log in logs:
            subscribers.add(log.name, log.name, 0, MUCH)
        subscribers.serve(0.0)
        for log in logs:
            claim(log, 3)
        wait = max(WAIT, min(count * CLAIM_COST, MOST_WAIT))
        assert subscribers.serve(1.0) == (False, [])
        assert subscribers.next_due == pytest.approx(1.0 + wait)
        logs[0].write(entry(0, 1, cti=5))
        assert sent(subscribers.serve(1.0)[1]) == [("s0", 0, 1, 5)]
        for log in logs:
            claim(log, 6)
        assert subscribers.serve(1.0 + 0.9 * wait) == (False, [])
        assert {cti for *_, cti in sent(subscribers.serve(1.0 + 1.1 * wait)[1])} == {6}
        assert subscribers.serve(9.0) == (False, []) and subscribers.next_due == math.inf
