"""The command line has `weir run`, `replay`, `explain`, `conform`, `verify`, `diff`, `status`,
`story`, `store`, `read`, `report`, `simulate` and `warm`.

Exit codes: 0 done; 1 the run failed, or what was compared differs; 2 the program or the command
line is wrong, nothing ran; 130 interrupted, 143 terminated; 141 nobody reads stdout any more.
Results go to stdout, everything else to stderr. Heavy imports wait until a command needs them, so
that `--help` answers at once.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Annotated, NoReturn

import typer
from typer.core import TyperGroup
from typer.exceptions import TyperException

from weir import __version__
from weir.cli.command_line import (
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
from weir.cli.compare import diff, verify
from weir.cli.conform import conform
from weir.cli.live import read, status, store, story
from weir.cli.page import report
from weir.cli.programs import explain, run
from weir.cli.replay import replay
from weir.cli.simulate import simulate
from weir.cli.warm import warm


class Commands(TyperGroup):
    """Holds all commands. What is wrong with a command line is told as other errors are."""

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        windows_expand_args: bool = True,
        **extra: object,
    ) -> NoReturn:
        given = sys.argv[1:] if args is None else args
        try:
            code = super().main(
                _plain_resume(given), prog_name, complete_var, False, windows_expand_args, **extra
            )  # fmt: skip
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
    """Give `--resume` the value that it has without one: what follows it is never its value."""
    return ["--resume=yes" if word == "--resume" else word for word in args]


def _tell_usage(error: TyperException) -> int:
    context = getattr(error, "ctx", None)
    hint = f"\n  see {context.command_path} --help" if context is not None else ""
    if message := error.format_message():  # without a command, the help was shown instead
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


def _show_version(wanted: bool) -> None:
    if wanted:
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


COMMANDS = (
    run, replay, explain, conform, verify, diff, status, story, store, read, report, simulate, warm,
)  # fmt: skip
for command in COMMANDS:
    app.command()(command)


def main() -> NoReturn:
    """Run the `weir` command."""
    settle_process()
    try:
        try:
            app(prog_name="weir")
        except SystemExit as end:
            leave(end.code)
    except KeyboardInterrupt as interrupt:  # one more, while the one before was told
        leave(ended_by(interrupt)[1])
    leave(DONE)
