"""The gate of a live app: nothing leaves the job before it was compared with the serial loop."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from log_talk import talked
from machine.jobs import says
from small_shadow import COUNT, HEAD, clicks
from weir.errors import ReplayDiffers, RunError
from weir.files.object_store import ObjectStore
from weir.handlers.api.app_file import load_app
from weir.ingress.connectors.registry import open_any
from weir.ingress.ingress_log import IngressLog, begin_log
from weir.ingress.source_signals import IngressRecord
from weir.job.messages import Status
from weir.job.placement import Placement
from weir.kernels.expressions.evaluator import PYTHON_BUILDERS
from weir.replay.app_programs import app_program
from weir.runtime.program_plan import plan_program
from weir.shadow.app_shadow import app_shadow
from weir.spark.live import shadow_gate
from weir.spark.live.shadow_gate import ShadowGate, log_heads

BUILDERS: Any = PYTHON_BUILDERS


class FakeManager:
    """What the gate sees of a job manager: reports of one source, and the release."""

    def __init__(self) -> None:
        self.topology = SimpleNamespace(sources=[SimpleNamespace(id="0.0")])
        self.placements = [Placement("0.0", 0)]
        self.released: list[str] = []

    def reports(self, events: int, status: Status = "running") -> None:
        self.placements[0].learn(says("0.0", 1, status, events=events))

    def release(self, why: str, now: float) -> None:
        self.released.append(why)


class Gate:
    """A gate over a log that grows, in a folder."""

    def __init__(self, folder: Path, path: str = "tail://click.jsonl", most: int | None = 50):
        (folder / "app.py").write_text(HEAD + COUNT, "utf-8")
        program = app_program(load_app(folder / "app.py"), logs={"click": path}, out=str(folder))
        shadow = app_shadow(program, most)
        assert shadow is not None
        planned = plan_program(program)
        parts = {"click": open_any(program.sources[0], str(folder))}
        self.store = ObjectStore(str(folder / "store"))
        self.first = begin_log(self.store, "0.0", "token")
        read = log_heads(planned.stages, planned.topology(parts), parts, self.store, "token")
        self.gate = ShadowGate(shadow, read, is_finite=not path.startswith(("tail", "tcp")))
        self.machine, self.log = FakeManager(), folder / "click.jsonl"
        self.now = 0.0

    def grow(self, first: int, end: int) -> None:
        with self.log.open("a") as file:
            file.writelines(json.dumps(row) + "\n" for row in clicks(end)[first:end])

    def look(self) -> None:
        """Look until there is nothing under way."""
        self.now += 1.0
        self.gate.look(self.machine, self.now)  # type: ignore[arg-type]
        while self.gate._under_way is not None:
            time.sleep(0.005)
            self.gate.look(self.machine, self.now)  # type: ignore[arg-type]


def wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(BUILDERS, "py_add", BUILDERS["py_sub"])


def test_sinks_wait_for_the_first_events(tmp_path: Path) -> None:
    job = Gate(tmp_path)
    for _ in range(4):
        job.look()
    assert job.machine.released == []  # nothing has come
    job.grow(0, 4)
    job.machine.reports(4)
    job.look()
    assert job.machine.released == ["the first 4 events agree with the serial loop"]


def test_what_grows_is_compared_again(tmp_path: Path) -> None:
    job = Gate(tmp_path)
    job.grow(0, 3)
    job.machine.reports(3)
    job.look()
    for count in (10, 29, 35, 49, 80, 200):
        job.grow(job.log.read_text().count("\n"), count)
        job.machine.reports(count)
        job.look()
    told = [int(line.split()[2]) for line in job.machine.released]
    assert told == [3, 35, 50]  # ten times as many, and no more than were asked for


def test_it_ends_where_a_second_is_too_short(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = Gate(tmp_path, most=None)
    job.grow(0, 60)
    monkeypatch.setattr(type(job.gate.shadow), "compare", lambda *_: 40)
    for _ in range(4):
        job.machine.reports(5000)
        job.look()
    assert len(job.machine.released) == 2


def test_a_difference_ends_the_job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    job = Gate(tmp_path)
    job.grow(0, 3)
    wrong(monkeypatch)
    with pytest.raises(ReplayDiffers):
        job.look()
    assert job.machine.released == []


def test_a_difference_is_found_later_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    job = Gate(tmp_path)
    job.grow(0, 3)
    job.look()
    wrong(monkeypatch)
    job.grow(3, 40)
    job.machine.reports(40)
    with pytest.raises(ReplayDiffers):
        job.look()


def test_a_log_without_events_ends(tmp_path: Path) -> None:
    job = Gate(tmp_path)
    job.log.write_text("")
    job.machine.reports(0, "done")
    job.look()
    assert len(job.machine.released) == 1


def test_files_that_end_are_compared_once(tmp_path: Path) -> None:
    (tmp_path / "click.jsonl").write_text("".join(json.dumps(r) + "\n" for r in clicks(5)))
    job = Gate(tmp_path, "click.jsonl")
    for _ in range(3):
        job.look()
    assert job.machine.released == ["the first 5 events agree with the serial loop"]


def test_a_driver_that_finds_no_events_lets_the_job_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shadow_gate, "PATIENCE", 3)
    job = Gate(tmp_path)
    job.machine.reports(7)  # hosts see what the driver does not
    for _ in range(shadow_gate.PATIENCE + 2):
        job.look()
    assert job.machine.released == ["not compared with the serial loop: no event was found"]


def test_a_log_that_cannot_be_read_lets_the_job_go_on(tmp_path: Path) -> None:
    job = Gate(tmp_path)

    def read(most: int) -> Any:
        raise RunError("record 3 of the log is gone")

    job.gate.read = read
    job.look()
    (told,) = job.machine.released
    assert told == "not compared with the serial loop: record 3 of the log is gone"


@pytest.mark.parametrize("plant", [None, wrong])
def test_what_a_socket_brought_is_read_from_the_log(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    plant: Callable[[pytest.MonkeyPatch], None] | None,
) -> None:
    job = Gate(tmp_path, "tcp://localhost:1")
    job.look()
    assert job.machine.released == []
    log = IngressLog("0.0", job.first, writer="w")
    talked(log.begin(), job.store)
    rows = "".join(json.dumps(row) + "\n" for row in clicks(6))
    talked(log.append(IngressRecord(0, lines=rows.encode())), job.store)
    job.machine.reports(6)
    if plant is not None:
        plant(monkeypatch)
        with pytest.raises(ReplayDiffers):
            job.look()
        return
    job.look()
    assert job.machine.released == ["the first 6 events agree with the serial loop"]
