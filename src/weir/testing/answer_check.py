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
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from weir.errors import PlanError
from weir.handlers.api.app import App
from weir.plan.advice.plan_warnings import warn
from weir.plan.binding.binder import unknown
from weir.plan.fluent.stream import Stream
from weir.plan.limits import check_numbers
from weir.runtime.programs import Runnable
from weir.testing.counterexamples import counterexample
from weir.testing.other_process import CannotTravel, OtherProcess
from weir.testing.trial_inputs import program_given, rows_given
from weir.testing.trials import GivenProgram, first_answer
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
    """The one answer: the rows of each output by name, in order."""

    rows: dict[str, list[dict[str, object]]]
    ways: tuple[str, ...]
    """The ways in which the program was run."""
    left_out: tuple[str, ...] = ()
    """The ways that are impossible for this program, with reasons; a `PlanWarning` names them
    too."""


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
    kill point and runner. AnswersDiffer names the way that differs, and a few rows that show it.

    The program is a text, a `Path`, a stream, outputs, or an app (with its emitted streams and its
    final states). `inputs` has the rows of every source or log by name: dicts or a table, or a list
    of these for several partitions. A few dozen rows are usually enough. If a text has no OUTPUT,
    all its streams are compared; `stream` selects a single one. IMPORT starts at `directory`.

    `kills` is the number of durable steps of a simulated live job at which a process is killed
    (None: all of them). `worlds` is the number of simulated clusters with random faults in which
    the job runs. Java is needed only if `runners` has "offline".
    """
    __tracebackhide__ = True
    _check_options(runners, cuts, parallelism)
    checked = program_given(program, stream, params, directory)
    trial = GivenProgram(checked, rows_given(checked, inputs))
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
    if left_out:
        warn(f"not checked: {'; '.join(left_out)}; another_process=False leaves it out silently")
    named = {o.title: rows for o, rows in zip(checked.outputs, first.rows, strict=True)}
    return Checked(named, tuple(ran), tuple(left_out))


def _check_options(runners: Sequence[str], cuts: Sequence[int], parallelism: Sequence[int]) -> None:
    if not runners:
        raise PlanError("`runners` is empty", hint='runners=("local",)')
    for runner in runners:
        if runner not in RUNNERS:
            raise unknown("runner", runner, RUNNERS)
    for cut in cuts:
        check_numbers(cut=cut, parallelism=None)
    if not parallelism:
        raise PlanError("`parallelism` is empty", hint="parallelism=(1, 2, 3)")
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
