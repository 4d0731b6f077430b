"""`weir conform` runs programs with known answers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.progress import track

from weir.cli.command_line import (
    DONE,
    FAILED,
    MOST_ROWS,
    MOST_VERTICES,
    DebugOption,
    MasterOption,
    RunJsonOption,
    RunnerName,
    RunnerOption,
    SettingOption,
    Usage,
    clean_errors,
    number,
    put_json,
    say,
    spark_settings,
)
from weir.cli.progress import Meter
from weir.errors import InputError
from weir.wording import in_one_line

if TYPE_CHECKING:
    from weir.conform.cases import CaseVerdict, ConformanceCase

LIVE_HOSTS = 2


def conform(
    cases: Annotated[list[Path], typer.Argument(metavar="CASES.jsonl…", help="Files of cases.")],
    runner: RunnerOption = RunnerName.local,
    cut: Annotated[
        str, typer.Option(metavar="N,…", help="Cuts to run each case with; `none`: without a cut.")
    ] = "none",
    parallelism: Annotated[
        str, typer.Option(metavar="N,…", help="Numbers of vertices to run each case with.")
    ] = "1",
    master: MasterOption = None,
    setting: SettingOption = None,
    as_json: RunJsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Run programs with known answers and compare.

    Example: [bold]weir conform cases/*.jsonl --cut 1,3,none --parallelism 1,3[/bold]

    Prints a line for each case that fails; the last line is `N passed, M failed`.
    """
    with clean_errors(debug):
        settings = spark_settings(runner, master=master, setting=setting)
        cuts = [None if n == "none" else number(n, "--cut", MOST_ROWS) for n in cut.split(",")]
        parallelisms = [number(n, "--parallelism", MOST_VERTICES) for n in parallelism.split(",")]
        from weir.conform.cases import check_cases

        read = _read_cases(cases)
        if runner is RunnerName.local:
            verdicts = list(_tracked(check_cases(read, cuts, parallelisms), len(read)))
        elif runner is RunnerName.live:
            from weir.spark.live.host_tasks import live_master, live_settings
            from weir.spark.live.trials import run_live_trials
            from weir.spark.session import session

            chosen = master or live_master(LIVE_HOSTS)
            with session(chosen, live_settings(chosen, settings)) as spark:
                live = partial(run_live_trials, spark, hosts=LIVE_HOSTS)
                verdicts = list(_tracked(check_cases(read, cuts, parallelisms, live), len(read)))
        else:
            from weir.spark.offline.trials import run_trials
            from weir.spark.session import session

            meter = Meter(Console(stderr=True), in_time=False, as_json=as_json)
            with session(master, settings) as spark, meter:
                on_spark = partial(run_trials, spark, progress=meter.take)
                verdicts = list(check_cases(read, cuts, parallelisms, on_spark))
        _print_verdicts(verdicts, as_json)
    raise typer.Exit(DONE if all(v.passed for v in verdicts) else FAILED)


def _read_cases(paths: Sequence[Path]) -> list[ConformanceCase]:
    from weir.conform.cases import read_cases

    try:
        return [case for path in paths for case in read_cases(path)]
    except InputError as error:
        raise Usage(str(error)) from error


def _print_verdicts(verdicts: Sequence[CaseVerdict], as_json: bool) -> None:
    failed = [v for v in verdicts if not v.passed]
    passed = len(verdicts) - len(failed)
    if as_json:
        failures = [{"id": v.id, "reason": v.reason} for v in failed]
        counts = {"passed": passed, "failed": len(failed)}
        put_json({**counts, "failures": failures})
        return
    for verdict in failed:
        say(f"{in_one_line(verdict.id)}: {verdict.reason}")
    say(f"{passed} passed, {len(failed)} failed")


def _tracked(verdicts: Iterator[CaseVerdict], count: int) -> Iterator[CaseVerdict]:
    console = Console(stderr=True)
    yield from track(
        verdicts, "cases", count, console=console, transient=True, disable=not console.is_terminal
    )
