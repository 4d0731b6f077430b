"""`weir warm` compiles loops before anything runs."""

from __future__ import annotations

import time
import warnings
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
from weir.cli.progress import counting
from weir.cli.replay import AppNameOption, is_app, read_app, single_values
from weir.wording import in_one_line

if TYPE_CHECKING:
    from weir.plan.program import Program

FUNCTIONS = """
STREAM A (vs BIGINT, k STRING) FROM 'a.jsonl';
Out = SELECT xxhash64(k) AS h, split(k, '1') AS s, split(k, '12') AS t, contains(k, '12') AS c
  FROM A;
OUTPUT Out TO 'out.jsonl';
"""
"""The functions that are loops."""


def warm(
    program: Annotated[
        Path | None,
        typer.Argument(metavar="[PROGRAM]", help="Only what this script or app needs."),
    ] = None,
    param: ParamOption = None,
    name: AppNameOption = None,
    spark: Annotated[
        bool,
        typer.Option("--spark", help="Instead keep Spark's classes, so that its JVM starts fast."),
    ] = False,
    as_json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Compile the loops that programs need, so that none is compiled when they run.

    Example: [bold]WEIR_CACHE=/opt/weir/loops weir warm[/bold]

    Made-up rows go through the program's operators, or through all operators. Only the
    cache is read and written, and none of the user's functions is called.
    """
    with clean_errors(debug):
        if spark:
            if program is not None:
                raise Usage("--spark takes no program: it is for all of them")
            _keep_classes(as_json)
            return
        from weir.local.rehearsal import rehearsed
        from weir.loops.code_cache import code_folder, count_compiled, packed

        began = time.monotonic()
        programs = _all_programs() if program is None else warmed_programs(program, param, name)
        with counting(f"of {len(programs)} programs rehearsed", quiet=as_json) as progress:
            for number, each in enumerate(programs):
                progress(number)
                rehearsal = rehearsed(each)
                for error in rehearsal.errors:
                    say(
                        f"weir: warning: not all loops compiled: {in_one_line(error)}",
                        err=True,
                    )
                packed(rehearsal.needs)
        compiled, seconds, folder = count_compiled(), time.monotonic() - began, code_folder()
        if as_json:
            where = None if folder is None else str(folder)
            put_json({"compiled": compiled, "seconds": round(seconds, 3), "folder": where})
            return
        where = "which no folder keeps" if folder is None else f"in {in_one_line(str(folder))}"
        if compiled:
            say(f"{compiled} loops compiled in {seconds:.1f} s, {where}")
        else:
            say(f"nothing to do: all loops are compiled, {where}")


def warmed_programs(
    path: Path, params: Sequence[str] | None, name: str | None
) -> Sequence[Program]:
    """Return the program of a script, or those of an app: without and with its final states."""
    if not is_app(path):
        if name is not None:
            raise Usage("--app belongs to an app's .py file")
        with told_warnings():
            return [read_program(path, params)]
    from weir.replay.app_programs import rehearsed_programs

    loaded = read_app(path, name)
    with told_warnings():
        return rehearsed_programs(loaded, single_values(params))


def _keep_classes(as_json: bool) -> None:
    from weir.spark.class_archive import make_archive

    began = time.monotonic()
    path = make_archive()
    seconds = time.monotonic() - began
    if as_json:
        put_json({"archive": str(path), "seconds": round(seconds, 3)})
    else:
        say(f"Spark's classes kept in {seconds:.1f} s, in {in_one_line(str(path))}")


def _all_programs() -> Sequence[Program]:
    """Make programs with every operator and every function that is a loop."""
    from weir.script.program import parse_program
    from weir.simulator.workloads import make_workload, workload_names

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        functions = parse_program(FUNCTIONS)
    return [*(make_workload(name, 0).program for name in workload_names()), functions]
