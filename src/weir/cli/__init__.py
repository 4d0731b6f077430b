"""The command line: `weir run`, `explain`, `conform`, `verify`, `diff`, `status`, `story`, `store`,
`read`, `simulate`.

Exit codes: 0 done; 1 the run failed, or what was compared differs; 2 the program or the command
line is wrong, nothing ran; 130 interrupted. Results go to stdout, everything else to stderr.
Heavy imports wait until a command needs them, so that `--help` answers at once.
"""

from __future__ import annotations

from typing import Annotated

import typer

from weir import __version__
from weir.cli.command_line import DONE, leave_threads
from weir.cli.compare import diff, verify
from weir.cli.conform import conform
from weir.cli.live import read, status, store, story
from weir.cli.programs import explain, run
from weir.cli.simulate import simulate

app = typer.Typer(
    name="weir",
    help="A reliable temporal stream engine: one program, one answer.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"weir {__version__}")
        raise typer.Exit(DONE)


@app.callback()
def weir(
    version: Annotated[
        bool,
        typer.Option("--version", is_eager=True, callback=_show_version, help="The version."),
    ] = False,
) -> None:
    """A reliable temporal stream engine: one program, one answer."""


for command in (run, explain, conform, verify, diff, status, story, store, read, simulate):
    app.command()(command)


def main() -> None:
    """The `weir` command."""
    try:
        app()
    except SystemExit as end:
        leave_threads(end.code)
        raise
