"""The methods of a state while handler code runs, as closures over the cells.

Contract
1. `accessors` returns `get` and the merges of a state, with the arguments that `weir.State`
   declares. Every access of row-by-row code calls them, so the common case of each is a few lines
   over a dict (`accessor_code.py`); `CellTable` does the rest.
2. A key is one value, or a tuple. It is settled by the types of the state's key (`True` becomes 1,
   a subclass of `str` a `str`), then compared as groups are (`canonical_key`). Cells of a state
   with one key column are held by the value itself, others by the tuple.
3. If cells are split by key (`keyed`), an access must have the key of the cursor's row: cells of
   other keys may be in another partition.
4. A failure is recorded at the cursor before it is raised: even if handler code catches it, the run
   ends. An access by a closure that was kept from an earlier run also ends it.
5. `cursor.merging` is set while a merge's function runs; a merge or emit during that time is an
   error.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable
from typing import Any

import pyarrow as pa

from weir.kernels.expressions.handler_values import settled_value
from weir.kernels.expressions.user_values import Misfit, shown
from weir.kernels.structures.accessor_code import fast_methods, is_plain
from weir.kernels.structures.cell_windows import canonical_key
from weir.kernels.structures.cells import CellTable
from weir.kernels.structures.exact_doubles import ExactDouble
from weir.plan.states import (
    MERGE_TRAITS,
    AccessMethod,
    Accessors,
    Cell,
    CellFailure,
    MergeKind,
    RowCursor,
    UnplannedAccess,
    key_parts,
)

CellKeyOf = Callable[[Any], Hashable]
"""Converts a key from handler code to the key of a cell, or raises."""


def accessors(table: CellTable, cursor: RowCursor, *, keyed: bool) -> Accessors:
    """Return the methods of a state, by name."""
    key_of = _key_of(table.cell, cursor, keyed=keyed)
    methods: dict[str, AccessMethod] = {
        "get": _get(table, cursor, key_of),
        "merge_call": _merge_call(table, cursor, key_of),
    }
    for kind, traits in MERGE_TRAITS.items():
        methods[traits.method] = _merge(table, cursor, key_of, kind)
    if table.cell.last is not None or table.timed:
        return methods
    settled = _settled(table.cell, cursor, "call", table.cell.type)
    return methods | fast_methods(table, cursor, key_of, settled, methods, keyed=keyed)


# --- keys ------------------------------------------------------------------------------------


def cell_key(parts: tuple[Any, ...]) -> Hashable:
    """Return the key under which a cell is held.

    >>> cell_key(("a",)), cell_key((-0.0, 1))
    ('a', (0.0, 1))
    """
    canonical = canonical_key(parts)
    assert isinstance(canonical, tuple)
    return canonical[0] if len(parts) == 1 else canonical


def _key_of(cell: Cell, cursor: RowCursor, *, keyed: bool) -> CellKeyOf:
    columns, settle = len(cell.keys), [settled_value(dtype) for dtype in cell.keys]

    def any_key(key: Any) -> Hashable:
        if not cursor.is_active:
            raise cursor.failed(_kept_too_long(cell))
        parts = key if type(key) is tuple else key_parts(key)
        if len(parts) != columns:
            why = f"a key of {cell.state} has {columns} parts, not {len(parts)}"
            raise cursor.failed(CellFailure(why))
        try:
            return cell_key(tuple(one(part) for one, part in zip(settle, parts, strict=True)))
        except Misfit as misfit:
            why = f"a key of {cell.state} must be {misfit}"
            raise cursor.failed(CellFailure(why)) from None

    def row_key(key: Any) -> Hashable:
        planned: Any = cursor.key
        # Rows contain the same objects as events: most keys are identical, not just equal.
        if key is planned and is_alike:
            return cursor.key  # type: ignore[no-any-return]
        row = cell_key(cursor.key if columns > 1 else (planned,))
        if any_key(key) != row:
            why = (
                f"{cell.state} is used with the key {shown(key)}, and only {shown(planned)} was "
                "planned for this event"
            )
            raise cursor.failed(UnplannedAccess(why))
        return row

    is_alike = columns == 1 and is_plain(cell.keys[0])
    return row_key if keyed else any_key


def _kept_too_long(cell: Cell) -> UnplannedAccess:
    return UnplannedAccess(
        f"a method of {cell.state} was kept from an earlier run and is called now; write "
        f"{cell.state}.get(…), {cell.state}.add(…) where it is called"
    )


# --- methods ---------------------------------------------------------------------------------


def _get(table: CellTable, cursor: RowCursor, key_of: CellKeyOf) -> AccessMethod:
    values, default, copy = table.values, table.default, table.copy

    def get_timed(key: Any) -> Any:
        held = key_of(key)
        try:
            value = table.get(held, cursor.now)
        except CellFailure as failure:
            raise cursor.failed(failure) from None
        return math.nan if value != value else value

    def get_plain(key: Any) -> Any:
        value = values.get(key_of(key), default)
        if copy is not None:
            return copy(value)
        if type(value) is ExactDouble:
            value = value.rounded()
        return math.nan if value != value else value  # one NaN object, as in events

    return get_timed if table.cell.last is not None or table.timed else get_plain


def _merge(table: CellTable, cursor: RowCursor, key_of: CellKeyOf, kind: MergeKind) -> AccessMethod:
    cell, traits = table.cell, MERGE_TRAITS[kind]
    of_elements = traits.of_elements and pa.types.is_list(cell.type)
    settled = _settled(cell, cursor, kind, cell.type.value_type if of_elements else cell.type)

    def merge(key: Any, args: tuple[Any, ...], function: AccessMethod | None = None) -> None:
        held = key_of(key)
        try:
            if cursor.merging:
                raise UnplannedAccess(
                    f"{cell.state} is merged inside of a merge function of {cursor.merging}; merge "
                    "it before or after"
                )
            table.merge(held, cursor.now, kind, args, function)
        except CellFailure as failure:
            raise cursor.failed(failure) from None

    def merge_value(key: Any, x: Any) -> None:
        merge(key, (settled(x),))

    def merge_ranked(key: Any, x: Any, k: int) -> None:
        if type(k) is not int or k < 1:
            why = f"the k of {traits.method} is a positive integer, not {shown(k)}"
            raise cursor.failed(CellFailure(why))
        merge(key, (settled(x), k))

    def merge_function(key: Any, function: AccessMethod) -> None:
        def call(old: Any) -> Any:  # in a window: called whenever it is read
            before, cursor.merging = cursor.merging, cell.state
            try:
                new = function(old)
            finally:
                cursor.merging = before
            return settled(new)

        merge(key, (), call)

    if kind == "call":
        return merge_function
    return merge_ranked if traits.has_k else merge_value


def _settled(cell: Cell, cursor: RowCursor, kind: MergeKind, dtype: pa.DataType) -> AccessMethod:
    """Return a function that settles a merge's argument, or the result of its function."""
    settle, method = settled_value(dtype), MERGE_TRAITS[kind].method

    def settled(x: Any) -> Any:
        try:
            return settle(x)
        except Misfit as misfit:
            why = f"{method} of {cell.state} takes {misfit}"
            raise cursor.failed(CellFailure(why)) from None

    return settled


def _merge_call(table: CellTable, cursor: RowCursor, key_of: CellKeyOf) -> AccessMethod:
    def merge_call(key: Any, args: tuple[Any, ...], function: AccessMethod, name: str) -> None:
        held = key_of(key)
        try:
            table.merge(held, cursor.now, "call", args, function, name)
        except CellFailure as failure:
            raise cursor.failed(failure) from None

    return merge_call
