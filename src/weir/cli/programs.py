"""`weir run` and `weir explain`: commands that take a program's file."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from weir.cli.command_line import (
    MOST_ROWS,
    MOST_VERTICES,
    CheckOption,
    CutOption,
    DebugOption,
    MasterOption,
    ParallelismOption,
    RunJsonOption,
    RunnerName,
    RunnerOption,
    RunParallelismOption,
    SettingOption,
    StrictOption,
    Usage,
    clean_errors,
    pairs,
    prints_aside,
    put,
    put_json,
    say,
    spark_settings,
    told_warnings,
)
from weir.cli.console import first_values, show_first
from weir.cli.progress import Meter
from weir.cli.replay import (
    AppNameOption,
    EmittedFormat,
    LogOption,
    ShadowOption,
    explain_app,
    is_app,
    program_of_app,
    read_app,
)
from weir.cli.scripts import script_text
from weir.wording import counted, in_one_line

if TYPE_CHECKING:
    from weir.local.file_run import FirstRows
    from weir.plan.program import Program
    from weir.runtime.reports import RunReport


DEFAULT_LIMIT = 20
"""The number of rows of an output that are printed without --limit."""


class Form(StrEnum):
    text = "text"
    dot = "dot"
    json = "json"


class ResumeMode(StrEnum):
    yes = "yes"
    auto = "auto"


ProgramFile = Annotated[
    Path, typer.Argument(metavar="PROGRAM", help="The program's file; `-` is a script on stdin.")
]
ParamOption = Annotated[
    list[str] | None,
    typer.Option("--param", metavar="NAME=VALUE", help="Override a DECLARE; may be repeated."),
]

SetOption = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="NAME=VALUE", help="Override a SET; may be repeated."),
]


def run(
    program: ProgramFile,
    runner: RunnerOption = RunnerName.local,
    master: MasterOption = None,
    setting: SettingOption = None,
    parallelism: RunParallelismOption = None,
    cut: CutOption = None,
    param: ParamOption = None,
    settings_text: SetOption = None,
    log: LogOption = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="DIR", help="For an app: the folder for its emitted rows."),
    ] = None,
    form: Annotated[
        EmittedFormat | None,
        typer.Option(
            "--format", help="For an app: the format of its emitted rows. \\[default: parquet]"
        ),
    ] = None,
    name: AppNameOption = None,
    store: Annotated[
        str | None, typer.Option(metavar="DIR", help="Where a live run keeps its state.")
    ] = None,
    resume: Annotated[
        ResumeMode | None,
        typer.Option(
            metavar="[=auto]",
            help="Resume the live job in the store; with `=auto`, start it if there is none.",
        ),
    ] = None,
    accept_code_changes: Annotated[
        bool,
        typer.Option("--accept-code-changes", help="Resume even if IMPORTed code has changed."),
    ] = False,
    hosts: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=MOST_VERTICES,
            help="Spark tasks that host a live run's vertices. \\[default: 2]",
        ),
    ] = None,
    tls_cert: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Encrypt a live run's channels: its certificate (PEM)."),
    ] = None,
    tls_key: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The certificate's key (PEM).")
    ] = None,
    tls_ca: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="The authority that signed it (PEM). \\[default: self-signed]"
        ),
    ] = None,
    grace: Annotated[
        str | None,
        typer.Option(
            metavar="DURATION",
            help="How long a live run that is stopped may take for its last checkpoint. "
            "\\[default: 10s]",
        ),
    ] = None,
    page: Annotated[
        bool, typer.Option("--ui", help="Serve a page that shows a live run; see `weir ui`.")
    ] = False,
    metrics: Annotated[
        str | None,
        typer.Option(
            metavar="[HOST:]PORT",
            help="Serve a live run's figures for Prometheus. \\[default host: 127.0.0.1]",
        ),
    ] = None,
    directory: Annotated[
        Path, typer.Option(help="Where relative paths of STREAM and OUTPUT start.")
    ] = Path(),
    check: CheckOption = False,
    shadow: ShadowOption = None,
    limit: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=MOST_ROWS,
            help="For a local run: print the first N rows of every output. \\[default: 20 of those "
            "TO 'console:', and of a program without OUTPUT]",
        ),
    ] = None,
    strict: StrictOption = False,
    as_json: RunJsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Run a program from its inputs to its outputs: a script, or an app's Python file.

    Example: [bold]weir run counts.weir --param threshold=0.95 --parallelism 4[/bold]

    Prints the path, the number of rows and the digest of every output. Runs that agree have equal
    digests and byte-identical files. If the program has no OUTPUT and runs in this process, its
    streams are printed as tables.
    """
    with (
        clean_errors(debug, lost="; no output was written"),
        told_warnings(strict=strict) as warned,
    ):
        settings = spark_settings(runner, master=master, setting=setting)
        if runner is RunnerName.live and store is None:
            raise Usage("--runner live needs --store DIR, where it keeps its state")
        live_only = {
            "--store": store,
            "--resume": resume,
            "--hosts": hosts,
            "--grace": grace,
            "--tls-cert": tls_cert,
            "--tls-key": tls_key,
            "--tls-ca": tls_ca,
            "--set": settings_text,
            "--ui": page or None,
            "--metrics": metrics,
        }
        for option, value in live_only.items():
            if value is not None and runner is not RunnerName.live:
                raise Usage(f"{option} belongs to --runner live")
        if accept_code_changes and resume is None:
            raise Usage("--accept-code-changes belongs to --resume")
        if (tls_cert is None) != (tls_key is None) or (tls_ca and tls_cert is None):
            raise Usage("TLS needs both --tls-cert and --tls-key")
        if limit is not None and runner is not RunnerName.local:
            raise Usage("--limit belongs to --runner local; read a job's rows with weir read")
        if shadow is not None and not is_app(program):
            raise Usage("--shadow belongs to an app's .py file")
        checked = _read_any(program, param, settings_text, log, out, form, name)
        first = None
        if runner is RunnerName.local:
            from weir.runtime.process import keep_freed_memory, leave_pandas_out

            keep_freed_memory()
            if not is_app(program) and not checked.code:
                leave_pandas_out()  # before the first array is created
            checked = _with_outputs(checked, "console:")
            first = _printed(checked, limit)
        meter = Meter(Console(stderr=True), in_time=_is_calendar(checked), as_json=as_json)
        if checked.app is not None and runner is not RunnerName.live:
            with prints_aside():
                _compare_app(checked, shadow, directory)
        if runner is RunnerName.local:
            from weir.local.file_run import run_files
            from weir.local.precompilation import compile_ahead

            with meter, prints_aside():
                compile_ahead(checked, meter.compiling)
                report = run_files(
                    checked,
                    directory=directory,
                    cut=cut,
                    parallelism=parallelism or 1,
                    check=check,
                    progress=meter.take,
                    first=first,
                )
        elif runner is RunnerName.live:
            from weir.cli.live import run_to_end

            assert store is not None
            report = run_to_end(
                checked,
                store,
                meter,
                master=master,
                settings=settings,
                directory=directory,
                cut=cut,
                parallelism=parallelism,
                hosts=hosts,
                resume="auto" if resume is ResumeMode.auto else resume is not None,
                accept_code_changes=accept_code_changes,
                grace=grace,
                check=check,
                shadow=shadow,
                tls=None if tls_cert is None or tls_key is None else (tls_cert, tls_key, tls_ca),
                page=page,
                metrics=metrics,
            )
        else:
            from weir.spark.offline.run_offline import run_offline
            from weir.spark.session import session

            with session(master, settings) as spark, meter:
                report = run_offline(
                    checked,
                    spark,
                    directory=directory,
                    cut=cut,
                    parallelism=parallelism,
                    check=check,
                    progress=meter.take,
                )
        if first is not None and not as_json:
            show_first(checked.outputs, report, first, everything=limit is not None)
        more = {} if first is None else first_values(checked.outputs, first)
        _print_report(report, meter.elapsed, warned, as_json, more)


