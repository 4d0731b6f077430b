"""`weir verify` and `weir diff` compare outputs, or runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import Annotated

import typer
from rich.console import Console

from weir.cli.command_line import (
    DONE,
    FAILED,
    DebugOption,
    JsonOption,
    Usage,
    clean_errors,
    put_json,
    say,
)
from weir.errors import InputError


def verify(
    a: Annotated[str, typer.Argument(metavar="A", help="An output, or a run (a .json file).")],
    b: Annotated[
        str | None,
        typer.Argument(metavar="[B]", help="Another one. \\[default: the digest that A carries]"),
    ] = None,
    full: Annotated[
        bool, typer.Option("--full", help="Compare the rows of two outputs, not their digests.")
    ] = False,
    as_json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Compare two outputs, or two runs, by their digests.

    Example: [bold]weir verify out/counts.parquet other/counts.csv[/bold]

    Outputs may have any format. A run is the output of `weir run --json`. Digests detect accidents;
    if somebody may have crafted the rows, compare them with `--full`. Exit code 1 if A and B
    differ, or if the rows of an output do not match its digest file.
    """
    with clean_errors(debug), _reading() as tell:
        from weir.conform import verify as comparing

        verdicts = comparing.verify([a] if b is None else [a, b], tell, full=full)
    with clean_errors(debug):
        equal = all(v.status == "equal" for v in verdicts)
        if as_json:
            put_json({"equal": equal, "verdicts": [asdict(v) for v in verdicts]})
        else:
            say("\n".join(map(str, verdicts)))
    raise typer.Exit(DONE if equal else FAILED)


def diff(
    a: Annotated[str, typer.Argument(metavar="A", help="An output: a file or a folder.")],
    b: Annotated[str, typer.Argument(metavar="B", help="Another.")],
    as_json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Show the first event time at which two outputs differ, and the rows there.

    Example: [bold]weir diff out/counts.parquet other/counts.csv[/bold]

    Rows that only A has begin with `-`, rows that only B has with `+`. Exit code 1 if they differ.
    """
    with clean_errors(debug), _reading() as tell:
        from weir.conform import verify as comparing

        differences = comparing.diff(a, b, tell)
    with clean_errors(debug):
        if as_json:
            put_json({"equal": differences.equal, **asdict(differences)})
        else:
            say(str(differences))
    raise typer.Exit(DONE if differences.equal else FAILED)


@contextmanager
def _reading() -> Iterator[Callable[[int], None]]:
    """Count the rows read, on a terminal. An output that cannot be read is a usage error."""
    total = 0
    try:
        with Console(stderr=True).status("") as status:

            def tell(rows: int) -> None:
                nonlocal total
                total += rows
                status.update(f"{total:,} rows read")

            yield tell
    except (InputError, OSError) as error:
        raise Usage(str(error)) from error
