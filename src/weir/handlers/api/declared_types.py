"""The types that an app declares: columns from a text, a state's type from its default.

    False BOOLEAN · 0 BIGINT · 0.0 DOUBLE · "" STRING · b"" BINARY · a date DATE ·
    a datetime TIMESTAMP · a dict STRUCT of its values' types

An empty list and None do not determine a type: they need `type=`. A default is kept as an immutable
value: lists are tuples, structs are tuples of (name, value) pairs.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TypeAlias

import pyarrow as pa

from weir.errors import PlanError
from weir.events.batch import LATEST
from weir.events.python_types import PYTHON_TYPES, TypeText, written_type
from weir.events.types import BOOLEAN, parse_type, type_name
from weir.plan.durations import Ticks, parse_duration

ColumnsText: TypeAlias = "str | Mapping[str, TypeText]"
"""Columns for `app.events`: a text ("id BIGINT, ip STRING") or a mapping."""
KeyTypes: TypeAlias = "TypeText | Sequence[TypeText]"

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_LONGEST_NAME = 100  # leaves room for the rest of a file's name


def check_app_name(what: str, name: object) -> str:
    """Return a name that works in files, columns and Python; raise PlanError for any other."""
    if problem := misnamed(what, name):
        raise PlanError(problem, hint="as in 'spam_2'")
    return str(name)


def misnamed(what: str, name: object) -> str:
    """Describe why `check_app_name` refuses a name; empty if it accepts it."""
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        return f"the name of {what} is letters, digits and _, not {name!r}"
    if len(name) > _LONGEST_NAME:
        return f"the name of {what} has {_LONGEST_NAME} letters at most, not {len(name)}: {name}"
    return ""


def parse_columns(columns: object, where: str) -> dict[str, pa.DataType]:
    """Return the columns that a text or a mapping declares.

    >>> {n: type_name(t) for n, t in parse_columns("id BIGINT, to LIST(STRING)", "m").items()}
    {'id': 'BIGINT', 'to': 'LIST(STRING)'}
    """
    if isinstance(columns, Mapping):
        return {name: written_type(t, f"column `{name}`") for name, t in columns.items()}
    if not isinstance(columns, str):
        hint = "as in 'id BIGINT, ip STRING' or {'id': 'BIGINT', 'ip': 'STRING'}"
        raise PlanError(f"invalid columns of {where}: {columns!r}", hint=hint)
    types: dict[str, pa.DataType] = {}
    for part in _split(columns):
        name, _, written = part.strip().partition(" ")
        if not written.strip():
            hint = "write name and type, as in 'id BIGINT, ip STRING'"
            raise PlanError(f"a column of {where} has no type: {part.strip()!r}", hint=hint)
        if name in types:
            raise PlanError(f"{where} has two columns called `{name}`")
        types[name] = parse_type(written)
    return types


def parse_keys(keys: KeyTypes) -> tuple[pa.DataType, ...]:
    """Return the types of a key's columns.

    >>> [type_name(t) for t in parse_keys("BIGINT, DECIMAL(10, 2)")]
    ['BIGINT', 'DECIMAL(10, 2)']
    """
    if isinstance(keys, str):
        return tuple(parse_type(part) for part in _split(keys))
    if isinstance(keys, Sequence):
        return tuple(written_type(t) for t in keys)
    return (written_type(keys),)


def parse_span(name: str, span: Ticks) -> int:
    """Return the ticks of `7d`, of a timedelta or of a number of ticks.

    PlanError unless it is at least one tick, and so small that any time plus or minus it is an
    int64.
    """
    ticks = parse_duration(span)
    if ticks < 1:
        raise PlanError(f"`{name}` must be at least 1 tick, not {span!r}", hint="such as '7d'")
    if ticks >= LATEST:
        raise PlanError(
            f"`{name}` must be less than 2**62 ticks, which is all of time, not {span!r}",
            hint=f"leave out `{name}`: then nothing ends",
        )
    return ticks


def _split(text: str) -> list[str]:
    """Split a text at its commas outside of parentheses."""
    parts, depth = [""], 0
    for c in text:
        depth += (c in "(<") - (c in ")>")
        if c == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += c
    return parts


# --- defaults -------------------------------------------------------------------------------


def typed_default(
    state: str, default: object, written: TypeText | None
) -> tuple[pa.DataType, object]:
    """Return a state's type and its default, immutable and of that type."""
    dtype = written_type(written) if written is not None else _type_of(state, default)
    return dtype, frozen(as_type(default, dtype, f"the default of `{state}`"))


def as_type(value: object, dtype: pa.DataType, what: str) -> object:
    """Return a value as the Python value of its type (1 as 1.0 for DOUBLE).

    PlanError if it does not fit.
    """
    fits = PlanError(f"{what} is {value!r}; expected {type_name(dtype)}")
    _check_fields(value, dtype, fits)
    if isinstance(value, bool) != (dtype == BOOLEAN) and value is not None and _is_plain(dtype):
        raise fits
    try:
        return pa.scalar(value, dtype).as_py()
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise fits from error


def frozen(value: object) -> object:
    """Return a value as an immutable one.

    >>> frozen({"n": 0, "last": [1, 2]})
    (('n', 0), ('last', (1, 2)))
    """
    if isinstance(value, Mapping):
        return tuple((name, frozen(part)) for name, part in value.items())
    if isinstance(value, list | tuple):
        return tuple(frozen(part) for part in value)
    return value


def _is_plain(dtype: pa.DataType) -> bool:
    return not (pa.types.is_list(dtype) or pa.types.is_struct(dtype))


def _check_fields(value: object, dtype: pa.DataType, misfit: PlanError) -> None:
    """Refuse fields that a STRUCT does not have: Arrow would drop them."""
    if pa.types.is_struct(dtype) and isinstance(value, Mapping):
        names = {field.name for field in dtype}
        if not set(value) <= names:
            raise misfit
        for field in dtype:
            _check_fields(value.get(field.name), field.type, misfit)
    if pa.types.is_list(dtype) and isinstance(value, list | tuple):
        for part in value:
            _check_fields(part, dtype.value_type, misfit)


def _type_of(state: str, default: object) -> pa.DataType:
    """Return the type of a default; PlanError with a hint if it does not determine one."""
    if type(default) in PYTHON_TYPES:
        return PYTHON_TYPES[type(default)]
    if isinstance(default, Mapping) and default:
        fields = [(str(n), _type_of(f"{state}.{n}", v)) for n, v in default.items()]
        return pa.struct(fields)
    if default is None:
        raise PlanError(f"the default of `{state}` is None", hint="say its type: type='BIGINT'")
    if isinstance(default, list | tuple) and not default:
        hint = "say its type: type='LIST(BIGINT)'"
        raise PlanError(f"the default of `{state}` is an empty list", hint=hint)
    if isinstance(default, list | tuple):
        return pa.list_(_type_of(f"{state}[0]", default[0]))
    if isinstance(default, set | frozenset):
        hint = "default=() with type='LIST(STRING)' and add_to_set keep the order of insertion"
        raise PlanError(f"the default of `{state}` is a set, which has no order", hint=hint)
    like = "STRUCT(n BIGINT)" if isinstance(default, Mapping) else "DECIMAL(10, 2)"
    raise PlanError(
        f"the default of `{state}` is a {type(default).__name__}, of which the type is not known",
        hint=f"say its type: type='{like}'",
    )
