"""Trials: a program with its rows, and the result of running it in some way."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from weir.errors import DeterminismViolation, WeirError
from weir.events.batch import Batch, concat_batches, empty_batch
from weir.events.order import in_order
from weir.plan.program import Output, Program
from weir.runtime.outputs import output_schema
from weir.runtime.program_plan import plan_program
from weir.runtime.vertices import written_by
from weir.testing.memory_runs import Answers, batch_rows, memory_partitions, run_all
from weir.testing.trial_inputs import SourceRows


@dataclass(frozen=True, slots=True)
class GivenProgram:
    """A program with the rows of its sources."""

    program: Program
    rows: SourceRows

    def over(self, rows: SourceRows) -> GivenProgram:
        """Return the same program over other rows."""
        return replace(self, rows=rows)

    @property
    def count(self) -> int:
        return sum(len(items) for parts in self.rows.values() for items in parts)


@dataclass(frozen=True, slots=True)
class Ran:
    """The result of a run: the digest and the ordered rows of each output, the checksums of all
    streams; or an error."""

    digests: tuple[str, ...] = ()
    rows: tuple[list[dict[str, object]], ...] = ()
    checksums: Mapping[str, str] | None = None
    error: str | None = None


@dataclass(frozen=True, slots=True)
class LocalWay:
    """How a run in one process is cut, parallelised and disturbed."""

    cut: int | None = None
    parallelism: int = 1
    restart: int | None = None
    """The step after which all vertices restart from their snapshots; -1: after every step."""
    duplicate_writes: int | None = None


def run_locally(trial: GivenProgram, way: LocalWay) -> Ran:
    """Run a trial; an error of the program is part of the result."""
    try:
        answers = run_all(
            trial.program,
            memory_partitions(trial.program, trial.rows),
            cut=way.cut,
            parallelism=way.parallelism,
            restarts=partial(_restarts, way.restart, trial.count),
            keep=way.restart is not None,
            duplicate_writes=way.duplicate_writes,
        )
    except WeirError as error:
        return Ran(error=f"{type(error).__name__}: {error}")
    return Ran(answers.digests, _ordered(trial.program.outputs, answers), answers.checksums)


def _restarts(at: int | None, count: int, step: int) -> bool:
    """Tell whether vertices restart after a step. A source that restarted at its end would read the
    end again, forever."""
    return at == step or (at == -1 and step < count)


def _ordered(outputs: Sequence[Output], answers: Answers) -> tuple[list[dict[str, object]], ...]:
    return tuple(
        _rows(output, batches) for output, batches in zip(outputs, answers.batches, strict=True)
    )


def _rows(output: Output, batches: Sequence[Batch]) -> list[dict[str, object]]:
    shape = output_schema(output)
    plain = [Batch(b.vs, b.ve, b.columns) for b in batches]
    return batch_rows(in_order(concat_batches([empty_batch(shape.types), *plain])), shape)


def first_answer(trial: GivenProgram) -> Ran:
    """Run a trial in the plainest way, all at once; raise the program's errors."""
    answers = run_all(trial.program, memory_partitions(trial.program, trial.rows))
    return Ran(answers.digests, _ordered(trial.program.outputs, answers), answers.checksums)


def difference(program: Program, expected: Ran, actual: Ran) -> str | None:
    """Describe how the second of two runs differs from the first; None if it does not."""
    if actual.error:
        blamed = actual.error.startswith(DeterminismViolation.__name__)
        return actual.error if blamed else f"this run fails: {actual.error}"
    lines: list[str] = []
    for number, output in enumerate(program.outputs):
        if expected.digests[number] == actual.digests[number]:
            continue
        lines.append(f"{output.title or 'the stream'}:")
        if number < len(actual.rows):
            lines += _lines(expected.rows[number], actual.rows[number])
        else:
            lines.append(f"  digest {actual.digests[number]}, wanted {expected.digests[number]}")
    return "\n".join(lines) or None


MOST_LINES = 10


def _lines(expected: list[dict[str, object]], actual: list[dict[str, object]]) -> list[str]:
    ours, theirs = [repr(row) for row in expected], [repr(row) for row in actual]
    missing, unexpected = list(ours), []
    for text in theirs:
        if text in missing:
            missing.remove(text)
        else:
            unexpected.append(text)
    return [*_some("  - ", missing), *_some("  + ", unexpected)]


def _some(mark: str, rows: list[str]) -> list[str]:
    left = [f"{mark}… {len(rows) - MOST_LINES} more"] if len(rows) > MOST_LINES else []
    return [*(mark + row for row in rows[:MOST_LINES]), *left]


def first_writer(trial: GivenProgram, parallelism: int, one: Ran, other: Ran) -> str | None:
    """Return the operators that write the first stream in which two runs of this parallelism
    differ; None if that is unknown."""
    if not one.checksums or not other.checksums:
        return None
    planned = plan_program(trial.program, parallelism)
    plan, topology = planned.stages, planned.topology(trial.rows)
    for stream in topology.streams:
        if one.checksums[stream] != other.checksums[stream]:
            return written_by(plan, topology.writer_of(stream), stream).operators
    return None
