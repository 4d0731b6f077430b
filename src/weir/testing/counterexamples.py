"""Shrinks a counterexample to few rows, and describes it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from weir.errors import WeirError
from weir.local.run import Items
from weir.testing.trial_inputs import SourceRows
from weir.testing.trials import GivenProgram, first_answer
from weir.testing.ways import Way

MOST_SHOWN = 40
"""The largest number of rows that a message shows."""


class AnswersDiffer(AssertionError):
    """Raised if a program gives another answer when it is run in another way; says which way, which
    few rows show it, and how the answers differ."""

    def __init__(
        self,
        way: str,
        suspicion: str,
        difference: str,
        inputs: Mapping[str, Sequence[Items]],
        of: int,
    ) -> None:
        self.way, self.suspicion, self.difference = way, suspicion, difference
        self.inputs = inputs
        """The fewest rows that were found, in the form that `check` and `run` take."""
        self.of = of
        """The number of rows before shrinking."""
        count = sum(len(items) for parts in inputs.values() for items in parts)
        super().__init__(
            f"another answer: {way}\n"
            + "".join(f"  {line}\n" for line in difference.splitlines())
            + f"with {count} of {of} rows:\n"
            + "".join(f"  {line}\n" for line in _shown(inputs))
            + f"perhaps {suspicion}"
        )

    def __reduce__(self) -> tuple[object, ...]:
        fields = (self.way, self.suspicion, self.difference, self.inputs, self.of)
        return AnswersDiffer, fields


def _shown(inputs: Mapping[str, Sequence[Items]]) -> list[str]:
    lines = []
    for name, parts in inputs.items():
        for number, items in enumerate(parts):
            where = name if len(parts) == 1 else f"{name}, partition {number}"
            lines += [f"{where}: {dict(row)!r}" for row in items]
    if len(lines) > MOST_SHOWN:
        return [*lines[:MOST_SHOWN], f"… {len(lines) - MOST_SHOWN} more"]
    return lines


def counterexample(trial: GivenProgram, way: Way, difference: str) -> AnswersDiffer:
    """Shrink the input to few rows with which this way still differs, and find the simplest way
    that differs with them."""
    small, shown = _shrunk(trial, way, difference)
    for simpler in way.simpler(small):
        simpler_difference = _difference(small, simpler)
        if simpler_difference:
            way, shown = simpler, simpler_difference
            break
    inputs = {name: [list(items) for items in parts] for name, parts in small.rows.items()}
    return AnswersDiffer(way.name, way.suspicion, shown, inputs, trial.count)


def _difference(trial: GivenProgram, way: Way) -> str | None:
    """Return how a way differs from the first answer; None if it does not, or if there is no
    answer."""
    try:
        first = first_answer(trial)
    except WeirError:
        return None
    return way.differs(trial, first)


def _shrunk(trial: GivenProgram, way: Way, difference: str) -> tuple[GivenProgram, str]:
    """Remove halves, quarters and so on down to single rows, as long as the answers still
    differ."""
    rows = [
        (name, part, row)
        for name, parts in trial.rows.items()
        for part, items in enumerate(parts)
        for row in range(len(items))
    ]
    left, size = way.trials, max(1, len(rows) // 2)
    while left > 0 and rows:
        before = len(rows)
        start = 0
        while start < len(rows) and left > 0:
            fewer = rows[:start] + rows[start + size :]
            left -= 1
            still_differs = _difference(trial.over(_kept(trial.rows, fewer)), way)
            if still_differs:
                rows, difference = fewer, still_differs
            else:
                start += size
        if size == 1 and len(rows) == before:
            break
        size = max(1, size // 2)
    return trial.over(_kept(trial.rows, rows)), difference


def _kept(inputs: SourceRows, rows: Sequence[tuple[str, int, int]]) -> SourceRows:
    kept = set(rows)
    return {
        name: tuple(
            [row for at, row in enumerate(items) if (name, part, at) in kept]
            for part, items in enumerate(parts)
        )
        for name, parts in inputs.items()
    }
