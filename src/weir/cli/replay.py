"""`weir replay` runs an app over its logs; `weir run` and `weir explain` take an app's file too."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import msgspec
import typer
from rich.console import Console
from rich.table import Table

from weir.cli.command_line import (
    MOST_ROWS,
    CheckOption,
    CutOption,
    DebugOption,
    MasterOption,
    RunJsonOption,
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
    told_warnings,
)
from weir.cli.progress import Meter
from weir.cli.tables import cell, show_table
from weir.wording import counted, in_one_line

if TYPE_CHECKING:
    from weir.handlers.api.app import App
    from weir.plan.program import Program
    from weir.replay.reports import ReplayReport


class ReplayRunnerName(StrEnum):
    local = "local"
    offline = "offline"


class EmittedFormat(StrEnum):
    parquet = "parquet"
    jsonl = "jsonl"


AppFile = Annotated[Path, typer.Argument(metavar="APP", help="The app's Python file.")]
AppNameOption = Annotated[
    str | None,
    typer.Option("--app", metavar="NAME", help="Which app, if the file makes several."),
]
LogOption = Annotated[
    list[str] | None,
    typer.Option("--log", metavar="NAME=PATH", help="The log of an event type; may be repeated."),
]
ShadowOption = Annotated[
    int | None,
    typer.Option(
        min=0,
        max=MOST_ROWS,
        metavar="N",
        help="For an app: how many first events to compare with a plain serial loop; 0: none. "
        "\\[default: 1000, and no more than a second]",
    ),
]
FormatOption = Annotated[
    EmittedFormat, typer.Option("--format", help="The format of what is emitted.")
]


def replay(
    app: AppFile,
    out: Annotated[
        Path,
        typer.Option("--out", metavar="DIR", help="The folder for what is emitted: DIR/NAME.…"),
    ],
    log: LogOption = None,
    form: FormatOption = EmittedFormat.parquet,
    runner: Annotated[
        ReplayRunnerName,
        typer.Option(help="Where it runs: `local` is this process, `offline` a Spark job."),
    ] = ReplayRunnerName.local,
    master: MasterOption = None,
    setting: SettingOption = None,
    since: Annotated[
        str | None,
        typer.Option("--from", metavar="T", help="Only events from this time on: ticks, ISO 8601."),
    ] = None,
    until: Annotated[
        str | None, typer.Option("--to", metavar="T", help="Only events before this time.")
    ] = None,
    batch: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=MOST_ROWS,
            help="Events in a batch, of all logs together. \\[default: 1 GB of the logs]",
        ),
    ] = None,
    state_in: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Start from the state that was saved there.")
    ] = None,
    state_out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Save the final state there.")
    ] = None,
    param: Annotated[
        list[str] | None,
        typer.Option(
            "--param",
            metavar="NAME=VALUE[,…]",
            help="A parameter's value; several values make variants, each in a folder of its own.",
        ),
    ] = None,
    parallelism: RunParallelismOption = None,
    cut: CutOption = None,
    check: CheckOption = False,
    shadow: ShadowOption = None,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Discard DIR/.replay, and start over.")
    ] = False,
    anew: Annotated[bool, typer.Option("--anew", hidden=True)] = False,
    name: AppNameOption = None,
    strict: StrictOption = False,
    as_json: RunJsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Run an app's handlers over logs: the answer is that of a plain loop, event by event.

    Example: [bold]weir replay spam.py --log message=m.jsonl --log friendship=f.jsonl --out
    spam[/bold]

    Prints the path, the number of rows and the digest of each output. To continue a replay that was
    killed, run the same command again.
    """
    with (
        clean_errors(debug, lost="; the same command goes on with what is finished"),
        told_warnings(strict=strict) as warned,
    ):
        if anew:
            warnings.warn("--anew is deprecated; use --fresh", FutureWarning, stacklevel=1)
        if runner is ReplayRunnerName.local and (master is not None or setting):
            raise Usage("--master and --conf belong to --runner offline")
        loaded = read_app(app, name)
        from weir.replay.app_logs import parse_log
        from weir.replay.app_replay import replay_app
        from weir.runtime.process import keep_freed_memory

        keep_freed_memory()
        meter = Meter(Console(stderr=True), in_time=_in_time(loaded), as_json=as_json)
        with meter, prints_aside():
            report = replay_app(
                loaded,
                logs=dict(map(parse_log, log or ())),
                out=out,
                format=form.value,
                runner=runner.value,
                start=since,
                end=until,
                batch=batch,
                state_in=state_in,
                state_out=state_out,
                params=several(param),
                parallelism=parallelism,
                cut=cut,
                check=check,
                shadow=shadow,
                fresh=fresh or anew,
                progress=meter.take,
                master=master,
                settings=pairs(setting, "--conf"),
            )
        _print_replay(report, meter.elapsed, state_out, warned, as_json)


