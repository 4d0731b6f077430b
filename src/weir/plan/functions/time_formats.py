"""Checks the formats in which times are written as text, and converts them to one form.

DATE_FORMAT takes the letters of Spark and Flink (`yyyy-MM-dd HH:mm:ss`), STRFTIME the codes of
DuckDB and Python (`%Y-%m-%d %H:%M:%S`). Both are converted to a list of parts. Each part is a
literal text, or one of `FIELDS` with how it is written.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, TypeAlias

from weir.errors import PlanError

TimeField: TypeAlias = Literal[
    "year",
    "short_year",
    "quarter",
    "month",
    "month_name",
    "day",
    "day_of_year",
    "day_name",
    "hour",
    "half_hour",
    "half",
    "minute",
    "second",
    "fraction",
]


@dataclass(frozen=True, slots=True)
class TimePart:
    """A field of a time, and how it is written.

    Numbers have at least `digits` digits, a name its first `digits` letters (0: all), and a
    fraction of a second exactly `digits` digits."""

    field: TimeField
    digits: int


_LETTERS: dict[str, TimePart] = {
    "y": TimePart("year", 1), "yyyy": TimePart("year", 4), "yy": TimePart("short_year", 2),
    "u": TimePart("year", 1), "uuuu": TimePart("year", 4),
    "Q": TimePart("quarter", 1), "q": TimePart("quarter", 1),
    "M": TimePart("month", 1), "MM": TimePart("month", 2),
    "MMM": TimePart("month_name", 3), "MMMM": TimePart("month_name", 0),
    "d": TimePart("day", 1), "dd": TimePart("day", 2),
    "D": TimePart("day_of_year", 1), "DDD": TimePart("day_of_year", 3),
    "E": TimePart("day_name", 3), "EEE": TimePart("day_name", 3), "EEEE": TimePart("day_name", 0),
    "H": TimePart("hour", 1), "HH": TimePart("hour", 2),
    "h": TimePart("half_hour", 1), "hh": TimePart("half_hour", 2), "a": TimePart("half", 0),
    "m": TimePart("minute", 1), "mm": TimePart("minute", 2),
    "s": TimePart("second", 1), "ss": TimePart("second", 2),
    **{"S" * n: TimePart("fraction", n) for n in range(1, 7)},
}  # fmt: skip
_CODES: dict[str, tuple[TimePart | str, ...]] = {
    "Y": (_LETTERS["yyyy"],), "y": (_LETTERS["yy"],),
    "m": (_LETTERS["MM"],), "-m": (_LETTERS["M"],),
    "b": (_LETTERS["MMM"],), "B": (_LETTERS["MMMM"],),
    "d": (_LETTERS["dd"],), "-d": (_LETTERS["d"],),
    "j": (_LETTERS["DDD"],), "-j": (_LETTERS["D"],),
    "a": (_LETTERS["EEE"],), "A": (_LETTERS["EEEE"],),
    "H": (_LETTERS["HH"],), "-H": (_LETTERS["H"],),
    "I": (_LETTERS["hh"],), "-I": (_LETTERS["h"],), "p": (_LETTERS["a"],),
    "M": (_LETTERS["mm"],), "-M": (_LETTERS["m"],),
    "S": (_LETTERS["ss"],), "-S": (_LETTERS["s"],), "f": (_LETTERS["SSSSSS"],),
    "F": (_LETTERS["yyyy"], "-", _LETTERS["MM"], "-", _LETTERS["dd"]),
    "T": (_LETTERS["HH"], ":", _LETTERS["mm"], ":", _LETTERS["ss"]),
    "%": ("%",),
}  # fmt: skip
_TOKENS = re.compile(r"'((?:[^']|'')*)'|([A-Za-z])\2*|[^A-Za-z']+")
_SLIPS = {
    "Y": "yyyy is the year; YYYY is that of the week elsewhere, another one around New Year",
    "D": "dd is the day of the month, DDD that of the year",
    "n": "mm is the minute",
    "k": "HH is the hour from 00 to 23",
    "K": "hh is the hour from 01 to 12",
}


def letter_format(text: str) -> tuple[TimePart | str, ...]:
    """Return the parts of a format in letters; raise PlanError for an unknown letter.

    >>> letter_format("HH:mm")
    (TimePart(field='hour', digits=2), ':', TimePart(field='minute', digits=2))
    """
    if "%" in text:
        hint = "STRFTIME(t, '%Y-%m-%d') takes % codes; DATE_FORMAT takes 'yyyy-MM-dd'"
        raise PlanError(f"invalid format '{text}' for DATE_FORMAT", hint=hint)
    parts: list[TimePart | str] = []
    at = 0
    while at < len(text):
        token = _TOKENS.match(text, at)
        if token is None:
            raise PlanError(f"the quote in '{text}' is never closed", hint="two of them are one")
        word, at = token[0], token.end()
        if token[1] is not None:
            parts.append(token[1].replace("''", "'") or "'")
        elif token[2] is None:
            parts.append(word)
        elif word in ("X", "XX", "XXX"):
            parts.append("Z")
        elif word in _LETTERS:
            parts.append(_LETTERS[word])
        else:
            choices = f"the letters are {', '.join(_LETTERS)}; others stand in single quotes"
            raise PlanError(f"DATE_FORMAT has no `{word}`", hint=_SLIPS.get(word[0], choices))
    return tuple(parts)


def code_format(text: str) -> tuple[TimePart | str, ...]:
    """Return the parts of a format in % codes; raise PlanError for an unknown code.

    >>> code_format("%Hh")
    (TimePart(field='hour', digits=2), 'h')
    """
    parts: list[TimePart | str] = []
    before, *codes = re.split(r"%(-?.|$)", text, flags=re.DOTALL)
    parts.append(before)
    for code, literal in zip(codes[::2], codes[1::2], strict=True):
        if code not in _CODES:
            choices = ", ".join(f"%{c}" for c in _CODES)
            raise PlanError(f"STRFTIME has no `%{code}`", hint=f"the codes are {choices}")
        parts += (*_CODES[code], literal)
    return tuple(part for part in parts if part)
