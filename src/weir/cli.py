"""The command line: `weir run`, `weir explain`, `weir conform`, `weir verify`, `weir diff`.

Exit codes: 0 done; 1 the run failed, or what was compared differs; 2 the program or the command
line is wrong, nothing ran; 130 interrupted. Results go to stdout, everything else to stderr.
Heavy imports wait until a command needs them, so that `--help` answers at once.
"""

from __future__ import annotations

import json
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.progress import track

from weir import __version__
from weir.cli_simulate import simulate
from weir.errors import InputError, PlanError, ScriptError, WeirError
from weir.progress import Meter

if TYPE_CHECKING:
    from weir.job.status import JobStatus
    from weir.local.conform import Case, Verdict
    from weir.local.files import RunReport
    from weir.plan.nodes import Program

DONE, FAILED, WRONG, INTERRUPTED = 0, 1, 2, 130

app = typer.Typer(
    name="weir",
    help="A reliable temporal stream engine: one program, one answer.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)


app.command()(simulate)


class Runner(StrEnum):
    local = "local"
    offline = "offline"
    live = "live"


class Form(StrEnum):
    text = "text"
    dot = "dot"
    json = "json"


ProgramFile = Annotated[Path, typer.Argument(metavar="PROGRAM", help="The program's file.")]
RunnerOption = Annotated[
    Runner, typer.Option(help="Where it runs: `local` is this process, `offline` a Spark job.")
]
MasterOption = Annotated[
    str | None,
    typer.Option(metavar="URL", help="Spark's master. \\[default: all cores of this machine]"),
]
SettingOption = Annotated[
    list[str] | None,
    typer.Option("--conf", metavar="NAME=VALUE", help="A setting of Spark; may be repeated."),
]
ParallelismOption = Annotated[
    int, typer.Option(min=1, help="Vertices of each stage that is split by keys.")
]
ParamOption = Annotated[
    list[str] | None,
    typer.Option("--param", metavar="NAME=VALUE", help="Override a DECLARE; may be repeated."),
]
JsonOption = Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")]
DebugOption = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]


# --- commands --------------------------------------------------------------------------------


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


@app.command()
def run(
    program: ProgramFile,
    runner: RunnerOption = Runner.local,
    master: MasterOption = None,
    setting: SettingOption = None,
    parallelism: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Vertices of each stage that is split by keys. \\[default: 1; on Spark its cores]",
        ),
    ] = None,
    cut: Annotated[
        int | None,
        typer.Option(min=1, help="Hand the input over N events at a time; changes no result."),
    ] = None,
    param: ParamOption = None,
    store: Annotated[
        str | None, typer.Option(metavar="DIR", help="Where a live run keeps its state.")
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with the live job that the store holds.")
    ] = False,
    hosts: Annotated[
        int, typer.Option(min=1, help="Spark tasks that host a live run's vertices.")
    ] = 2,
    directory: Annotated[
        Path, typer.Option(help="Where relative paths of STREAM and OUTPUT start.")
    ] = Path(),
    check: Annotated[
        bool, typer.Option("--check", help="Run twice, and fail where any stream differs.")
    ] = False,
    as_json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Run a program from its inputs to its outputs.

    Example: [bold]weir run counts.weir --param threshold=0.95 --parallelism 4[/bold]

    Prints the path, the rows and the digest of every output. Runs that agree have
    equal digests and byte-identical files.
    """
    with _clean_errors(debug):
        settings = _settings(runner, master=master, setting=setting, store=store, check=check)
        if resume and runner is not Runner.live:
            raise _Usage("--resume belongs to --runner live")
        checked = _program(program, param)
        meter = Meter(Console(stderr=True), in_time=_is_calendar(checked))
        if runner is Runner.local:
            from weir.local.files import run_files

            with meter:
                report = run_files(
                    checked, directory=directory, cut=cut, parallelism=parallelism or 1,
                    check=check, report=meter.take,
                )  # fmt: skip
        elif runner is Runner.live:
            from weir.spark.live import LiveSettings, live_master, run_live
            from weir.spark.session import session

            assert store is not None
            tell = _live_progress(meter)
            with session(master or live_master(hosts), settings) as spark, meter:
                live = run_live(
                    checked, spark, store, directory=directory, cut=cut,
                    parallelism=parallelism or 1, resume=resume,
                    settings=LiveSettings(hosts=hosts), watch=tell,
                )  # fmt: skip
            if live is None:
                typer.echo(f"stopped; go on with --resume --store {store}", err=True)
                raise typer.Exit(INTERRUPTED)
            report = live
        else:
            from weir.spark.offline import run_offline
            from weir.spark.session import session

            with session(master, settings) as spark, meter:
                report = run_offline(
                    checked, spark, directory=directory, cut=cut, parallelism=parallelism,
                    tell=meter.take,
                )  # fmt: skip
        _print_report(report, meter.elapsed, as_json)


@app.command()
def explain(
    program: ProgramFile,
    form: Annotated[Form, typer.Option("--format", help="How to show it.")] = Form.text,
    parallelism: ParallelismOption = 1,
    param: ParamOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="The same as --format json.")] = False,
    debug: DebugOption = False,
) -> None:
    """Show the plan: operators, stages, partitions, what each vertex keeps and for how long.

    Example: [bold]weir explain counts.weir --format dot | dot -Tsvg > plan.svg[/bold]
    """
    with _clean_errors(debug):
        from weir.plan.explain import explain as shown
        from weir.plan.rewrites import rewrite
        from weir.plan.stages import cut_stages

        rewritten = rewrite(_with_outputs(_program(program, param)))
        staged = cut_stages(rewritten, parallelism)
        typer.echo(shown(rewritten, staged, "json" if as_json else form.value).rstrip("\n"))


@app.command()
def conform(
    cases: Annotated[list[Path], typer.Argument(metavar="CASES.jsonl…", help="Files of cases.")],
    runner: RunnerOption = Runner.local,
    cut: Annotated[
        str, typer.Option(metavar="N,…", help="Cuts to run each case with; `none` is no cut.")
    ] = "none",
    parallelism: Annotated[
        str, typer.Option(metavar="N,…", help="Numbers of vertices to run each case with.")
    ] = "1",
    master: MasterOption = None,
    as_json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Run programs with known answers and compare.

    Example: [bold]weir conform cases/*.jsonl --cut 1,3,none --parallelism 1,3[/bold]

    A line for each case that fails, then `N passed, M failed` alone on the last line.
    """
    with _clean_errors(debug):
        _settings(runner, master=master)
        cuts = [None if n == "none" else _number(n, "--cut") for n in cut.split(",")]
        parallelisms = [_number(n, "--parallelism") for n in parallelism.split(",")]
        from weir.local.conform import check_cases

        read = _read_cases(cases)
        if runner is Runner.local:
            verdicts = list(_tracked(check_cases(read, cuts, parallelisms), len(read)))
        else:
            from weir.spark.session import session
            from weir.spark.trials import run_trials

            with session(master) as spark:
                on_spark = partial(run_trials, spark)
                verdicts = list(check_cases(read, cuts, parallelisms, on_spark))
        _print_verdicts(verdicts, as_json)
    raise typer.Exit(DONE if all(v.passed for v in verdicts) else FAILED)


