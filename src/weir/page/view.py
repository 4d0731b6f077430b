"""Everything that the page shows of a job, read from its store and sent as one JSON value.

Rules
1. The view is read from the store alone, and nothing is ever written. So it works the same for a
   running, a stopped and a finished job.
2. A part that cannot be read (it is lost, or the store does not answer) is left out, and `problems`
   says why; the rest is shown.
3. All parts are bounded, however long the job runs. Objects of the story and rows of outputs are
   read once. Between two reads of a part, a reader that polls waits at least for `EVERY`, and
   `REST` times as long as the last read took, so that onlookers do not keep a slow or large store
   busy.
4. The story is shown as episodes and single lines. An episode begins when a host or, for another
   reason, a vertex is lost. It ends when every vertex lost in it runs again; losses until then
   belong to the same episode. All other lines are shown singly. Of the many checkpoints and
   commits, the last `MOST_CHECKPOINTS` are shown; of other lines, the last `MOST_LINES`.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar, cast

import msgspec
import pyarrow as pa

from weir.errors import SnapshotCorrupt, WeirError
from weir.files.object_store import ObjectStore
from weir.files.sinks import json_values
from weir.job.delays import percentile
from weir.job.history import History, all_delays, read_history
from weir.job.output_reader import Manifest, OutputReader, manifests
from weir.job.plan_drawing import DrawnOutput, DrawnPlan, DrawnStage, DrawnVertex, read_plan
from weir.job.status import JobStatus, read_status
from weir.job.store_listing import Kept, kept_objects
from weir.job.story import StoryLine, read_story_object, story_keys
from weir.page.flows import EdgeFlow, VertexWait, flows_of, waits_of
from weir.reliable.store import Store

EVERY = {"status": 0.0, "plan": 0.0, "history": 2.0, "story": 0.5, "outputs": 1.0, "store": 10.0}
"""The least time between two reads of each part, in seconds."""
REST = 10.0
MOST_STORY = 3000
"""The number of objects of the story that are read, counted from the last."""
_T = TypeVar("_T")


class ShownVertex(msgspec.Struct, frozen=True):
    """The place of a vertex in the plan."""

    id: str
    kind: str
    stage: int
    partition: str


class Delay(msgspec.Struct, frozen=True):
    """The delays of an output over its whole history, in seconds."""

    p50: float | None
    p99: float | None


class PageView(msgspec.Struct, frozen=True):
    """What the page shows at a `time` (in seconds since 1970)."""

    title: str
    location: str
    time: float
    quiet: int
    """For how many seconds a job that should be running has not reported; 0 if it reports."""
    status: JobStatus | None
    stages: tuple[DrawnStage, ...]
    outputs: tuple[DrawnOutput, ...]
    vertices: tuple[ShownVertex, ...]
    flows: tuple[EdgeFlow, ...]
    waits: tuple[VertexWait, ...]
    history: History
    delays: tuple[Delay, ...]
    story: ShownStory
    committed: tuple[ShownOutput, ...]
    kept: tuple[Kept, ...]
    problems: tuple[str, ...]
    plain_ticks: bool
    """Whether event times are plain numbers, not microseconds."""


class ViewReader:
    """Reads the view of a store's job repeatedly."""

    def __init__(
        self,
        store: ObjectStore,
        clock: Callable[[], float],
        ticks: Callable[[], float] = time.monotonic,
    ) -> None:
        """`clock` returns the time since 1970; `ticks` is a monotonic clock."""
        self._store, self._clock, self._ticks = store, clock, ticks
        self._plan: DrawnPlan | None = None
        self._epoch = 0
        """The epoch of the plan that was read: each driver writes its own plan."""
        self._rows = LastRows(store)
        self._story: OrderedDict[str, list[StoryLine]] = OrderedDict()
        self._last: dict[str, tuple[float, object, str]] = {}
        """For each part: when it is due again, the last value, and why it could not be read."""
        self._damage: dict[str, str] = {}
        """The damaged objects of the story, and what is wrong with each."""

    def read(self) -> PageView:
        """Read the current view."""
        now = self._clock()
        status = self._part("status", lambda: read_status(self._store), None)
        if status is not None and status.epoch != self._epoch:
            self._epoch, self._plan = status.epoch, None
            self._last.pop("plan", None)
        if self._plan is None:
            self._plan = self._part("plan", lambda: read_plan(self._store), None)
        plan = self._plan or DrawnPlan((), (), ())
        history = self._part("history", lambda: read_history(self._store), None) or History()
        story = self._part("story", self._read_story, list[StoryLine]())
        committed = self._part("outputs", self._rows.read, list[ShownOutput]())
        delays = [Delay(percentile(c, 0.5), percentile(c, 0.99)) for c in all_delays(history)]
        return PageView(
            title=self._store.location.rstrip("/").rsplit("/", 1)[-1],
            location=self._store.location,
            time=now,
            quiet=0 if status is None else status.quiet_for(now),
            status=status,
            stages=plan.stages,
            outputs=plan.outputs,
            vertices=tuple(map(_shown, plan.vertices)),
            flows=tuple(flows_of(plan, status)) if status is not None else (),
            waits=tuple(waits_of(plan, status)) if status is not None else (),
            history=history,
            delays=tuple(delays),
            story=shown_story(story),
            committed=tuple(committed),
            kept=self._part("store", lambda: tuple(kept_objects(self._store)), tuple[Kept, ...]()),
            problems=tuple(self._problems()),
            plain_ticks=plan.plain_ticks,
        )

    def _problems(self) -> Iterator[str]:
        """Yield the parts that could not be read, and why."""
        yield from (f"{name}: {why}" for name, (_, _, why) in self._last.items() if why)
        yield from (f"story: {why}" for why in self._damage.values())

    def _part(self, name: str, read: Callable[[], _T], otherwise: _T) -> _T:
        """Read one part, or return its last value until a read is due (rules 2 and 3)."""
        began = self._ticks()
        again, last, _ = self._last.get(name, (began, otherwise, ""))
        if began < again:
            return cast(_T, last)
        try:
            value, why = read(), ""
        except WeirError as error:
            value, why = otherwise, str(error)
        took = self._ticks() - began
        self._last[name] = (began + max(EVERY[name], REST * took), value, why)
        return value

    def _read_story(self) -> list[StoryLine]:
        keys = story_keys(self._store)[-MOST_STORY:]
        for key in keys:
            if key not in self._story:
                try:
                    self._story[key] = read_story_object(self._store, key)
                except SnapshotCorrupt as error:
                    self._story[key], self._damage[key] = [], str(error)
        for key in [k for k in self._story if k < keys[0]] if keys else []:
            del self._story[key]
            self._damage.pop(key, None)
        return [line for lines in self._story.values() for line in lines]


