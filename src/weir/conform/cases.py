"""Runs conformance cases, programs with known answers, under all requested cuts and parallelisms.

A case is one line of JSON (docs/reference/cli.md, conform). It passes when, in every run,
1. the rows of `Out` are the expected multiset, or the expected error is raised;
2. the digest of `Out` is the same in all runs;
3. at equal parallelism the ordered checksum of every stream is the same for all cuts.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice, product
from pathlib import Path

from weir.conform.case_rows import (
    CaseItem,
    came_rows,
    column_types,
    shown_rows,
    typed_rows,
    wanted_rows,
)
from weir.errors import InputError, PlanError, WeirError
from weir.events.batch import Batch
from weir.events.types import BIGINT
from weir.ingress.memory_partitions import CTI_KEY, MemoryPartition
from weir.local.runner import Emit, LocalRun
from weir.plan.fluent.sources import declare_source
from weir.plan.operators import Source
from weir.plan.program import Output, Program
from weir.runtime.outputs import output_schema
from weir.script.program import parse_program
from weir.wording import counted

COMPARED = "Out"
"""The stream whose rows are compared."""


@dataclass(frozen=True, slots=True)
class ConformanceCase:
    """A case as it was read; an input is a list of partitions."""

    id: str
    program: str
    inputs: Mapping[str, Sequence[Sequence[CaseItem]]]
    options: Mapping[str, str]
    expected: Sequence[CaseItem] | None
    error: str | None


@dataclass(frozen=True, slots=True)
class CaseVerdict:
    """The verdict on a case: the `reason` for its failure, or None."""

    id: str
    reason: str | None = None

    @property
    def passed(self) -> bool:
        return self.reason is None


# --- reading ---------------------------------------------------------------------------------


def read_cases(path: str | Path) -> Iterator[ConformanceCase]:
    """Read the cases of a file; raise InputError for a line that is not a case."""
    try:
        lines = Path(path).read_text(encoding="utf-8").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else str(error)
        raise InputError(f"cannot read the cases: {why}", file=str(path)) from error
    for number, line in enumerate(lines, 1):
        if line.strip():
            try:
                yield _case(json.loads(line))
            except json.JSONDecodeError as error:
                message = f"not a case: invalid JSON: {error}"
                raise InputError(message, file=str(path), line=number) from error
            except RecursionError:
                message = "not a case: it is nested too deeply"
                raise InputError(message, file=str(path), line=number) from None
            except (ValueError, TypeError) as error:
                message = f"not a case: {error}"
                raise InputError(message, file=str(path), line=number) from error


def _case(raw: object) -> ConformanceCase:
    if not isinstance(raw, dict):
        raise TypeError("a case is an object")
    missing = [f"`{name}`" for name in ("id", "program", "inputs") if name not in raw]
    if missing:
        raise ValueError(f"it has no {', no '.join(missing)}")
    inputs, options, expected = raw["inputs"], raw.get("options") or {}, raw.get("expected")
    if not isinstance(inputs, dict) or not isinstance(options, dict):
        raise TypeError("inputs and options are objects")
    error = raw.get("error")
    if (expected is None) == (error is None):
        raise ValueError("a case has either `expected` or `error`")
    if not isinstance(expected, list | None):
        raise TypeError("expected is a list")
    return ConformanceCase(
        str(raw["id"]),
        str(raw["program"]),
        {name: _partitions(rows) for name, rows in inputs.items()},
        options,
        expected,
        None if error is None else str(error),
    )


def _partitions(rows: object) -> list[list[CaseItem]]:
    partitions: object = rows.get("partitions") if isinstance(rows, dict) else [rows]
    if not isinstance(partitions, list) or not all(isinstance(p, list) for p in partitions):
        raise TypeError("an input is a list of rows, or has a list of such lists as `partitions`")
    if not all(isinstance(item, dict) for items in partitions for item in items):
        raise TypeError("a row of an input is an object")
    return partitions


# --- one case --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Trial:
    """One run of a case: its program and inputs, with a cut and a parallelism."""

    program: Program
    partitions: Mapping[str, Sequence[MemoryPartition]]
    cut: int | None
    parallelism: int

    @property
    def where(self) -> str:
        return f"cut {self.cut or 'none'}, parallelism {self.parallelism}"


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of a trial: rows and fingerprints, or an error."""

    batches: Sequence[Batch] = ()
    digest: str = ""
    checksums: Mapping[str, str] = field(default_factory=dict)
    error: str | None = None


RunTrials = Callable[[Sequence[Trial]], Iterable[Outcome]]
"""Runs trials, and returns the outcomes in the same order."""


def check_cases(
    cases: Sequence[ConformanceCase],
    cuts: Sequence[int | None] = (None,),
    parallelisms: Sequence[int] = (1,),
    runner: RunTrials | None = None,
) -> Iterator[CaseVerdict]:
    """Run every case with every cut and every parallelism, and yield the verdicts."""
    prepared = [_trials(case, cuts, parallelisms) for case in cases]
    trials = [trial for case in prepared if not isinstance(case, CaseVerdict) for trial in case]
    outcomes = iter((runner or run_locally)(trials))
    for case, planned in zip(cases, prepared, strict=True):
        if isinstance(planned, CaseVerdict):
            yield planned
        else:
            yield _verdict(case, planned, list(islice(outcomes, len(planned))))


def run_locally(trials: Sequence[Trial]) -> Iterator[Outcome]:
    """Run trials one after the other, in this process."""
    for trial in trials:
        batches: list[Batch] = []
        try:
            run = LocalRun(
                trial.program,
                trial.partitions,
                [_keep_in(batches)],
                cut=trial.cut,
                parallelism=trial.parallelism,
                check=True,
            )
            run.run()
        except WeirError as error:
            yield Outcome(error=str(error))
        else:
            yield Outcome(batches, str(run.egress[0].digest), run.checksums)


