"""The common parts of all commands: exit codes, options, printing, and error handling.

Text for people goes through `say`, which makes it printable, because names, paths and values may
contain anything. Output for programs (`--json`, rows) goes through `put`, which changes it only for
a terminal.
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
"""The environment variable that a shell sets to ask for completions."""
_TELLS = "tells_as_weir"
AGAIN = 0.5
"""Seconds until SIGTERM takes effect again, if something swallowed it."""
LONGEST = 10_000
"""The largest number of characters shown of an error."""
MOST_FILES = 65_536
MOST_VERTICES = 1000
MOST_ROWS = 2**62
"""The largest number that options accept; a larger one is a typing error."""


class RunnerName(StrEnum):
    local = "local"
    offline = "offline"
    live = "live"


RunnerOption = Annotated[
    RunnerName,
    typer.Option(
        help="Where it runs: `local` is this process, `offline` a Spark job, `live` a Spark job "
        "that runs until the inputs end."
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
    bool, typer.Option("--strict", help="Turn warnings into errors; nothing runs then.")
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
        help="Vertices of each stage that is split by keys. "
        "\\[default: 1; offline Spark's cores; live --hosts]",
    ),
]
CutOption = Annotated[
    int | None,
    typer.Option(
        min=1, max=MOST_ROWS, help="Read the input in batches of N events. Changes no result."
    ),
]
CheckOption = Annotated[
    bool, typer.Option("--check", help="Run twice, and fail if any row differs.")
]
DebugOption = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]


class Usage(Exception):
    """The command line is wrong."""


class NotRead(Exception):
    """The reader of stdout has gone."""


class Terminated(KeyboardInterrupt):
    """SIGTERM came; the run ends as after Ctrl-C."""


# --- what is printed -------------------------------------------------------------------------


def say(text: str, *, err: bool = False) -> None:
    """Print a line for people."""
    put(f"{printable(text)}\n", err=err)


def put(text: str | bytes, *, err: bool = False) -> None:
    """Print text for programs unchanged, except on a terminal: there it is made printable, and JSON
    stays JSON."""
    stream = sys.stderr if err else sys.stdout
    if stream is None:
        return  # stdout was closed when the process started
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
        if not err:  # if stderr fails, nobody can be warned
            raise WeirError(f"cannot write to stdout: {error.strerror}") from error


def put_json(value: object) -> None:
    """Print one JSON value on stdout."""
    put(f"{json.dumps(value)}\n")


# --- how it ends -----------------------------------------------------------------------------


@contextmanager
def clean_errors(debug: bool, *, lost: str = "") -> Iterator[None]:
    """Turn errors into one message and an exit code; `lost` is added to the message after an
    interrupt."""
    try:
        with plain_interrupts():
            yield
    except (Usage, ScriptError, PlanError) as error:
        raise _exit(error, WRONG, debug) from None
    except PlanWarning as warning:  # with --strict, a warning is an error
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
    except Exception as error:  # a bug: a message is more useful than a traceback
        raise _exit(_unexpected(error), FAILED, debug) from error


def ended_by(interrupt: KeyboardInterrupt) -> tuple[str, int]:
    """Return the word and the exit code for an interrupt."""
    if isinstance(interrupt, Terminated):
        signal.setitimer(signal.ITIMER_REAL, 0)
        return "terminated", TERMINATED
    return "interrupted", INTERRUPTED


def _out_of_memory(error: MemoryError) -> Exception:
    failure = WeirError(
        f"out of memory: {str(error) or 'an allocation failed'}; give the process more memory, "
        "use fewer or shorter windows and lifetimes, or use --runner offline with more partitions"
    )
    return failure.with_traceback(error.__traceback__)


def _unexpected(error: Exception) -> Exception:
    failure = WeirError(
        f"internal error, a bug in Weir: {type(error).__name__}: {error}; "
        "please report it with the output of --debug"
    )
    return failure.with_traceback(error.__traceback__)


@contextmanager
def prints_aside() -> Iterator[None]:
    """Send everything that the user's code prints in the block to stderr: stdout is for results."""
    if sys.stdout is not None:  # stdout may have been closed when the process started
        sys.stdout.flush()
    try:
        kept = os.dup(1)
        os.dup2(2, 1)
    except OSError:  # stdout or stderr is missing
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
    """Print each warning once, when it comes, and collect them all. With `strict`, raise warnings
    about the program or its inputs instead. A nested block leaves this to the outer one."""
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
    """End the process without waiting for threads of the user's code. From here on Ctrl-C and
    SIGTERM end it at once; exit handlers, Spark's too, would print a traceback."""

    status = code if isinstance(code, int) else int(code is not None)

    def leave_now(number: int, frame: FrameType | None) -> NoReturn:
        os._exit(status)

    signal.setitimer(signal.ITIMER_REAL, 0)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, leave_now)
    atexit._run_exitfuncs()
    for stream in filter(None, (sys.stdout, sys.stderr)):
        with suppress(OSError):  # its reader has gone
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
        text += "; raise the limit of open files with ulimit -n"
    return text


def _clipped(text: str) -> str:
    more = len(text) - LONGEST
    return text if more <= 0 else f"{text[:LONGEST]}… ({more:,} characters more)"


def settle_process() -> None:
    """Prepare the process of a command: SIGTERM acts like Ctrl-C, and the limit of open files is
    raised as far as the system allows."""
    if sys.platform != "win32":
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        most = MOST_FILES if hard == resource.RLIM_INFINITY else min(hard, MOST_FILES)
        if soft != resource.RLIM_INFINITY and soft < most:
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))

    def terminate(number: int, frame: FrameType | None) -> NoReturn:
        signal.setitimer(signal.ITIMER_REAL, AGAIN)
        raise Terminated

    def again(number: int, frame: FrameType | None) -> None:
        # A library that calls back into Python may swallow this exception (a compiler does). Then
        # no exception is being handled now.
        signal.setitimer(signal.ITIMER_REAL, AGAIN)
        if sys.exc_info()[1] is None:
            raise Terminated

    signal.signal(signal.SIGTERM, terminate)
    signal.signal(signal.SIGALRM, again)


def leave_stdout() -> None:
    """Drop unwritten output if stdout is closed: Python would print an error at exit."""
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
    """Return the settings for Spark; reject options that do not fit the runner."""
    if runner is RunnerName.local and (master is not None or setting):
        raise Usage("--master and --conf belong to --runner offline or live")
    return pairs(setting, "--conf")


def pairs(texts: Sequence[str] | None, option: str) -> dict[str, str]:
    """Parse NAME=VALUE texts; the last value of a name wins."""
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
