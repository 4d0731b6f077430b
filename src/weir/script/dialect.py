"""Weir's dialect of sqlglot: its own tokens, and a parser that the grammar drives.

`parse_statements` is the border: sqlglot's own exceptions end here as `ScriptError`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import ClassVar

from sqlglot import exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import ParseError, TokenError
from sqlglot.tokenizer_core import Token, TokenType
from sqlglot.tokens import Tokenizer as BaseTokenizer

from weir.script.cursor import TokenCursor
from weir.script.grammar_expressions import expression
from weir.script.grammar_statements import program
from weir.script.source import ProgramSource

_SPACE = re.compile(r"\s+|--[^\n\r]*|/\*.*?\*/", re.DOTALL)


class Weir(Dialect):
    """`Weir` is the script language as a dialect; `Weir.parse` gives one tree for each
    statement."""

    # `5s` is one word, not the number 5 with the alias s.
    IDENTIFIERS_CAN_START_WITH_DIGIT = True

    class Tokenizer(BaseTokenizer):
        # No words at all: the grammar knows where a word means something.
        KEYWORDS: ClassVar[dict[str, TokenType]] = {
            "==": TokenType.EQ,
            "!=": TokenType.NEQ,
            "<>": TokenType.NEQ,
            "<=": TokenType.LTE,
            ">=": TokenType.GTE,
            "||": TokenType.DPIPE,
            "//": TokenType.DIV,
        }
        IDENTIFIERS: ClassVar[list[str | tuple[str, str]]] = ['"', "`"]
        NESTED_COMMENTS = False
        COMMANDS: ClassVar[set[TokenType]] = set()

    class Parser(TokenCursor):
        def parse(self, raw_tokens: list[Token], sql: str) -> list[exp.Expr | None]:
            self.start(raw_tokens, sql)
            return list(program(self))


# sqlglot gives every dialect Jinja's comments; in ours they would hide text.
Weir.Tokenizer._COMMENTS.pop("{#", None)


def parse_statements(source: ProgramSource) -> list[exp.Expr]:
    """Parse the program into syntax trees; raise ScriptError and nothing else."""
    with _only_script_errors(source):
        tokens = tokens_of(source)
        return [tree for tree in Weir().parser().parse(tokens, source.text) if tree is not None]


def parse_expression(source: ProgramSource) -> exp.Expr:
    """Parse a text that is one expression; raise ScriptError and nothing else."""
    with _only_script_errors(source):
        cursor = Weir().parser()
        assert isinstance(cursor, TokenCursor)
        cursor.start(tokens_of(source), source.text)
        tree = expression(cursor)
        if cursor.token:
            cursor.unexpected("the end of the expression")
        return tree


@contextmanager
def _only_script_errors(source: ProgramSource) -> Iterator[None]:
    try:
        yield
    except ParseError as error:
        details = error.errors[0] if error.errors else {}
        message = str(details.get("description") or "the program cannot be read")
        raise source.error_at(message, (details.get("line") or 1, 1)) from error


def tokens_of(source: ProgramSource) -> list[Token]:
    """Return the tokens of a program; raise ScriptError at what is never closed."""
    tokenizer = Weir().tokenizer()
    try:
        tokens = tokenizer.tokenize(source.text)
    except TokenError as error:
        # Nothing but a quote can fail; it is what comes after the last whole token.
        start = _after_space(source, tokenizer.tokens)
        quote = source.text[start : start + 1]
        raise source.error(f"this {quote} is never closed", start) from error
    _after_space(source, tokens)
    return tokens


def _after_space(source: ProgramSource, tokens: list[Token]) -> int:
    """Return the offset of what follows the last token and its comments.

    sqlglot reads an unclosed comment to the end and says nothing: here it is an error.
    """
    text, offset = source.text, tokens[-1].end + 1 if tokens else 0
    while space := _SPACE.match(text, offset):
        offset = space.end()
    if text.startswith("/*", offset):
        raise source.error("this comment is never closed", offset, hint="close it with */")
    return offset
