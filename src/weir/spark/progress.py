"""How far a job is, told through small files: tasks write them, the driver reads them.

Spark Connect has no accumulators, and Spark's own task counts say nothing of events. A task
writes its file at most every half second, under a name of its own, whole or not at all. Where
workers do not see the driver's folder there is no news, and nothing else is lost.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator

import msgspec

INTERVAL_SECONDS = 0.5


class News(msgspec.Struct, frozen=True):
    """What a task has done so far. Source tasks of wave w feed wave w + 1."""

    wave: int
    is_source: bool
    events: int
    reached: int
    ended: bool


class TaskProgress:
    """A task's side."""

    def __init__(self, folder: str | None, wave: int, name: str) -> None:
        self._folder = folder if folder is not None and os.path.isdir(folder) else None
        self._wave, self._name = wave, name
        self._last = time.monotonic()
        self._reached = 0

    def tell(self, events: int, reached: int) -> None:
        self._reached = reached
        now = time.monotonic()
        if self._folder is not None and now - self._last >= INTERVAL_SECONDS:
            self._last = now
            self._write(events, ended=False)

    def end(self, events: int) -> None:
        if self._folder is not None:
            self._write(events, ended=True)

    def _write(self, events: int, *, ended: bool) -> None:
        assert self._folder is not None
        news = News(self._wave, self._name.startswith("s"), events, self._reached, ended)
        path = os.path.join(self._folder, f"{self._wave}-{self._name}")
        unfinished = f"{path}.{os.getpid()}"
        with open(unfinished, "wb") as file:
            file.write(msgspec.json.encode(news))
        os.replace(unfinished, path)


def read_news(folder: str) -> Iterator[News]:
    """The newest word of every task."""
    for name in os.listdir(folder):
        if "." not in name:
            with open(os.path.join(folder, name), "rb") as file:
                yield msgspec.json.decode(file.read(), type=News)