def explain(
    program: ProgramFile,
    form: Annotated[Form, typer.Option("--format", help="How to show it.")] = Form.text,
    parallelism: ParallelismOption = 1,
    param: ParamOption = None,
    settings_text: SetOption = None,
    name: AppNameOption = None,
    strict: StrictOption = False,
    as_json: Annotated[bool, typer.Option("--json", help="The same as --format json.")] = False,
    debug: DebugOption = False,
) -> None:
    """Show the plan: operators, stages, partitions, what each vertex keeps and for how long.

    Example: [bold]weir explain counts.weir --format dot | dot -Tsvg > plan.svg[/bold]
    """
    with clean_errors(debug), told_warnings(strict=strict):
        sys.dont_write_bytecode = True  # explain writes no files next to the user's code
        from weir.plan.explain.explanation import explain as shown
        from weir.runtime.program_plan import plan_program

        chosen = Form.json if as_json else form
        if is_app(program):
            explain_app(program, name, param, settings_text, parallelism, chosen.value)
            return
        if name is not None:
            raise Usage("--app belongs to an app's .py file")
        planned = plan_program(
            _with_outputs(read_program(program, param, settings_text)), parallelism
        )
        text = shown(planned.program, planned.stages, chosen.value).rstrip("\n")
        say(text) if chosen is Form.text else put(f"{text}\n")


