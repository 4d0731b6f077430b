"""Formats scripts: changes spaces and lines, and keeps tokens and comments.

Rules
1. Reserved words, and words that belong to them (GROUP BY, UNION ALL, …), are in upper case;
   everything else stays as written.
2. A statement that fits on one line is put on one. Otherwise each clause has a line; a clause that
   is still too long is broken at its commas, at AND and OR, or inside its parentheses.
3. Comments keep their places before, after or between tokens. Several blank lines between
   statements become one.
4. The result has the same tokens, so it means the same. Formatting it again changes nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from sqlglot import Token, TokenType, exp

from weir.plan.names import RESERVED_WORDS
from weir.script.dialect import parse_statements, tokens_of
from weir.script.source import ProgramSource

WIDTH = 100
_STEP = "  "
_COMMENT = re.compile(r"--[^\n\r]*|/\*.*?\*/", re.DOTALL)
_FOLLOWING: dict[str, tuple[str, ...]] = {
    "GROUP": ("BY",),
    "ORDER": ("BY",),
    "PARTITION": ("BY",),
    "UNION": ("ALL",),
    "WITH": ("TIES",),
    "LEFT": ("SEMI", "ANTI", "OUTER"),
    "RIGHT": ("OUTER",),
    "FULL": ("OUTER",),
    "ANTI": ("SEMI",),
}
_STATEMENTS = frozenset(("STREAM", "IMPORT", "DECLARE", "SET", "OUTPUT"))
_OPERATORS = frozenset(("PROCESS", "REDUCE", "COMBINE", "APP"))
_JOINS = frozenset(("INNER", "LEFT", "RIGHT", "FULL", "CROSS", "CLIP", "ASOF"))
_CLAUSES = _JOINS | {
    "SELECT",
    "FROM",
    "WHERE",
    "GROUP",
    "HAVING",
    "WITH",
    "UNION",
    "ORDER",
    "LIMIT",
    "PARTITION",
    "JOIN",
}
_OPENING = {TokenType.L_PAREN, TokenType.L_BRACKET}
_CLOSING = {TokenType.R_PAREN, TokenType.R_BRACKET}
_VALUES = _CLOSING | {TokenType.VAR, TokenType.IDENTIFIER, TokenType.NUMBER, TokenType.STRING}
"""Tokens after which a minus subtracts; elsewhere it is a sign."""
_SPACED = RESERVED_WORDS | {"BY", "ALL", "FILTER", "USING"}


@dataclass(slots=True)
class _LaidToken:
    """A token to be written, with the comments before and after it."""

    kind: TokenType
    text: str
    upper: str
    """The text in upper case if the token is an unquoted word."""
    above: list[str] = field(default_factory=list)
    inside: list[str] = field(default_factory=list)
    """Comments between the token before and this one, on the same line as both."""
    after: str = ""
    """A comment after the token that ends its line."""
    blank: bool = False
    """Whether a blank line stood before the token, or before the comments above it."""
    tight: bool = False
    """Whether the next token follows without a space: after a minus that is a sign."""
    calls: bool = False
    """Whether a parenthesis that follows belongs to a call or a type."""


def format_program(text: str) -> str:
    """Format a script; raise ScriptError if the text is not a script.

    >>> print(format_program("x=select  k,count(*) as n from A group by k;"), end="")
    x = SELECT k, count(*) AS n FROM A GROUP BY k;
    """
    source = ProgramSource(text)
    words, rest = _words(source)
    lines: list[str] = []
    for statement in _statements(words):
        if statement[0].blank and lines:
            lines.append("")
        lines += statement[0].above
        statement[0].above = []
        lines += _statement(statement)
    for number, (comment, blank) in enumerate(rest):
        if blank and (lines or number):
            lines.append("")
        lines.append(comment)
    formatted = "".join(f"{line.rstrip()}\n" for line in lines)
    _check_same(source, formatted)
    return formatted


def _check_same(source: ProgramSource, formatted: str) -> None:
    """Check that the formatted script has the same syntax trees and comments (rule 4)."""

    def seen(program: ProgramSource) -> tuple[list[object], list[str]]:
        comments = [
            c for gap, _ in _gaps(program, tokens_of(program)) for c in _COMMENT.findall(gap)
        ]
        return [_shape(tree) for tree in parse_statements(program)], [c.strip() for c in comments]

    assert seen(source) == seen(ProgramSource(formatted)), "formatting would change the program"


def _shape(value: object) -> object:
    """Return a syntax tree as plain values, without positions."""
    if isinstance(value, exp.Expr):
        return type(value).__name__, {name: _shape(arg) for name, arg in value.args.items()}
    return [_shape(item) for item in value] if isinstance(value, list) else value


# --- tokens and comments ---------------------------------------------------------------------


def _is_word(token: Token) -> bool:
    return token.token_type == TokenType.VAR and token.text.isascii()


def _gaps(source: ProgramSource, tokens: Sequence[Token]) -> Iterator[tuple[str, Token | None]]:
    """Yield the text before each token, and the text after the last one."""
    at = 0
    for token in tokens:
        yield source.text[at : token.start], token
        at = token.end + 1
    yield source.text[at:], None


def _words(source: ProgramSource) -> tuple[list[_LaidToken], list[tuple[str, bool]]]:
    """Return the tokens with their comments, and the comments after the last line with a token."""
    words: list[_LaidToken] = []
    rest: list[tuple[str, bool]] = []
    for gap, token in _gaps(source, tokens_of(source)):
        above, inside, after, blanks = _comments(gap, bool(words), token is None)
        if after:
            words[-1].after = after
        if token is None:
            rest = list(zip(above, blanks, strict=False))
            continue
        written = source.text[token.start : token.end + 1]
        upper = token.text.upper() if _is_word(token) else ""
        blank = blanks[0] if blanks else False
        words.append(_LaidToken(token.token_type, written, upper, above, inside, "", blank))
    _raise_case(words)
    return words, rest


def _comments(gap: str, follows: bool, ends: bool) -> tuple[list[str], list[str], str, list[bool]]:
    """Sort the comments between two tokens. Return those on lines of their own, those on one line
    with the second token, and the one that ends the first token's line. The booleans say whether a
    blank line stood before each comment of the first kind or, without any, before the second
    token."""
    comments, breaks, at = [], [], 0
    for match in _COMMENT.finditer(gap):
        breaks.append(gap[at : match.start()].count("\n"))
        comments.append(match[0].rstrip())
        at = match.end()
    breaks.append(gap[at:].count("\n") + ends)
    first = 0
    while follows and first < len(comments) and not breaks[first]:
        first += 1
    after = " ".join(comments[:first])
    last = len(comments)
    while last > first and not breaks[last] and comments[last - 1].startswith("/*"):
        last -= 1
    inside = comments[last:]
    if first == len(comments) and not breaks[first] and first and comments[-1].startswith("/*"):
        after, inside = "", comments
    blanks = [count > 1 for count in breaks[first:last]] or [breaks[first] > 1]
    return comments[first:last], inside, after, blanks


def _raise_case(words: list[_LaidToken]) -> None:
    """Write reserved words in upper case (rule 1), and note which tokens stand close together."""
    nothing = _LaidToken(TokenType.SEMICOLON, "", "")
    begin, operator = nothing, False
    for number, word in enumerate(words):
        before = words[number - 1] if number else nothing
        follows = words[number + 1] if number + 1 < len(words) else nothing
        starts = before.kind == TokenType.SEMICOLON
        if starts:
            begin, operator = word, False
            is_keyword = word.upper in _STATEMENTS and follows.kind != TokenType.EQ
        elif before.kind == TokenType.EQ and word.upper in _OPERATORS:
            operator = is_keyword = follows.kind == TokenType.VAR
        elif begin.text == "OUTPUT" and word.upper in ("LATE", "BAD"):
            is_keyword = before is begin and follows.upper == "OF"
        elif begin.text == "OUTPUT" and word.upper in ("OF", "TO"):
            is_keyword = before is not begin
        elif operator and word.upper in ("USING", "EMIT"):
            is_keyword = before.text not in _OPERATORS and before.upper != "WITH"
        else:
            is_keyword = word.upper in _FOLLOWING.get(before.upper, ())
            if before.upper == "ANTI":  # ANTI may also be a column
                is_keyword = is_keyword and follows.upper == "JOIN"
        if (is_keyword or word.upper in RESERVED_WORDS) and before.kind != TokenType.DOT:
            word.text = word.upper
        named = word.kind == TokenType.IDENTIFIER or (
            word.kind == TokenType.VAR and word.upper not in _SPACED
        )
        word.calls = named and not (before is begin and begin.text == "STREAM")
        word.tight = word.kind == TokenType.DASH and (
            before.kind not in _VALUES or before.upper in RESERVED_WORDS
        )


def _statements(words: Sequence[_LaidToken]) -> Iterator[list[_LaidToken]]:
    statement: list[_LaidToken] = []
    for word in words:
        statement.append(word)
        if word.kind == TokenType.SEMICOLON:
            yield statement
            statement = []
    if statement:
        yield statement


# --- layout ----------------------------------------------------------------------------------


def _statement(words: list[_LaidToken]) -> list[str]:
    flat = _flat(words)
    if flat is not None and len(flat) <= WIDTH:
        return [flat]
    if len(words) > 2 and words[1].kind == TokenType.EQ and words[0].upper not in _CLAUSES:
        head = _flat(words[:2])
        if head is not None:
            return [head, *_clauses(words[2:], _STEP)]
    return _clauses(words, "", _STEP)


def _clauses(words: list[_LaidToken], indent: str, more: str | None = None) -> list[str]:
    """Lay out the clauses of a query or a statement, one on each line; those after the first are
    indented by `more`."""
    lines: list[str] = []
    for number, part in enumerate(_parts(words)):
        lines += _fitted(part, indent if not number or more is None else more)
    return lines


def _parts(words: Sequence[_LaidToken]) -> Iterator[list[_LaidToken]]:
    """Yield the clauses of a query; each begins with a word of `_CLAUSES` outside parentheses."""
    part: list[_LaidToken] = []
    depth = 0
    for number, word in enumerate(words):
        before = words[number - 1].upper if number else ""
        begins = depth == 0 and word.upper in _CLAUSES and bool(part)
        if word.upper == "JOIN" and (before in _JOINS or before in ("SEMI", "ANTI", "OUTER")):
            begins = False
        if word.upper == "ASOF" and before == "LEFT":
            begins = False
        if word.upper == "WITH" and _next(words, number) == "TIES":
            begins = False
        if word.upper == "SELECT" and before == "ALL":
            begins = depth == 0
        if word.upper == "WITH" and part and part[0].upper == "COMBINE":
            begins = False
        if begins:
            yield part
            part = []
        depth += (word.kind in _OPENING) - (word.kind in _CLOSING)
        part.append(word)
    if part:
        yield part


def _next(words: Sequence[_LaidToken], number: int) -> str:
    return words[number + 1].upper if number + 1 < len(words) else ""


def _fitted(words: list[_LaidToken], indent: str) -> list[str]:
    """Lay out words on one line if they fit, else broken at the best place."""
    flat = _flat(words)
    if flat is not None and len(indent) + len(flat) <= WIDTH:
        return [indent + flat]
    for split in (_at_commas, _at_connectives, _at_parentheses):
        lines = split(words, indent)
        if lines is not None:
            return lines
    return _running(words, indent)


def _at_commas(words: list[_LaidToken], indent: str) -> list[str] | None:
    """Break a list at its commas; its first words (SELECT, GROUP BY) stay on the line of the first
    element."""
    items = _split(words, lambda w: w.kind == TokenType.COMMA, after=True)
    if len(items) < 2:
        return None
    deeper = indent + _STEP * 2
    lines = _fitted(items[0], indent)
    for item in items[1:]:
        lines += _fitted(item, deeper)
    return lines


def _at_connectives(words: list[_LaidToken], indent: str) -> list[str] | None:
    items = _split(words, lambda w: w.upper in ("AND", "OR"), after=False)
    if len(items) < 2:
        return None
    lines = _fitted(items[0], indent)
    for item in items[1:]:
        lines += _fitted(item, indent + _STEP * 2)
    return lines


def _at_parentheses(words: list[_LaidToken], indent: str) -> list[str] | None:
    """Break inside the longest parentheses: their content gets lines of its own."""
    span = _longest(words)
    if span is None:
        return None
    begin, end = span
    head, inner, tail = words[: begin + 1], words[begin + 1 : end], words[end:]
    if any(w.above or w.inside for w in head[1:]) or any(w.after for w in head[:-1]):
        return None
    first = _flat([*head[:-1], _bare(head[-1])])
    if first is None:
        return None
    lines = [*(indent + c for c in head[0].above), indent + first.lstrip()]
    if head[-1].after:
        lines[-1] += f"  {head[-1].after}"
    deeper = indent + _STEP
    if inner and inner[0].upper in ("SELECT", "WITH"):
        lines += _clauses(inner, deeper)
    else:
        for item in _split(inner, lambda w: w.kind == TokenType.COMMA, after=True):
            lines += _fitted(item, deeper)
    return [*lines, *_fitted(tail, indent)]


def _bare(word: _LaidToken) -> _LaidToken:
    return replace(word, after="")


def _longest(words: Sequence[_LaidToken]) -> tuple[int, int] | None:
    """Return where the longest outermost pair of parentheses opens and closes."""
    best: tuple[int, int] | None = None
    depth = begin = 0
    for number, word in enumerate(words):
        if word.kind in _OPENING:
            begin = number if depth == 0 else begin
            depth += 1
        elif word.kind in _CLOSING:
            depth -= 1
            if (
                depth == 0
                and number - begin > 1
                and (best is None or number - begin > best[1] - best[0])
            ):
                best = begin, number
    return best


def _split(
    words: Sequence[_LaidToken], at: Callable[[_LaidToken], bool], *, after: bool
) -> list[list[_LaidToken]]:
    """Split words before or after the tokens that `at` accepts, but not inside parentheses, inside
    CASE, or at the AND of a BETWEEN."""
    items: list[list[_LaidToken]] = [[]]
    depth = cases = 0
    between = False
    for word in words:
        cases += (word.upper == "CASE") - (word.upper == "END")
        splits = depth == 0 and cases == 0 and at(word) and bool(items[-1])
        if word.upper == "BETWEEN":
            between = True
        elif between and word.upper == "AND":
            splits, between = False, False
        if splits and not after:
            items.append([])
        items[-1].append(word)
        if splits and after:
            items.append([])
        depth += (word.kind in _OPENING) - (word.kind in _CLOSING)
    return [item for item in items if item]


def _running(words: Sequence[_LaidToken], indent: str) -> list[str]:
    """Write words in order, with comments on lines of their own."""
    lines = [indent]
    before: _LaidToken | None = None
    for word in words:
        if word.above:
            if not lines[-1].strip():
                lines.pop()
            lines += [indent + comment for comment in word.above]
            lines.append(indent)
        text = "".join(f"{c} " for c in word.inside) + word.text
        glue = "" if not lines[-1].strip() else (" " if word.inside else _glue(before, word))
        lines[-1] += glue + text
        if word.after:
            lines[-1] += f"  {word.after}"
            lines.append(indent)
        before = word
    return lines if lines[-1].strip() else lines[:-1]


def _flat(words: Sequence[_LaidToken]) -> str | None:
    """Write words on one line; None if comments need lines of their own."""
    last = len(words) - 1
    if any(w.above for w in words) or any(w.after for w in words[:last]):
        return None
    if any(c.startswith("--") or "\n" in c for w in words for c in w.inside):
        return None
    text = ""
    before: _LaidToken | None = None
    for word in words:
        inside = "".join(f"{c} " for c in word.inside)
        glue = " " if text and inside else _glue(before, word)
        text += glue + inside + word.text
        before = word
    return f"{text}  {words[last].after}" if words and words[last].after else text


def _glue(before: _LaidToken | None, word: _LaidToken) -> str:
    """Return the text between two tokens: a blank, or nothing."""
    if before is None or word.kind in (TokenType.COMMA, TokenType.SEMICOLON, TokenType.DOT):
        return ""
    if word.kind in _CLOSING or before.kind in _OPENING:
        return ""
    if before.kind in (TokenType.DOT, TokenType.PARAMETER):
        return ""
    if word.kind == TokenType.L_PAREN and before.calls:
        return ""
    if word.kind == TokenType.L_BRACKET and before.upper == "ARRAY":
        return ""
    if before.kind == word.kind == TokenType.DASH:  # together they begin a comment
        return " "
    return "" if before.tight else " "
