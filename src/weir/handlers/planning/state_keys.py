"""Determines the types of a state's keys: declared, or inferred from the keys that handlers use.

If one access does not show the type of a part, other accesses determine it.

Keys are compared as in grouping: an INT equals a BIGINT of the same value. In Python also 1 == 1.0
== True; keys of such different types are refused, because they would be different groups.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

import pyarrow as pa

from weir.errors import PlanError
from weir.events.types import BIGINT, INT, NULL, type_name
from weir.handlers.api.declarations import State
from weir.handlers.columns.column_values import Scope, type_of
from weir.handlers.trees.accesses import Access, GetAccess, MergeAccess
from weir.handlers.trees.scope import at
from weir.handlers.trees.tree_text import tree_text
from weir.handlers.trees.values import Opaque
from weir.plan.states import Cell

TypedAccess: TypeAlias = tuple[Access, Scope]


def app_cells(states: Mapping[str, State], accesses: Sequence[TypedAccess]) -> dict[str, Cell]:
    """Return the cells of each state that handlers touch: their types and options."""
    cells: dict[str, Cell] = {}
    for name, state in states.items():
        keys = state.keys if state.keys is not None else _found_keys(name, accesses)
        if keys is not None:
            cells[name] = Cell(name, keys, state.type, state.default, state.last, state.expires)
    return cells


def _found_keys(state: str, accesses: Sequence[TypedAccess]) -> tuple[pa.DataType, ...] | None:
    key_types: list[pa.DataType | None] | None = None
    first, unknown = "", None
    for access, scope in accesses:
        if not isinstance(access, GetAccess | MergeAccess) or access.state != state:
            continue
        types = _key_types(access, scope)
        here = at(scope, access.line)
        if unknown is None and None in types:
            unknown = access, scope
        if key_types is None:
            key_types, first = types, here
            continue
        if len(types) != len(key_types):
            raise PlanError(
                f"keys of `{state}` have {len(key_types)} part(s) in {first}, "
                f"and {len(types)} in {here}"
            )
        for i, dtype in enumerate(types):
            if dtype is None or key_types[i] is None:
                key_types[i] = dtype or key_types[i]
                continue
            both = common_key_type(key_types[i], dtype)
            if both is None:
                raise PlanError(
                    f"a key of `{state}` is {type_name(key_types[i])} in {first}, and "
                    f"{type_name(dtype)} in {here}",
                    hint="make them one type: int(…), float(…), str(…)",
                )
            key_types[i] = both
    if key_types is not None and None in key_types:
        assert unknown is not None
        raise _not_known(*unknown, key_types)
    return None if key_types is None else tuple(key_types)


def _not_known(
    access: GetAccess | MergeAccess, scope: Scope, types: Sequence[pa.DataType | None]
) -> PlanError:
    part = access.key[types.index(None)]
    what = "a key" if isinstance(part, Opaque) else f"the key {tree_text(part)}"
    return PlanError(
        f"{at(scope, access.line)}: the type of {what} of `{access.state}` is not known",
        hint=f"declare it: app.state('{access.state}', …, key={_example(types)})",
    )


def _key_types(access: GetAccess | MergeAccess, scope: Scope) -> list[pa.DataType | None]:
    types = []
    for part in access.key:
        dtype = type_of(part, scope)
        if dtype is not None and pa.types.is_nested(dtype):
            raise PlanError(
                f"{at(scope, access.line)}: a key of `{access.state}` is a {type_name(dtype)}",
                hint="a key is one value, or a tuple of values",
            )
        types.append(dtype)
    return types


def _example(types: Sequence[pa.DataType | None]) -> str:
    """Write an example key declaration with these types, as far as they are known."""
    names = tuple("STRING" if dtype is None else type_name(dtype) for dtype in types)
    return repr(names[0]) if len(names) == 1 else repr(names)


def common_key_type(one: pa.DataType, other: pa.DataType) -> pa.DataType | None:
    """Return the type that keys of both types have; None if there is none.

    >>> common_key_type(INT, BIGINT) == BIGINT
    True
    """
    if one == other or other == NULL:
        return one
    if one == NULL:
        return other
    return BIGINT if {one, other} == {INT, BIGINT} else None
