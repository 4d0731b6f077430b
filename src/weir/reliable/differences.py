"""Reports rows that differ from those written before under the same numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from weir.errors import LONGEST_EVENT, DeterminismViolation
from weir.events.batch import OPEN, Batch
from weir.kernels.expressions.evaluation import shown_value
from weir.reliable.digest import row_hashes

NO_ROW = "no row"
"""Is shown in the stead of a row that only one of two runs has."""
SUSPICION = (
    "is a user function not deterministic? It must not depend on hash(), the order of a set, calls "
    "before, state that it does not declare, random numbers, the clock, the time zone"
)


@dataclass(frozen=True, slots=True)
class WrittenBy:
    """Who writes a stream, for messages: its vertex, what that runs, the columns of its rows."""

    vertex: str = ""
    operators: str = ""
    columns: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RowDifference:
    """The first row of a stream that differs from the one that was there before."""

    stream: str
    row: int
    """Its number in the stream."""
    before: str | None
    """The row that was there, as messages show it, if it is known."""
    now: str
    """The row that came instead, as messages show it."""


def shown_row(rows: Batch, number: int, columns: Sequence[str]) -> str:
    """Write a row as messages show it: its lifetime, then its columns, by name if that is known.

    >>> import numpy as np, pyarrow as pa
    >>> shown_row(Batch(np.array([1]), np.array([OPEN]), (pa.array(["a"]),)), 0, ("k",))
    "{'vs': 1, 've': None, 'k': 'a'}"
    """
    ve = int(rows.ve[number])
    row: dict[str, object] = {"vs": int(rows.vs[number]), "ve": None if ve == OPEN else ve}
    for index, column in enumerate(rows.columns):
        name = columns[index] if index < len(columns) else f"column {index}"
        row[name] = shown_value(column[number])
    text = str(row)
    return text if len(text) <= LONGEST_EVENT else f"{text[:LONGEST_EVENT]}…"


def other_rows(
    stream: str, first: int, before: Batch, now: Batch, by: Callable[[], WrittenBy]
) -> DeterminismViolation | None:
    """Compare rows that are written again, from number `first` on, with those that were there;
    return the error to raise, or None if they are the same."""
    mine, theirs = row_hashes(before), row_hashes(now)
    others = np.flatnonzero((mine[0] != theirs[0]) | (mine[1] != theirs[1]))
    if not len(others):
        return None
    index, written_by = int(others[0]), by()
    texts = [shown_row(rows, index, written_by.columns) for rows in (before, now)]
    return violation(RowDifference(stream, first + index, *texts), written_by)


def violation(
    difference: RowDifference, by: WrittenBy, *, when: str = "written again"
) -> DeterminismViolation:
    """Make the error that names the vertex, its operators and the first row that differs."""
    before = difference.before or "another row"
    return _violation(
        difference.stream, by, f"row {difference.row} was {before}, {when} it is {difference.now}"
    )


def violation_among(stream: str, first: int, end: int, by: WrittenBy) -> DeterminismViolation:
    """Make the error for rows of which one differs, when it is not known which."""
    what = f"among the rows from {first} to {end}, written again, is another than before"
    return _violation(stream, by, what)


def _violation(stream: str, by: WrittenBy, what: str) -> DeterminismViolation:
    runs = f" ({by.operators})" if by.operators else ""
    who = f", written by vertex {by.vertex}{runs}" if by.vertex else ""
    return DeterminismViolation(f"stream {stream}{who}: {what}; {SUSPICION}")
