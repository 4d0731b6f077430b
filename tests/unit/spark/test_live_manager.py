"""The manager's end of the channels: what hosts and others may say, and what is kept of it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec
import pytest
from pyarrow import flight

from machine.jobs import report, topology
from weir.errors import RunError
from weir.files.object_store import ObjectStore
from weir.job.ledger import Ledger
from weir.job.manager import Manager
from weir.job.messages import DRIVER, Preparing, Pulse, Report, VertexReport, decode_orders
from weir.job.poison import Step
from weir.job.record_writer import TAKEN_OVER
from weir.job.settings import ManagerSettings
from weir.job.signals import EndJob, HungUp, Pulsed, Reported
from weir.job.status import STATUS, read_status
from weir.job.story import read_story
from weir.reliable.object_names import record_key
from weir.reliable.strategies import CheckpointStrategy
from weir.spark.live import manager_driver as live_manager
from weir.spark.live.addresses import Endpoint
from weir.spark.live.flight import Client, Security
from weir.spark.live.manager_driver import ManagerDriver

SECRET = Security("secret")


@pytest.fixture
def driver(tmp_path: Path) -> Iterator[ManagerDriver]:
    strategies = {v: CheckpointStrategy(1.0) for v in topology().vertices}
    settings = ManagerSettings(hosts=1, patience=0.0)
    machine = Manager(topology(), strategies, Ledger(), settings, time.monotonic(), name="m")
    store = ObjectStore(str(tmp_path / "store"))
    with TemporaryDirectory() as folder:  # the name of a socket must not be long
        made = ManagerDriver(machine, store, Endpoint(folder), SECRET, lambda _: None)
        yield made
        made.close()


def encoded(said: Report) -> bytes:
    return msgspec.msgpack.encode(said)


def test_a_host_gets_its_orders(driver: ManagerDriver) -> None:
    client = Client(driver.url, SECRET)
    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(
            lambda: [a for n in range(20) if (a := client.act("report", encoded(report("a", n))))]
        )
        until = time.monotonic() + 10.0
        while not asked.done() and time.monotonic() < until:
            driver._turn()
    assert {o.vertex for o in decode_orders(asked.result()[-1]).vertices} == {
        "0.0",
        "1.0",
        "sink.0",
    }
    assert not driver._answers


def test_nothing_is_kept_of_sessions_that_nobody_answers(
    driver: ManagerDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live_manager, "ANSWER_WITHIN", 0.0)
    client = Client(driver.url, SECRET)
    assert [client.act("report", encoded(report(f"s{n}", 1))) for n in range(50)] == [b""] * 50
    assert not driver._answers


def test_a_host_hangs_up_when_its_last_line_is_closed(driver: ManagerDriver) -> None:
    """A companion that dies alone costs nothing; one that goes on with another session does."""
    clients = [Client(driver.url, SECRET) for _ in range(2)]
    host, companion = [client.line() for client in clients]
    for line in (host, companion):
        line.say(b"a")
    wait_until(lambda: driver._lines == {"a": 2})
    companion.close()
    wait_until(lambda: driver._lines == {"a": 1})
    another = clients[1].line()
    another.say(b"a")
    wait_until(lambda: driver._lines == {"a": 2})
    host.close()
    wait_until(lambda: driver._lines == {"a": 1})
    assert driver._inbox.empty()
    another.say(b"b")
    assert driver._inbox.get(timeout=10.0) == HungUp("a")
    another.close()
    assert driver._inbox.get(timeout=10.0) == HungUp("b")
    assert not driver._lines


def wait_until(holds: Callable[[], bool]) -> None:
    until = time.monotonic() + 10.0
    while not holds():
        assert time.monotonic() < until
        time.sleep(0.005)


@pytest.mark.parametrize(
    ("name", "body", "told"),
    [
        ("report", b"\xc1garbage", "a peer sent a report that cannot be used"),
        ("report", encoded(report("a", 1, VertexReport("9.9", 1, "running"))), "a vertex '9.9'"),
        ("prepare", encoded(Preparing(5, "w1", 0, 0)), "slot 5 of"),
        ("drop everything", b"", "does not know what 'drop everything' is"),
        ("", b"", "does not know what '' is"),
    ],
)
def test_what_a_broken_peer_says_is_refused(
    driver: ManagerDriver, name: str, body: bytes, told: str, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(flight.FlightServerError, match=told) as refused:
        Client(driver.url, SECRET).act(name, body)
    assert "Traceback" not in str(refused.value)
    assert driver._inbox.empty() and not driver._answers
    assert capfd.readouterr().err == ""


def test_hosts_that_compile_are_shown(driver: ManagerDriver) -> None:
    assert Client(driver.url, SECRET).act("prepare", encoded(Preparing(0, "w1", 3, 30))) == b""
    driver.see(Preparing(DRIVER, "head", 0, 0))
    driver._turn()
    wanted = ("compiling loops on w1, 3 of 30", "compiling loops on head")
    assert driver.status().preparing == wanted


def check() -> None:
    """All is well with the hosts."""


def broken() -> None:
    raise RunError("Spark cannot run the hosts")


def interrupted() -> None:
    raise KeyboardInterrupt


def told(driver: ManagerDriver, tmp_path: Path) -> tuple[str, str]:
    """The state that was told last, and its error."""
    driver._onlookers.close()
    status = read_status(ObjectStore(str(tmp_path / "store")))
    assert status is not None
    return status.state, status.error


def story(tmp_path: Path) -> list[str]:
    return [line.what for line in read_story(ObjectStore(str(tmp_path / "store")))]


def test_a_job_that_was_stopped_is_told_so(driver: ManagerDriver, tmp_path: Path) -> None:
    driver._machine.settings = replace(driver._machine.settings, stop_limit=0.0)
    assert driver.run(check, lambda _: None, lambda: True, str) == EndJob(stopped=True)
    assert told(driver, tmp_path) == ("stopped", "")
    assert story(tmp_path)[-1] == "stopped"


def test_a_job_that_failed_is_told_with_the_error(driver: ManagerDriver, tmp_path: Path) -> None:
    driver._machine.settings = replace(driver._machine.settings, host_limit=0.0)
    ended = driver.run(check, lambda _: None, lambda: False, str)
    assert "no host has come" in ended.error
    assert told(driver, tmp_path) == ("failed", ended.error)


@pytest.mark.parametrize(("seconds", "waits"), [(1.5, True), (2.5, False)])
def test_hosts_that_are_at_a_long_step_are_not_waited_for_in_the_end(
    driver: ManagerDriver, seconds: float, waits: bool
) -> None:
    """They hear nothing before its end: nobody would be told anything, and Spark ends them."""
    driver._machine.settings = replace(driver._machine.settings, stop_limit=0.0)
    driver._inbox.put(Reported(report("a", 1)))
    driver.run(check, lambda _: None, lambda: True, str)
    assert set(driver._machine.hosts) == {"a"}
    driver._inbox.put(Pulsed(Pulse("a", Step("1.0", seconds=seconds))))
    driver._turn()
    began = time.monotonic()
    driver.release(lambda: False, within=0.4)
    assert (time.monotonic() - began >= 0.4) == waits


@pytest.mark.parametrize(
    ("trouble", "state", "last"),
    [
        (broken, ("failed", "Spark cannot run the hosts"), "ends: Spark cannot run the hosts"),
        (interrupted, ("stopped", ""), "stopped, without waiting for a last checkpoint"),
    ],
)
def test_an_end_that_the_manager_knows_nothing_of_is_told_too(
    driver: ManagerDriver,
    tmp_path: Path,
    trouble: Callable[[], None],
    state: tuple[str, str],
    last: str,
) -> None:
    with pytest.raises((RunError, KeyboardInterrupt)):
        driver.run(trouble, lambda _: None, lambda: False, str)
    assert told(driver, tmp_path) == state
    assert story(tmp_path)[-1] == last


def test_who_was_taken_over_leaves_the_state_to_the_other(
    driver: ManagerDriver, tmp_path: Path
) -> None:
    store = ObjectStore(str(tmp_path / "store"))
    store.put(STATUS, b"of the other")
    store.put(record_key(0), Ledger(number=0, manager="other").encode())
    assert driver.run(check, lambda _: None, lambda: False, str).error == TAKEN_OVER
    driver._onlookers.close()
    assert store.get(STATUS) == b"of the other"
