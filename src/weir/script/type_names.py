"""Parses type names of scripts, and maps them to Arrow types.

    type := NAME [ ( parameter {, parameter} ) ], as in BIGINT, DECIMAL(10, 2), LIST(T), ARRAY<T>,
            STRUCT(a T, …)

A parsed type is an `exp.DataType` with its upper-case name in `kind`; `arrow_type` knows which
names exist.
"""

from __future__ import annotations

import pyarrow as pa
from sqlglot import TokenType, exp

from weir.events.types import TYPE_NAMES, simple_type, type_hint
from weir.plan.functions.coercion import MAX_PRECISION
from weir.script.cursor import TokenCursor, offset_of
from weir.script.source import ProgramSource

_BRACKETS = {
    TokenType.L_PAREN: (TokenType.R_PAREN, ")"),
    TokenType.LT: (TokenType.GT, ">"),
}


def data_type(p: TokenCursor) -> exp.DataType:
    """Parse a type and its parameters."""
    token = p.token
    name = p.name("a type").name.upper()
    parameters = p.nested(lambda: _parameters(p, name))
    node = exp.DataType(this=exp.DType.USERDEFINED, kind=name, expressions=parameters)
    return p.at(node, token)


def _parameters(p: TokenCursor, name: str) -> list[exp.Expr]:
    brackets = _BRACKETS.get(p.token.token_type)
    if brackets is None:
        return []
    p.advance()
    parameters = p.list_of(column_definition if name == "STRUCT" else _parameter)
    p.expect(brackets[0], f"`{brackets[1]}` after the parameters of {name}")
    return parameters


def _parameter(p: TokenCursor) -> exp.Expr:
    if p.comes(TokenType.NUMBER):
        token = p.advance()
        return p.at(exp.Literal.number(token.text), token)
    return data_type(p)


def column_definition(p: TokenCursor) -> exp.Expr:
    """Parse `name TYPE`, in STREAM and STRUCT."""
    name = p.name("a column's name")
    return p.at(exp.ColumnDef(this=name, kind=data_type(p)), name)


# --- to Arrow ------------------------------------------------------------------------------


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
