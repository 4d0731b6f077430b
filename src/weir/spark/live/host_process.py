"""A process of its own for a host, and what looks after it from the Spark task.

Rules
1. The host runs in a child of the task's process, which does nothing but wait: so there is somebody
   who knows what the host was at when it died (`step_notes.py`), and of which signal or exit code.
   The job is over when the child has said so: the user's code may exit with 0 too.
2. A host that died after it had spoken to the manager is begun again at once, and reports the
   death. One that never did, and one that gave up by an error of its own, fail the task: then it
   is Spark's turn.
3. While a host is in a step and gives no sign of life (code that does not let go of Python's lock),
   a second child gives signs for it. A process that was stopped (SIGSTOP) gets none: it may
   never go on.
4. Children do not outlive the task's process. It starts no threads of Python and has no channels
   (gRPC), so it can fork at any time. Libraries that it has imported have threads of their own
   (those of jemalloc in Arrow, of numpy's linear algebra), which are made for it: both have fork
   handlers.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Sequence
from typing import NoReturn

from weir.errors import RunError
from weir.job.poison import Death, Step
from weir.spark.live.step_notes import SharedNotes

RunHost = Callable[[SharedNotes, Sequence[Death]], None]
GivePulse = Callable[[str, Callable[[], Step | None]], None]
"""Takes a session and what it is at; returns when that is nothing any more."""

LOOK_EVERY = 0.02
SILENT_AFTER = 0.4
"""Seconds without a sign of life after which somebody else gives them."""
_FAILED = 70
_PDEATHSIG = 1
_MOST_TEXT = 32_768
_OVER = b"\0"
"""What a child writes that has done its work; else it is the text of an error."""


def keep_host(run: RunHost, give_pulse: GivePulse, vertices: Sequence[str]) -> None:
    """Run a host until the job is over, and again when it dies."""
    notes = SharedNotes(vertices)
    deaths: tuple[Death, ...] = ()
    while (death := _Watched(run, give_pulse, notes, deaths).wait()) is not None:
        deaths = (death,)


class _Watched:
    """One host from its fork to its end."""

    def __init__(
        self,
        run: RunHost,
        give_pulse: GivePulse,
        notes: SharedNotes,
        deaths: Sequence[Death],
    ) -> None:
        self._notes, self._give_pulse = notes, give_pulse
        notes.open_session("")  # what the one before was at is nothing that this one is at
        self._first_beat = notes.beats
        self._read_end, write_end = os.pipe()
        os.set_blocking(write_end, False)  # nobody reads before the child has ended
        self._pid = _fork(lambda: run(notes, deaths), write_end)
        os.close(write_end)
        self._pulse: int | None = None
        self._is_stopped = False

    def wait(self) -> Death | None:
        """None when the job is over; else how the host died. Raises what it gave up with."""
        status = None
        try:
            status = self._watch()
        finally:
            self._end_pulse()
            if status is None:  # somebody has interrupted the task
                _end(self._pid)
            said = _said(self._read_end)
        if said == _OVER:
            return None
        error = RunError(said.decode(errors="replace")) if said else None
        step = self._notes.read()
        if error is not None and step is None:
            raise error
        cause = cause_of(status) if error is None else str(error)
        if self._notes.beats == self._first_beat:
            raise RunError(f"the host ended before it did anything: {cause}")
        return Death(self._notes.session, step, cause)

    def _watch(self) -> int:
        beats, since = self._notes.beats, time.monotonic()
        while True:
            pid, status = os.waitpid(self._pid, os.WNOHANG | os.WUNTRACED | os.WCONTINUED)
            if pid and (os.WIFEXITED(status) or os.WIFSIGNALED(status)):
                return status
            if pid:
                self._is_stopped = os.WIFSTOPPED(status)
            if self._pulse is not None and os.waitpid(self._pulse, os.WNOHANG)[0]:
                self._pulse, since = None, time.monotonic()
            if self._notes.beats != beats or self._is_stopped:
                beats, since = self._notes.beats, time.monotonic()
                self._end_pulse()
            elif self._pulse is None and time.monotonic() - since > SILENT_AFTER:
                self._begin_pulse(beats)
            time.sleep(LOOK_EVERY)

    def _begin_pulse(self, beats: int) -> None:
        notes = self._notes
        session, first = notes.session, notes.read()
        if first is None:
            return

        def at() -> Step | None:
            return notes.read() if notes.beats == beats else None

        self._pulse = _fork(lambda: self._give_pulse(session, at), None)

    def _end_pulse(self) -> None:
        if self._pulse is not None:
            _end(self._pulse)
            self._pulse = None


def cause_of(status: int) -> str:
    """What a status of `waitpid` says.

    >>> cause_of(9), cause_of(3 << 8)
    ('killed by signal 9 (Killed)', 'exit code 3')
    """
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        return f"killed by signal {number} ({signal.strsignal(number)})"
    return f"exit code {os.WEXITSTATUS(status)}"


def _fork(work: Callable[[], None], pipe: int | None) -> int:
    """A child that does this and ends; that it has done it, or what it raises, is written to a
    pipe."""
    sys.stdout.flush()
    sys.stderr.flush()
    parent = os.getpid()
    pid = os.fork()
    if not pid:
        _be_child(parent, work, pipe)
    return pid


def _be_child(parent: int, work: Callable[[], None], pipe: int | None) -> NoReturn:
    code = _FAILED
    try:
        _die_with(parent)
        work()
        _say(pipe, _OVER)
        code = 0
    except SystemExit as error:  # of the user's code, in a step
        code = error.code if isinstance(error.code, int) and error.code else 1
    except BaseException as error:  # whatever it is, the parent tells of it
        _say(pipe, _text_of(error).encode(errors="replace")[:_MOST_TEXT])
    finally:
        os._exit(code)  # the way out of a Spark worker is the parent's


def _end(child: int) -> None:
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)


def _die_with(parent: int) -> None:
    """See that this process ends with its parent."""
    if os.uname().sysname == "Linux":
        ctypes.CDLL(None).prctl(_PDEATHSIG, signal.SIGKILL)
        if os.getppid() == parent:
            return
        os._exit(_FAILED)

    def look() -> None:
        while os.getppid() == parent:
            time.sleep(0.5)
        os._exit(_FAILED)

    threading.Thread(target=look, daemon=True, name="parent").start()


def _text_of(error: BaseException) -> str:
    return str(error) if isinstance(error, RunError) else f"{type(error).__name__}: {error}"


def _say(pipe: int | None, what: bytes) -> None:
    """Write as much of it as the pipe takes at once."""
    if pipe is not None:
        os.write(pipe, what)


def _said(read_end: int) -> bytes:
    """What a child wrote that has ended. Processes that it left behind may hold the pipe open."""
    os.set_blocking(read_end, False)
    with os.fdopen(read_end, "rb") as pipe:
        return pipe.read() or b""
