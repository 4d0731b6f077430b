"""Generates the fast path of a state's methods for its types: check the key, then use the dict.

Handler code calls these for every access. A generated method does the same as its closure in
`live_cells.py` if a type check of the key and the value is enough. It passes all other calls on to
that closure, which has the checks, the messages and the other kinds.

Only cells without `last` and `expires` have such methods: the others depend on the time.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping
from typing import Any

import pyarrow as pa

from weir.events.types import BOOLEAN, DOUBLE, is_integer
from weir.events.user_copies import StructValue
from weir.kernels.structures.cells import CellTable, value_range
from weir.kernels.structures.exact_doubles import ExactDouble
from weir.plan.states import AccessMethod, RowCursor


def is_plain(dtype: pa.DataType) -> bool:
    """Tell whether equal values of a type are always the same key.

    −0.0, NaN and lists need a closer look."""
    return dtype != DOUBLE and not pa.types.is_nested(dtype)


def fast_methods(
    table: CellTable,
    cursor: RowCursor,
    key_of: Callable[[Any], Hashable],
    settled: Callable[[Any], Any],
    otherwise: Mapping[str, AccessMethod],
    *,
    keyed: bool,
) -> dict[str, AccessMethod]:
    """Return the methods of a state that can be generated for its types, by name.

    `key_of` takes any key, `settled` any value of the state's type, and `otherwise` has all
    methods."""
    cell = table.cell
    key = _key_lines(cell.keys, keyed=keyed)
    names: dict[str, object] = {
        "cursor": cursor,
        "key_of": key_of,
        "settled": settled,
        "values": table.values,
        "lookup": table.values.get,
        "default": table.default,
        "copy": table.copy,
        "forget": table.forget_members,
        "nan": math.nan,
        "ExactDouble": ExactDouble,
        "StructValue": StructValue,
        "state": cell.state,
        **{f"other_{name}": method for name, method in otherwise.items()},
    }
    held = _held_lines(cell.type)
    fits, takes = _fits("x", cell.type), pa.types.is_nested(cell.type)
    is_list = pa.types.is_list(cell.type)
    forget = ["forget(key)"] if is_list else []
    settle = ["x = settled(x)"] if takes else []
    texts = {
        "get": ["def get(key):", *key, *held, "return value"],
        "set": [
            "def set(key, x):",
            f"if cursor.merging or not ({fits}): return other_set(key, x)",
            *settle,
            *key,
            "values[key] = x",
            *forget,
        ],
        "merge": [
            "def merge(key, function):",
            "if cursor.merging: return other_merge(key, function)",
            *key,
            *held,
            "cursor.merging = state",
            "try: x = function(value)",
            "finally: cursor.merging = ''",
            f"values[key] = {'settled(x)' if takes else f'x if {fits} else settled(x)'}",
            *forget,
        ],
    }
    if is_integer(cell.type):
        low, high = value_range(cell.type)
        texts["add"] = [
            "def add(key, x):",
            "if cursor.merging or type(x) is not int: return other_add(key, x)",
            *key,
            "old = lookup(key, default)",
            "if type(old) is not int: return other_add(key, x)",
            "new = old + x",
            f"if not {low} <= new <= {high}: return other_add(key, x)",
            "values[key] = new",
        ]
    if is_list:
        element = _fits("x", cell.type.value_type)
        texts["append"] = [
            "def append(key, x):",
            f"if cursor.merging or not ({element}): return other_append(key, x)",
            *key,
            "old = lookup(key)",
            "if old is None: return other_append(key, x)",
            "old.append(x)",
            *forget,
        ]
        if pa.types.is_nested(cell.type.value_type):
            del texts["append"]
    return {name: _compiled(name, lines, names) for name, lines in texts.items()}


def _compiled(name: str, lines: list[str], names: Mapping[str, object]) -> AccessMethod:
    text = "\n    ".join(lines)
    home = dict(names)
    exec(compile(text, __file__, "exec"), home)
    method: AccessMethod = home[name]  # type: ignore[assignment]
    return method


def _key_lines(keys: tuple[pa.DataType, ...], *, keyed: bool) -> list[str]:
    """Return the code that makes `key` the key of a cell, or of the row's cell if `keyed`."""
    if not all(map(is_plain, keys)):
        return ["key = key_of(key)"]
    count = len(keys)
    if keyed and count == 1:
        # Rows contain the same objects as events: most keys are identical, not just equal.
        kind = "int" if is_integer(keys[0]) else "str"
        is_same = f"key is cursor.key or (type(key) is {kind} and key == cursor.key)"
        return [f"if not ({is_same}): key = key_of(key)"]
    parts = ["key"] if count == 1 else [f"key[{n}]" for n in range(count)]
    is_tuple = [] if count == 1 else ["type(key) is tuple", f"len(key) == {count}"]
    if keyed:
        same = [f"{part} is row[{n}]" for n, part in enumerate(parts)]
        looks = " and ".join([*is_tuple, *same])
        return ["row = cursor.key", f"key = row if {looks} else key_of(key)"]
    fits = [_fits(part, dtype) for part, dtype in zip(parts, keys, strict=True)]
    looks = " and ".join(["cursor.is_active", *is_tuple, *fits])
    return [f"if not ({looks}): key = key_of(key)"]


def _fits(name: str, dtype: pa.DataType) -> str:
    """Return the code that checks that a value is of a type and needs no conversion."""
    if is_integer(dtype):
        low, high = value_range(dtype)
        return f"type({name}) is int and {low} <= {name} <= {high}"
    if dtype == DOUBLE:
        return f"type({name}) is float"
    if dtype == BOOLEAN:
        return f"type({name}) is bool"
    if pa.types.is_string(dtype):
        return f"type({name}) is str and {name}.isascii()"
    return "True" if pa.types.is_nested(dtype) else "False"


def _held_lines(dtype: pa.DataType) -> list[str]:
    """Return the code that makes `value` what handler code gets for a key."""
    lines = ["value = lookup(key, default)"]
    if dtype == DOUBLE:
        lines.append("if type(value) is ExactDouble: value = value.rounded()")
        lines.append("if value != value: value = nan")  # one NaN object, as in events
    elif pa.types.is_list(dtype) and not pa.types.is_nested(dtype.value_type):
        lines.append("if value is not None: value = [*value]")
    elif pa.types.is_struct(dtype) and not any(pa.types.is_nested(f.type) for f in dtype):
        lines.append("if value is not None: value = StructValue(value)")
    elif pa.types.is_nested(dtype):
        lines.append("value = copy(value)")
    return lines