def _compare_app(program: Program, events: int | None, directory: Path) -> None:
    """Before the run, compare an app with the serial loop over the first events of its logs."""
    from weir.ingress.connectors.registry import has_end, open_any
    from weir.runtime.partitions import start_of
    from weir.shadow.app_shadow import app_shadow

    shadow = app_shadow(program, events)
    if shadow is not None:
        start = start_of(directory)
        opened = {source.name: open_any(source, start) for source in program.sources}
        if all(has_end(part) for parts in opened.values() for part in parts):  # else rejected later
            shadow.compare(opened)


# --- the program ------------------------------------------------------------------------------


def read_program(
    path: Path, params_text: Sequence[str] | None, settings_text: Sequence[str] | None = None
) -> Program:
    """Parse and check a program."""
    from weir.plan.settings import with_settings
    from weir.script.program import parse_program

    params, settings = pairs(params_text, "--param"), pairs(settings_text, "--set")
    source = script_text(path)
    with prints_aside():  # IMPORT runs the user's code
        program = parse_program(source, params=params, directory=path.parent, name=str(path))
    return with_settings(program, settings)


def _read_any(
    path: Path,
    params: Sequence[str] | None,
    settings_text: Sequence[str] | None,
    logs: Sequence[str] | None,
    out: Path | None,
    form: EmittedFormat | None,
    name: str | None,
) -> Program:
    """Read a script or an app's file, and return the program."""
    from weir.plan.settings import with_settings

    if is_app(path):
        if out is None:
            read_app(path, name)  # raises, with a hint, for a Python program without an app
            raise Usage("an app needs --out DIR, the folder for what it emits")
        written = (form or EmittedFormat.parquet).value
        program = program_of_app(path, name, logs, params, str(out), written)
        return with_settings(program, pairs(settings_text, "--set"))
    app_only = {"--log": logs, "--out": out, "--format": form, "--app": name}
    for option, value in app_only.items():
        if value is not None:
            raise Usage(f"{option} belongs to an app's .py file; a script sets this itself")
    return read_program(path, params, settings_text)


def _with_outputs(program: Program, path: str = "-") -> Program:
    """Return the program with outputs: without any OUTPUT, every stream that no other stream reads
    is one."""
    from weir.plan.program import Output
    from weir.plan.traversal import ordered_nodes

    if program.outputs:
        return program
    read = {below for _, node in program.streams for below in ordered_nodes(node.inputs)}
    ends = [(name, node) for name, node in program.streams if node not in read]
    ends = ends or [(source.name, source) for source in program.sources]
    return replace(program, outputs=tuple(Output(name, node, path) for name, node in ends))


def _printed(program: Program, limit: int | None) -> FirstRows | None:
    """Return the collector of the rows to print; None if none are printed."""
    from weir.local.file_run import FirstRows
    from weir.plan.program import CONSOLE

    if limit is None and all(o.path != CONSOLE for o in program.outputs):
        return None
    return FirstRows(program.outputs, DEFAULT_LIMIT if limit is None else limit)


def _is_calendar(program: Program) -> bool:
    from weir.events.types import TIMESTAMP
    from weir.plan.operators import schema

    return all(schema(source).time == TIMESTAMP for source in program.sources)


# --- what is printed -------------------------------------------------------------------------


def _print_report(
    report: RunReport,
    seconds: float,
    warned: Sequence[str],
    as_json: bool,
    more: Mapping[str, object],
) -> None:
    if as_json:
        printed = {**asdict(report), "seconds": round(seconds, 3), "warnings": list(warned)}
        put_json({**printed, "first": more} if more else printed)
        return
    for output in report.outputs:
        if output.path == "console:":
            continue  # its rows were printed already
        where = in_one_line(f"{output.title} -> {output.path}")
        say(f"{where}: {counted(output.rows, 'row')}, digest {output.digest}")
    for source in report.inputs:
        if source.late or source.bad:
            say(f"{in_one_line(source.name)}: {source.late:,} late, {source.bad:,} bad")
    if report.inputs:  # empty if a live job had finished before
        say(f"{counted(report.events, 'event')} in {seconds:.1f} s", err=True)
