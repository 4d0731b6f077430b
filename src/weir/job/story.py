"""The story of a job: what happened to each vertex, in order, with times."""

from __future__ import annotations

import msgspec


class StoryLine(msgspec.Struct, frozen=True):
    """Says what happened at a time, to one vertex or (if that is empty) to the whole job."""

    time: float
    vertex: str
    what: str
    kind: str = ""
    """What kind of thing happened: `host` (one came), `lost`, `placed`, `recovered`, `checkpoint`,
    `commit`, `done`, `waits`, `trouble`, `manager`, `end`; empty: something else."""
