"""A host's own process, and the Spark task that watches over it.

Rules
1. The host runs in a child of the task's process. The task's process does nothing but wait: so it
   knows what the host was doing when it died (`step_notes.py`), and of which signal or exit code.
   The job is over when the child has written so to a pipe; exit code 0 does not say it, for the
   user's code may exit with 0 too.
2. When a host dies after it has had an answer of the manager, the task starts the next one at once,
   which reports the death. When a host dies before, or gives up with an error outside of any step,
   the task fails, and Spark starts it again.
3. While a host is in a step and gives no sign of life (code that does not let go of Python's lock),
   a second child gives signs for it. It gives none for a process that was stopped (SIGSTOP), which
   may never go on.
4. Children do not outlive the task's process. That process starts no threads of Python and has no
   channels (gRPC), so it can fork at any time. Libraries that it has imported have threads of their
   own (jemalloc in Arrow, numpy's linear algebra), but also fork handlers for them.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import NoReturn

from weir.errors import RunError
from weir.job.poison import Death, Step
from weir.spark.live.step_notes import SharedNotes

RunHost = Callable[[SharedNotes, Sequence[Death]], None]
GivePulse = Callable[[str, Callable[[], Step | None]], None]
"""Gives signs of life for a session, and returns when the function says that it is at no step."""

LOOK_EVERY = 0.02
SILENT_AFTER = 0.4
"""Seconds without a sign of life after which a second child gives them."""
_FAILED = 70
_PDEATHSIG = 1
_MOST_TEXT = 32_768
_OVER = b"\0"
"""A child writes this to its pipe when it has done its work; else the text of an error."""


def keep_host(run: RunHost, give_pulse: GivePulse, vertices: Sequence[str]) -> None:
    """Run a host, and another one whenever it dies, until the job is over."""
    notes = SharedNotes(vertices)
    deaths: tuple[Death, ...] = ()
    while (death := _Watched(run, give_pulse, notes, deaths).wait()) is not None:
        deaths = (death,)


class _Watched:
    """Watches over one host, from its fork to its end."""

    def __init__(
        self,
        run: RunHost,
        give_pulse: GivePulse,
        notes: SharedNotes,
        deaths: Sequence[Death],
    ) -> None:
        self._notes, self._give_pulse = notes, give_pulse
        notes.open_session("")  # forget what the host before this one was doing
        self._first_beat = notes.beats
        self._read_end, write_end = os.pipe()
        os.set_blocking(write_end, False)  # nobody reads before the child has ended
        self._pid = _fork(lambda: run(notes, deaths), write_end)
        os.close(write_end)
        self._pulse: int | None = None
        """The process that gives signs of life for the host, if there is one."""
        self._is_stopped = False
        """Whether the host was stopped by a signal (SIGSTOP)."""

    def wait(self) -> Death | None:
        """Wait for the end of the host; return how it died, or None when the job is over. Raise the
        error with which it gave up."""
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


@contextmanager
def meanwhile(work: Callable[[], None]) -> Iterator[None]:
    """Let a child do this work for as long as the block lasts."""
    child = _fork(work, None)
    try:
        yield
    finally:
        _end(child)


def cause_of(status: int) -> str:
    """Describe how a process ended, from its status of `waitpid`.

    >>> cause_of(9), cause_of(3 << 8)
    ('killed by signal 9 (Killed)', 'exit code 3')
    """
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        return f"killed by signal {number} ({signal.strsignal(number)})"
    return f"exit code {os.WEXITSTATUS(status)}"


def _fork(work: Callable[[], None], pipe: int | None) -> int:
    """Fork a child that does this work and ends. It writes to the pipe that it is done, or what it
    raised."""
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
    """Make this process end when its parent does."""
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
    """Write to the pipe, as much as it takes at once."""
    if pipe is not None:
        os.write(pipe, what)


def _said(read_end: int) -> bytes:
    """Read what a child that has ended wrote to its pipe, without waiting: processes that it left
    behind may hold the pipe open."""
    os.set_blocking(read_end, False)
    with os.fdopen(read_end, "rb") as pipe:
        return pipe.read() or b""
