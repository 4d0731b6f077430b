"""What all commands share: exit codes, options, and errors as one clean message."""

from __future__ import annotations

import atexit
import os
import sys
import threading
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from enum import StrEnum
from typing import Annotated

import typer

from weir.errors import PlanError, ScriptError, WeirError

DONE, FAILED, WRONG, INTERRUPTED = 0, 1, 2, 130


class Runner(StrEnum):
    local = "local"
    offline = "offline"
    live = "live"


RunnerOption = Annotated[
    Runner,
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
DebugOption = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]


class Usage(Exception):
    """The command line is wrong."""


@contextmanager
def clean_errors(debug: bool) -> Iterator[None]:
    """Errors as one clean message and an exit code."""
    try:
        yield
    except (Usage, ScriptError, PlanError) as error:
        raise _exit(error, WRONG, debug) from None
    except (WeirError, OSError) as error:
        raise _exit(error, FAILED, debug) from None
    except KeyboardInterrupt:
        typer.echo("weir: interrupted; no output was written", err=True)
        raise typer.Exit(INTERRUPTED) from None


@contextmanager
def prints_aside() -> Iterator[None]:
    """What the user's code prints meanwhile, in whatever way, goes to stderr: stdout is for
    results."""
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


def leave_threads(code: object) -> None:
    """End the process now if a thread of the user's code would hold it up."""
    if all(t.daemon or t is threading.main_thread() for t in threading.enumerate()):
        return
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(code if isinstance(code, int) else int(code is not None))


def _exit(error: Exception, code: int, debug: bool) -> typer.Exit:
    if debug:
        traceback.print_exception(error)
    typer.echo(f"weir: error: {error}", err=True)
    return typer.Exit(code)


# --- options ---------------------------------------------------------------------------------


def spark_settings(
    runner: Runner,
    *,
    master: str | None = None,
    setting: Sequence[str] | None = None,
    store: str | None = None,
) -> dict[str, str]:
    """Spark's settings that were given; options that do not fit the runner are refused."""
    if runner is Runner.live and store is None:
        raise Usage("--runner live needs --store DIR, where it keeps what must survive")
    if runner is not Runner.live and store:
        raise Usage("--store belongs to --runner live")
    if runner is Runner.local and (master is not None or setting):
        raise Usage("--master and --conf belong to --runner offline or live")
    return pairs(setting, "--conf")


def pairs(given: Sequence[str] | None, option: str) -> dict[str, str]:
    """NAME=VALUE texts as a mapping."""
    pairs = {}
    for text in given or ():
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise Usage(f"{option} takes NAME=VALUE, not {text!r}")
        pairs[name] = value
    return pairs


def number(text: str, option: str) -> int:
    if not text.strip().isdecimal() or int(text) < 1:
        raise Usage(f"{option} takes numbers from 1 on, not {text!r}")
    return int(text)
