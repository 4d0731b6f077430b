"""`weir warm` compiles loops in advance."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from weir.cli.command_line import (
    DebugOption,
    JsonOption,
    Usage,
    clean_errors,
    put_json,
    say,
    told_warnings,
)
from weir.cli.programs import ParamOption, read_program
from weir.cli.replay import AppNameOption, is_app, read_app, single_values
from weir.wording import counted, in_one_line

if TYPE_CHECKING:
    from weir.loops.loop import Loop
    from weir.plan.program import Program


def warm(
    program: Annotated[
        Path | None,
        typer.Argument(metavar="[PROGRAM]", help="Only what this script or app needs."),
    ] = None,
    param: ParamOption = None,
    name: AppNameOption = None,
    spark: Annotated[
        bool,
        typer.Option(
            "--spark", help="Instead, store Spark's loaded classes, so that its JVM starts faster."
        ),
    ] = False,
    as_json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Compile the loops that programs need, before they run.

    Example: [bold]WEIR_CACHE=/opt/weir/loops weir warm[/bold]

    The program's operators determine which loops it needs. Nothing but the cache is read or
    written, and none of the user's functions are called.
    """
    with clean_errors(debug):
        if spark:
            if program is not None:
                raise Usage("--spark takes no program: it is for all of them")
            _keep_classes(as_json)
            return
        from weir.loops.code_cache import code_folder
        from weir.loops.parallel_compilation import compile_together, missing_loops

        began = time.monotonic()
        missing = missing_loops(_loops_of(program, param, name))
        if missing and not as_json:
            say(f"weir: compiling {counted(len(missing), 'loop')}", err=True)
        compile_together(missing)
        compiled, seconds, folder = len(missing), time.monotonic() - began, code_folder()
        if as_json:
            where = None if folder is None else str(folder)
            put_json({"compiled": compiled, "seconds": round(seconds, 3), "folder": where})
            return
        where = "which no folder keeps" if folder is None else f"in {in_one_line(str(folder))}"
        if compiled:
            say(f"{compiled} loops compiled in {seconds:.1f} s, {where}")
        else:
            say(f"nothing to do: all loops are compiled, {where}")


def _loops_of(path: Path | None, params: Sequence[str] | None, name: str | None) -> list[Loop]:
    """Return the loops that a program needs; without a program, all loops."""
    from weir.runtime.loop_needs import all_loops, needed_loops

    if path is None:
        return all_loops()
    programs = warmed_programs(path, params, name)
    needed = (loop for each in programs for loop in needed_loops(each, complete=True))
    return list(dict.fromkeys(needed))


def warmed_programs(
    path: Path, params: Sequence[str] | None, name: str | None
) -> Sequence[Program]:
    """Return the program of a script, or both programs of an app: without and with its final
    states."""
    if not is_app(path):
        if name is not None:
            raise Usage("--app belongs to an app's .py file")
        with told_warnings():
            return [read_program(path, params)]
    from weir.replay.app_programs import programs_of_runs

    loaded = read_app(path, name)
    with told_warnings():
        return programs_of_runs(loaded, single_values(params))


def _keep_classes(as_json: bool) -> None:
    from weir.spark.class_archive import make_archive

    began = time.monotonic()
    path = make_archive()
    seconds = time.monotonic() - began
    if as_json:
        put_json({"archive": str(path), "seconds": round(seconds, 3)})
    else:
        say(f"Spark's classes kept in {seconds:.1f} s, in {in_one_line(str(path))}")
