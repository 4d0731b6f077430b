"""Tables of saved states: cells as rows, from which a later run continues.

Contract
1. `state_schema` has the payload columns. A row's `vs` is the time of a merge, `ve` the next tick.
2. Without `last`, there is one row for each cell that was ever merged into, at its last merge: the
   key (`key0`, `key1` …) and its `value`. A DOUBLE also has `exact`, which is NULL if the sum is
   the value itself. Otherwise it is a byte (1: NaN, 2: +∞, 4: −∞ was added), then the sum of all
   finite numbers in units of 2^−1074, as a little-endian integer in two's complement.
3. With `last`, there is one row for each merge that is still in the window at the newest merge of
   its cell: the key, `number` (the order of merges within a cell), `merge` (the kind, or `call` and
   the function), and the arguments: `arg` (of the cell's type, BIGINT for INT), or for lists
   `element` and `k`, or for a `call` a column for each argument.
4. Which cells are saved does not depend on cuts or parallelism. If the time of the last event is
   known, cells and merges that have ended by then are not saved. Otherwise they are saved, and a
   reader of values as of a time leaves them out.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import pyarrow as pa

from weir.errors import PlanError
from weir.events.types import BIGINT, BINARY, DOUBLE, STRING, is_integer
from weir.plan.expressions import Literal
from weir.plan.schema import Schema
from weir.plan.states import Cell, MergeFunction, StateMerge, WindowCall


@dataclass(frozen=True, slots=True)
class SavedCall:
    """The name under which calls of a function are saved, and their arguments."""

    name: str
    types: tuple[pa.DataType, ...]

    @property
    def columns(self) -> tuple[tuple[str, pa.DataType], ...]:
        return tuple((f"{self.name}.{i}", dtype) for i, dtype in enumerate(self.types))


def saved_name(function: MergeFunction) -> str:
    """Return the name under which calls of a function are saved."""
    return f"call {function.name}"


def saved_calls(
    merges: Sequence[Sequence[StateMerge]],
    below: Sequence[Schema],
    others: Sequence[WindowCall] = (),
) -> tuple[SavedCall, ...]:
    """Return the calls among these merges, and the others, each once, with their argument types."""
    return _once(
        [
            *(
                SavedCall(saved_name(m.function), tuple(argument_type(arg, rows) for arg in m.args))
                for of_port, rows in zip(merges, below, strict=True)
                for m in of_port
                if m.function is not None
            ),
            *(SavedCall(saved_name(call.function), call.types) for call in others),
        ]
    )


def _once(calls: Iterable[SavedCall]) -> tuple[SavedCall, ...]:
    unique = dict.fromkeys(calls)
    if len({call.name for call in unique}) < len(unique):
        raise PlanError(f"functions that are merged into one state share a name: {list(unique)}")
    return tuple(unique)


def argument_type(argument: str | Literal, rows: Schema) -> pa.DataType:
    """Return the type of a merge's argument, a column of these rows or a constant."""
    if isinstance(argument, Literal):
        assert argument.type is not None, f"an unbound constant in a plan: {argument}"
        return argument.type
    return rows.type_of(argument)


def key_names(cell: Cell) -> tuple[str, ...]:
    """Return the names of the key columns of saved cells."""
    return tuple(f"key{i}" for i in range(len(cell.keys)))


def state_schema(
    cell: Cell, calls: Sequence[SavedCall] = ()
) -> tuple[tuple[str, pa.DataType], ...]:
    """Return the payload columns of a state's saved cells; `calls` count only with `last`."""
    keys = tuple(zip(key_names(cell), cell.keys, strict=True))
    if cell.last is None:
        value = (("value", cell.type),)
        return (*keys, *value, ("exact", BINARY)) if cell.type == DOUBLE else (*keys, *value)
    columns = [("number", BIGINT), ("merge", STRING)]
    columns.append(("arg", BIGINT if is_integer(cell.type) else cell.type))
    if pa.types.is_list(cell.type):
        columns += [("element", cell.type.value_type), ("k", BIGINT)]
    return (*keys, *columns, *(column for call in calls for column in call.columns))
