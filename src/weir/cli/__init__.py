"""The command line.

Its commands are `weir run`, `replay`, `explain`, `conform`, `verify`, `diff`, `status`, `story`,
`store`, `read`, `ui`, `report`, `simulate`, `warm`, `init`, `schema`, `fmt`, `doctor` and
`completion`.

Exit codes: 0 done; 1 the run failed, or a comparison found a difference; 2 the program or the
command line is wrong, and nothing ran; 130 interrupted; 143 terminated; 141 stdout was closed by
its reader. Results go to stdout, everything else to stderr. A command's module is imported only
when it is called, so that `--help` is fast.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer
from typer.completion import completion_init  # type: ignore[attr-defined]
from typer.core import TyperCommand, TyperGroup
from typer.exceptions import TyperException
from typer.main import get_command

from weir import __version__
from weir.cli.command_line import (
    COMPLETION,
    DONE,
    INTERRUPTED,
    NOT_READ,
    NotRead,
    ended_by,
    leave,
    leave_stdout,
    say,
    settle_process,
)
from weir.cli.plain_values import PlainCommand, TakesPlainValues
from weir.garbage import collect_first_after_many

if TYPE_CHECKING:
    from typer._click import Command, Context

COMMANDS = {
    "init": ("init", "Make a folder with a small program, its data, a test and a page about it."),
    "run": (
        "programs",
        "Run a program from its inputs to its outputs: a script, or an app's Python file.",
    ),
    "replay": (
        "replay",
        "Run an app's handlers over logs: the answer is that of a plain loop, event by event.",
    ),
    "explain": (
        "programs",
        "Show the plan: operators, stages, partitions, what each vertex keeps and for how long.",
    ),
    "schema": ("scripts", "Print the STREAM statement for a file: its columns, types and time."),
    "fmt": ("scripts", "Format scripts: the same meaning, the same comments."),
    "conform": ("conform", "Run programs with known answers and compare."),
    "verify": ("compare", "Compare two outputs, or two runs, by their digests."),
    "diff": (
        "compare",
        "Show the first event time at which two outputs differ, and the rows there.",
    ),
    "status": (
        "live",
        "Show the state of a live job: vertices, hosts, rates, lag and positions; or how it ended.",
    ),
    "story": (
        "live",
        "Show what happened to a vertex: placements, checkpoints, failures, recoveries.",
    ),
    "store": ("live", "Show what a live job keeps in its store, and why."),
    "read": ("live", "Read the committed rows of a live job's output, while it runs or later."),
    "ui": (
        "page",
        "Serve a page that shows a live job while it runs, or as it ended, until Ctrl-C.",
    ),
    "report": (
        "page",
        "Write a page that shows a live job as it is now: one HTML file that needs no network.",
    ),
    "simulate": (
        "simulate",
        "Run the live runtime's machines in simulated worlds where everything goes wrong.",
    ),
    "warm": (
        "warm",
        "Compile the loops that programs need, before they run.",
    ),
    "doctor": ("doctor", "Check that this machine has what Weir needs, and say what to do."),
    "completion": ("completion", "Print the script that lets a shell complete commands."),
}
"""The module of each command, and the first paragraph of its docstring, so that `--help` need not
import the modules."""


class Commands(TakesPlainValues, TyperGroup):
    """The group of all commands. Imports a command's module when it is called, and prints errors in
    the command line like other errors."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        for name, (_, line) in COMMANDS.items():  # the lines that lists of commands show
            self.add_command(TyperCommand(name, help=line))

    def resolve_command(
        self, ctx: Context, args: list[str]
    ) -> tuple[str | None, Command | None, list[str]]:
        name, command, rest = super().resolve_command(ctx, args)
        return name, command if command is None or name is None else load_command(name), rest

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        windows_expand_args: bool = True,
        **extra: object,
    ) -> NoReturn:
        words = sys.argv[1:] if args is None else args
        if COMPLETION in os.environ:  # a shell asks for completions
            completion_init()
        try:
            code = super().main(
                _plain_resume(words), prog_name, complete_var, False, windows_expand_args, **extra
            )
        except TyperException as error:
            code = _tell_usage(error)
        except typer.Abort:
            code = INTERRUPTED
        except NotRead:
            code = NOT_READ
        except KeyboardInterrupt as interrupt:
            word, code = ended_by(interrupt)
            say(f"weir: {word}", err=True)
        leave_stdout()
        sys.exit(code or DONE)


def _plain_resume(args: Sequence[str]) -> list[str]:
    """Replace a bare `--resume` by `--resume=yes`, so that the word after it is not its value."""
    return ["--resume=yes" if word == "--resume" else word for word in args]


def _tell_usage(error: TyperException) -> int:
    context = getattr(error, "ctx", None)
    hint = f"\n  see {context.command_path} --help" if context is not None else ""
    if message := error.format_message():  # no message: without a command, the help was shown
        message = message.replace(": Value error, ", ": ")  # a library's words, from an enum
        say(f"weir: error: {message}{hint}", err=True)
    return error.exit_code


app = typer.Typer(
    name="weir",
    cls=Commands,
    help="A reliable temporal stream engine: one program, one answer.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)


def _show_version(is_asked: bool) -> None:
    if is_asked:
        say(f"weir {__version__}")
        raise typer.Exit(DONE)


@app.callback()
def weir(
    version: Annotated[
        bool,
        typer.Option("--version", is_eager=True, callback=_show_version, help="The version."),
    ] = False,
) -> None:
    """A reliable temporal stream engine: one program, one answer."""


def load_command(name: str) -> TyperCommand:
    """Import a command's module, and make the command from its function."""
    module = import_module(f"weir.cli.{COMMANDS[name][0]}")
    alone = typer.Typer(
        add_completion=False, pretty_exceptions_enable=False, rich_markup_mode="rich"
    )
    alone.command(name, cls=PlainCommand)(getattr(module, name))
    command = get_command(alone)
    assert isinstance(command, TyperCommand)
    return command


def main() -> NoReturn:
    """Run the `weir` command."""
    collect_first_after_many()
    settle_process()
    try:
        try:
            app(prog_name="weir")
        except SystemExit as end:
            leave(end.code)
    except KeyboardInterrupt as interrupt:  # Ctrl-C again, while the first one was being reported
        leave(ended_by(interrupt)[1])
    leave(DONE)
