"""Reports the progress of a job through small files that tasks write and the driver reads.

Spark Connect has no accumulators, and Spark's own counts are of tasks, not events. A task writes
its file, whole or not at all, at most every half second; a task that fails permanently writes
another file. If workers do not see the driver's folder, only the progress is missing: an error then
comes with the reports at the end of the job.
"""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import suppress

import msgspec

from weir.errors import WeirError
from weir.events.batch import OPEN
from weir.runtime.reports import OnProgress, Progress
from weir.runtime.vertices import operators_text
from weir.spark.offline.reports import packed, unpacked
from weir.spark.offline.waves import Group, Job

INTERVAL_SECONDS = 0.5
_FAILED = "failed."


class News(msgspec.Struct, frozen=True):
    """The progress of a task, and its first vertex. Source tasks of wave w feed wave w + 1."""

    layout: int
    vertex: str
    wave: int
    is_source: bool
    events: int
    reached: int
    read: int
    ended: bool


class TaskProgress:
    """Writes the news of one task."""

    def __init__(self, folder: str | None, wave: int, name: str, group: Group) -> None:
        self._folder = folder if folder is not None and os.path.isdir(folder) else None
        self._wave, self._name, self._group = wave, name, group
        self._last = time.monotonic()
        self._reached, self._read = OPEN, 0
        if self._folder is not None:
            self._write(0, ended=False)

    def tell(self, events: int, reached: int, read: int = 0) -> None:
        """Note the number of events so far, the event time reached, and the bytes read of the
        source."""
        self._reached, self._read = reached, read
        now = time.monotonic()
        if self._folder is not None and now - self._last >= INTERVAL_SECONDS:
            self._last = now
            self._write(events, ended=False)

    def end(self, events: int) -> None:
        """Note that the task has ended."""
        if self._folder is not None:
            self._write(events, ended=True)

    def _write(self, events: int, *, ended: bool) -> None:
        assert self._folder is not None
        is_source = self._name.startswith("s")
        news = News(
            layout=self._group.layout,
            vertex=self._group.vertex,
            wave=self._wave,
            is_source=is_source,
            events=events,
            reached=self._reached,
            read=self._read,
            ended=ended,
        )
        path = os.path.join(self._folder, f"{self._wave}-{self._name}")
        _put(path, msgspec.json.encode(news))


def tell_failure(folder: str | None, wave: int, error: WeirError) -> None:
    """Note that a task of a wave has failed permanently. Tasks after it get too few rows and may
    fail too, so of several errors the first wave's counts."""
    if folder is not None and os.path.isdir(folder):
        _put(f"{folder}/{_FAILED}{wave:05}.{uuid.uuid4().hex}", packed(error).encode())


def _put(path: str, content: bytes) -> None:
    """Write a file, whole or not at all."""
    folder, name = os.path.split(path)
    unfinished = os.path.join(folder, f".{name}.{os.getpid()}")
    # Missing news must not fail the task: the disk is full, or the job is over and has cleaned up.
    with suppress(OSError):
        with open(unfinished, "wb") as file:
            file.write(content)
        os.replace(unfinished, path)


# --- the driver's side -----------------------------------------------------------------------


class Watch:
    """Passes on the news of a job's tasks, and raises the error of a task that failed
    permanently."""

    def __init__(self, job: Job, folder: str, tell: OnProgress | None) -> None:
        self._job, self._folder, self._tell = job, folder, tell
        self._size = 0 if tell is None else input_size(job)

    def look(self) -> None:
        """Read the news; raise the error of a task that failed permanently, or report progress."""
        failures = sorted(n for n in os.listdir(self._folder) if n.startswith(_FAILED))
        if failures:
            with open(os.path.join(self._folder, failures[0]), encoding="ascii") as file:
                raise unpacked(file.read())
        if self._tell is not None:
            news = list(read_news(self._folder))
            self._tell(job_progress(self._job, self._size, news))

    def running(self) -> str:
        """Return the stages of the tasks that have not ended."""
        unfinished = {(n.layout, n.vertex) for n in read_news(self._folder) if not n.ended}
        return ", ".join(sorted({self._stage(layout, vertex) for layout, vertex in unfinished}))

    def _stage(self, number: int, vertex: str) -> str:
        layout = self._job.layouts[number]
        spec = layout.topology.vertices[vertex]
        if spec.kind == "sink":
            return f"the output {layout.plan.sinks[spec.stage].output.title}"
        return f"stage {spec.stage} ({operators_text(layout.plan, spec)})"


class JobsProgress:
    """Reports one progress for several consecutive jobs. With `in_time=False` it leaves out event
    times, which mean nothing across many programs."""

    def __init__(self, tell: OnProgress | None, count: int, *, in_time: bool) -> None:
        self._tell, self._count, self._in_time = tell, count, in_time
        self._begun = self._events_before = self._events = 0

    def begin(self, name: str) -> OnProgress | None:
        """Return the callback for the progress of the next job."""
        if self._tell is None:
            return None
        over, whole = self._begun, self._tell
        self._begun, self._events_before = over + 1, self._events

        def tell(progress: Progress) -> None:
            self._events = self._events_before + progress.events
            reached = progress.reached if self._in_time else OPEN
            stage = f"{name} ({over + 1} of {self._count})"
            stage += f", {progress.stage}" if progress.stage else ""
            read, size = over * progress.size + progress.read, self._count * progress.size
            whole(Progress(events=self._events, reached=reached, read=read, size=size, stage=stage))

        return tell


_decoder = msgspec.json.Decoder(News)


def read_news(folder: str) -> Iterator[News]:
    """Yield the latest news of every task."""
    for name in os.listdir(folder):
        if "." not in name:
            with open(os.path.join(folder, name), "rb") as file:
                yield _decoder.decode(file.read())


def input_size(job: Job) -> int:
    """Return the number of bytes that a job reads."""
    return sum(p.size for layout in job.layouts for of in layout.partitions.values() for p in of)


def job_progress(job: Job, size: int, news: Sequence[News]) -> Progress:
    """Return the progress of a job that reads `size` bytes. All waves count equally. Within a wave,
    bytes read or groups ended count."""
    if not news:
        return Progress(0, OPEN)
    wave = max(n.wave + n.is_source for n in news)
    now = [n for n in news if n.wave + n.is_source == wave]
    running = [n.reached for n in now if not n.ended]
    done = _share(sum(n.read for n in news if n.is_source), size)
    for number, groups in enumerate(job.waves, 1):
        ended = sum(n.ended for n in news if n.wave == number and not n.is_source)
        done += _share(ended, len(groups))
    steps = len(job.waves) + 1
    events = sum(n.events for n in news if n.is_source)
    parts = 1_000_000
    reading = all(n.is_source for n in now)
    stage = f"{'reading for' if reading else 'running'} wave {wave} of {len(job.waves)}"
    reached = min(running, default=OPEN)
    return Progress(
        events=events, reached=reached, read=int(parts * done), size=parts * steps, stage=stage
    )


def _share(some: int, of_all: int) -> float:
    return some / of_all if of_all else 0.0
