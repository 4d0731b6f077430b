"""A host in a process of its own: what is known when it dies, and signs of life for it."""

import ctypes
import faulthandler
import fcntl
import gc
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from weir.errors import RunError
from weir.events.batch import Batch
from weir.job.messages import Pulse
from weir.job.poison import Death
from weir.reliable.vertex import RowSpan
from weir.spark.live import host_process
from weir.spark.live.host_process import keep_host
from weir.spark.live.step_notes import SharedNotes

VERTICES = ["0.0", "1.0", "sink.0"]
ROWS = Batch(np.array([4]), np.array([5]), (pa.array(["x"]), pa.array([17])))


@pytest.fixture(autouse=True)
def remains_stay() -> Iterator[None]:
    """Other tests of this process had channels, whose remains end a child that collects them."""
    gc.freeze()
    yield
    gc.unfreeze()


def no_pulse() -> Callable[[Pulse], None]:
    """Nobody hears it."""
    return lambda pulse: None


def heard_in(told: Path) -> Callable[[], Callable[[Pulse], None]]:
    """Write down what the companion says, for it is another process."""

    def voice(pulse: Pulse) -> None:
        at = pulse.step.vertex if pulse.step is not None else "-"
        cause = pulse.death.cause if pulse.death is not None else "lives"
        with told.open("a", encoding="utf-8") as file:
            file.write(f"{pulse.session} {at} {cause}\n")

    return lambda: voice


def said_in(told: Path) -> list[str]:
    return told.read_text("utf-8").splitlines() if told.exists() else []


def lives(
    first: Callable[[SharedNotes], None], second: Callable[[Sequence[Death]], None]
) -> Callable[[SharedNotes, Sequence[Death]], None]:
    """A host that does the first thing, and, when it died, the second."""

    def run(notes: SharedNotes, deaths: Sequence[Death]) -> None:
        notes.open_session(f"h{len(deaths)}")
        notes.beat()
        if deaths:
            second(deaths)
        else:
            first(notes)

    return run


def death_of(dies: Callable[[SharedNotes], None], folder: Path) -> tuple[str, str]:
    """What the next host is told; written down, for it is another process."""
    told = folder / "told"

    def tell(deaths: Sequence[Death]) -> None:
        (death,) = deaths
        at = "nothing" if death.step is None else f"{death.step.vertex} {death.step.rows}"
        sample = death.step.sample if death.step is not None else ""
        told.write_text(f"{death.session}|{death.cause}|{at}|{sample}", "utf-8")

    keep_host(lives(dies, tell), no_pulse, VERTICES)
    session, cause, at, sample = told.read_text("utf-8").split("|")
    assert session == "h0"
    return cause, f"{at} {sample}".strip()


def in_a_step(then: Callable[[], object]) -> Callable[[SharedNotes], None]:
    def dies(notes: SharedNotes) -> None:
        notes.begin("0.0", "step", 0)
        notes.end()
        notes.begin("1.0", "step", 1)
        notes.see(RowSpan(2, 6, 7, False, 3, 3), ROWS)
        then()

    return dies


def crash() -> None:
    faulthandler.disable()
    ctypes.string_at(0)


@pytest.mark.parametrize(
    ("then", "cause"),
    [
        (lambda: os._exit(3), "exit code 3"),
        (lambda: os._exit(0), "exit code 0"),
        (crash, "killed by signal 11 (Segmentation fault)"),
        (lambda: os.kill(os.getpid(), signal.SIGKILL), "killed by signal 9 (Killed)"),
        (lambda: exec("raise SystemExit(4)"), "exit code 4"),
        (lambda: exec("raise SystemExit"), "exit code 1"),
        (lambda: exec("raise MemoryError('no more')"), "MemoryError: no more"),
    ],
)
def test_the_next_one_is_told_of_what_it_died_and_where(
    then: Callable[[], object], cause: str, tmp_path: Path
) -> None:
    assert death_of(in_a_step(then), tmp_path) == (cause, "1.0 at row 6 of input 2 'x', 17")


def test_one_that_dies_in_no_step_was_at_nothing(tmp_path: Path) -> None:
    assert death_of(lambda notes: os._exit(3), tmp_path) == ("exit code 3", "nothing")


def test_an_error_in_no_step_is_for_spark() -> None:
    def gives_up(notes: SharedNotes) -> None:
        raise RunError("the job manager cannot be reached")

    with pytest.raises(RunError, match=r"^the job manager cannot be reached$"):
        keep_host(lives(gives_up, lambda deaths: None), no_pulse, VERTICES)


