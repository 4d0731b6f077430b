"""The grammar of type names accepts BIGINT, DECIMAL(10, 2), LIST(T) or ARRAY<T>, STRUCT(a T, …).

A type is an `exp.DataType` with its upper-case name in `kind`; the translator knows which names
there are (`type_names.py`).
"""

from __future__ import annotations

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from weir.script.cursor import TokenCursor

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
