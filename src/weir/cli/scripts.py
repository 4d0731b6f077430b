"""`weir schema` writes STREAM statements from files, `weir fmt` formats scripts."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from weir.cli.command_line import (
    DONE,
    FAILED,
    DebugOption,
    JsonOption,
    Usage,
    clean_errors,
    put,
    put_json,
    say,
)


def schema(
    files: Annotated[
        list[str], typer.Argument(metavar="FILE…", help="Files, patterns in quotes, or folders.")
    ],
    as_json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Print the STREAM statement for a file: its columns, types and time.

    Example: [bold]weir schema orders.csv >> program.weir[/bold]

    Parquet and Arrow files declare their types. For text files, compressed or not, the types are
    guessed from the first 10,000 rows. Comments say what was guessed.
    """
    with clean_errors(debug):
        from weir.files.stream_inference import inferred_stream

        streams = [inferred_stream(file) for file in files]
        if as_json:
            put_json([f.as_json() for f in streams])
        else:
            put("\n".join(f.text() for f in streams))


def fmt(
    files: Annotated[
        list[str], typer.Argument(metavar="PROGRAM…", help="Scripts; `-` is stdin, to stdout.")
    ],
    check: Annotated[
        bool, typer.Option("--check", help="Change nothing; fail where a script would change.")
    ] = False,
    debug: DebugOption = False,
) -> None:
    """Format scripts: the same meaning, the same comments.

    Example: [bold]weir fmt --check *.weir[/bold]

    Prints the names of the scripts that were changed or, with --check, would be.
    """
    with clean_errors(debug):
        from weir.errors import ScriptError
        from weir.script.formatter import format_program

        changed = False
        for file in files:
            text = script_text(Path(file))
            try:
                formatted = format_program(text)
            except ScriptError as error:
                raise ScriptError(
                    error.message,
                    line=error.line,
                    column=error.column,
                    source=text,
                    hint=error.hint,
                    file=file,
                ) from None
            if file == "-" and not check:
                put(formatted)
            elif formatted != text:
                changed = True
                say(file)
                if not check:
                    Path(file).write_text(formatted, encoding="utf-8")
        raise typer.Exit(FAILED if check and changed else DONE)


def script_text(path: Path) -> str:
    """Return the text of a script; `-` is stdin."""
    from weir.errors import PlanError
    from weir.runtime.programs import decoded, read_text

    if str(path) == "-" and sys.stdin is None:
        raise Usage("cannot read the program -: stdin is closed")
    try:
        return decoded(sys.stdin.buffer.read(), "-") if str(path) == "-" else read_text(path)
    except PlanError as error:
        raise Usage(str(error)) from error
