"""The grammar of statements: one function for each, chosen by the first word.

`name = …` is always a definition, so `stream = SELECT …` defines a stream called `stream`.
"""

from __future__ import annotations

from sqlglot import TokenType, exp

from weir.script.cursor import TokenCursor, is_name
from weir.script.grammar_expressions import call, expression, parameter
from weir.script.grammar_queries import query, text
from weir.script.habits import statement_hint
from weir.script.source import did_you_mean
from weir.script.tree import (
    AppUse,
    DeclareStatement,
    Definition,
    ImportStatement,
    OperatorUse,
    Option,
    OutputStatement,
    SetStatement,
    StreamStatement,
)
from weir.script.type_names import column_definition, data_type


def program(p: TokenCursor) -> list[exp.Expr]:
    """Parse statements, each ended by `;`."""
    statements = []
    while p.token:
        if p.take(TokenType.SEMICOLON):
            continue
        statements.append(_statement(p))
        p.expect(TokenType.SEMICOLON, "`;` at the end of the statement")
    return statements


def _statement(p: TokenCursor) -> exp.Expr:
    start = p.token
    if p.following.token_type == TokenType.EQ:
        return p.at(_definition(p), start)
    parse = _STATEMENTS.get(p.word)
    if parse is None:
        hint = statement_hint(p.word) or (did_you_mean(p.word, _STATEMENTS) if p.word else "")
        p.unexpected(
            "a statement",
            hint=hint or f"one of {', '.join(_STATEMENTS)}, or `Name = SELECT …`",
        )
    p.advance()
    return p.at(parse(p), start)


def _definition(p: TokenCursor) -> exp.Expr:
    name = p.name("a stream's name")
    p.expect(TokenType.EQ, "`=`")
    word, inputs = p.word, _OPERATOR_INPUTS.get(p.word)
    start = p.token
    if inputs is not None:
        p.advance()
        body: exp.Expr = p.at(inputs(p, word), start)
    elif word in ("SELECT", "WITH") or start.token_type == TokenType.L_PAREN:
        body = query(p)
    else:
        p.unexpected("SELECT, PROCESS, REDUCE, COMBINE or APP")
    return Definition(this=name, expression=body)


# --- PROCESS, REDUCE, COMBINE --------------------------------------------------------------


def _process(p: TokenCursor, kind: str) -> exp.Expr:
    inputs = [p.name("a stream's name")]
    return OperatorUse(this=kind, inputs=inputs, keys=[], call=_using(p))


def _reduce(p: TokenCursor, kind: str) -> exp.Expr:
    inputs = [p.name("a stream's name")]
    return OperatorUse(this=kind, inputs=inputs, keys=_keys(p), call=_using(p))


def _combine(p: TokenCursor, kind: str) -> exp.Expr:
    left = p.name("a stream's name")
    p.expect_word("WITH", "and the second stream")
    inputs = [left, p.name("a stream's name")]
    return OperatorUse(this=kind, inputs=inputs, keys=_keys(p), call=_using(p))


def _keys(p: TokenCursor) -> list[exp.Expr]:
    p.expect_word("ON", "and the keys")
    return p.list_of(expression)


def _using(p: TokenCursor) -> exp.Expr:
    p.expect_word("USING", "and the operator")
    return call(p)


def _app(p: TokenCursor, kind: str) -> exp.Expr:
    name = p.name("an app's name")
    p.expect(TokenType.L_PAREN, "`(` and the streams of its events")
    inputs = p.list_of(_input)
    p.expect(TokenType.R_PAREN, "`,` or `)` after a stream")
    p.expect_word("EMIT", "and what it emits")
    emit = p.name("the name of what the app emits")
    return AppUse(this=name, inputs=inputs, emit=emit, options=_options(p))


def _input(p: TokenCursor) -> exp.Expr:
    name = p.name("an event type's name")
    p.expect(TokenType.EQ, f"`=` after {name.name}")
    return p.at(Option(this=name, expression=p.name("a stream's name")), name)


_OPERATOR_INPUTS = {"PROCESS": _process, "REDUCE": _reduce, "COMBINE": _combine, "APP": _app}

# --- the other statements ------------------------------------------------------------------


def _stream(p: TokenCursor) -> exp.Expr:
    name = p.name("a stream's name")
    if not p.comes(TokenType.L_PAREN):
        p.unexpected(
            "`(` and the columns", hint="`weir schema FILE` prints the statement of a file"
        )
    p.advance()
    columns = p.list_of(_column)
    p.expect(TokenType.R_PAREN, "`,` or `)` after a column")
    if p.word == "WITH":
        p.unexpected("FROM and where the data is", hint="FROM comes before WITH")
    p.expect_word("FROM", "and where the data is")
    path = text(p, "a path or URL, a string")
    return StreamStatement(this=name, expressions=columns, path=path, options=_options(p))


def _column(p: TokenCursor) -> exp.Expr:
    if (p.word, p.next_word) in (("WATERMARK", "FOR"), ("PRIMARY", "KEY")):
        p.unexpected("a column's name")
    if p.next_word == "AS":
        p.fail("a column is `name TYPE`", hint="compute others in a query: Name = SELECT …;")
    return column_definition(p)


def _options(p: TokenCursor) -> list[exp.Expr]:
    if not p.take_word("WITH"):
        return []
    p.expect(TokenType.L_PAREN, "`(` after WITH")
    options = p.list_of(_option)
    p.expect(TokenType.R_PAREN, "`,` or `)` after an option")
    return options


def _option(p: TokenCursor) -> exp.Expr:
    name = p.name("an option's name")
    p.expect(TokenType.EQ, f"`=` after {name.name}")
    return p.at(Option(this=name, expression=expression(p)), name)


def _import(p: TokenCursor) -> exp.Expr:
    return ImportStatement(this=text(p, "a Python file's path, a string"))


def _output(p: TokenCursor) -> exp.Expr:
    kind = "rows"
    if p.word in ("LATE", "BAD") and p.next_word == "OF":
        kind = p.advance().text.lower()
        p.advance()
    name = p.name("a stream's name")
    p.expect_word("TO", "and a path")
    return OutputStatement(this=name, path=text(p, "a path or URL, a string"), kind=kind)


def _declare(p: TokenCursor) -> exp.Expr:
    if not p.comes(TokenType.PARAMETER) or p.following.token_type != TokenType.VAR:
        p.unexpected("`@` and a name", hint="write DECLARE @name TYPE = value;")
    name = parameter(p)
    if p.comes(TokenType.EQ):
        p.unexpected("a type", hint=f"write DECLARE @{name.name} BIGINT = …;")
    kind = data_type(p)
    p.expect(TokenType.EQ, "`=` and the value")
    return DeclareStatement(this=name, kind=kind, expression=expression(p))


def _set(p: TokenCursor) -> exp.Expr:
    if p.comes(TokenType.PARAMETER):
        p.unexpected("a setting's name", hint="a parameter is DECLARE @name TYPE = value;")
    if not is_name(p.token):
        p.unexpected("a setting's name")
    return SetStatement(this=_option(p))


_STATEMENTS = {
    "STREAM": _stream,
    "IMPORT": _import,
    "OUTPUT": _output,
    "DECLARE": _declare,
    "SET": _set,
}