@app.command()
def verify(
    a: Annotated[str, typer.Argument(metavar="A", help="An output, or a run (a .json file).")],
    b: Annotated[
        str | None, typer.Argument(metavar="[B]", help="Another; without it, A's own digest.")
    ] = None,
    as_json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Compare two outputs, or two runs, by their digests.

    Example: [bold]weir verify out/counts.parquet other/counts.csv[/bold]

    An output is read, in any format. A run is what `weir run --json` printed.
    Exit code 1 if they differ, or if an output is not what it carries the digest of.
    """
    with _clean_errors(debug), _reading() as tell:
        from weir.local import verify as comparing

        verdicts = comparing.verify([a] if b is None else [a, b], tell)
    equal = all(v.status == "equal" for v in verdicts)
    if as_json:
        typer.echo(json.dumps({"equal": equal, "verdicts": [asdict(v) for v in verdicts]}))
    else:
        typer.echo("\n".join(map(str, verdicts)))
    raise typer.Exit(DONE if equal else FAILED)


@app.command()
def diff(
    a: Annotated[str, typer.Argument(metavar="A", help="An output: a file or a folder.")],
    b: Annotated[str, typer.Argument(metavar="B", help="Another.")],
    as_json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Show the first event time at which two outputs differ, and the rows there.

    Example: [bold]weir diff out/counts.parquet other/counts.csv[/bold]

    Rows that A alone has begin with `-`, those of B with `+`. Exit code 1 if they differ.
    """
    with _clean_errors(debug), _reading() as tell:
        from weir.local import verify as comparing

        found = comparing.diff(a, b, tell)
    typer.echo(json.dumps({"equal": found.equal, **asdict(found)}) if as_json else str(found))
    raise typer.Exit(DONE if found.equal else FAILED)


@contextmanager
def _reading() -> Iterator[Callable[[int], None]]:
    """Counts the rows read on a terminal; what cannot be read is a wrong command line."""
    total = 0
    try:
        with Console(stderr=True).status("") as status:

            def tell(rows: int) -> None:
                nonlocal total
                total += rows
                status.update(f"{total:,} rows read")

            yield tell
    except (InputError, OSError) as error:
        raise _Usage(str(error)) from error


def main() -> None:
    """The `weir` command."""
    app()


# --- the command line and the program --------------------------------------------------------


def _settings(
    runner: Runner,
    *,
    master: str | None = None,
    setting: Sequence[str] | None = None,
    store: str | None = None,
    check: bool = False,
) -> dict[str, str]:
    """Spark's settings that were given; options that do not fit the runner are refused."""
    if runner is Runner.live and store is None:
        raise _Usage("--runner live needs --store DIR, where it keeps what must survive")
    if runner is not Runner.live and store is not None:
        raise _Usage("--store belongs to --runner live")
    if runner is Runner.local and (master is not None or setting):
        raise _Usage("--master and --conf belong to --runner offline or live")
    if runner is not Runner.local and check:
        raise _Usage("--check belongs to --runner local")
    return _pairs(setting, "--conf")


def _live_progress(meter: Meter) -> Callable[[JobStatus], None]:
    from weir.events.batch import START
    from weir.local.runner import Progress

    def tell(status: JobStatus) -> None:
        reached = START if status.reached is None else status.reached
        stage = status.trouble or status.state
        if status.recoveries:
            stage += f", {status.recoveries} recoveries"
        meter.take(Progress(status.events, reached, stage=stage))

    return tell


def _pairs(given: Sequence[str] | None, option: str) -> dict[str, str]:
    """NAME=VALUE texts as a mapping."""
    pairs = {}
    for text in given or ():
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise _Usage(f"{option} takes NAME=VALUE, not {text!r}")
        pairs[name] = value
    return pairs


def _number(text: str, option: str) -> int:
    if not text.strip().isdecimal() or int(text) < 1:
        raise _Usage(f"{option} takes numbers from 1 on, not {text!r}")
    return int(text)


def _program(path: Path, given: Sequence[str] | None) -> Program:
    """The checked program; warnings are printed."""
    from weir.script.program import parse_program

    params = _pairs(given, "--param")
    try:
        source = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise _Usage(f"cannot read the program {path}: {_why(error)}") from error
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        program = parse_program(source, params=params, directory=path.parent, name=str(path))
    for warning in told:
        typer.echo(f"weir: warning: {warning.message}", err=True)
    return program


def _with_outputs(program: Program) -> Program:
    """The program; without an OUTPUT, every stream that no other reads counts as one."""
    from weir.plan.nodes import Output
    from weir.plan.properties import walk_nodes

    if program.outputs:
        return program
    read = {below for _, node in program.streams for below in walk_nodes(node) if below != node}
    ends = [(name, node) for name, node in program.streams if node not in read]
    ends = ends or [(source.name, source) for source in program.sources]
    return replace(program, outputs=tuple(Output(name, node, "-") for name, node in ends))


def _why(error: Exception) -> str:
    return error.strerror or str(error) if isinstance(error, OSError) else str(error)


def _read_cases(paths: Sequence[Path]) -> list[Case]:
    from weir.local.conform import read_cases

    try:
        return [case for path in paths for case in read_cases(path)]
    except InputError as error:
        raise _Usage(str(error)) from error


def _is_calendar(program: Program) -> bool:
    from weir.events.types import TIMESTAMP
    from weir.plan.nodes import schema

    return all(schema(source).time == TIMESTAMP for source in program.sources)


# --- errors ----------------------------------------------------------------------------------


class _Usage(Exception):
    """The command line is wrong."""


@contextmanager
def _clean_errors(debug: bool) -> Iterator[None]:
    """Errors as one clean message and an exit code."""
    try:
        yield
    except (_Usage, ScriptError, PlanError) as error:
        raise _exit(error, WRONG, debug) from None
    except (WeirError, OSError) as error:
        raise _exit(error, FAILED, debug) from None
    except KeyboardInterrupt:
        typer.echo("weir: interrupted; no output was written", err=True)
        raise typer.Exit(INTERRUPTED) from None


def _exit(error: Exception, code: int, debug: bool) -> typer.Exit:
    if debug:
        traceback.print_exception(error)
    typer.echo(f"weir: error: {error}", err=True)
    return typer.Exit(code)


# --- what is printed -------------------------------------------------------------------------


def _print_report(report: RunReport, seconds: float, as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps({**asdict(report), "seconds": round(seconds, 3)}))
        return
    for output in report.outputs:
        typer.echo(f"{output.title} -> {output.path}: {_rows(output.rows)}, digest {output.digest}")
    for source in report.inputs:
        if source.late or source.bad:
            typer.echo(f"{source.name}: {source.late:,} late, {source.bad:,} bad")
    typer.echo(f"{report.events:,} events in {seconds:.1f} s", err=True)


def _rows(count: int) -> str:
    return f"{count:,} row{'' if count == 1 else 's'}"


def _print_verdicts(verdicts: Sequence[Verdict], as_json: bool) -> None:
    failed = [v for v in verdicts if not v.passed]
    passed = len(verdicts) - len(failed)
    if as_json:
        failures = [{"id": v.id, "reason": v.reason} for v in failed]
        counts = {"passed": passed, "failed": len(failed)}
        typer.echo(json.dumps({**counts, "failures": failures}))
        return
    for verdict in failed:
        typer.echo(f"{verdict.id}: {verdict.reason}")
    typer.echo(f"{passed} passed, {len(failed)} failed")


def _tracked(verdicts: Iterator[Verdict], count: int) -> Iterator[Verdict]:
    console = Console(stderr=True)
    yield from track(
        verdicts, "cases", count, console=console, transient=True, disable=not console.is_terminal
    )


if __name__ == "__main__":
    main()
