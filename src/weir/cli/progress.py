"""Shows the progress of a run: events, events per second, the event time reached, the time left.

Nothing is shown in the first seconds, so a short run prints only its results.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from rich.console import Console
from rich.live import Live
from rich.text import Text

from weir.cli.command_line import say
from weir.wording import counted, in_one_line

if TYPE_CHECKING:
    from weir.runtime.reports import Progress

QUIET_SECONDS = 2.0
"""Seconds before anything is shown on a terminal."""
LINE_SECONDS = 10.0
"""Seconds between lines if stderr is not a terminal, or with JSON."""

ENDLESS = 2**63 - 1
"""Event times from here on mean that nothing is known yet, or that all inputs have ended."""


@dataclass(frozen=True, slots=True)
class Standing:
    """How far a run is, as `--json` prints it. Unknown values are None: `event_time` (a text, or
    ticks) before the first event and after the last; `done` (a share) and `seconds_left` if no end
    is in sight."""

    stage: str | None
    events: int
    events_per_second: int
    event_time: str | int | None
    times_real_time: float | None
    done: float | None
    seconds: float
    seconds_left: int | None

    def __str__(self) -> str:
        line = counted(self.events, "event")
        if self.events_per_second:  # the speed of a few slow events means nothing
            line += f", {self.events_per_second:,} events/s"
        if self.stage:
            line = f"{self.stage}: {line}"
        if self.event_time is not None:
            at = (
                self.event_time if isinstance(self.event_time, str) else f"tick {self.event_time:,}"
            )
            line += f", at {at}"
            if self.times_real_time is not None and self.times_real_time >= 0.05:
                line += f", {self.times_real_time:,.1f} × real time"
        if self.done is not None and self.seconds_left is not None:
            what = "done" if self.stage else "read"
            line += f", {self.done:.0%} {what}, {timedelta(seconds=self.seconds_left)} left"
        return line


class Meter:
    """Shows how far a run is. On a terminal it is one changing line, otherwise a line now and then;
    with `as_json`, always such lines, each a JSON object."""

    def __init__(self, console: Console, *, in_time: bool, as_json: bool = False) -> None:
        self._console, self._in_time, self._as_json = console, in_time, as_json
        self._started = self._printed = time.monotonic()
        self._first: int | None = None
        self._latest: Progress | None = None
        self._loops = 0
        self._live = Live(self, console=console, transient=True, refresh_per_second=4)

    @property
    def elapsed(self) -> float:
        return time.monotonic() - self._started

    @property
    def _changes(self) -> bool:
        """Whether one line changes in place on a terminal, instead of new lines."""
        return self._console.is_terminal and not self._as_json

    def __enter__(self) -> None:
        self._started = self._printed = time.monotonic()
        if self._changes:
            self._live.start()

    def __exit__(self, *_: object) -> None:
        self._live.stop()

    def __rich__(self) -> Text:
        """Return the current text for the terminal; `Live` calls this repeatedly."""
        if self._loops:
            return Text(self._compiles)
        if self.elapsed < QUIET_SECONDS:
            return Text()
        if self._latest is None:
            return Text("starting")
        return Text(
            in_one_line(str(self.standing(self._latest))), no_wrap=True, overflow="ellipsis"
        )

    @property
    def _compiles(self) -> str:
        return f"compiling {counted(self._loops, 'loop')}, once on this machine"

    def compiling(self, loops: int) -> None:
        """Note that this many loops are being compiled now; 0 when they are done."""
        self._loops = loops
        if loops and not self._changes and not self._as_json:
            say(f"weir: {self._compiles}", err=True)

    def take(self, progress: Progress) -> None:
        """Note how far the run is, and print a line if one is due."""
        self._latest = progress
        if self._first is None and abs(progress.reached) < ENDLESS:
            self._first = progress.reached
        now = time.monotonic()
        if not self._changes and now - self._printed >= LINE_SECONDS:
            self._printed = now
            standing = self.standing(progress)
            line = json.dumps(asdict(standing)) if self._as_json else str(standing)
            say(line, err=True)

    def standing(self, progress: Progress) -> Standing:
        seconds = max(self.elapsed, 1e-9)
        at, times, done, left = None, None, None, None
        if self._first is not None and abs(progress.reached) < ENDLESS:
            at = self._shown(progress.reached)
            times = (progress.reached - self._first) / 1e6 / seconds
        if 0 < progress.read < progress.size:
            done = progress.read / progress.size
            left = round(seconds * (progress.size - progress.read) / progress.read)
        rate = round(progress.events / seconds)
        return Standing(
            progress.stage or None, progress.events, rate, at, times, done, round(seconds, 3), left
        )

    def _shown(self, ticks: int) -> str | int:
        if not self._in_time:
            return ticks
        try:
            moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=ticks)
        except OverflowError:
            return ticks
        return moment.isoformat(sep=" ", timespec="seconds").removesuffix("+00:00")


@contextmanager
def counting(what: str, *, quiet: bool = False) -> Iterator[Callable[[int], None]]:
    """Count items on stderr if the work takes longer than a moment; yield the function that
    counts."""
    console = Console(stderr=True, quiet=quiet)
    printed = time.monotonic() + QUIET_SECONDS - LINE_SECONDS

    def count(number: int) -> None:
        nonlocal printed
        if time.monotonic() - printed >= (0.25 if console.is_terminal else LINE_SECONDS):
            printed = time.monotonic()
            console.print(f"{number:,} {what}", end="\r" if console.is_terminal else "\n")

    yield count
