"""Makes a counterexample small, and tells it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from weir.errors import WeirError
from weir.local.run import Items
from weir.testing.trials import Given, GivenProgram, first_answer
from weir.testing.ways import Way

MOST_SHOWN = 40
"""The rows of a counterexample that the message shows."""


class AnswersDiffer(AssertionError):
    """Says that a program gives another answer when it is run in another way: which way, with
    which few rows, and how it differs."""

    def __init__(self, way: Way, trial: GivenProgram, difference: str, of: int) -> None:
        self.way, self.suspicion = way.name, way.suspicion
        self.difference = difference
        self.inputs: Mapping[str, Sequence[Items]] = {
            name: [list(items) for items in parts] for name, parts in trial.given.items()
        }
        """The fewest rows that were found, as `check` and `run` take them."""
        super().__init__(
            f"another answer: {way.name}\n"
            + "".join(f"  {line}\n" for line in difference.splitlines())
            + f"with {trial.count} of {of} rows:\n"
            + "".join(f"  {line}\n" for line in _shown(trial.given))
            + f"perhaps {way.suspicion}"
        )


def _shown(given: Given) -> list[str]:
    lines = []
    for name, parts in given.items():
        for number, items in enumerate(parts):
            where = name if len(parts) == 1 else f"{name}, partition {number}"
            lines += [f"{where}: {dict(row)!r}" for row in items]
    if len(lines) > MOST_SHOWN:
        return [*lines[:MOST_SHOWN], f"… {len(lines) - MOST_SHOWN} more"]
    return lines


def counterexample(trial: GivenProgram, way: Way, difference: str) -> AnswersDiffer:
    """Find few rows with which this way still differs, and the simplest way that does with them."""
    small, shown = _shrunk(trial, way, difference)
    for simpler in way.simpler(small):
        found = _difference(small, simpler)
        if found:
            way, shown = simpler, found
            break
    return AnswersDiffer(way, small, shown, trial.count)


def _difference(trial: GivenProgram, way: Way) -> str:
    """Return how a way differs from the first answer; empty: in nothing, or there is no answer."""
    try:
        first = first_answer(trial)
    except WeirError:
        return ""
    return way.differs(trial, first)


def _shrunk(trial: GivenProgram, way: Way, difference: str) -> tuple[GivenProgram, str]:
    """Leave out halves, quarters and so on to single rows, as long as the answers still differ."""
    rows = [
        (name, part, row)
        for name, parts in trial.given.items()
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
            found = _difference(trial.over(_kept(trial.given, fewer)), way)
            if found:
                rows, difference = fewer, found
            else:
                start += size
        if size == 1 and len(rows) == before:
            break
        size = max(1, size // 2)
    return trial.over(_kept(trial.given, rows)), difference


def _kept(given: Given, rows: Sequence[tuple[str, int, int]]) -> Given:
    kept = set(rows)
    return {
        name: tuple(
            [row for at, row in enumerate(items) if (name, part, at) in kept]
            for part, items in enumerate(parts)
        )
        for name, parts in given.items()
    }
