"""Lists and structs."""

from __future__ import annotations

import difflib
from dataclasses import replace

import pyarrow as pa

from weir.events.types import BIGINT, BOOLEAN, NULL, type_name
from weir.plan.expressions import Call, Literal
from weir.plan.functions.built_in import BuiltIn, never
from weir.plan.functions.coercion import coerce, type_of
from weir.plan.functions.rules import (
    argument_as,
    check_count,
    constant_at,
    rule_error,
    shared_type,
    with_type,
)


def _list(call: Call, count: int) -> pa.DataType:
    check_count(call, count, count)
    dtype = type_of(call.args[0])
    if dtype == NULL:
        return pa.list_(NULL)
    if not pa.types.is_list(dtype):
        raise rule_error(call, f"argument 1 must be a LIST, not {type_name(dtype)}")
    return dtype


def _array_length(call: Call) -> Call:
    dtype = _list(call, 1)
    return with_type(call, (coerce(call.args[0], dtype),), BIGINT)


def _array_contains(call: Call) -> Call:
    element = _list(call, 2).value_type
    shared = shared_type(replace(call, args=(Literal(None, type=element), call.args[1])))
    args = (coerce(call.args[0], pa.list_(shared)), coerce(call.args[1], shared))
    return with_type(call, args, BOOLEAN)


def _element_at(call: Call) -> Call:
    dtype = _list(call, 2)
    return with_type(
        call, (coerce(call.args[0], dtype), argument_as(call, 1, BIGINT)), dtype.value_type
    )


def _field(call: Call) -> Call:
    check_count(call, 2, 2)
    struct, name = type_of(call.args[0]), constant_at(call, 1).value
    if not pa.types.is_struct(struct):
        raise rule_error(call, f"{type_name(struct)} has no fields")
    for member in struct:
        if member.name == name:
            return with_type(call, call.args, member.type)
    close = difflib.get_close_matches(str(name).lower(), [f.name.lower() for f in struct], n=1)
    meant = [f.name for f in struct if f.name.lower() in close]
    hint = f"did you mean `{meant[0]}`?" if meant else ""
    raise rule_error(call, f"no field `{name}` in {type_name(struct)}", hint=hint)


FUNCTIONS = (
    BuiltIn("array_length", "ARRAY_LENGTH(l LIST(T))", "BIGINT", _array_length, fails=never),
    BuiltIn(
        "array_contains",
        "ARRAY_CONTAINS(l LIST(T), x T)",
        "BOOLEAN; NULL when `x` is not found but a NULL is among the elements",
        _array_contains,
        fails=never,
    ),
    BuiltIn(
        "element_at",
        "ELEMENT_AT(l LIST(T), n BIGINT)",
        "T; from 1, negative from the end, NULL outside",
        _element_at,
        fails=never,
    ),
    BuiltIn("field", "s.name", "the field of a STRUCT", _field, fails=never),
)
