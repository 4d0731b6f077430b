"""What is said of a run on its way, on a terminal and elsewhere."""

from __future__ import annotations

import io
import json

import pytest
from rich.console import Console

from weir.cli import progress
from weir.cli.progress import Meter
from weir.runtime.reports import Progress


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [100.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    return now


def test_progress_as_lines(clock: list[float], capsys: pytest.CaptureFixture[str]) -> None:
    meter = Meter(Console(file=io.StringIO()), in_time=True)
    with meter:
        meter.take(Progress(0, -(2**63)))
        meter.take(Progress(1, 0))
        clock[0] += 10
        meter.take(Progress(5_000, 3_600_000_000))
        meter.take(Progress(6_000, 3_600_000_000))
    assert capsys.readouterr().err == (
        "5,000 events, 500 events/s, at 1970-01-01 01:00:00, 360.0 × real time\n"
    )


def test_a_few_events_that_take_long_have_no_speed(
    clock: list[float], capsys: pytest.CaptureFixture[str]
) -> None:
    meter = Meter(Console(file=io.StringIO()), in_time=True)
    with meter:
        meter.take(Progress(1, 0))
        clock[0] += 15
        meter.take(Progress(4, 100_000))
    assert capsys.readouterr().err == "4 events, at 1970-01-01 00:00:00\n"


def test_progress_on_a_terminal(clock: list[float]) -> None:
    screen = io.StringIO()
    meter = Meter(Console(file=screen, force_terminal=True, width=100), in_time=False)
    with meter:
        assert meter.__rich__().plain == ""
        clock[0] += 2
        assert meter.__rich__().plain.startswith("starting")
        meter.take(Progress(1, 0))
        clock[0] += 0.5
        meter.take(Progress(250, 5_000_000))
    assert "250 events, 100 events/s, at tick 5,000,000, 2.0 × real time" in screen.getvalue()


def test_progress_without_an_event_time(clock: list[float]) -> None:
    meter = Meter(Console(file=io.StringIO()), in_time=True)
    clock[0] += 2
    assert str(meter.standing(Progress(8, 2**63 - 1))) == "8 events, 4 events/s"


def test_progress_says_how_long_the_rest_will_take(clock: list[float]) -> None:
    meter = Meter(Console(file=io.StringIO()), in_time=True)
    clock[0] += 30
    half = meter.standing(Progress(60, 2**63 - 1, read=100, size=400))
    assert str(half) == "60 events, 2 events/s, 25% read, 0:01:30 left"
    whole = meter.standing(Progress(60, 2**63 - 1, read=400, size=400))
    assert str(whole) == "60 events, 2 events/s"


@pytest.mark.parametrize("terminal", [True, False])
def test_progress_as_json_lines(
    clock: list[float], capsys: pytest.CaptureFixture[str], terminal: bool
) -> None:
    screen = io.StringIO()
    console = Console(file=screen, force_terminal=terminal, width=100)
    meter = Meter(console, in_time=True, as_json=True)
    with meter:
        meter.take(Progress(1, 0))
        clock[0] += 10
        meter.take(Progress(5_000, 3_600_000_000, 25, 100, "running wave 1 of 2"))
        clock[0] += 10
        meter.take(Progress(6_000, 2**63 - 1))
    first, second = map(json.loads, capsys.readouterr().err.splitlines())
    assert first == {
        "stage": "running wave 1 of 2",
        "events": 5_000,
        "events_per_second": 500,
        "event_time": "1970-01-01 01:00:00",
        "times_real_time": 360.0,
        "done": 0.25,
        "seconds": 10.0,
        "seconds_left": 30,
    }
    assert second == {
        **dict.fromkeys(first),
        "events": 6_000,
        "events_per_second": 300,
        "seconds": 20.0,
    }
    assert screen.getvalue() == ""


def test_what_is_compiled_is_said_once(
    clock: list[float], capsys: pytest.CaptureFixture[str]
) -> None:
    piped = Meter(Console(file=io.StringIO()), in_time=True)
    piped.compiling(12)
    piped.compiling(0)
    Meter(Console(file=io.StringIO()), in_time=True, as_json=True).compiling(12)
    assert capsys.readouterr().err == "weir: compiling 12 loops, once on this machine\n"
    screen = Meter(Console(file=io.StringIO(), force_terminal=True), in_time=True)
    screen.compiling(1)
    assert screen.__rich__().plain == "compiling 1 loop, once on this machine"
    screen.compiling(0)
    assert screen.__rich__().plain == ""
