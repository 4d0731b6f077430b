"""Translates type names of a script to Arrow types."""

from __future__ import annotations

import pyarrow as pa
from sqlglot import exp

from weir.events.types import TYPE_NAMES, simple_type, type_hint
from weir.plan.binding.coercion import MAX_PRECISION
from weir.script.cursor import offset_of
from weir.script.source import ProgramSource


def arrow_type(node: exp.Expr, source: ProgramSource) -> pa.DataType:
    """Return the Arrow type of a parsed type name; raise ScriptError for an unknown one."""
    name, parameters = str(node.args.get("kind")), list(node.expressions)
    match name:
        case "DECIMAL":
            return _decimal(node, parameters, source)
        case "LIST" | "ARRAY":
            if len(parameters) != 1 or not isinstance(parameters[0], exp.DataType):
                raise _error(
                    f"{name} takes the type of its elements",
                    node,
                    source,
                    "LIST(BIGINT)",
                )
            return pa.list_(arrow_type(parameters[0], source))
        case "STRUCT":
            return _struct(node, parameters, source)
    dtype = simple_type(name)
    if dtype is None:
        raise _unknown(name, node, source)
    if parameters:
        hint = f"write {name}{', which has microseconds' if name == 'TIMESTAMP' else ''}"
        raise source.error(f"{name} takes no parameters", offset_of(node), hint)
    return dtype


def _unknown(name: str, node: exp.Expr, source: ProgramSource) -> Exception:
    hint = type_hint(name) or f"the types are {', '.join(TYPE_NAMES)}"
    return source.error(f"unknown type {name}", offset_of(node), hint)


def _error(message: str, node: exp.Expr, source: ProgramSource, example: str) -> Exception:
    return source.error(message, offset_of(node), f"as in {example}")


def _decimal(node: exp.Expr, parameters: list[exp.Expr], source: ProgramSource) -> pa.DataType:
    digits = [p.name for p in parameters if isinstance(p, exp.Literal)]
    if len(digits) not in (1, 2) or len(digits) != len(parameters):
        raise _error("DECIMAL takes a precision and a scale", node, source, "DECIMAL(10, 2)")
    if not all(d.isascii() and d.isdigit() and len(d) <= 2 for d in digits):
        raise _error("a DECIMAL has 1 to 38 digits", node, source, "DECIMAL(10, 2)")
    precision, scale = int(digits[0]), int(digits[1]) if len(digits) == 2 else 0
    if not 1 <= precision <= MAX_PRECISION or scale > precision:
        raise _error(
            "a DECIMAL has 1 to 38 digits, and its scale is at most its precision",
            node,
            source,
            "DECIMAL(10, 2)",
        )
    return pa.decimal128(precision, scale)


def _struct(node: exp.Expr, parameters: list[exp.Expr], source: ProgramSource) -> pa.DataType:
    if not parameters:
        raise _error("STRUCT takes its fields", node, source, "STRUCT(a BIGINT, b STRING)")
    fields: dict[str, pa.DataType] = {}
    for field in parameters:
        name = field.name
        if name in fields:
            raise source.error(f"field `{name}` is there twice", offset_of(field))
        fields[name] = arrow_type(field.args["kind"], source)
    return pa.struct(list(fields.items()))
