"""Every error that Weir raises, in one tree.

A message says where the error happened, what was expected, what was found, and what to do.
Exceptions of other libraries are converted where they enter Weir. All errors can be pickled,
because they cross processes.

    WeirError
      ScriptError            the program's text is wrong (line, column, caret, hint)
      PlanError              the program means something that cannot be run
        UnknownAttribute     Python asks for a method or function that does not exist
      InputError             a source's data is wrong (file, line, column)
      RunError               a run failed
        EventFailed          an event cannot be computed (place in the program, event, input)
          OperatorFailed     the user's own code failed (function, line, event, cause)
        DeterminismViolation other rows under the same numbers
        ReplayDiffers        the engine and the serial loop of an app differ (event, both values)
        SnapshotCorrupt      a stored object is missing, damaged or another one
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self, TypeAlias

from weir.wording import visible

SHOWN_BEFORE = 100
"""Characters of a line that are shown before the position of an error; about as many are shown
after."""
Position: TypeAlias = tuple[int, int]
"""Line and column in a script, both from 1."""


class ProgramPlace(tuple[int, int]):
    """A `Position` that knows its file and the text of its line, so that an error can point there
    in another process too.

    >>> place = ProgramPlace(1, 8, "a.weir", "SELECT w FROM A")
    >>> print(place.pointed("no column `w`"))
    a.weir, line 1, column 8: no column `w`
      SELECT w FROM A
             ^
    """

    file: str
    text: str

    def __new__(cls, line: int, column: int, file: str, text: str) -> Self:
        place = super().__new__(cls, (line, column))
        place.file, place.text = file, text
        return place

    def __reduce__(self) -> tuple[object, ...]:
        return ProgramPlace, (*self, self.file, self.text)

    def pointed(self, message: str) -> str:
        """Return a message that begins with the place, followed by the line with a caret below
        it."""
        line, column = self
        where = f"{visible(self.file)}, " if self.file else ""
        return f"{where}line {line}, column {column}: {message}{self.caret}"

    @property
    def caret(self) -> str:
        """The line with a caret below it, to append to a message; empty if there is no text."""
        return _caret_lines(_SECRET.sub(_stars, self.text), self[1])


LONGEST_EVENT = 4000
"""How many characters of an event, or of a cause, a message shows; a single value may fill the
memory."""


class WeirError(Exception):
    """The root of all errors that Weir raises on purpose: catch it to catch any of them.

    >>> issubclass(ScriptError, WeirError) and issubclass(OperatorFailed, WeirError)
    True
    """

    def __reduce__(self) -> tuple[object, ...]:
        # Subclasses take keyword arguments that Exception's own pickling would lose.
        return _rebuild, (type(self), self.args, self.__dict__)


def _rebuild(
    kind: type[WeirError], args: tuple[object, ...], fields: dict[str, object]
) -> WeirError:
    error = kind.__new__(kind, *args)
    error.args = args
    error.__dict__.update(fields)
    return error


_SECRET = re.compile(
    r"(?<=://)[^\s'/@]*:[^\s'@]*(?=@)|(?<=(?:s3|gs|az)://)[^\s'/@]+(?=@)"
    r"|\b(?:s3|gs|az|abfss)://[^\s'?]*\?[^\s'/?]*=[^\s']*"
)
"""The parts of a URL that may be a password or a signature (`plan/urls.py` rejects them)."""


class ScriptError(WeirError):
    """The text of a program is wrong; nothing ran.

    >>> print(ScriptError("no column `w`", column=8, source="SELECT w FROM A"))
    line 1, column 8: no column `w`
      SELECT w FROM A
             ^
    """

    def __init__(
        self,
        message: str,
        *,
        line: int = 1,
        column: int = 1,
        source: str = "",
        hint: str = "",
        file: str = "",
    ) -> None:
        self.message, self.hint = _shortened(message), _shortened(hint)
        self.line, self.column, self.file = line, column, file
        lines = source.split("\n")  # counted as in `ProgramSource`
        shown = lines[line - 1].rstrip("\r") if 0 < line <= len(lines) else ""
        self.source_line = _SECRET.sub(_stars, shown)
        super().__init__(self._render())

    def _render(self) -> str:
        where = f"{visible(self.file)}, " if self.file else ""
        text = f"{where}line {self.line}, column {self.column}: {visible(self.message)}"
        if not self.line:  # the error has no place in the text
            text = visible(self.message)
        text += _caret_lines(self.source_line, self.column)
        return f"{text}\n  hint: {visible(self.hint)}" if self.hint else text


def _stars(match: re.Match[str]) -> str:
    return "*" * len(match[0])


def _caret_lines(source_line: str, column: int) -> str:
    if not source_line:
        return ""
    # Of a very long line, show the part around the position.
    start = max(0, column - 1 - SHOWN_BEFORE)
    end = start + 2 * SHOWN_BEFORE
    before = visible(source_line[start : column - 1])
    after = visible(source_line[max(start, column - 1) : end])
    before = f"…{before}" if start else before
    after = f"{after}…" if end < len(source_line) else after
    # Tabs stay tabs under the line, so that the caret is below the right character.
    indent = "".join(c if c == "\t" else " " for c in before)
    return f"\n  {before}{after}\n  {indent}^"


_LONGEST = 400
"""The largest number of characters shown of a text."""


def _shortened(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST // 2]}…{text[-_LONGEST // 2 :]}"


class PlanError(WeirError):
    """A program parses but cannot be planned.

    `position` is set if the program is a script. `python` is the hint for programs made in Python,
    if it has to be worded differently.

    >>> print(PlanError("a stream in a join needs a name", hint='as_("…")'))
    a stream in a join needs a name; as_("…")
    """

    def __init__(
        self, message: str, *, position: Position | None = None, hint: str = "", python: str = ""
    ) -> None:
        self.message, self.position = message, position
        self.hint = hint if position else python or hint
        super().__init__(f"{message}; {self.hint}" if self.hint else message)


class UnknownAttribute(PlanError, AttributeError):
    """An object of Weir's has no such attribute; the hint says what to write instead.

    >>> print(UnknownAttribute("a stream has no `filter`", "filter", hint='write where("v > 3")'))
    a stream has no `filter`; write where("v > 3")
    """

    def __init__(self, message: str, name: str, *, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.name = name  # set, so that Python's traceback does not add its own guess


class PlanWarning(UserWarning):
    """The program runs, but probably not as intended. `weir run --strict` turns this warning into
    an error, and so does `warnings.simplefilter("error", PlanWarning)` in Python.

    >>> issubclass(PlanWarning, UserWarning)
    True
    """


class InputError(WeirError):
    """The data of a source is wrong. The message names the file, line and column, and the wrong
    value.

    >>> print(InputError("'x' is not a valid BIGINT", file="a.jsonl", line=3, column="v"))
    a.jsonl, line 3, column v: 'x' is not a valid BIGINT
    """

    def __init__(
        self, message: str, *, file: str = "", line: int | None = None, column: str = ""
    ) -> None:
        self.message, self.file, self.line, self.column = message, file, line, column
        where = ", ".join(
            part
            for part in (
                file,
                f"line {line}" if line is not None else "",
                f"column {column}" if column else "",
            )
            if part
        )
        super().__init__(f"{where}: {message}" if where else message)


class RunError(WeirError):
    """A run failed after it began.

    >>> print(RunError("the store is full"))
    the store is full
    """

    is_guard = False
    """Whether a guard of handlers ended the run; the plain loop over the handlers has no guards."""


@dataclass(frozen=True, slots=True)
class FailedRow:
    """The row on which an operator failed: the operator's port, the row's index in the batch, and
    its origin, if rows have one there."""

    port: int
    index: int
    origin: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class InputRow:
    """The row of a source from which an event was made; `offset` is None if unknown. `names` are
    the source's columns; `columns` says which of the event's columns they are."""

    source: str
    partition: int
    offset: int | None
    names: tuple[str, ...]
    columns: Mapping[str, str]


def cut_off(text: str) -> str:
    """Return a text as messages show it, cut if it is long."""
    return text if len(text) <= LONGEST_EVENT else f"{text[:LONGEST_EVENT]}…"


class EventFailed(RunError):
    """A value cannot be computed. The message says why, where in the program, on which event, and
    where the event stood in the input.

    `event` is a text if the failure is not on an event, for example "window [0, 10) of k = 'a'".

    >>> print(EventFailed("division by zero: 1 % 0", event={"v": 0}))
    division by zero: 1 % 0, on event {'v': 0}
    """

    def __init__(
        self,
        cause: str,
        *,
        event: object,
        place: Position | None = None,
        row: FailedRow | None = None,
    ) -> None:
        self.cause, self.event, self.place, self.row = cause, event, place, row
        self.input_row: InputRow | None = None
        self.input = ""
        """The place of the event in the input: the file, and the line or row."""
        super().__init__(self._text())

    def _text(self) -> str:
        text = f"{cut_off(self.cause)}, on {self._what()}"
        return self.place.pointed(text) if isinstance(self.place, ProgramPlace) else text

    def _what(self) -> str:
        what = cut_off(self.event if isinstance(self.event, str) else f"event {self.event}")
        return f"{what} ({self.input})" if self.input else what

    def complete(self, event: object, input: str) -> None:
        """Add the full event, and its place in the input."""
        self.event, self.input = event, input
        self.args = (self._text(),)


class OperatorFailed(EventFailed):
    """A user's function raised an error. The message says which function and line, on which event,
    and why.

    `place` is the line of the function that raised the error, if it was raised there.

    >>> print(OperatorFailed(function="f", file="f.py", line=2, event={"v": 0}, cause="no inverse"))
    f (f.py:2) failed on event {'v': 0}: no inverse
    """

    def __init__(
        self,
        *,
        function: str,
        file: str,
        line: int,
        event: object,
        cause: str,
        place: Position | None = None,
        row: FailedRow | None = None,
    ) -> None:
        self.function, self.file, self.line = function, file, line
        super().__init__(cause, event=event, place=place, row=row)

    def _text(self) -> str:
        text = f"{self.function} ({self.file}:{self.line}) failed on {self._what()}: "
        text += cut_off(self.cause)
        return text + (self.place.caret if isinstance(self.place, ProgramPlace) else "")


class DeterminismViolation(RunError):
    """A vertex wrote other rows to a stream under numbers that the stream already had.

    >>> print(DeterminismViolation("stream 0.0/0: row 3 was 1, written again it is 2"))
    stream 0.0/0: row 3 was 1, written again it is 2
    """


class ReplayDiffers(RunError):
    """The engine and the plain serial loop of an app give different answers. The message says at
    which event, in what, both values, and which line of a handler the loop was at.

    `number` is the number of the event, from 1; 0 if it is unknown. `place` is None if no handler
    did anything at that event.

    >>> error = ReplayDiffers("`spam`", number=2, event={"vs": 7}, loop="3", engine="2")
    >>> print(error)  # doctest: +ELLIPSIS
    Weir and the serial loop differ at event 2, {'vs': 7}, in `spam`
      the loop: 3
      Weir: 2
      ...
    """

    def __init__(
        self,
        what: str,
        *,
        loop: str,
        engine: str,
        number: int = 0,
        event: object = None,
        input: str = "",
        handler: str = "",
        place: ProgramPlace | None = None,
    ) -> None:
        self.what, self.loop, self.engine = what, loop, engine
        self.number, self.event, self.input = number, event, input
        self.handler, self.place = handler, place
        super().__init__(self._text())

    def _text(self) -> str:
        where = f" at event {self.number:,}, {cut_off(str(self.event))}" if self.number else ""
        where += f" ({self.input})" if self.input else ""
        lines = [f"Weir and the serial loop differ{where}" + (self.what and f", in {self.what}")]
        by = ""
        if self.place is not None:
            by = f", by {self.handler} ({visible(self.place.file)}:{self.place[0]})"
        lines.append(f"  the loop: {cut_off(self.loop)}{by}")
        if self.place is not None and self.place.text:
            lines.append(f"    {visible(self.place.text)}")
        lines.append(f"  Weir: {cut_off(self.engine)}")
        return "\n".join((*lines, f"  {_REPORT}"))


_REPORT = (
    "this is a bug in Weir, unless the handlers depend on more than the log: please report it "
    "with the app and its events up to this one; app.serial() may be a way around it"
)


class SnapshotCorrupt(RunError):
    """A stored object is missing or damaged, is not what was written, or does not fit the code that
    loads it.

    >>> print(SnapshotCorrupt("checkpoints/1.0/3 is not in the store"))
    checkpoints/1.0/3 is not in the store
    """
