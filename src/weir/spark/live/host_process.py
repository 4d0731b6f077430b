"""A host's own process, and the Spark task that watches over it.

Rules
1. The host runs in a child of the task's process. The task's process does nothing but wait: so it
   knows what the host was doing when it died (`step_notes.py`), and of which signal or exit code.
   The job is over when the child has written so to a pipe; exit code 0 does not say it, for the
   user's code may exit with 0 too.
2. When a host dies after it has had an answer of the manager, the task starts the next one at once,
   which reports the death. When a host dies before, or gives up with an error outside of any step,
   the task fails, and Spark starts it again.
3. A second child, the companion, gives signs of life for the host every `PULSE_EVERY` seconds: it
   runs none of the user's code, so nothing holds it up that holds the host up. It gives none for a
   host that was stopped (SIGSTOP), which may never go on, nor for one that is in no step and has
   given no sign itself for `STUCK_AFTER` seconds. It tells of a death as soon as it is known.
4. Children do not outlive the task's process. That process starts no threads of Python, has no
   channels (gRPC) and makes no requests of obstore, so it can fork at any time. Libraries that it
   has imported have threads of their own (jemalloc in Arrow, numpy's linear algebra), but also fork
   handlers for them.
"""

from __future__ import annotations

import ctypes
import gc
import os
import select
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import NoReturn

import msgspec

from weir.errors import RunError
from weir.job.messages import Pulse
from weir.job.poison import Death
from weir.spark.live.step_notes import SharedNotes

RunHost = Callable[[SharedNotes, Sequence[Death]], None]
MakePulseSender = Callable[[], Callable[[Pulse], None]]
"""Makes, in the companion, what brings signs of life to the manager."""

LOOK_EVERY = 0.02
PULSE_EVERY = 0.2
STUCK_AFTER = 300.0
"""Seconds; see rule 3."""
LONG_STEP = 0.5
"""Seconds: a step that takes longer is told."""
_FAILED = 70
_PDEATHSIG = 1
_MOST_TEXT = 32_768
_OVER = b"\0"
"""A child writes this to its pipe when it has done its work; else the text of an error."""


def keep_host(run: RunHost, make_sender: MakePulseSender, vertices: Sequence[str]) -> None:
    """Run a host, and another one whenever it dies, until the job is over."""
    notes = SharedNotes(vertices)
    deaths: tuple[Death, ...] = ()
    companion = _Companion(make_sender, notes)
    try:
        while (death := _Watched(run, companion, notes, deaths).wait()) is not None:
            companion.tell(_Word(death=death))
            deaths = (death,)
    finally:
        companion.end()


class _Word(msgspec.Struct, frozen=True):
    """What the task's process tells the companion: whether the host is stopped, or that it died."""

    stopped: bool = False
    death: Death | None = None


class _Companion:
    """The second child, by rule 3; the task's process starts it again when it dies."""

    def __init__(self, make_sender: MakePulseSender, notes: SharedNotes) -> None:
        self._make_sender, self._notes = make_sender, notes
        self._stopped = False
        """Whether the host is stopped, as the companion was told last."""
        self._start()

    def _start(self) -> None:
        read_end, self._pipe = os.pipe()
        os.set_blocking(self._pipe, False)
        self._pid = _fork(
            lambda: _accompany(read_end, self._make_sender(), self._notes, self._stopped), None
        )
        os.close(read_end)

    def tell(self, word: _Word) -> None:
        self._stopped = word.stopped
        # What it is not told, since it does not read or is dead, the next host tells.
        with suppress(BlockingIOError, BrokenPipeError):
            os.write(self._pipe, msgspec.json.encode(word) + b"\n")

    def look(self) -> None:
        """Start it again if it is gone."""
        if os.waitpid(self._pid, os.WNOHANG)[0]:
            os.close(self._pipe)
            self._start()

    def end(self) -> None:
        os.close(self._pipe)
        _end(self._pid)


def _accompany(pipe: int, send: Callable[[Pulse], None], notes: SharedNotes, stopped: bool) -> None:
    """Be the companion of hosts, of which the first may be stopped, until nobody can write to the
    pipe."""
    words, pause = b"", 0.0  # the first sign is given at once: another companion may have died
    beats, since = notes.beats, time.monotonic()
    while True:
        death = None
        readable = select.select([pipe], [], [], pause)[0]
        pause = PULSE_EVERY
        if readable:
            data = os.read(pipe, _MOST_TEXT)
            if not data:
                return
            *lines, words = (words + data).split(b"\n")
            for word in map(_read_word, lines):
                stopped, death = word.stopped, word.death or death
        session, step = notes.session, notes.read()
        if notes.beats != beats:
            beats, since = notes.beats, time.monotonic()
        is_stuck = step is None and time.monotonic() - since > STUCK_AFTER
        if death is not None:
            send(Pulse(death.session, death.step, death))
        elif session and not stopped and not is_stuck:
            send(Pulse(session, step if step is not None and step.seconds > LONG_STEP else None))


_read_word = msgspec.json.Decoder(_Word).decode


class _Watched:
    """Watches over one host, from its fork to its end."""

    def __init__(
        self,
        run: RunHost,
        companion: _Companion,
        notes: SharedNotes,
        deaths: Sequence[Death],
    ) -> None:
        self._notes, self._companion = notes, companion
        notes.open_session("")  # forget what the host before this one was doing
        self._first_beat = notes.beats
        self._read_end, write_end = os.pipe()
        os.set_blocking(write_end, False)  # nobody reads before the child has ended
        self._pid = _fork(lambda: run(notes, deaths), write_end)
        os.close(write_end)

    def wait(self) -> Death | None:
        """Wait for the end of the host; return how it died, or None when the job is over. Raise the
        error with which it gave up."""
        status = None
        try:
            status = self._watch()
        finally:
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
        while True:
            pid, status = os.waitpid(self._pid, os.WNOHANG | os.WUNTRACED | os.WCONTINUED)
            if pid and (os.WIFEXITED(status) or os.WIFSIGNALED(status)):
                return status
            if pid:
                self._companion.tell(_Word(stopped=os.WIFSTOPPED(status)))
            self._companion.look()
            time.sleep(LOOK_EVERY)


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


def said_by_child(work: Callable[[], Sequence[str]]) -> Sequence[str]:
    """Do this in a child, and return the texts that it returns; RunError if it raises."""
    read_end, write_end = os.pipe()
    os.set_blocking(write_end, False)
    pid = _fork(lambda: _say(write_end, msgspec.json.encode(list(work()))), write_end)
    os.close(write_end)
    os.waitpid(pid, 0)
    said = _said(read_end)
    if not said.endswith(_OVER):
        raise RunError(said.decode(errors="replace"))
    return _read_texts(said.removesuffix(_OVER))


_read_texts = msgspec.json.Decoder(list[str]).decode


def _be_child(parent: int, work: Callable[[], None], pipe: int | None) -> NoReturn:
    code = _FAILED
    gc.freeze()  # what it has inherited is its parent's to collect: the child would copy its pages
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
