"""Patterns of `re` are written as RE2 has them, for texts of ASCII characters alone.

Whether a pattern matches is a question about a set of texts, if it has no groups that are referred
to, no look around and no possessive parts; greedy or not does not matter then. The pattern is
parsed by Python itself and written anew from its parts, so nothing depends on how the two read a
text. Classes are written out: `\\s` of Python has the characters 28 to 31, `$` stands before a
newline at the end, `\\d` has the digits of all scripts (which texts of ASCII do not have).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from re import _constants as sre  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any

from weir.handlers.scope import NotAColumn

_CATEGORIES = {
    sre.CATEGORY_DIGIT: r"0-9",
    sre.CATEGORY_SPACE: r"\t\n\x0b\f\r\x1c-\x1f ",
    sre.CATEGORY_WORD: r"0-9A-Za-z_",
    sre.CATEGORY_NOT_DIGIT: r"\x00-/:-\x{10FFFF}",
    sre.CATEGORY_NOT_SPACE: r"\x00-\x08\x0e-\x1b!-\x{10FFFF}",
    sre.CATEGORY_NOT_WORD: r"\x00-/:-@\[-\^`\{-\x{10FFFF}",
}
_ASCII_SPACE = {
    sre.CATEGORY_SPACE: r"\t\n\x0b\f\r ",
    sre.CATEGORY_NOT_SPACE: r"\x00-\x08\x0e-\x1f!-\x{10FFFF}",
}
_REPEATS = (sre.MAX_REPEAT, sre.MIN_REPEAT)
_RARE = frozenset("@#$%^&*=+<>~|{}[]\\`")
_MOST_REPEATS = 1000
_KNOWN_FLAGS = re.IGNORECASE | re.DOTALL | re.UNICODE | re.ASCII | re.VERBOSE


def ascii_pattern(pattern: re.Pattern[str], how: str, line: int) -> tuple[str, str]:
    """Return a pattern for RE2 that is found in a text of ASCII characters exactly where `how`
    (search, match, fullmatch) finds this one, and a text that every match has in it ('' if none is
    known); NotAColumn where that is not certain."""
    if not isinstance(pattern.pattern, str):
        raise NotAColumn(line, "a pattern of bytes is Python's")
    if pattern.flags & ~_KNOWN_FLAGS:
        raise NotAColumn(line, "a pattern with these flags is Python's")
    parsed = parser.parse(pattern.pattern, pattern.flags)
    if parsed.state.flags != pattern.flags:
        raise NotAColumn(line, "a pattern with flags inside is Python's")
    parts = _trimmed(list(parsed), front=how == "search", back=how != "fullmatch")
    written = _Written(pattern.flags, line, whole=how == "fullmatch").sequence(parts, last=True)
    begin = "" if how == "search" else r"\A"
    end = r"\z" if how == "fullmatch" else ""
    folded = "(?i)" if pattern.flags & re.IGNORECASE else ""
    needle = "" if folded else _needle(parts)
    return f"{folded}{begin}(?:{written}){end}", needle


def _trimmed(parts: list[Any], *, front: bool, back: bool) -> list[Any]:
    """Return a sequence without what a search need not look at: where `X+@` is found, `X@` is.

    RE2 goes on from each X otherwise, and is slower by much.
    """
    for number, trims in ((0, front), (-1, back)):
        if trims and parts and parts[number][0] in _REPEATS:
            repeat, (least, _, inside) = parts[number]
            if inside.getwidth()[0] > 0:
                parts[number] = repeat, (least, least, inside)
    return parts


def _needle(parts: list[Any]) -> str:
    """Return the literal text in a sequence that is probably the rarest."""
    runs = [""]
    for op, value in _flat(parts):
        if op is sre.LITERAL and value < 128:
            runs[-1] += chr(value)
        elif op is not sre.AT:
            runs.append("")
    return max(runs, key=lambda run: (len(run), sum(c in _RARE for c in run)))


def _flat(parts: list[Any]) -> Iterator[Any]:
    for op, value in parts:
        if op is sre.SUBPATTERN:
            yield from _flat(list(value[3]))
        else:
            yield op, value


class _Written:
    """A `_Written` writes the parts of one pattern."""

    def __init__(self, flags: int, line: int, *, whole: bool) -> None:
        self._flags, self._line, self._whole = flags, line, whole
        self._categories = {**_CATEGORIES, **(_ASCII_SPACE if flags & re.ASCII else {})}

    def sequence(self, parts: Iterable[Any], *, last: bool) -> str:
        listed = list(parts)
        return "".join(
            self._part(op, value, last=last and number == len(listed) - 1)
            for number, (op, value) in enumerate(listed)
        )

    def _part(self, op: object, value: Any, *, last: bool) -> str:
        if op is sre.LITERAL:
            return self._literal(value)
        if op is sre.NOT_LITERAL:
            return f"[^{self._literal(value)}]"
        if op is sre.ANY:
            return r"(?s:.)" if self._flags & re.DOTALL else r"[^\n]"
        if op is sre.IN:
            return self._class(value)
        if op is sre.BRANCH:
            branches = (self.sequence(b, last=last) for b in value[1])
            return f"(?:{'|'.join(branches)})"
        if op is sre.SUBPATTERN:
            _, added, removed, inside = value
            if added or removed:
                raise self._refused("flags inside")
            return f"(?:{self.sequence(inside, last=last)})"
        if op in _REPEATS:
            return self._repeat(*value)
        if op is sre.AT:
            return self._position(value, last=last)
        raise self._refused(str(op).lower())

    def _position(self, where: object, *, last: bool) -> str:
        if where in (sre.AT_BEGINNING, sre.AT_BEGINNING_STRING):
            return r"\A"
        if where is sre.AT_END_STRING:
            return r"\z"
        if where is sre.AT_END and last:
            return r"\z" if self._whole else r"\n?\z"
        if where is sre.AT_BOUNDARY:
            return r"\b"
        if where is sre.AT_NON_BOUNDARY:
            # Python has none in an empty text, RE2 has one.
            raise self._refused(r"`\B`")
        raise self._refused("`$` that is not at the end")

    def _repeat(self, least: int, most: Any, inside: Any) -> str:
        if inside.getwidth()[0] == 0:
            raise self._refused("a repeated part that may be empty")
        if least > _MOST_REPEATS or (most is not sre.MAXREPEAT and most > _MOST_REPEATS):
            raise self._refused("so many repeats")
        again = f"(?:{self.sequence(inside, last=False)})"
        if (least, most) == (1, 1):
            return again
        if most == least:
            return f"{again}{{{int(least)}}}"
        most_text = "" if most is sre.MAXREPEAT else str(int(most))
        return f"{again}{{{int(least)},{most_text}}}"

    def _class(self, items: Iterable[Any]) -> str:
        negated, parts = "", []
        for op, value in items:
            if op is sre.NEGATE:
                negated = "^"
            elif op is sre.LITERAL:
                parts.append(self._literal(value))
            elif op is sre.RANGE:
                parts.append(f"{self._literal(value[0])}-{self._literal(value[1])}")
            elif op is sre.CATEGORY and value in self._categories:
                parts.append(self._categories[value])
            else:
                raise self._refused(str(op).lower())
        return f"[{negated}{''.join(parts)}]"

    def _literal(self, code: int) -> str:
        if code > 127 and self._flags & re.IGNORECASE:
            raise self._refused("a character beyond ASCII whose case does not count")
        if 0xD800 <= code <= 0xDFFF:
            raise self._refused("half of a surrogate pair")
        return f"\\x{{{code:X}}}"

    def _refused(self, what: str) -> NotAColumn:
        return NotAColumn(self._line, f"a pattern with {what} is Python's")
