"""A cursor over the tokens of a program, with the moves that the grammar makes.

Contract
1. Keywords have no tokens of their own: every unquoted word is a VAR, and the grammar compares
   words where it expects keywords. So columns may be called `count`, `all` or `first`; only the
   words in RESERVED_WORDS are excluded.
2. The grammar never backtracks: it decides by one token, or at most two. Parsing takes linear time,
   and MAX_NESTING bounds its depth.
3. Every error is a `ScriptError` at the token that is wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NoReturn, TypeVar

from sqlglot import Token, TokenType, exp

from weir.plan.advice.other_dialects import function_hint
from weir.plan.limits import MOST_PARTS
from weir.plan.names import RESERVED_WORDS
from weir.script.habits import stray_hint
from weir.script.source import ProgramSource

_AFTER_LISTS = frozenset(("FROM", "WHERE", "GROUP", "HAVING", "WITH", "ORDER", "LIMIT", "UNION"))
# 64 levels of parentheses or sub-selects. Functions that walk the tree use a few frames for each
# level, and Python allows a thousand.
MAX_NESTING = 64

NodeT = TypeVar("NodeT", bound=exp.Expr)
T = TypeVar("T")


END: Final = Token(TokenType.SENTINEL, "")
"""The token after the last one; it is false, unlike every other token."""


class TokenCursor:
    """A position in the tokens of a text."""

    def __init__(self, tokens: Sequence[Token], text: str) -> None:
        self.text = text
        self._tokens = tokens
        self._index = 0
        self._depth = 0

    def nested(self, parse: Callable[[], T]) -> T:
        self._depth += 1
        if self._depth > MAX_NESTING:
            self.fail(
                f"nested more than {MAX_NESTING} levels deep",
                hint="name the inner parts as streams of their own",
            )
        result = parse()
        self._depth -= 1
        return result

    @property
    def token(self) -> Token:
        """Return the current token, or END."""
        return self._tokens[self._index] if self._index < len(self._tokens) else END

    @property
    def following(self) -> Token:
        """Return the token after the current one, or END."""
        index = self._index + 1
        return self._tokens[index] if index < len(self._tokens) else END

    @property
    def word(self) -> str:
        """Return the current token in upper case if it is an unquoted word, else ''."""
        return _upper(self.token)

    @property
    def next_word(self) -> str:
        return _upper(self.following)

    def comes(self, kind: TokenType) -> bool:
        """Tell whether the current token is of this kind."""
        return self.token.token_type == kind

    def advance(self) -> Token:
        """Step past the current token, and return it."""
        token = self.token
        self._index += 1
        return token

    def take(self, kind: TokenType) -> bool:
        """Step past the current token if it is of this kind; return whether it was."""
        if self.token.token_type != kind:
            return False
        self.advance()
        return True

    def take_word(self, *words: str) -> bool:
        """Step past these words if the first of them comes next; the others must then follow."""
        if self.word != words[0]:
            return False
        self.advance()
        for word in words[1:]:
            self.expect_word(word, f"after {words[0]}")
        return True

    def expect(self, kind: TokenType, what: str) -> Token:
        if self.token.token_type != kind:
            self.unexpected(what)
        return self.advance()

    def expect_word(self, word: str, where: str = "") -> Token:
        if self.word != word:
            self.unexpected(f"{word} {where}".rstrip())
        return self.advance()

    def name(self, what: str) -> exp.Identifier:
        """Read a name: quoted, or an unreserved word."""
        token = self.token
        quoted = token.token_type == TokenType.IDENTIFIER
        if not quoted and not is_name(token):
            self.unexpected(what, hint=self._reserved_hint())
        if quoted and (not token.text or "." in token.text):
            self.fail("a name is not empty and has no dot in it")
        self.advance()
        return self.at(exp.Identifier(this=token.text, quoted=quoted), token)

    def _reserved_hint(self) -> str:
        if self.word not in RESERVED_WORDS:
            return ""
        if self.following.token_type == TokenType.L_PAREN and function_hint(self.word):
            return function_hint(self.word)
        quote = f'`{self.token.text}` is reserved: quote it, as in "{self.token.text}"'
        before = self._tokens[self._index - 1] if self._index else END
        if before.token_type == TokenType.COMMA and self.word in _AFTER_LISTS:
            return f"is there a comma too many before it? If it is a name: {quote}"
        return quote

    def list_of(self, parse: Callable[[TokenCursor], NodeT]) -> list[NodeT]:
        """Read one or more elements, separated by commas."""
        items = [parse(self)]
        while self.take(TokenType.COMMA):
            items.append(parse(self))
        return items

    def grown(self, node: NodeT) -> NodeT:
        """Return an expression that may become part of a larger one; raise if it is too deep
        already."""
        node.meta["depth"] = depth = _depth(node)
        if depth > MOST_PARTS:
            self.fail(
                f"more than {MOST_PARTS} parts of an expression within each other",
                node,
                hint="compute some of it in a stream of its own, or use IN for a long list of ORs",
            )
        return node

    def at(self, node: NodeT, began: Token | exp.Expr) -> NodeT:
        """Return the node after noting the offset at which it began."""
        node.meta["start"] = began.start if isinstance(began, Token) else offset_of(began)
        return node

    def unexpected(self, expected: str, hint: str = "") -> NoReturn:
        actual = f"`{self.token.text}`" if self.token else "the end of the program"
        if self.token.token_type == TokenType.STRING:
            actual = f"'{self.token.text}'"
        if not hint and self.token.token_type != TokenType.STRING:
            hint = stray_hint(self.token.text.upper())
        self.fail(f"expected {expected}, found {actual}", hint=hint)

    def fail(self, message: str, where: Token | exp.Expr | None = None, hint: str = "") -> NoReturn:
        raise ProgramSource(self.text).error(message, self._offset(where), hint)

    def _offset(self, where: Token | exp.Expr | None) -> int:
        if isinstance(where, exp.Expr):
            return offset_of(where)
        token = where or self.token
        if token:
            return token.start
        return self._tokens[-1].end + 1 if self._tokens else len(self.text)


def _upper(token: Token) -> str:
    # ASCII only: upper() turns a dotless i into an I.
    is_word = token.token_type == TokenType.VAR and token.text.isascii()
    return token.text.upper() if is_word else ""


def is_name(token: Token) -> bool:
    """Tell whether the token is a word that can be a name without quotes."""
    return (
        token.token_type == TokenType.VAR
        and token.text.isidentifier()
        and _upper(token) not in RESERVED_WORDS
    )


def _depth(node: exp.Expr) -> int:
    depth = node.meta.get("depth")
    if isinstance(depth, int):
        return depth
    return 1 + max(map(_depth, node.iter_expressions()), default=0)


def offset_of(node: exp.Expr) -> int:
    start = node.meta.get("start", 0)
    assert isinstance(start, int)
    return start
