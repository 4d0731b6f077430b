"""How far a run is, as people see it: events, events per second, the event time reached, the
time left if the rest of the inputs goes as fast.

Nothing is said in the first seconds: a short run prints its results alone.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import typer
from rich.console import Console
from rich.live import Live
from rich.text import Text

if TYPE_CHECKING:
    from weir.local.runner import Progress

QUIET_SECONDS = 2.0
"""Nothing is said on a terminal before this."""
LINE_SECONDS = 10.0
"""How often a line comes where there is no terminal."""

ENDLESS = 2**63 - 1
"""Event times from here on are none: nothing is known yet, or all inputs have ended."""


class Meter:
    """Says how far a run is: a line that changes on a terminal, else a line now and then."""

    def __init__(self, console: Console, *, in_time: bool) -> None:
        self._console, self._in_time = console, in_time
        self._started = self._said = time.monotonic()
        self._first: int | None = None
        self._latest: Progress | None = None
        self._live = Live(self, console=console, transient=True, refresh_per_second=4)

    @property
    def elapsed(self) -> float:
        return time.monotonic() - self._started

    def __enter__(self) -> None:
        self._started = self._said = time.monotonic()
        if self._console.is_terminal:
            self._live.start()

    def __exit__(self, *_: object) -> None:
        self._live.stop()

    def __rich__(self) -> Text:
        """What stands on the terminal now; `Live` asks for it again and again."""
        if self.elapsed < QUIET_SECONDS:
            return Text()
        if self._latest is None:
            return Text("starting (the first run on a machine compiles the kernels)")
        return Text(self._line(self._latest), no_wrap=True, overflow="ellipsis")

    def take(self, progress: Progress) -> None:
        self._latest = progress
        if self._first is None and abs(progress.reached) < ENDLESS:
            self._first = progress.reached
        now = time.monotonic()
        if not self._console.is_terminal and now - self._said >= LINE_SECONDS:
            self._said = now
            typer.echo(self._line(progress), err=True)

    def _line(self, progress: Progress) -> str:
        seconds = max(self.elapsed, 1e-9)
        line = f"{progress.events:,} events, {progress.events / seconds:,.0f} events/s"
        if progress.stage:
            line = f"{progress.stage}: {line}"
        if self._first is not None and abs(progress.reached) < ENDLESS:
            times = (progress.reached - self._first) / 1e6 / seconds
            line += f", at {self._shown(progress.reached)}, {times:,.1f} × real time"
        if 0 < progress.read < progress.size:
            left = round(seconds * (progress.size - progress.read) / progress.read)
            done = "done" if progress.stage else "read"
            line += f", {progress.read / progress.size:.0%} {done}, {timedelta(seconds=left)} left"
        return line

    def _shown(self, ticks: int) -> str:
        if not self._in_time:
            return f"tick {ticks:,}"
        try:
            moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=ticks)
        except OverflowError:
            return f"tick {ticks:,}"
        return moment.isoformat(sep=" ", timespec="seconds").removesuffix("+00:00")