def _keep_in(batches: list[Batch]) -> Emit:
    return lambda _, rows: batches.append(rows)


def _trials(
    case: ConformanceCase, cuts: Sequence[int | None], parallelisms: Sequence[int]
) -> list[Trial] | CaseVerdict:
    """Return the runs of a case, or the verdict on a program that cannot run."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # this permits theta joins
            program = case_program(case)
        partitions = case_partitions(case, program)
    except WeirError as error:
        return CaseVerdict(case.id, _judge_error(case, str(error)))
    return [Trial(program, partitions, cut, n) for n, cut in product(parallelisms, cuts)]


def _verdict(
    case: ConformanceCase, trials: Sequence[Trial], outcomes: Sequence[Outcome]
) -> CaseVerdict:
    by_parallelism: dict[int, tuple[Trial, Outcome]] = {}
    first = (trials[0], outcomes[0])
    for now in zip(trials, outcomes, strict=True):
        reason = _judge(case, *now)
        before = by_parallelism.setdefault(now[0].parallelism, now)
        reason = reason or _compare(first, before, now)
        if reason:
            return CaseVerdict(case.id, reason)
    return CaseVerdict(case.id)


def case_program(case: ConformanceCase) -> Program:
    """Parse a case's program, with `Out` as its only output."""
    sources = [_source(case, name, index) for index, name in enumerate(case.inputs)]
    program = parse_program(case.program, sources=sources)
    named = {**{s.name: s for s in program.sources}, **dict(program.streams)}
    if COMPARED not in named:
        raise PlanError(f"the program has no stream `{COMPARED}`")
    return replace(program, outputs=(Output(COMPARED, named[COMPARED], ""),))


def _source(case: ConformanceCase, name: str, index: int) -> Source:
    """Declare an input: columns from its rows, options as in a script."""
    rows = _events(case.inputs[name])
    times = {"vs": BIGINT, **({"ve": BIGINT} if _has_ends(rows) else {})}
    columns = {**times, **column_types(rows)}
    # A script cannot name the type of a column of nulls; any type will do to check the options.
    written = ", ".join(f"{_quoted(n)} BIGINT" for n in columns)
    options = case.options.get(name, "")
    text = f"STREAM {_quoted(name)} ({written}) FROM '-'{f' WITH ({options})' if options else ''};"
    declared = parse_program(text).sources[0]
    return declare_source(name, columns, name, declared.options, index)


def _events(partitions: Iterable[Sequence[CaseItem]]) -> list[CaseItem]:
    return [item for items in partitions for item in items if CTI_KEY not in item]


def _has_ends(rows: Iterable[CaseItem]) -> bool:
    """Tell whether any row has an end; if none has, all are points or have a `lifetime`."""
    return any("ve" in row for row in rows)


def _quoted(name: str) -> str:
    doubled = name.replace('"', '""')
    return f'"{doubled}"'


def case_partitions(case: ConformanceCase, program: Program) -> dict[str, list[MemoryPartition]]:
    memory = {}
    for source in program.sources:
        if source.name not in case.inputs:
            raise InputError(f"the case has no input `{source.name}`")
        partitions = case.inputs[source.name]
        types = dict(source.declared)
        memory[source.name] = [
            MemoryPartition(f"{source.name}[{i}]", rows, source.declared)
            for i, rows in enumerate(_explicit(typed_rows(items, types)) for items in partitions)
        ]
    return memory


def _explicit(items: Sequence[dict[str, object]]) -> list[dict[str, object]]:
    """Make points of the rows without an end, in an input where other rows have one."""
    return [_as_point(i) if CTI_KEY not in i and "ve" not in i else i for i in items]


def _as_point(item: dict[str, object]) -> dict[str, object]:
    start = item.get("vs")
    return {**item, "ve": start + 1 if isinstance(start, int) else None}


# --- judging ---------------------------------------------------------------------------------


def _judge(case: ConformanceCase, trial: Trial, outcome: Outcome) -> str | None:
    if outcome.error is not None:
        return _judge_error(case, outcome.error, trial.where)
    shape = output_schema(trial.program.outputs[0])
    actual = came_rows(outcome.batches, shape)
    expected = wanted_rows(case.expected or (), shape)
    if case.error is not None:
        shown = shown_rows(actual, shape.names) or "no rows"
        return f"({trial.where}) wanted an error with {case.error!r}, came {shown}"
    missing, unexpected = expected - actual, actual - expected
    if not missing and not unexpected:
        return None
    return (
        f"({trial.where}) missing [{shown_rows(missing, shape.names)}], "
        f"unexpected [{shown_rows(unexpected, shape.names)}]"
    )


def _judge_error(case: ConformanceCase, message: str, where: str = "") -> str | None:
    setting = f"({where}) " if where else ""
    error = " ".join(message.split())
    if case.error is None:
        return f"{setting}wanted {counted(len(case.expected or ()), 'row')}, came an error: {error}"
    if case.error.lower() not in message.lower():
        return f"{setting}wanted an error with {case.error!r}, came: {error}"
    return None


def _compare(
    first: tuple[Trial, Outcome], of_parallelism: tuple[Trial, Outcome], now: tuple[Trial, Outcome]
) -> str | None:
    """Compare the fingerprints across runs."""
    if now[1].digest != first[1].digest:
        return f"digest {first[1].digest} ({first[0].where}), but {now[1].digest} ({now[0].where})"
    before, after = of_parallelism[1].checksums, now[1].checksums
    if before == after:
        return None
    name = next(n for n in sorted({*before, *after}) if before.get(n) != after.get(n))
    return f"other rows in {name}: ({of_parallelism[0].where}) and ({now[0].where}) differ"
