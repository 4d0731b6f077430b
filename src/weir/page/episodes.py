"""The story of a job as onlookers read it: losses with their recoveries as episodes, the rest as
single moments.

Rules
1. An episode begins when a host is lost, or a vertex is for another reason, and ends when every
   vertex that was lost in it runs again. Losses meanwhile belong to the same episode.
2. All other lines stand for themselves. Of checkpoints and commits, which are many, the last
   `MOST_CHECKPOINTS` are shown; of other lines the last `MOST_LINES`.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from weir.job.story import StoryLine

MOST_LINES = 1000
MOST_CHECKPOINTS = 600
_ROUTINE = ("checkpoint", "commit")
_OF_EPISODES = ("lost", "placed", "recovered", "host")


class Episode(msgspec.Struct, frozen=True):
    """A loss and what came of it: the lines of the story from `began` to `ended` (None: not all
    vertices run again yet)."""

    title: str
    began: float
    ended: float | None
    vertices: tuple[str, ...]
    lines: tuple[StoryLine, ...]


class ShownStory(msgspec.Struct, frozen=True):
    """The story as it is shown; `left_out` counts lines that are not."""

    episodes: tuple[Episode, ...]
    lines: tuple[StoryLine, ...]
    left_out: int


def shown_story(story: Sequence[StoryLine]) -> ShownStory:
    """Make what is shown of a story."""
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
    return Episode(lines[0].what, lines[0].time, ended, tuple(hit), tuple(lines))
