"""The text of a program: finds lines and columns in it, and makes errors that point there.

Inside this package an *offset* counts characters of the text from 0; what leaves it is a
*position*: line and column, both from 1. Only a line feed ends a line, as in `ScriptError`: editors
count so, and a comment may hold a form feed or U+2028.
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
    """A `ProgramSource` is the text of a program; it makes errors that point into it. `name` is
    that of its file."""

    text: str
    name: str = ""

    @cached_property
    def _lines(self) -> list[str]:
        return self.text.split("\n")

    @cached_property
    def _line_starts(self) -> list[int]:
        return [0, *accumulate(len(line) + 1 for line in self._lines)]

    def position(self, offset: int) -> Position:
        """Return line and column of an offset; one past the end stands after the last character.

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
    """Make a hint that names the closest candidate, or nothing when none is close.

    >>> did_you_mean("Alret", ["Alert", "Process"])
    'did you mean `Alert`?'
    """
    names = sorted(set(candidates))
    same = [c for c in names if c.lower() == name.lower()]
    close = same or difflib.get_close_matches(name, names, n=1)
    return f"did you mean `{close[0]}`?" if close else ""
