"""Everything that the page shows of a job, read from its store: one value, sent as JSON.

Rules
1. The view is read from the store alone, and nothing is ever written: a job that runs, one that was
   stopped and one that has finished look alike.
2. A part that cannot be read (it is lost, or the store is away) is left out, and `problems` says
   why; the rest is shown.
3. All parts are bounded, however long the job runs; objects of the story, and rows of outputs, are
   read once. Who reads again and again reads each part no more often than `EVERY` says, and rests
   `REST` times as long as it took: a store that is slow or large is not kept busy by onlookers.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable
from typing import TypeVar, cast

import msgspec

from weir.errors import WeirError
from weir.files.object_store import ObjectStore
from weir.job.delays import percentile
from weir.job.history import History, all_delays, read_history
from weir.job.plan_drawing import DrawnOutput, DrawnPlan, DrawnStage, DrawnVertex, read_plan
from weir.job.status import JobStatus, read_status, read_story_object, story_keys
from weir.job.store_listing import Kept, kept_objects
from weir.job.story import StoryLine
from weir.page.episodes import ShownStory, shown_story
from weir.page.flows import EdgeFlow, VertexWait, flows_of, waits_of
from weir.page.last_rows import LastRows, ShownOutput

EVERY = {"status": 0.0, "plan": 0.0, "history": 2.0, "story": 0.5, "outputs": 1.0, "store": 10.0}
"""Seconds between two reads of a part, at least."""
REST = 10.0
MOST_STORY = 3000
"""So many objects of the story are read: those of the last."""
_T = TypeVar("_T")


class ShownVertex(msgspec.Struct, frozen=True):
    """Where a vertex belongs."""

    id: str
    kind: str
    stage: int
    partition: str


class Delay(msgspec.Struct, frozen=True):
    """The delays of an output over all of its history, in seconds."""

    p50: float | None
    p99: float | None


class PageView(msgspec.Struct, frozen=True):
    """What the page shows, at a time (in seconds since 1970)."""

    title: str
    location: str
    time: float
    quiet: int
    """For how many seconds nothing was heard of a job that should be running; 0: it is heard of."""
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
    """Whether event times are plain numbers, no microseconds."""


class ViewReader:
    """Reads the view of a store's job, again and again."""

    def __init__(
        self,
        store: ObjectStore,
        clock: Callable[[], float],
        ticks: Callable[[], float] = time.monotonic,
    ) -> None:
        """`clock` tells the time since 1970; `ticks` measures rests, and is never set back."""
        self._store, self._clock, self._ticks = store, clock, ticks
        self._plan: DrawnPlan | None = None
        self._epoch = 0
        """The epoch whose plan was read: each driver writes its own."""
        self._rows = LastRows(store)
        self._story: OrderedDict[str, list[StoryLine]] = OrderedDict()
        self._last: dict[str, tuple[float, object, str]] = {}
        """Of each part, when it is to be read again, what was read, and why it could not be."""

    def read(self) -> PageView:
        """Read what there is to see now."""
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
            self._store.location.rstrip("/").rsplit("/", 1)[-1],
            self._store.location,
            now,
            0 if status is None else status.quiet_for(now),
            status,
            plan.stages,
            plan.outputs,
            tuple(map(_shown, plan.vertices)),
            tuple(flows_of(plan, status)) if status is not None else (),
            tuple(waits_of(plan, status)) if status is not None else (),
            history,
            tuple(delays),
            shown_story(story),
            tuple(committed),
            self._part("store", lambda: tuple(kept_objects(self._store)), tuple[Kept, ...]()),
            tuple(f"{name}: {why}" for name, (_, _, why) in self._last.items() if why),
            plan.plain_ticks,
        )

    def _part(self, name: str, read: Callable[[], _T], otherwise: _T) -> _T:
        """Read one part, or give what was read of it; see rules 2 and 3."""
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
                self._story[key] = read_story_object(self._store, key)
        for key in [k for k in self._story if k < keys[0]] if keys else []:
            del self._story[key]
        return [line for lines in self._story.values() for line in lines]


def _shown(vertex: DrawnVertex) -> ShownVertex:
    return ShownVertex(vertex.id, vertex.kind, vertex.stage, vertex.partition)
