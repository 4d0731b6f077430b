"""Finds the types of conformance cases' rows from their values, and compares rows.

Values are written as in a .jsonl output, and compared by meaning: 1 equals 1.0, "NaN" is NaN and
equals itself, "0.10" in a DECIMAL column equals 0.1. True does not equal 1.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from decimal import Decimal, InvalidOperation

import pyarrow as pa

from weir.errors import InputError
from weir.events.batch import Batch, times
from weir.events.types import BIGINT, BOOLEAN, DOUBLE, NULL, STRING
from weir.files.sinks import json_values
from weir.ingress.memory_partitions import CTI_KEY
from weir.plan.schema import Schema

CaseItem = Mapping[str, object]

SPECIAL = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
_SCALARS = {bool: BOOLEAN, int: BIGINT, float: DOUBLE, str: STRING}

# --- types from values -----------------------------------------------------------------------


def column_types(rows: Iterable[CaseItem]) -> dict[str, pa.DataType]:
    """Return the payload columns of some events, in order of first appearance.

    >>> column_types([{"vs": 1, "k": "x", "v": 1}, {"vs": 2, "k": None, "v": 2.5}])
    {'k': DataType(string), 'v': DataType(double)}
    """
    values: dict[str, list[object]] = {}
    for row in rows:
        for name, value in row.items():
            if name not in ("vs", "ve", CTI_KEY):
                values.setdefault(name, []).append(value)
    return {name: type_of(column, name) for name, column in values.items()}


def type_of(values: Sequence[object], column: str = "") -> pa.DataType:
    """Return one type for all values; NULL if all of them are null.

    >>> type_of([1, None, 2.0]), type_of([[], [1]]), type_of([None])
    (DataType(double), ListType(list<item: int64>), DataType(null))
    """
    present = [v for v in values if v is not None]
    kinds = {type(v) for v in present}
    if not kinds:
        return NULL
    if kinds == {list}:
        return pa.list_(type_of([e for v in present for e in _list(v)], column))
    if kinds == {dict}:
        return _struct_type([_dict(v) for v in present], column)
    if kinds <= {int, float, str} and kinds != {str}:
        texts = {v for v in present if isinstance(v, str)}
        if texts <= SPECIAL.keys():
            return BIGINT if kinds == {int} else DOUBLE
    if len(kinds) == 1 and (kind := next(iter(kinds))) in _SCALARS:
        return _SCALARS[kind]
    names = ", ".join(sorted(k.__name__ for k in kinds))
    raise InputError(f"no single type holds these values: {names}", column=column)


def _struct_type(values: Sequence[Mapping[str, object]], column: str) -> pa.DataType:
    fields: dict[str, list[object]] = {}
    for value in values:
        for name, inner in value.items():
            fields.setdefault(name, []).append(inner)
    return pa.struct(
        [(name, type_of(inner_values, column)) for name, inner_values in fields.items()]
    )


def typed_rows(
    items: Sequence[CaseItem], types: Mapping[str, pa.DataType]
) -> list[dict[str, object]]:
    """Return the events with the special doubles as numbers; CTIs stay as they are."""
    doubles = [n for n, t in types.items() if _has_doubles(t)]
    if not doubles:
        return [dict(item) for item in items]
    return [
        {n: _typed(v, types[n]) if n in doubles else v for n, v in item.items()} for item in items
    ]


def _has_doubles(dtype: pa.DataType) -> bool:
    if pa.types.is_list(dtype):
        return _has_doubles(dtype.value_type)
    if pa.types.is_struct(dtype):
        return any(_has_doubles(f.type) for f in dtype)
    return bool(dtype == DOUBLE)


def _typed(value: object, dtype: pa.DataType) -> object:
    if dtype == DOUBLE:
        if isinstance(value, str):
            return SPECIAL[value]
        return float(value) if isinstance(value, int) else value
    if isinstance(value, list) and pa.types.is_list(dtype):
        return [_typed(v, dtype.value_type) for v in value]
    if isinstance(value, dict) and pa.types.is_struct(dtype):
        return {f.name: _typed(value.get(f.name), f.type) for f in dtype}
    return value


# --- equality --------------------------------------------------------------------------------

CaseRow = tuple[Hashable, ...]
"""The values of a row in the order of (vs, ve, the output's columns), in comparable form."""


def wanted_rows(items: Iterable[CaseItem], shape: Schema) -> Counter[CaseRow]:
    """Return expected rows as a multiset. A row with other columns than the output's equals no row
    of the output."""
    names, types = ("vs", "ve", *shape.names), (BIGINT, BIGINT, *shape.types)
    rows: Counter[CaseRow] = Counter()
    for item in items:
        if set(item) == set(names):
            rows[tuple(meaning(item[n], t) for n, t in zip(names, types, strict=True))] += 1
        else:
            rows[("other columns", *sorted((n, meaning(v, NULL)) for n, v in item.items()))] += 1
    return rows


def came_rows(batches: Iterable[Batch], shape: Schema) -> Counter[CaseRow]:
    """Return the rows of an output as a multiset."""
    rows: Counter[CaseRow] = Counter()
    for batch in batches:
        columns = [
            times(batch.vs, BIGINT).to_pylist(),
            times(batch.ve, BIGINT).to_pylist(),
            *(
                [meaning(v, t) for v in json_values(column)]
                for column, t in zip(batch.columns, shape.types, strict=True)
            ),
        ]
        rows.update(zip(*columns, strict=True))
    return rows


def meaning(value: object, dtype: pa.DataType) -> Hashable:
    """Convert a JSON value so that values with the same meaning are equal in Python.

    >>> meaning("NaN", DOUBLE) == meaning(math.nan, DOUBLE), meaning(1, BIGINT) == 1.0
    (True, True)
    >>> meaning(True, BOOLEAN) == 1
    False
    """
    match value:
        case bool():
            return ("boolean", value)
        case list():
            element = dtype.value_type if pa.types.is_list(dtype) else NULL
            return ("list", *(meaning(v, element) for v in value))
        case dict():
            types = {f.name: f.type for f in dtype} if pa.types.is_struct(dtype) else {}
            fields = {n: meaning(v, types.get(n, NULL)) for n, v in value.items()}
            return ("struct", *sorted(fields.items()))
        case int() | float() | str() if pa.types.is_decimal(dtype):
            return _decimal(value)
        case float() if not math.isfinite(value):
            return next(name for name, v in SPECIAL.items() if str(v) == str(value))
    assert value is None or isinstance(value, int | float | str)
    return value


def _decimal(value: float | str) -> Hashable:
    try:
        return Decimal(str(value))
    except InvalidOperation:
        return value


def shown_rows(rows: Counter[CaseRow], names: Sequence[str], most: int = 3) -> str:
    """Return rows for a message, on one line."""
    texts = []
    for row in list(rows.elements())[:most]:
        values = dict(zip(("vs", "ve", *names), row, strict=False))
        texts.append("{" + ", ".join(f"{n}: {_shown(v)}" for n, v in values.items()) + "}")
    more = rows.total() - len(texts)
    return ", ".join([*texts, *([f"and {more} more"] if more else [])])


def _shown(value: Hashable) -> str:
    if isinstance(value, tuple):
        return str(value[1]) if value[0] == "boolean" else str(list(value[1:]))
    return "null" if value is None else repr(value) if isinstance(value, str) else str(value)


def _list(value: object) -> list[object]:
    assert isinstance(value, list)
    return value


def _dict(value: object) -> dict[str, object]:
    assert isinstance(value, dict)
    return value
