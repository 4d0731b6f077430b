"""Holds what all commands share: exit codes, options, what is said, and errors as one clean
message.

All text for people goes through `say`, and all of it is made printable there: names, paths and
values are foreign. What is for programs (`--json`, rows) goes through `put`, as it is, unless it
is a terminal that reads it.
"""

from __future__ import annotations

import atexit
import errno
import json
import os
import signal
import sys
import traceback
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stdout, suppress
from enum import StrEnum
from types import FrameType
from typing import Annotated, NoReturn

import typer

from weir.errors import PlanError, PlanWarning, ScriptError, WeirError
from weir.loops.interrupts import plain_interrupts
from weir.wording import printable

if sys.platform != "win32":
    import resource

DONE, FAILED, WRONG, INTERRUPTED, NOT_READ, TERMINATED = 0, 1, 2, 130, 141, 143
COMPLETION = "_WEIR_COMPLETE"
"""Is set in the environment by a shell that completes a line."""
_TELLS = "tells_as_weir"
AGAIN = 0.5
"""Seconds until SIGTERM takes effect again, if something swallowed it."""
LONGEST = 10_000
"""So many characters of an error are shown."""
MOST_FILES = 65_536
MOST_VERTICES = 1000
MOST_ROWS = 2**62
"""What options take at most: more is a slip of the finger."""


class RunnerName(StrEnum):
    local = "local"
    offline = "offline"
    live = "live"


RunnerOption = Annotated[
    RunnerName,
    typer.Option(
        help="Where it runs: `local` is this process, `offline` a Spark job, `live` a Spark job "
        "that goes on until the inputs end."
    ),
]
MasterOption = Annotated[
    str | None,
    typer.Option(metavar="URL", help="Spark's master. \\[default: all cores of this machine]"),
]
SettingOption = Annotated[
    list[str] | None,
    typer.Option("--conf", metavar="NAME=VALUE", help="A setting of Spark; may be repeated."),
]
JsonOption = Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")]
RunJsonOption = Annotated[
    bool,
    typer.Option("--json", help="One JSON object on stdout; progress as JSON lines on stderr."),
]
StrictOption = Annotated[
    bool, typer.Option("--strict", help="Make errors of warnings: nothing runs then.")
]
ParallelismOption = Annotated[
    int,
    typer.Option(min=1, max=MOST_VERTICES, help="Vertices of each stage that is split by keys."),
]
RunParallelismOption = Annotated[
    int | None,
    typer.Option(
        min=1,
        max=MOST_VERTICES,
        help="Vertices of each stage that is split by keys. \\[default: 1; offline Spark's cores]",
    ),
]
CutOption = Annotated[
    int | None,
    typer.Option(
        min=1, max=MOST_ROWS, help="Hand the input over N events at a time; changes no result."
    ),
]
CheckOption = Annotated[
    bool, typer.Option("--check", help="Run again, and fail where any row differs.")
]
DebugOption = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]


class Usage(Exception):
    """Says that the command line is wrong."""


class NotRead(Exception):
    """Says that nobody reads stdout any more."""


class Terminated(KeyboardInterrupt):
    """Says that SIGTERM came: a run ends as it does by Ctrl-C."""


# --- what is said ----------------------------------------------------------------------------


def say(text: str, *, err: bool = False) -> None:
    """Print a line for people."""
    put(f"{printable(text)}\n", err=err)


def put(text: str | bytes, *, err: bool = False) -> None:
    """Print text for programs, as it is; on a terminal it is made printable, and JSON stays
    JSON."""
    stream = sys.stderr if err else sys.stdout
    if stream is None:
        return  # it was closed from the start: nobody wants it
    data = text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass")
    if stream.isatty():
        data = printable(data.decode("utf-8", "surrogatepass")).encode()
    try:
        stream.flush()
        stream.buffer.write(data)
        stream.flush()
    except BrokenPipeError:
        if not err:
            raise NotRead from None
    except OSError as error:
        if not err:  # of a stderr that fails nobody can be told
            raise WeirError(f"stdout cannot be written to: {error.strerror}") from error


def put_json(value: object) -> None:
    """Print one JSON value on stdout."""
    put(f"{json.dumps(value)}\n")


# --- how it ends -----------------------------------------------------------------------------


@contextmanager
def clean_errors(debug: bool, *, lost: str = "") -> Iterator[None]:
    """Turn errors into one clean message and an exit code; `lost` is what else is said of a command
    that was interrupted."""
    try:
        with plain_interrupts():
            yield
    except (Usage, ScriptError, PlanError) as error:
        raise _exit(error, WRONG, debug) from None
    except PlanWarning as warning:  # one that --strict makes an error of
        raise _exit(warning, WRONG, debug) from None
    except (WeirError, OSError) as error:
        raise _exit(error, FAILED, debug) from None
    except NotRead:
        raise typer.Exit(NOT_READ) from None
    except KeyboardInterrupt as interrupt:
        word, code = ended_by(interrupt)
        say(f"weir: {word}{lost}", err=True)
        raise typer.Exit(code) from None
    except (typer.Exit, typer.BadParameter):
        raise
    except MemoryError as error:
        raise _exit(_out_of_memory(error), FAILED, debug) from error
    except Exception as error:  # nothing else should come; if it does, nobody wants a traceback
        raise _exit(_unexpected(error), FAILED, debug) from error


def ended_by(interrupt: KeyboardInterrupt) -> tuple[str, int]:
    """Return how an interrupt is told, and its exit code."""
    if isinstance(interrupt, Terminated):
        signal.setitimer(signal.ITIMER_REAL, 0)
        return "terminated", TERMINATED
    return "interrupted", INTERRUPTED


