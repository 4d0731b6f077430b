"""Makes tokens and syntax trees from text: `parse_statements`, `parse_expression`, `tokens_of`.

This package uses only the public interface of sqlglot: `Dialect`, `Tokenizer`, its tokens, and the
nodes of `sqlglot.exp`. Errors of sqlglot become `ScriptError` here.
"""

from __future__ import annotations

import re
from typing import ClassVar

from sqlglot import Dialect, Token, TokenError, TokenType, exp
from sqlglot import Tokenizer as BaseTokenizer

from weir.script.cursor import TokenCursor
from weir.script.grammar_expressions import expression
from weir.script.grammar_statements import program
from weir.script.source import ProgramSource

_SPACE = re.compile(r"\s+|--[^\n\r]*|/\*.*?\*/", re.DOTALL)


class Weir(Dialect):
    """The tokens of the script language, for sqlglot."""

    # `5s` is one word, not the number 5 with the alias s.
    IDENTIFIERS_CAN_START_WITH_DIGIT = True

    class Tokenizer(BaseTokenizer):
        # No keywords: the grammar knows where a word is one.
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


def parse_statements(source: ProgramSource) -> list[exp.Expr]:
    """Parse the program into syntax trees; raise nothing but ScriptError."""
    return program(TokenCursor(tokens_of(source), source.text))


def parse_expression(source: ProgramSource) -> exp.Expr:
    """Parse a text that is one expression; raise nothing but ScriptError."""
    cursor = TokenCursor(tokens_of(source), source.text)
    tree = expression(cursor)
    if cursor.token:
        cursor.unexpected("the end of the expression")
    return tree


def tokens_of(source: ProgramSource) -> list[Token]:
    """Return the tokens of a program; raise ScriptError at a quote or comment that is never
    closed."""
    tokenizer = Weir.tokenizer_class(dialect=Weir)
    failure: TokenError | None = None
    try:
        tokens = tokenizer.tokenize(source.text)
    except TokenError as error:
        tokens, failure = tokenizer.tokens, error
    if "{#" in source.text and (visible := _visible(source, tokens)) is not None:
        return visible
    end = _after_space(source, tokens[-1] if tokens else None)
    if failure is not None:
        # Only an unclosed quote can fail; it follows the last whole token.
        quote = source.text[end : end + 1]
        raise source.error(f"this {quote} is never closed", end) from failure
    return tokens


def _visible(source: ProgramSource, tokens: list[Token]) -> list[Token] | None:
    """Return the tokens up to the first `{#` and its brace; None if there is no `{#`.

    In every dialect of sqlglot `{#` begins a comment, which would hide the rest. No rule of the
    grammar accepts a brace, so the rest does not matter.
    """
    for count, last in enumerate([None, *tokens]):
        offset = _after_space(source, last)
        if source.text.startswith("{#", offset):
            brace = Token(TokenType.L_BRACE, "{", start=offset, end=offset)
            return [*tokens[:count], brace]
    return None


def _after_space(source: ProgramSource, last: Token | None) -> int:
    """Return the offset of the text after a token and its comments.

    sqlglot silently reads an unclosed comment to the end; here it is an error.
    """
    text, offset = source.text, last.end + 1 if last else 0
    while space := _SPACE.match(text, offset):
        offset = space.end()
    if text.startswith("/*", offset):
        raise source.error("this comment is never closed", offset, hint="close it with */")
    return offset
