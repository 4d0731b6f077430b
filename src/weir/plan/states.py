"""Cells of versioned state in a scan, and the merges and reads that reach them.

Contract
1. A cell is the value of one state under one key. It is the state's default until something is
   merged into it; a value that was handed out never changes.
2. Requests to a scan are handled in order of (vs, the event's origin, block, element, order).
3. With `last`, a cell is the fold, from the default and in order, of the merges at t for which t ≤
   r < t + last, where r is the time of the read. With `expires`, it is the default from the time of
   the last merge + expires on. A state cannot have both.
4. `add` on DOUBLE is the exact sum of the default and all arguments, rounded at each read. An INT
   or BIGINT value beyond its type is an error at the merge that makes it (with `last`: at the
   read).
5. For NULL arguments, `set` stores NULL; `append` and `add_to_set` add it as an element; `add`,
   `max`, `min`, `top_k` of NULL are errors, as in Python.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias
from typing import Literal as OneOf

import pyarrow as pa

from weir.errors import ProgramPlace
from weir.plan.expressions import Literal

if TYPE_CHECKING:
    from weir.plan.usercode.imported_files import ImportedFrom

MergeKind: TypeAlias = OneOf["add", "set", "max", "min", "append", "add_to_set", "top_k", "call"]


@dataclass(frozen=True, slots=True)
class MergeTraits:
    """The properties of a kind of merge, for all code that depends on its arguments."""

    kind: MergeKind
    method: str
    """The method of a state that makes such a merge."""
    takes: tuple[str, ...] = ("x",)
    """The parameters of the method, after the key; `k` is a constant."""
    of: OneOf["values", "numbers", "ordered values", "elements", "ordered elements"] = "values"
    """What it applies to: values of a state's type, or elements of a LIST."""
    null: bool = False
    """Whether it accepts NULL."""

    @property
    def of_elements(self) -> bool:
        return self.of in ("elements", "ordered elements")

    @property
    def has_k(self) -> bool:
        return "k" in self.takes

    @property
    def is_value(self) -> bool:
        """Whether one value describes it fully, so that a row of a column can contain it."""
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
"""The properties of all kinds.

`cells.py` has what each does, `cell_windows.py` how windows keep it, and `fast_kinds.py` which
kinds a compiled loop has."""


def told_kinds(of_list: bool) -> tuple[MergeKind, ...]:
    """Return the kinds that one value of a row can describe, for LIST states or for others."""
    kinds = (t for t in MERGE_TRAITS.values() if t.is_value)
    return tuple(t.kind for t in kinds if t.kind == "set" or t.of_elements == of_list)


@dataclass(frozen=True, slots=True)
class Cell:
    """The properties of a state's cells.

    `default` is immutable: lists are tuples, structs are tuples of (name, value) pairs."""

    state: str
    keys: tuple[pa.DataType, ...]
    type: pa.DataType
    default: object
    last: int | None = None
    expires: int | None = None


@dataclass(frozen=True, slots=True)
class HandlerPlace:
    """Where a handler uses a state: the handler's name, and the line."""

    handler: str
    place: ProgramPlace


class CellFailure(Exception):
    """A merge or a read failed; the text has the reason, and `at` is its place in a handler."""

    at: HandlerPlace | None = None
    merge: MergeKind | None = None
    """The kind of the merge that failed when a window was read, because reads repeat merges."""


@dataclass(frozen=True, slots=True)
class MergeFunction:
    """A merge that calls a function: `function(old, *args) -> new`.

    The function is pure and travels like a `ScalarFunction`. `step` names an operation that a
    compiled loop has ("add_float": old + arg as IEEE numbers); if it is empty, Python calls the
    function.
    """

    name: str
    function: Callable[..., object]
    line: int = field(default=0, compare=False)
    step: str = ""
    imported: ImportedFrom | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class StateMerge:
    """A merge by a port's rows for which `condition` (a BOOLEAN column) is true.

    `args` are columns of the port, or typed constants. `top_k` also has `k`; `call` has a function.
    Different functions that are merged into one state have different names.
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
    """Returns the cell's value to the rows of port 0, in a new column."""

    state: int
    column: str
    order: int
    block: int
    at: HandlerPlace | None = field(default=None, compare=False, repr=False)
    defers: bool = False
    """Whether a sum beyond its type is NULL at first, and fails only if a handler uses it."""


# --- row by row ----------------------------------------------------------------------------


def key_parts(key: Any) -> tuple[Any, ...]:
    """Return the parts of a key: the elements of a tuple or named tuple, or the value itself.

    An event, although a tuple too, is one value.

    >>> from collections import namedtuple
    >>> key_parts("a"), key_parts(namedtuple("Key", "k n")("a", 1))
    (('a',), ('a', 1))
    """
    own = type(key)
    is_named = issubclass(own, tuple) and type(getattr(own, "_fields", None)) is tuple
    return tuple(key) if own is tuple or is_named else (key,)


class UnplannedAccess(CellFailure):
    """Handler code used a state or emitted a row in a way that the plan does not provide for."""


