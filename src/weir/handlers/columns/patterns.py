"""Translates patterns of `re` to RE2, for texts of ASCII characters only.

A pattern without back references, look around and possessive parts stands for a set of texts; then
it does not matter whether its parts are greedy. Python itself parses the pattern, and it is written
for RE2 from the parsed parts, so differences of syntax do not matter. A part that matches one
character is written as the ASCII characters that Python's own `re` matches with it, under the
pattern's flags. So RE2 gets no flags, no character classes of its own and no case folding. `$` also
matches before a newline at the end.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from re import _compiler as compiler  # type: ignore[attr-defined]
from re import _constants as sre  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any

from weir.handlers.trees.scope import NotAColumn

_REPEATS = (sre.MAX_REPEAT, sre.MIN_REPEAT)
_RARE = frozenset("@#$%^&*=+<>~|{}[]\\`")
_MOST_REPEATS = 1000
_KNOWN_FLAGS = re.IGNORECASE | re.DOTALL | re.UNICODE | re.ASCII | re.VERBOSE


def ascii_pattern(pattern: re.Pattern[str], how: str, line: int) -> tuple[str, str]:
    """Return an RE2 pattern that matches the same ASCII texts, and a text in every match.

    `how` is search, match or fullmatch. The contained text is '' if none is known. NotAColumn where
    the same matches are not certain.
    """
    if not isinstance(pattern.pattern, str):
        raise NotAColumn(line, "a pattern of bytes is Python's")
    if pattern.flags & ~_KNOWN_FLAGS:
        raise NotAColumn(line, "a pattern with these flags is Python's")
    parsed = parser.parse(pattern.pattern, pattern.flags)
    if parsed.state.flags != pattern.flags:
        raise NotAColumn(line, "a pattern with flags inside is Python's")
    parts = _trimmed(list(parsed), front=how == "search", back=how != "fullmatch")
    writer = _Written(parsed.state, pattern.flags, line, whole=how == "fullmatch")
    written = writer.sequence(parts, last=True)
    begin = "" if how == "search" else r"\A"
    end = r"\z" if how == "fullmatch" else ""
    needle = "" if pattern.flags & re.IGNORECASE else _needle(parts)
    return f"{begin}(?:{written}){end}", needle


def _trimmed(parts: list[Any], *, front: bool, back: bool) -> list[Any]:
    """Return a sequence without parts that a search does not need: where `X+@` matches, `X@` does.

    Otherwise RE2 would continue from each X, which is much slower.
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
    """Writes the parts of one pattern for RE2."""

    def __init__(self, state: Any, flags: int, line: int, *, whole: bool) -> None:
        self._state, self._flags, self._line, self._whole = state, flags, line, whole

    def sequence(self, parts: Iterable[Any], *, last: bool) -> str:
        listed = list(parts)
        return "".join(
            self._part(op, value, last=last and number == len(listed) - 1)
            for number, (op, value) in enumerate(listed)
        )

    def _part(self, op: object, value: Any, *, last: bool) -> str:
        if op in (sre.LITERAL, sre.NOT_LITERAL, sre.ANY, sre.IN):
            return self._characters(op, value)
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
            # In an empty text, it matches in RE2 but not in Python.
            raise self._refused(r"`\B`")
        raise self._refused("`$` that is not at the end")

    def _repeat(self, least: int, most: Any, inside: Any) -> str:
        if inside.getwidth()[0] == 0:
            raise self._refused("a repeated part that may be empty")
        if least > _MOST_REPEATS or (most is not sre.MAXREPEAT and most > _MOST_REPEATS):
            raise self._refused(f"more than {_MOST_REPEATS} repeats")
        again = f"(?:{self.sequence(inside, last=False)})"
        if (least, most) == (1, 1):
            return again
        if most == least:
            return f"{again}{{{int(least)}}}"
        most_text = "" if most is sre.MAXREPEAT else str(int(most))
        return f"{again}{{{int(least)},{most_text}}}"

    def _characters(self, op: object, value: object) -> str:
        """Write the ASCII characters that Python matches with a part for one character."""
        part = parser.SubPattern(self._state, [(op, value)])
        matches = compiler.compile(part, self._flags).fullmatch
        codes = [code for code in range(128) if matches(chr(code))]
        if not codes:
            return r"[^\x00-\x{10FFFF}]"
        runs = [[codes[0], codes[0]]]
        for code in codes[1:]:
            if code == runs[-1][1] + 1:
                runs[-1][1] = code
            else:
                runs.append([code, code])
        written = (
            _code(first) if first == last else f"{_code(first)}-{_code(last)}"
            for first, last in runs
        )
        return f"[{''.join(written)}]"

    def _refused(self, what: str) -> NotAColumn:
        return NotAColumn(self._line, f"a pattern with {what} is Python's")


def _code(code: int) -> str:
    return f"\\x{{{code:X}}}"