def explain_app(
    path: Path,
    name: str | None,
    params: Sequence[str] | None,
    settings_text: Sequence[str] | None,
    parallelism: int,
    form: Literal["text", "dot", "json"],
) -> None:
    """Show what an app's handlers do with its states, and the resulting plan."""
    from weir.plan.explain.explanation import explain as shown
    from weir.plan.settings import with_settings
    from weir.replay.app_programs import how_it_runs
    from weir.runtime.program_plan import plan_program

    program = program_of_app(path, name, None, params, None, "parquet")
    planned = plan_program(with_settings(program, pairs(settings_text, "--set")), parallelism)
    text = shown(planned.program, planned.stages, form).rstrip("\n")
    if form != "text":
        put(f"{text}\n")
        return
    say(how_it_runs(read_app(path, name), single_values(params)))
    say(text)


# --- apps ------------------------------------------------------------------------------------


def is_app(path: Path) -> bool:
    """Tell whether a program's file is a Python file of an app."""
    return path.suffix == ".py"


def read_app(path: Path, name: str | None) -> App:
    """Run an app's file, and return the app."""
    from weir.handlers.api.app_file import load_app

    with prints_aside(), told_warnings():
        return load_app(path, name)


def several(arguments: Sequence[str] | None) -> dict[str, list[str]]:
    """Return the values of each parameter, from lists with commas and from repeated options."""
    from weir.replay.variants import split_values

    texts: dict[str, list[str]] = {}
    for text in arguments or ():
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise Usage(f"--param takes NAME=VALUE, not {text!r}")
        texts.setdefault(name, []).append(value)
    return {name: split_values(values) for name, values in texts.items()}


def program_of_app(
    path: Path,
    name: str | None,
    logs: Sequence[str] | None,
    params: Sequence[str] | None,
    out: str | None,
    form: str,
) -> Program:
    """Return an app as a program for any runner, which writes what it emits to files in `out`."""
    from weir.replay.app_logs import parse_log
    from weir.replay.app_programs import app_program

    loaded = read_app(path, name)
    with told_warnings():
        return app_program(
            loaded,
            logs=dict(map(parse_log, logs or ())),
            out=out,
            format=form,
            params=single_values(params),
        )


def single_values(arguments: Sequence[str] | None) -> dict[str, object]:
    """Return the values of parameters that may have only one value each."""
    value_of: dict[str, object] = {}
    for name, values in several(arguments).items():
        if len(values) > 1:
            raise Usage(f"--param {name} has several values here; weir replay compares variants")
        value_of[name] = values[0]
    return value_of


def _in_time(app: App) -> bool:
    from weir.events.types import TIMESTAMP

    return all(event.schema.time == TIMESTAMP for event in app.event_types.values())


# --- what is printed -------------------------------------------------------------------------


def _print_replay(
    report: ReplayReport,
    seconds: float,
    state_out: Path | None,
    warned: Sequence[str],
    as_json: bool,
) -> None:
    if as_json:
        more = {"seconds": round(seconds, 3), "warnings": list(warned)}
        put_json({**msgspec.to_builtins(report), **more})
        return
    if len(report.variants) > 1:
        _print_variants(report)
    else:
        for output in report.outputs:
            where = in_one_line(f"{output.name} -> {output.path}")
            say(f"{where}: {counted(output.rows, 'row')}, digest {output.digest}")
    for source in report.inputs:
        if source.late or source.bad:
            say(f"{in_one_line(source.name)}: {source.late:,} late, {source.bad:,} bad")
    if state_out is not None:
        say(in_one_line(f"state -> {state_out}"))
    if report.again:
        say("weir: this replay had finished already: nothing was run (--fresh runs it)", err=True)
        return
    if report.redone:
        why = f"weir: this replay had finished, and was run again: {report.redone}"
        say(in_one_line(why), err=True)
    summary = f"{counted(report.events, 'event')} in {seconds:.1f} s"
    if report.batches > 1:
        summary += f", {report.batches:,} batches"
    if report.first is not None and report.last is not None:
        faster = (report.last - report.first) / 1e6 / max(seconds, 1e-9)
        summary += f", {faster:,.1f} × real time" if faster >= 0.1 else ""
    say(summary, err=True)
    if report.in_rows:
        names = ", ".join(map(in_one_line, report.in_rows))
        say(f"row by row: {names} (weir explain says why)", err=True)
    if report.shadow:
        first = "all" if report.shadow == report.events else "the first"
        agree = "agrees" if report.shadow == 1 else "agree"
        say(f"{first} {counted(report.shadow, 'event')} {agree} with the serial loop", err=True)


def _print_variants(report: ReplayReport) -> None:
    names = report.emitted_names
    table = Table("variant", box=None)
    for name in names:
        table.add_column(cell(name), justify="right")
        table.add_column("new", justify="right")
        table.add_column("gone", justify="right")
        table.add_column("digest")
    for variant in report.variants:
        cells = [variant.label]
        for output in (report.beside_first(variant, name) for name in names):
            changes = (f"+{output.only_here or 0:,}", f"-{output.only_first or 0:,}")
            cells += [f"{output.rows:,}", *changes, output.digest or "not emitted"]
        table.add_row(*map(cell, cells))
    show_table(table, whole=True)
    if report.page is not None:
        say(in_one_line(f"side by side -> {report.page}"))
