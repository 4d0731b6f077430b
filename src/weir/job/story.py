"""The story of a job: what happened to each vertex, in order, with times."""

from __future__ import annotations

import msgspec


class StoryLine(msgspec.Struct, frozen=True):
    """Something that happened, to one vertex or (without one) to the whole job."""

    time: float
    vertex: str
    what: str
