"""What a host and its companion tell the manager, also when that does not answer."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from weir.job.messages import Pulse, decode_pulse
from weir.spark.live import host_reports as reporting
from weir.spark.live.addresses import Endpoint
from weir.spark.live.flight import ChannelErrors, Security, Server
from weir.spark.live.host_reports import PulseSender, ToManager

SECRET = Security("secret")


class Manager:
    """Takes actions and lines, and answers while it hears."""

    def __init__(self) -> None:
        self.acted: list[bytes] = []
        self.lines: list[str] = []
        self.hears = threading.Event()
        self.hears.set()
        self.server = Server(Endpoint("127.0.0.1"), SECRET, act=self._act, attend=self._attend)
        self.job: Any = SimpleNamespace(manager=self.server.url, security=SECRET)

    def _act(self, name: str, body: bytes) -> bytes:
        self.acted.append(body)
        self.hears.wait()
        return b"done"

    def _attend(self, messages: Iterator[bytes]) -> None:
        last = "nobody"
        for message in messages:
            last = message.decode()
            self.lines.append(f"{last} calls")
        self.lines.append(f"{last} gone")

    def wait_for_lines(self, *wanted: str) -> None:
        until = time.monotonic() + 10.0
        while self.lines != list(wanted):
            assert time.monotonic() < until, self.lines
            time.sleep(0.005)


@pytest.fixture
def manager() -> Iterator[Manager]:
    made = Manager()
    yield made
    made.hears.set()
    made.server.end()


def test_a_line_is_open_from_the_first_answer_on(manager: Manager) -> None:
    to = ToManager(manager.job)
    assert to.act("a", "report", b"1") == to.act("a", "report", b"2") == b"done"
    manager.wait_for_lines("a calls")
    to.act("b", "report", b"3")
    manager.wait_for_lines("a calls", "b calls")
    to.close()
    manager.wait_for_lines("a calls", "b calls", "b gone")


def test_a_line_is_kept_until_there_is_another(manager: Manager) -> None:
    """A manager that is slow to answer must not take the host for dead."""
    to = ToManager(manager.job)
    to.act("a", "report", b"1")
    manager.wait_for_lines("a calls")
    manager.hears.clear()
    for body in (b"2", b"3"):
        with pytest.raises(ChannelErrors):
            to.act("a", "report", body, within=0.1)
    assert manager.lines == ["a calls"]
    manager.hears.set()
    to.act("a", "report", b"4")
    manager.wait_for_lines("a calls", "a calls")
    to.act("a", "report", b"5")
    manager.wait_for_lines("a calls", "a calls", "a gone")
    to.close()
    manager.wait_for_lines("a calls", "a calls", "a gone", "a gone")


def test_a_sign_of_life_that_is_not_answered_is_given_up(
    manager: Manager, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reporting, "PULSE_WITHIN", 0.1)
    send = PulseSender(manager.job)
    manager.hears.clear()
    began = time.monotonic()
    send(Pulse("a"))
    send(Pulse("b"))
    assert time.monotonic() - began < 3.0
    manager.hears.set()
    send(Pulse("c"))
    manager.wait_for_lines("c calls")
    assert [decode_pulse(body).session for body in manager.acted] == ["a", "b", "c"]