def _shown(vertex: DrawnVertex) -> ShownVertex:
    return ShownVertex(vertex.id, vertex.kind, vertex.stage, vertex.partition)


# --- outputs --------------------------------------------------------------------------------

MOST_ROWS = 12
"""The number of last rows that are shown."""
MOST_COMMITS = 20
"""The number of commits that are searched for the last rows."""
MOST_TEXT = 200
"""The number of characters that are shown of a value."""


class ShownOutput(msgspec.Struct, frozen=True):
    """An output: how much of it is committed, and its last rows as texts, or in `problem` why they
    cannot be read."""

    manifest: Manifest
    columns: tuple[tuple[str, str], ...]
    rows: tuple[tuple[str | None, ...], ...]
    problem: str = ""


class LastRows:
    """Reads the outputs of a store; the rows of each commit are read once."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._last: dict[tuple[str, str], ShownOutput] = {}

    def read(self) -> list[ShownOutput]:
        """Read what is committed so far."""
        return [self._output(manifest) for manifest in manifests(self._store)]

    def _output(self, manifest: Manifest) -> ShownOutput:
        name = (manifest.name, manifest.kind)
        last = self._last.get(name)
        if last is not None and not last.problem and last.manifest.digest == manifest.digest:
            return msgspec.structs.replace(last, manifest=manifest)
        try:
            shown = self._shown(manifest)
        except WeirError as error:
            shown = ShownOutput(manifest=manifest, columns=(), rows=(), problem=str(error))
        self._last[name] = shown
        return shown

    def _shown(self, manifest: Manifest) -> ShownOutput:
        reader = OutputReader(self._store, manifest.name, manifest.kind)
        columns = tuple(reader.output.columns)
        if reader.form.lifetime:
            time = reader.output.time
            columns = (("vs", time), ("ve", time), *columns)
        look = reader.look(max(0, manifest.commits - MOST_COMMITS))
        rows: list[tuple[str | None, ...]] = []
        for commit in reversed(look.commits):
            if len(rows) >= MOST_ROWS:
                break
            batches = reader.rows(commit)
            if batches:
                table = reader.table(batches)
                last = table.slice(max(0, table.num_rows - (MOST_ROWS - len(rows))))
                rows = [*_texts(last), *rows]
        return ShownOutput(manifest, columns, tuple(rows))


def _texts(table: pa.Table) -> list[tuple[str | None, ...]]:
    columns = [json_values(c.combine_chunks()) for c in table.columns]
    return [tuple(map(_text, row)) for row in zip(*columns, strict=True)]


def _text(value: object) -> str | None:
    if value is None:
        return None
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    return text if len(text) <= MOST_TEXT else f"{text[: MOST_TEXT - 1]}…"


# --- the story ------------------------------------------------------------------------------

MOST_LINES = 1000
MOST_CHECKPOINTS = 600
_ROUTINE = ("checkpoint", "commit")
_OF_EPISODES = ("lost", "placed", "recovered", "host")


class Episode(msgspec.Struct, frozen=True):
    """A loss and its consequences: the lines of the story from `began` to `ended` (None: some
    vertices do not run again yet)."""

    title: str
    began: float
    ended: float | None
    vertices: tuple[str, ...]
    lines: tuple[StoryLine, ...]


class ShownStory(msgspec.Struct, frozen=True):
    """The part of the story that is shown; `left_out` counts the other lines."""

    episodes: tuple[Episode, ...]
    lines: tuple[StoryLine, ...]
    left_out: int


def shown_story(story: Sequence[StoryLine]) -> ShownStory:
    """Choose the parts of a story to show."""
    routine = [line for line in story if line.kind in _ROUTINE][-MOST_CHECKPOINTS:]
    others = [line for line in story if line.kind not in _ROUTINE][-MOST_LINES:]
    shown = sorted((*routine, *others), key=lambda line: line.time)
    return ShownStory(tuple(_episodes(others)), tuple(shown), len(story) - len(shown))


def _episodes(lines: Sequence[StoryLine]) -> list[Episode]:
    episodes: list[Episode] = []
    begun: list[StoryLine] = []
    lost: set[str] = set()
    hit: dict[str, None] = {}
    for line in lines:
        if line.kind not in _OF_EPISODES or (not begun and line.kind != "lost"):
            continue
        begun.append(line)
        if line.kind == "lost" and line.vertex:
            lost.add(line.vertex)
            hit[line.vertex] = None
        elif line.kind == "recovered":
            lost.discard(line.vertex)
            if not lost:
                episodes.append(_episode(begun, hit, line.time))
                begun, hit = [], {}
    if begun:
        episodes.append(_episode(begun, hit, None if lost else begun[-1].time))
    return episodes


def _episode(lines: Sequence[StoryLine], hit: dict[str, None], ended: float | None) -> Episode:
    return Episode(
        title=lines[0].what,
        began=lines[0].time,
        ended=ended,
        vertices=tuple(hit),
        lines=tuple(lines),
    )
