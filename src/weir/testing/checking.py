"""`check` asserts that a program gives one answer, however it is run.

>>> import weir
>>> a = weir.stream("A", {"vs": "BIGINT", "v": "BIGINT"}, "a.jsonl", vs="vs")
>>> sums = a.window(weir.tumbling(10)).agg(total=weir.col("v").sum())
>>> rows = [{"vs": 1, "v": 2}, {"vs": 4, "v": 5}]
>>> check(sums, {"A": rows}, kills=0, worlds=0, another_process=False).rows
{'Out': [{'vs': 0, 've': 10, 'total': 7}]}
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Literal, TypeAlias, TypeGuard

from weir.errors import PlanError
from weir.handlers.app import App
from weir.handlers.compiling import compile_app
from weir.local.run import Items, items_of
from weir.plan.binding.binder import unknown
from weir.plan.limits import check_numbers
from weir.plan.operators import Source
from weir.plan.program import Output, Program
from weir.plan.stream import Stream
from weir.runtime.input_doubts import MOST_ROWS, warn_of_fields
from weir.runtime.programs import Runnable, as_program, program_of
from weir.testing.counterexamples import counterexample
from weir.testing.other_process import CannotTravel, OtherProcess
from weir.testing.running import with_output
from weir.testing.trials import Given, GivenProgram, first_answer
from weir.testing.ways import (
    CUTS,
    PARALLELISM,
    Way,
    kill_points,
    local_ways,
    offline_way,
    other_processes,
)
from weir.testing.ways import (
    worlds as fault_worlds,
)

CheckedRunner: TypeAlias = Literal["local", "offline"]
RUNNERS = ("local", "offline")


@dataclass(frozen=True, slots=True)
class Checked:
    """Holds the one answer: the rows of each output by its name, in order."""

    rows: dict[str, list[dict[str, object]]]
    ways: tuple[str, ...]
    """The ways in which the program was run."""
    left_out: tuple[str, ...] = ()
    """The ways that are not possible for it, with the reason."""


def check(
    program: Runnable | Stream | App,
    inputs: Mapping[str, object],
    *,
    stream: str | None = None,
    params: Mapping[str, object] | None = None,
    directory: str | Path = ".",
    cuts: Sequence[int] = CUTS,
    parallelism: Sequence[int] = PARALLELISM,
    runners: Sequence[CheckedRunner] = ("local",),
    another_process: bool = True,
    kills: int | None = 8,
    worlds: int = 3,
) -> Checked:
    """Assert that a program gives the same answer under every cut, parallelism, restart, process,
    kill point and runner; AnswersDiffer tells the way that differs, with few rows that show it.

    The program is a text, a `Path`, a stream, outputs, or an app (what it emits, and its final
    states). `inputs` has the rows of every source, or log, by name: dicts or a table, or a list of
    such for several partitions; a few dozen rows say most. Without OUTPUT all streams of a text
    count; `stream` names the only one that does. IMPORT starts at `directory`.

    `kills` is at how many durable steps of a simulated live job a process is killed (None: at all
    of them), `worlds` how many simulated clusters with random faults the job runs in. No Java is
    needed, unless `runners` has "offline".
    """
    __tracebackhide__ = True
    _check_options(runners, cuts, parallelism)
    checked = _program(program, stream, params, directory)
    trial = GivenProgram(checked, _given(checked, inputs))
    first = first_answer(trial)
    ran: list[str] = ["all at once"]
    left_out: list[str] = []
    with ExitStack() as undo:
        process = undo.enter_context(closing(OtherProcess())) if another_process else None
        for way in _ways(trial, runners, cuts, parallelism, process, kills, worlds):
            try:
                difference = way.differs(trial, first)
            except CannotTravel as error:
                left_out.append(f"{way.name}: {error}")
                continue
            if difference:
                raise counterexample(trial, way, difference)
            ran.append(way.name)
    named = {o.title: rows for o, rows in zip(checked.outputs, first.rows, strict=True)}
    return Checked(named, tuple(ran), tuple(left_out))


def _check_options(runners: Sequence[str], cuts: Sequence[int], parallelism: Sequence[int]) -> None:
    for runner in runners:
        if runner not in RUNNERS:
            raise unknown("runner", runner, RUNNERS)
    for cut in cuts:
        check_numbers(cut=cut, parallelism=None)
    if not parallelism:
        raise PlanError("`parallelism` has no number", hint="parallelism=(1, 2, 3)")
    for spread in parallelism:
        check_numbers(cut=None, parallelism=spread)


def _ways(
    trial: GivenProgram,
    runners: Sequence[CheckedRunner],
    cuts: Sequence[int],
    parallelism: Sequence[int],
    process: OtherProcess | None,
    kills: int | None,
    worlds: int,
) -> Iterator[Way]:
    if "local" in runners:
        yield from local_ways(cuts, parallelism)
        if process is not None:
            yield from other_processes(process, parallelism)
        if kills != 0:
            yield from kill_points(trial, kills)
        if worlds:
            yield from fault_worlds(worlds)
    if "offline" in runners:
        yield offline_way()


# --- what is given -----------------------------------------------------------------------


def _program(
    given: Runnable | Stream | App,
    stream: str | None,
    params: Mapping[str, object] | None,
    directory: str | Path,
) -> Program:
    """Make a program with outputs of whatever is to be checked."""
    if isinstance(given, App):
        program = _app_program(given, params or {})
    elif isinstance(given, Stream):
        return as_program(given.to("", name=stream or "Out"))
    else:
        texts = {name: str(value) for name, value in (params or {}).items()}
        program = as_program(given, params=texts, directory=directory)
    if stream is not None:
        return with_output(program, stream)
    if not program.outputs:
        outputs = tuple(Output(name, node, "") for name, node in program.streams)
        if not outputs:
            raise PlanError("the program has no stream to look at", hint="Out = SELECT … FROM …;")
        return replace(program, outputs=outputs)
    return program


def _app_program(app: App, params: Mapping[str, object]) -> Program:
    paths = {name: f"{name}.jsonl" for name, event in app.event_types.items() if event.is_log}
    compiled = compile_app(app, paths=paths, params=params, final=True)
    found = {**compiled.emitted, **{f"{n}.state": s for n, s in compiled.final.items()}}
    if not found:
        raise PlanError(f"the app `{app.name}` emits nothing and has no state")
    program = program_of([stream.to("", name=name) for name, stream in found.items()])
    streams = tuple((name, stream.node) for name, stream in found.items())
    return replace(program, streams=streams, code=app.code, needed=app.needed)


def _given(program: Program, inputs: Mapping[str, object]) -> Given:
    names = [source.name for source in program.sources]
    for name in inputs:
        if name not in names:
            raise unknown("input", name, names)
    return {source.name: _partitions(source, inputs) for source in program.sources}


def _partitions(source: Source, inputs: Mapping[str, object]) -> tuple[Items, ...]:
    """Return the partitions of a source: a list of rows or a table is one, a list of those are
    several."""
    if source.name not in inputs:
        raise PlanError(f"`inputs` has no rows for {source.name}")
    given = inputs[source.name]
    parts = tuple(items_of(part) for part in (given if _are_several(given) else [given]))
    for part in parts:
        warn_of_fields(source, islice(part, MOST_ROWS), "the rows")
    return parts


def _are_several(given: object) -> TypeGuard[Sequence[object]]:
    if not isinstance(given, list | tuple):
        return False
    return len(given) > 0 and not any(isinstance(row, Mapping) for row in given)