def _out_of_memory(error: MemoryError) -> Exception:
    failure = WeirError(
        f"out of memory: {str(error) or 'no more could be had'}; give it more, take fewer or "
        "shorter windows and lifetimes, or use --runner offline with more partitions"
    )
    return failure.with_traceback(error.__traceback__)


def _unexpected(error: Exception) -> Exception:
    failure = WeirError(
        f"this should not have happened, and is a bug in Weir: {type(error).__name__}: {error}; "
        "please report it with what --debug shows"
    )
    return failure.with_traceback(error.__traceback__)


@contextmanager
def prints_aside() -> Iterator[None]:
    """Send what the user's code prints meanwhile, in whatever way, to stderr: stdout is for
    results."""
    if sys.stdout is not None:  # it may be closed from the start
        sys.stdout.flush()
    try:
        kept = os.dup(1)
        os.dup2(2, 1)
    except OSError:  # there is no stdout, or no stderr
        kept = None
    try:
        with redirect_stdout(sys.stderr):
            yield
    finally:
        if kept is not None:
            os.dup2(kept, 1)
            os.close(kept)


@contextmanager
def told_warnings(*, strict: bool = False) -> Iterator[list[str]]:
    """Tell warnings as they come, each once, and collect them; `strict`: raise those about the
    program or its inputs instead. Inside of another, the outer one does it."""
    if _is_telling():
        yield []
        return
    texts: list[str] = []

    def tell(message: Warning | str, *_: object) -> None:
        text = str(message)
        if text not in texts:
            texts.append(text)
            say(f"weir: warning: {text}", err=True)

    setattr(tell, _TELLS, True)
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.simplefilter("ignore", DeprecationWarning)
        warnings.simplefilter("ignore", PendingDeprecationWarning)
        warnings.simplefilter("ignore", ResourceWarning)
        warnings.simplefilter("error" if strict else "always", PlanWarning)
        warnings.showwarning = tell  # type: ignore[assignment]
        yield texts


def _is_telling() -> bool:
    return hasattr(warnings.showwarning, _TELLS)


def leave(code: object) -> NoReturn:
    """End the process, without waiting for threads that the user's code has left. From here on
    Ctrl-C and SIGTERM end it at once: what runs at the end of a process, Spark's too, would
    complain of an interrupt."""

    status = code if isinstance(code, int) else int(code is not None)

    def leave_now(number: int, frame: FrameType | None) -> NoReturn:
        os._exit(status)

    signal.setitimer(signal.ITIMER_REAL, 0)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, leave_now)
    atexit._run_exitfuncs()
    for stream in filter(None, (sys.stdout, sys.stderr)):
        with suppress(OSError):  # nobody can be told any more
            stream.flush()
    os._exit(status)


def _exit(error: Exception, code: int, debug: bool) -> typer.Exit:
    if debug:
        say("".join(traceback.format_exception(error)), err=True)
    say(f"weir: error: {_clipped(_message(error))}", err=True)
    return typer.Exit(code)


def _message(error: Exception) -> str:
    text = str(error)
    if isinstance(error, OSError) and error.strerror:
        text = f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    if os.strerror(errno.EMFILE) in text:
        text += "; raise how many this process may have, with ulimit -n"
    return text


def _clipped(text: str) -> str:
    more = len(text) - LONGEST
    return text if more <= 0 else f"{text[:LONGEST]}… ({more:,} characters more)"


def settle_process() -> None:
    """Set up a process that is the command: SIGTERM ends it as Ctrl-C does, and it may have as many
    files open as it is allowed to ask for."""
    if sys.platform != "win32":
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        most = MOST_FILES if hard == resource.RLIM_INFINITY else min(hard, MOST_FILES)
        if soft != resource.RLIM_INFINITY and soft < most:
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))

    def terminate(number: int, frame: FrameType | None) -> NoReturn:
        signal.setitimer(signal.ITIMER_REAL, AGAIN)
        raise Terminated

    def again(number: int, frame: FrameType | None) -> None:
        # A library that was calling back into Python swallows what is raised there (a compiler
        # does): then nobody is handling it now.
        signal.setitimer(signal.ITIMER_REAL, AGAIN)
        if sys.exc_info()[1] is None:
            raise Terminated

    signal.signal(signal.SIGTERM, terminate)
    signal.signal(signal.SIGALRM, again)


def leave_stdout() -> None:
    """Drop what is still to be written if nobody can take it: Python would complain."""
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except OSError:
        with suppress(OSError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


# --- options ---------------------------------------------------------------------------------


def spark_settings(
    runner: RunnerName,
    *,
    master: str | None = None,
    setting: Sequence[str] | None = None,
) -> dict[str, str]:
    """Return Spark's settings that were given; refuse options that do not fit the runner."""
    if runner is RunnerName.local and (master is not None or setting):
        raise Usage("--master and --conf belong to --runner offline or live")
    return pairs(setting, "--conf")


def pairs(texts: Sequence[str] | None, option: str) -> dict[str, str]:
    """Return NAME=VALUE texts as a mapping."""
    pairs = {}
    for text in texts or ():
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise Usage(f"{option} takes NAME=VALUE, not {text!r}")
        pairs[name] = value
    return pairs


def number(text: str, option: str, most: int) -> int:
    digits = text.strip().lstrip("0")
    if not digits.isdecimal():
        raise Usage(f"{option} takes numbers from 1 on, not {text!r}")
    if len(digits) > len(str(most)) or int(digits) > most:
        raise Usage(f"{option} takes numbers up to {most:,}, not {text}")
    return int(digits)
