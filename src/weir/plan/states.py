"""What state scans hold: cells of versioned state, and the merges and reads that reach them.

Contract
1. A cell is the value of one state under one key. It is the state's default until something is
   merged into it; no code ever changes a value that was handed out.
2. Requests to a scan are taken in order of (vs, the event's origin, block, element, order).
3. With `last`, a cell is the fold, from the default and in order, of the merges at t for which
   t ≤ r < t + last, where r is the time of the read. With `expires`, it is the default from the
   time of the last merge + expires on. Never both.
4. `add` on DOUBLE is the exact sum of the default and all arguments, rounded at each read. An
   INT or BIGINT value beyond its type is an error, at the merge that makes it (with `last`: at
   the read).
5. NULL arguments: `set` takes NULL; `append` and `add_to_set` take it as an element; `add`,
   `max`, `min`, `top_k` of NULL are errors, as Python's are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, TypeAlias
from typing import Literal as OneOf

import pyarrow as pa

from weir.errors import ProgramPlace
from weir.plan.expressions import Literal

if TYPE_CHECKING:
    from weir.plan.imported_files import ImportedFrom

MergeKind: TypeAlias = OneOf["add", "set", "max", "min", "append", "add_to_set", "top_k", "call"]


@dataclass(frozen=True, slots=True)
class MergeTraits:
    """`MergeTraits` are what a kind of merge is like, for all who must know its arguments."""

    kind: MergeKind
    method: str
    """The method of a state that makes it."""
    takes: tuple[str, ...] = ("x",)
    """The parameters of the method, behind the key; `k` is a constant."""
    of: OneOf["values", "numbers", "ordered values", "elements", "ordered elements"] = "values"
    """What it is for: values of a state's type, or elements of a LIST."""
    null: bool = False
    """Whether it takes NULL."""

    @property
    def of_elements(self) -> bool:
        return self.of in ("elements", "ordered elements")

    @property
    def has_k(self) -> bool:
        return "k" in self.takes

    @property
    def is_value(self) -> bool:
        """Whether one value says all of it, so that it can be told by a row of a column."""
        return self.takes == ("x",)


MERGE_TRAITS: dict[MergeKind, MergeTraits] = {
    traits.kind: traits
    for traits in (
        MergeTraits("call", "merge", ("function",)),
        MergeTraits("add", "add", of="numbers"),
        MergeTraits("set", "set", null=True),
        MergeTraits("max", "max", of="ordered values"),
        MergeTraits("min", "min", of="ordered values"),
        MergeTraits("append", "append", of="elements", null=True),
        MergeTraits("add_to_set", "add_to_set", of="elements", null=True),
        MergeTraits("top_k", "top_k", ("x", "k"), of="ordered elements"),
    )
}
"""All kinds. What each does is in `cells.py`, how windows keep it in `cell_windows.py`; which of
them a compiled loop knows, in `fast_kinds.py`."""


def told_kinds(of_list: bool) -> tuple[MergeKind, ...]:
    """Return the kinds that a row can tell of, for a state whose type is a LIST or is not."""
    kinds = (t for t in MERGE_TRAITS.values() if t.is_value)
    return tuple(t.kind for t in kinds if t.kind == "set" or t.of_elements == of_list)


@dataclass(frozen=True, slots=True)
class Cell:
    """A `Cell` says what the cells of a state are; `default` is immutable (lists are tuples,
    structs are tuples of (name, value) pairs)."""

    state: str
    keys: tuple[pa.DataType, ...]
    type: pa.DataType
    default: object
    last: int | None = None
    expires: int | None = None


@dataclass(frozen=True, slots=True)
class HandlerPlace:
    """A `HandlerPlace` is where a handler touches a state: its name, and its line."""

    handler: str
    place: ProgramPlace


class CellFailure(Exception):
    """A merge or a read cannot be done; the text says why, and `at` where a handler asked for
    it."""

    at: HandlerPlace | None = None
    merge: MergeKind | None = None
    """The kind of the merge that failed when a window was read, which repeats its merges."""


@dataclass(frozen=True, slots=True)
class MergeFunction:
    """A `MergeFunction` is a merge that is called: `function(old, *args) -> new`.

    It is pure and travels like a `ScalarFunction`. `step` names a form that a compiled loop knows
    ("add_float": old + arg as IEEE numbers); empty: Python calls it.
    """

    name: str
    function: Callable[..., object]
    line: int = field(default=0, compare=False)
    step: str = ""
    imported: ImportedFrom | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class StateMerge:
    """A `StateMerge` is a merge by a port's rows, where `condition` (a BOOLEAN column) is true.

    `args` are columns of the port, or typed constants. `top_k` has `k` besides; `call` has a
    function. Different functions that are merged into one state have different names.
    """

    state: int
    """The index of its cell in the scan's `states`."""
    kind: MergeKind
    args: tuple[str | Literal, ...]
    order: int
    block: int
    condition: str | None = None
    k: int = 0
    function: MergeFunction | None = None
    at: HandlerPlace | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class StateRead:
    """A `StateRead` answers the rows of port 0 with the cell's value, in a new column."""

    state: int
    column: str
    order: int
    block: int
    at: HandlerPlace | None = field(default=None, compare=False, repr=False)


# --- row by row ----------------------------------------------------------------------------


class Cells(Protocol):
    """`Cells` are the cells that a row's code may touch; `state` is an index in the scan's
    `states`, `key` a tuple of Python values. A window calls a merge's function later, too: only one
    with a `name`, of the scan's `calls`, can be saved with it."""

    def get(self, state: int, key: tuple[object, ...]) -> object: ...

    def merge(
        self, state: int, key: tuple[object, ...], kind: MergeKind, args: tuple[object, ...],
        function: Callable[..., object] | None = None, name: str = "",
    ) -> None: ...  # fmt: skip


RowFunction: TypeAlias = Callable[
    [int, int, "int | None", tuple[object, ...], Cells], Sequence[object]
]
"""Takes the port, vs, ve (None: open), the values of the row's columns and the cells; returns for
rows of port 0 one value for each effect's column."""


@dataclass(frozen=True, slots=True)
class WindowCall:
    """A `WindowCall` is a function that row code merges into the window of a state, with the types
    of its arguments; `saved_states.saved_name` says what it is called in `Cells.merge`."""

    state: int
    function: MergeFunction
    types: tuple[pa.DataType, ...]


@dataclass(frozen=True, slots=True)
class RowCode:
    """A `RowCode` runs handlers row by row. `make()` gives the function, once in each process."""

    name: str
    make: Callable[[], RowFunction]
    imported: ImportedFrom | None = field(default=None, compare=False, repr=False)
    places: tuple[HandlerPlace, ...] = field(default=(), compare=False, repr=False)
    """Where the handlers have each effect, for messages; none for what no handler says itself."""
    unsaved: str = field(default="", compare=False, repr=False)
    """Which of its cells no snapshot can keep, in words; empty if all can be kept."""