def test_leaving_with_0_in_no_step_is_a_death_too(tmp_path: Path) -> None:
    assert death_of(lambda notes: os._exit(0), tmp_path) == ("exit code 0", "nothing")


def test_a_long_error_does_not_hold_up_its_host(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pipe takes as little as a page when the user has many of them."""
    whole = os.pipe

    def small() -> tuple[int, int]:
        ends = whole()
        fcntl.fcntl(ends[1], fcntl.F_SETPIPE_SZ, 4096)
        return ends

    def gives_up(notes: SharedNotes) -> None:
        signal.alarm(5)
        raise RunError("x" * 100_000)

    monkeypatch.setattr(os, "pipe", small)
    began = time.monotonic()
    with pytest.raises(RunError, match=r"^x{4096}$"):
        keep_host(lives(gives_up, lambda deaths: None), no_pulse, VERTICES)
    assert time.monotonic() - began < 4.0


def test_one_that_never_spoke_is_not_begun_again_and_again() -> None:
    with pytest.raises(RunError, match="before it did anything: exit code 3"):
        keep_host(lambda notes, deaths: os._exit(3), no_pulse, VERTICES)


def test_while_it_cannot_speak_somebody_else_does(tmp_path: Path) -> None:
    """The lock of Python is held for more than a second: in a step, and then in none."""
    told = tmp_path / "told"

    def busy(notes: SharedNotes, deaths: Sequence[Death]) -> None:
        notes.open_session("h0")
        notes.beat()
        notes.begin("1.0", "step", 0)
        ctypes.PyDLL(None).usleep(900_000)
        notes.end()
        ctypes.PyDLL(None).usleep(900_000)

    keep_host(busy, heard_in(told), VERTICES)
    said = said_in(told)
    assert set(said) == {"h0 - lives", "h0 1.0 lives"} and len(said) >= 6
    assert said[-1] == "h0 - lives"


def test_a_death_is_told_at_once(tmp_path: Path) -> None:
    """And its successor, which takes its time to begin, lives only when it has begun."""
    told = tmp_path / "told"

    def run(notes: SharedNotes, deaths: Sequence[Death]) -> None:
        if deaths:
            time.sleep(0.8)
            return
        notes.open_session("h0")
        notes.beat()
        notes.begin("1.0", "step", 0)
        time.sleep(0.5)
        os._exit(3)

    keep_host(run, heard_in(told), VERTICES)
    said = said_in(told)
    assert said[-1] == "h0 1.0 exit code 3" and set(said[:-1]) == {"h0 - lives"}


def test_one_that_is_stuck_outside_of_any_step_is_not_vouched_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(host_process, "STUCK_AFTER", 0.5)
    told = tmp_path / "told"

    def stuck(notes: SharedNotes, deaths: Sequence[Death]) -> None:
        notes.open_session("h0")
        time.sleep(2.0)

    keep_host(stuck, heard_in(told), VERTICES)
    assert 1 <= len(said_in(told)) <= 4


def test_one_that_was_stopped_gets_no_signs_of_life(tmp_path: Path) -> None:
    told, pid = tmp_path / "told", tmp_path / "pid"

    def busy(notes: SharedNotes, deaths: Sequence[Death]) -> None:
        mine = pid.with_suffix(".new")
        mine.write_text(str(os.getpid()), "utf-8")
        mine.rename(pid)
        os.kill(os.getpid(), signal.SIGSTOP)
        time.sleep(0.5)

    def wake() -> None:
        while not pid.exists():
            time.sleep(0.01)
        time.sleep(0.5)  # signs that were under way
        before.extend(said_in(told))
        time.sleep(1.0)
        meanwhile.extend(said_in(told))
        os.kill(int(pid.read_text("utf-8")), signal.SIGCONT)

    def run(notes: SharedNotes, deaths: Sequence[Death]) -> None:
        notes.open_session("h0")
        busy(notes, deaths)

    before: list[str] = []
    meanwhile: list[str] = []
    waker = threading.Thread(target=wake, daemon=True)
    waker.start()
    keep_host(run, heard_in(told), VERTICES)
    waker.join()
    assert meanwhile == before
    assert len(said_in(told)) > len(before)


def test_a_companion_that_dies_is_replaced(tmp_path: Path) -> None:
    told, pid = tmp_path / "told", tmp_path / "companion"

    def make_voice() -> Callable[[Pulse], None]:
        with pid.open("a", encoding="utf-8") as file:
            file.write(f"{os.getpid()}\n")
        return heard_in(told)()

    def busy(notes: SharedNotes, deaths: Sequence[Death]) -> None:
        notes.open_session("h0")
        time.sleep(0.5)
        os.kill(int(pid.read_text("utf-8").split()[0]), signal.SIGKILL)
        told.unlink()
        time.sleep(0.8)

    keep_host(busy, make_voice, VERTICES)
    assert len(pid.read_text("utf-8").split()) == 2 and len(said_in(told)) >= 2


def test_the_next_companion_knows_that_the_host_is_stopped(tmp_path: Path) -> None:
    told, pids = tmp_path / "told", tmp_path / "pids"

    def make_voice() -> Callable[[Pulse], None]:
        with pids.open("a", encoding="utf-8") as file:
            file.write(f"{os.getpid()}\n")
        return heard_in(told)()

    def run(notes: SharedNotes, deaths: Sequence[Death]) -> None:
        notes.open_session("h0")
        host.write_text(str(os.getpid()), "utf-8")
        os.kill(os.getpid(), signal.SIGSTOP)

    def kill_companion_then_wake() -> None:
        time.sleep(0.5)
        before.append(len(said_in(told)))
        os.kill(int(pids.read_text("utf-8").split()[0]), signal.SIGKILL)
        time.sleep(0.5)
        before.append(len(said_in(told)))
        os.kill(int(host.read_text("utf-8")), signal.SIGCONT)

    host = tmp_path / "host"
    before: list[int] = []
    killer = threading.Thread(target=kill_companion_then_wake)
    killer.start()
    keep_host(run, make_voice, VERTICES)
    killer.join()
    assert len(pids.read_text("utf-8").split()) == 2 and before[0] == before[1]


def test_it_does_not_outlive_who_looks_after_it(tmp_path: Path) -> None:
    pid = tmp_path / "pid"

    def waits(notes: SharedNotes, deaths: Sequence[Death]) -> None:
        pid.write_text(str(os.getpid()), "utf-8")
        time.sleep(30)

    task = os.fork()
    if not task:
        keep_host(waits, no_pulse, VERTICES)
        os._exit(0)
    until = time.monotonic() + 10
    while not pid.exists() or not pid.read_text("utf-8"):
        assert time.monotonic() < until
        time.sleep(0.01)
    host = int(pid.read_text("utf-8"))
    os.kill(task, signal.SIGKILL)
    os.waitpid(task, 0)
    while _is_there(host):
        assert time.monotonic() < until
        time.sleep(0.01)


def _is_there(pid: int) -> bool:
    """Whether it is there and not merely unburied."""
    try:
        return Path(f"/proc/{pid}/stat").read_text("utf-8").rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_rows_that_are_being_noted_are_not_read_in_part() -> None:
    notes = SharedNotes(VERTICES)
    notes.begin("1.0", "step", 0)
    notes.see(RowSpan(0, 6000, 6100, False, 3, 3), ROWS)
    whole = notes.read()
    assert whole is not None and (whole.first, whole.end) == (6000, 6100)

    class Dies(Exception):
        pass

    class Torn:
        """Rows whose span can be noted only in part."""

        input, first = 0, 7000

        @property
        def end(self) -> int:
            raise Dies

    with pytest.raises(Dies):
        notes.see(Torn(), ROWS)
    step = notes.read()
    assert step is not None and (step.vertex, step.has_rows) == ("1.0", False)


def test_notes_are_read_as_they_were_written() -> None:
    notes = SharedNotes(VERTICES)
    assert notes.read() is None and notes.beats == 0
    notes.open_session("1-abcdef01")
    notes.beat()
    assert (notes.session, notes.beats) == ("1-abcdef01", 1)
    notes.begin("sink.0", "load", 0)
    step = notes.read()
    assert step is not None and (step.vertex, step.phase, step.has_rows) == (
        "sink.0",
        "load",
        False,
    )
    notes.begin("0.0", "step", 256)
    notes.see(RowSpan(1, 2**40, 2**40 + 256, True, -(2**63), 2**63 - 1), ROWS)
    step = notes.read()
    assert step is not None and step.seconds < 5.0
    assert (step.input, step.first, step.end, step.claims) == (1, 2**40, 2**40 + 256, True)
    assert (step.since, step.until, step.pieces, step.sample) == (-(2**63), 2**63 - 1, 256, "")
    notes.begin("0.0", "step", 1)
    long = Batch(np.array([4]), np.array([5]), (pa.array(["ü" * 5000]),))
    notes.see(RowSpan(0, 5, 6, False, 0, 0), long)
    step = notes.read()
    assert step is not None and step.sample.startswith("'üüü") and step.sample.endswith("…")
    notes.end()
    assert notes.read() is None
