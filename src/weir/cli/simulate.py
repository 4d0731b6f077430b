"""`weir simulate` runs the live runtime under seeded faults, and shrinks the seeds that fail."""

from __future__ import annotations

import fnmatch
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.progress import track

from weir.cli.command_line import (
    DONE,
    FAILED,
    MOST_ROWS,
    DebugOption,
    JsonOption,
    Usage,
    clean_errors,
    put_json,
    say,
)

if TYPE_CHECKING:
    from weir.simulator.simulate import SeedResult, Wish

STORY_LINES = 60
"""How many lines of the end of a story are shown; `--seed` shows all of it."""
MOST_SECONDS = 1_000_000
MOST_HARM = 1000


def simulate(
    seeds: Annotated[int, typer.Option(min=1, max=MOST_ROWS, help="How many seeds to run.")] = 500,
    first: Annotated[int, typer.Option(min=0, max=MOST_ROWS, help="The first seed.")] = 0,
    seed: Annotated[
        int | None,
        typer.Option(min=0, max=MOST_ROWS, help="Run only this seed, and print its whole story."),
    ] = None,
    faults: Annotated[
        str | None,
        typer.Option(metavar="KIND,…", help="Only these kinds of faults; `none`: no faults."),
    ] = None,
    until: Annotated[
        float | None,
        typer.Option(metavar="SECONDS", help="Faults stop after so many simulated seconds."),
    ] = None,
    workloads: Annotated[
        str,
        typer.Option(metavar="PATTERN,…", help="Only workloads of these names (`followed_*`)."),
    ] = "*",
    harm: Annotated[
        float,
        typer.Option(
            min=0,
            metavar="RATE",
            help="An adversary loses, changes, swaps and adds objects of the store, so many times "
            "a second: a seed then passes with the same rows or with a clear error.",
        ),
    ] = 0.0,
    jobs: Annotated[int, typer.Option(min=1, help="Processes that run seeds.")] = 1,
    as_json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Run the live runtime's machines in simulated worlds where everything goes wrong.

    Example: [bold]weir simulate --seeds 50000 --jobs 2[/bold]

    A seed passes if every output has the rows of the run without faults, no stream has a gap or a
    duplicate row, and nothing is left over. A seed that fails is printed with the fewest faults
    that make it fail, and with the command that repeats it.
    """
    with clean_errors(debug):
        wish = _wish(faults, until, harm)
        names = _names(workloads)
        passed = (
            _run_many(range(first, first + seeds), names, wish, jobs, as_json)
            if seed is None
            else _run_one(seed, names, wish, as_json)
        )
    raise typer.Exit(DONE if passed else FAILED)


def _names(patterns: str) -> tuple[str, ...]:
    """Return the workloads whose names match one of the patterns."""
    from weir.simulator.workloads import workload_names

    names = workload_names()
    wanted_patterns = [p.strip() for p in patterns.split(",")]
    for pattern in wanted_patterns:
        if not fnmatch.filter(names, pattern):
            raise Usage(f"--workloads: '{pattern}' matches none of {', '.join(names)}")
    return tuple(n for n in names if any(fnmatch.fnmatchcase(n, p) for p in wanted_patterns))


def _run_one(seed: int, names: tuple[str, ...], wish: Wish, as_json: bool) -> bool:
    from weir.simulator.simulate import built_in, run_seed

    result = run_seed(seed, partial(built_in, names=names), wish)
    _tell_one(result, as_json)
    return result.passed


def _run_many(seeds: range, names: tuple[str, ...], wish: Wish, jobs: int, as_json: bool) -> bool:
    failed: list[tuple[str, SeedResult]] = []
    count = len(seeds)
    for result in _tracked(_results(seeds, names, wish, jobs), count):
        if not result.passed:
            failed.append(_made_small(result, names, wish))
            if not as_json:
                _tell_failure(*failed[-1])
    if as_json:
        failures = [_as_json(command, result) for command, result in failed]
        put_json({"passed": count - len(failed), "failed": len(failed), "failures": failures})
    else:
        say(f"{count - len(failed)} passed, {len(failed)} failed")
    return not failed


def _wish(faults: str | None, until: float | None, harm: float) -> Wish:
    from weir.simulator.faults import KINDS
    from weir.simulator.simulate import Wish

    if until is not None and not 0 <= until <= MOST_SECONDS:
        raise Usage(f"--until takes seconds from 0 to {MOST_SECONDS:,}, not {until}")
    if not 0 <= harm <= MOST_HARM:
        raise Usage(f"--harm takes a rate from 0 to {MOST_HARM}, not {harm}")
    if faults is None:
        return Wish(until=until, harm=harm)
    kinds = tuple(k.strip() for k in faults.split(",")) if faults != "none" else ()
    for kind in kinds:
        if kind not in KINDS:
            raise Usage(f"--faults: unknown kind '{kind}'; expected some of {', '.join(KINDS)}")
    return Wish(kinds=kinds, until=until, harm=harm)


def _results(
    seeds: Sequence[int], names: tuple[str, ...], wish: Wish, jobs: int
) -> Iterator[SeedResult]:
    from weir.simulator.simulate import built_in, run_seed

    run = partial(run_seed, workload=partial(built_in, names=names), wish=wish)
    if jobs == 1:
        yield from map(run, seeds)
        return
    with ProcessPoolExecutor(min(jobs, os.cpu_count() or 1)) as pool:
        yield from pool.map(run, seeds, chunksize=10)


def _made_small(result: SeedResult, names: tuple[str, ...], wish: Wish) -> tuple[str, SeedResult]:
    """Find the command that repeats a failure with as few faults as possible; return it and its
    result."""
    from weir.simulator.simulate import built_in, minimise

    small, shown = minimise(result, partial(built_in, names=names), wish)
    kinds = ",".join(small.kinds or ()) or "none"
    ends = f" --until {small.until:g}" if small.until is not None else ""
    ends += f" --harm {small.harm:g}" if small.harm else ""
    only = f"weir simulate --seed {result.seed} --workloads {result.workload}"
    return f"{only} --faults {kinds}{ends}", shown


def _tell_failure(command: str, result: SeedResult) -> None:
    say(f"seed {result.seed}, {result.workload}: {result.reason}")
    say(f"  repeat: {command}")
    for line in result.log[-STORY_LINES:]:
        say(f"  {line}")


def _tell_one(result: SeedResult, as_json: bool) -> None:
    if as_json:
        put_json(_as_json(f"weir simulate --seed {result.seed}", result))
        return
    for line in result.log:
        say(line)
    kinds = ", ".join(result.faults.kinds) or "no faults"
    say(f"seed {result.seed}, {result.workload}, {kinds}: {result.reason or 'passed'}")


def _as_json(command: str, result: SeedResult) -> dict[str, object]:
    return {
        "seed": result.seed,
        "workload": result.workload,
        "passed": result.passed,
        "reason": result.reason or "",
        "command": command,
        "faults": list(result.faults.kinds),
        "seconds": round(result.simulated_seconds, 3),
        "story": list(result.log),
    }


def _tracked(results: Iterator[SeedResult], count: int) -> Iterator[SeedResult]:
    console = Console(stderr=True)
    yield from track(
        results, "seeds", count, console=console, transient=True, disable=not console.is_terminal
    )
