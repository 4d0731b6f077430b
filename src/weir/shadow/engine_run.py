"""Runs the engine over the first events of logs, for its emitted rows in order and its states."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

import pyarrow as pa

from weir.errors import WeirError
from weir.events.batch import OPEN, Batch
from weir.events.python_lists import python_list
from weir.kernels.expressions.evaluation import shown_value
from weir.local.runner import LocalRun
from weir.plan.operators import FinalState, Node, Number, schema
from weir.plan.program import Output
from weir.runtime.partitions import Partitions
from weir.runtime.programs import program_of
from weir.shadow.restored_states import SavedCells, saved_functions

EngineRow: TypeAlias = tuple[int, "int | None", tuple[object, ...]]
"""A row's start, its end (None: open), and its values."""


@dataclass(frozen=True, slots=True)
class EnginePlan:
    """What an app compiles to: its emitted streams and, if tables can hold them, its final states.

    `unseen` are states with merges from inputs that are not read here.
    """

    emitted: Mapping[str, Node]
    states: Mapping[str, FinalState] | None
    unseen: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class EngineResult:
    """The results of the engine, or why it failed.

    They are rows by stream, in order, and saved cells by state, with the functions that they name
    (None: unknown).
    """

    rows: dict[str, list[EngineRow]] = field(default_factory=dict)
    states: dict[str, SavedCells] | None = None
    failed: WeirError | None = None


def run_engine(plan: EnginePlan, partitions: Partitions) -> EngineResult:
    """Run the engine in this process."""
    # Operators that number rows get them in order.
    nodes: list[Node] = [Number(node) for node in plan.emitted.values()]
    nodes += (plan.states or {}).values()
    batches: list[list[Batch]] = [[] for _ in nodes]
    program = program_of([Output(str(n), node, "") for n, node in enumerate(nodes)])
    try:
        LocalRun(program, partitions, [kept_in(received) for received in batches]).run()
    except WeirError as error:
        return EngineResult(failed=error)
    emitted = dict(zip(plan.emitted, batches, strict=False))
    rows = {
        name: [row for b in received for row in engine_rows(b)]
        for name, received in emitted.items()
    }
    if plan.states is None:
        return EngineResult(rows)
    kept = zip(plan.states.items(), batches[len(plan.emitted) :], strict=True)
    return EngineResult(
        rows, {name: saved_cells(node, received) for (name, node), received in kept}
    )


def engine_rows(
    batch: Batch, python: Callable[[pa.Array], list[object]] | None = None
) -> list[EngineRow]:
    """Return the rows of a batch in the loop's form; `python` converts a column."""
    ends = [None if ve == OPEN else ve for ve in batch.ve.tolist()]
    return list(zip(batch.vs.tolist(), ends, _tuples(batch, python or _python), strict=True))


def _tuples(batch: Batch, python: Callable[[pa.Array], list[object]]) -> list[tuple[object, ...]]:
    columns = [python(column) for column in batch.columns]
    return list(zip(*columns, strict=True)) if columns else [()] * len(batch)


def saved_cells(node: FinalState, batches: Iterable[Batch]) -> SavedCells:
    """Return the cells of a final state, from its batches, in the loop's form."""
    names = schema(node).names
    rows = [
        (vs, dict(zip(names, values, strict=True)))
        for batch in batches
        for vs, values in zip(batch.vs.tolist(), _tuples(batch, _python), strict=True)
    ]
    return rows, saved_functions(node)


def kept_in(batches: list[Batch]) -> Callable[[int, Batch], None]:
    """Return a function that collects the batches of an output."""
    return lambda _, rows: batches.append(rows)


def _python(column: pa.Array) -> list[object]:
    try:
        return python_list(column)
    except (ValueError, OverflowError):  # a time beyond the year 9999, which the loop never has
        return [shown_value(value) for value in column]