_thread = threading.local()
"""Per thread: `cursor` is that of the scan whose handler code is running."""
_NO_KEY = object()
"""A key that is not equal to any other."""


@dataclass(slots=True)
class RowCursor:
    """The row that handler code is running on; the caller of the code moves it."""

    row: int = 0
    """The row's number among the output rows of the step."""
    now: int = 0
    """The event's time."""
    key: Any = None
    """The row's key: the value of one column, or a tuple of several."""
    merging: str = ""
    """The state whose merge function is running; the function must neither merge nor emit."""
    is_active: bool = False
    """Whether handler code is running in this scan; accessors from an earlier run raise."""
    failure: CellFailure | None = None
    """The first failure of a state or of the plan.

    It ends the run, even if handler code caught it."""

    def failed(self, failure: CellFailure) -> CellFailure:
        """Record a failure at the cursor of the scan that is running; return the first one."""
        cursor: RowCursor = getattr(_thread, "cursor", None) or self
        cursor.failure = cursor.failure or failure
        return cursor.failure

    @contextmanager
    def running(self) -> Iterator[None]:
        """Make this the cursor of the scan that is running in this thread."""
        before = getattr(_thread, "cursor", None)
        _thread.cursor, self.is_active, self.failure = self, True, None
        try:
            yield
        finally:
            _thread.cursor, self.is_active, self.key = before, False, _NO_KEY


AccessMethod: TypeAlias = Callable[..., Any]
"""A method of a state, as handler code calls it."""
Accessors: TypeAlias = Mapping[str, AccessMethod]
"""The methods of a state, by name (`get`, `add`, `merge` …), as handler code calls them.

There is also `merge_call(key, args, function, name)`, which merges a function that has a name in
snapshots."""


@dataclass(frozen=True, slots=True)
class EffectRows:
    """What handler code emitted for one effect of a scan since the last step."""

    rows: list[int] = field(default_factory=list)
    """The row (`RowCursor.row`) of each entry."""
    columns: tuple[list[object], ...] = ()
    """The values of the entries, by column."""
    settle: tuple[Callable[[Any], Any], ...] = ()
    """Functions that check and copy a value, one for each column.

    They raise `CellFailure` if a value does not fit, with a text such as "BIGINT, not 1.5
    (float)"."""
    kinds: tuple[type | None, ...] = ()
    """The Python type of each column whose values need only a type check, else None.

    These are bool, float, str in ASCII, and int of 64 bits."""

    def clear(self) -> None:
        self.rows.clear()
        for column in self.columns:
            column.clear()


@dataclass(frozen=True, slots=True)
class WindowCall:
    """A function that row code merges into the window of a state, with its argument types.

    `saved_states.saved_name` returns its name in snapshots."""

    state: int
    function: MergeFunction
    types: tuple[pa.DataType, ...]


@dataclass(frozen=True, slots=True)
class RowEffect:
    """A new column of a row scan.

    It has a value (NULL if there is none), or a list of all that handler code emitted for the
    row."""

    column: str
    type: pa.DataType
    is_list: bool = False
    is_whole: bool = False
    """Whether an entry of a list is one value, even if it is a STRUCT."""

    @property
    def fields(self) -> tuple[tuple[str, pa.DataType], ...]:
        """The values of an entry: the fields of a STRUCT in a list, or the value itself."""
        value = self.type.value_type if self.is_list else self.type
        if self.is_list and not self.is_whole and pa.types.is_struct(value):
            return tuple((field.name, field.type) for field in value)
        return ((self.column, value),)


RowRun: TypeAlias = Callable[["tuple[Any, ...]"], None]
"""Runs handler code on one row: vs, ve (None if open), then the columns of its port."""


class RowRunner(Protocol):
    """Runs handler code on the rows of a scan's first ports.

    Within `bound()`, the handles of states and of the app work, in the thread that runs it;
    elsewhere, every call of them raises.
    """

    @property
    def runs(self) -> Sequence[Sequence[RowRun]]:
        """Functions that run one row, for each port and each of its places.

        The caller sets the cursor's row first."""

    @property
    def loop(self) -> Callable[[Iterable[tuple[Any, ...]]], None]:
        """A function that runs rows of port 0 at all its places.

        It counts the cursor's row from 0."""

    def bound(self) -> AbstractContextManager[None]: ...

    def check(self) -> None:
        """Raise RunError if handler code keeps something that is not a state."""


@dataclass(frozen=True, slots=True)
class RowCode:
    """Runs handlers row by row; `make` returns the runner, once for each scan.

    `make` gets the accessors of the scan's states in their order, the cursor that these use, and
    where each effect goes.
    """

    name: str
    make: Callable[[Sequence[Accessors], RowCursor, Sequence[EffectRows]], RowRunner]
    imported: ImportedFrom | None = field(default=None, compare=False, repr=False)
    unsaved: str = field(default="", compare=False, repr=False)
    """A text that names its cells that no snapshot can keep; empty if all can be kept."""
