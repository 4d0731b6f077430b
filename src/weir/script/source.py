"""The text of a program: finds lines and columns, and makes errors that point into the text.

Inside this package an *offset* counts characters of the text from 0. Other packages see a
*position*: line and column, both from 1. Only a line feed ends a line, as in `ScriptError` and in
editors; a comment may contain a form feed or U+2028.
"""

from __future__ import annotations

import difflib
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate

from weir.errors import Position, ProgramPlace, ScriptError


@dataclass(frozen=True)
class ProgramSource:
    """The text of a program, and `name`, its file's name in errors."""

    text: str
    name: str = ""

    @cached_property
    def _lines(self) -> list[str]:
        return self.text.split("\n")

    @cached_property
    def _line_starts(self) -> list[int]:
        return [0, *accumulate(len(line) + 1 for line in self._lines)]

    def position(self, offset: int) -> Position:
        """Return the line and the column of an offset. The offset after the last character is valid
        too.

        >>> ProgramSource("a\\nbc").position(3)
        (2, 2)
        """
        starts = self._line_starts
        line = max(1, min(bisect_right(starts, offset), len(starts) - 1))
        column = offset - starts[line - 1] + 1
        return ProgramPlace(line, column, self.name, self._lines[line - 1])

    def error(self, message: str, offset: int, hint: str = "") -> ScriptError:
        return self.error_at(message, self.position(offset), hint)

    def error_at(self, message: str, position: Position, hint: str = "") -> ScriptError:
        line, column = position
        return ScriptError(message, line=line, column=column, source=self.text, hint=hint)


def did_you_mean(name: str, candidates: Iterable[str]) -> str:
    """Return a hint that names the closest candidate; nothing if none is close.

    >>> did_you_mean("Alret", ["Alert", "Process"])
    'did you mean `Alert`?'
    """
    names = sorted(set(candidates))
    same = [c for c in names if c.lower() == name.lower()]
    close = same or difflib.get_close_matches(name, names, n=1)
    return f"did you mean `{close[0]}`?" if close else ""
