"""The story of a job: what happened to each vertex, in order, with times.

The manager's driver writes the lines of an epoch to numbered objects. Nothing depends on them:
whoever reads a story goes on without an object that is missing or damaged (`whole_story`).
"""

from __future__ import annotations

import msgspec

from weir.errors import SnapshotCorrupt
from weir.reliable.codec import decode_record
from weir.reliable.object_names import is_known
from weir.reliable.store import Store

_STORY = "story/"


class StoryLine(msgspec.Struct, frozen=True):
    """Says what happened at a time, to one vertex or (if that is empty) to the whole job."""

    time: float
    vertex: str
    what: str
    kind: str = ""
    """What kind of thing happened: `host` (one came), `lost`, `placed`, `recovered`, `checkpoint`,
    `commit`, `done`, `waits`, `trouble`, `manager`, `end`; empty: something else."""


_decoder = msgspec.json.Decoder(list[StoryLine])


def story_key(epoch: int, number: int) -> str:
    """Name the object that holds some lines of a job's story."""
    return f"{_STORY}{epoch:06}-{number:08}"


def read_story(store: Store) -> list[StoryLine]:
    """Read what has happened to a job, in order."""
    return [line for key in story_keys(store) for line in read_story_object(store, key)]


def whole_story(store: Store) -> tuple[list[StoryLine], list[str]]:
    """Read what has happened to a job, in order, from the objects that are there and whole; say
    what is wrong with the others."""
    lines: list[StoryLine] = []
    damage: list[str] = []
    for key in expected_story(store):
        try:
            lines += read_story_object(store, key)
        except SnapshotCorrupt as error:
            damage.append(str(error))
    return lines, damage


def story_keys(store: Store) -> list[str]:
    """List the objects that hold a job's story and are there, in order."""
    return [key for key in store.list(_STORY) if is_known(key)]


def expected_story(store: Store) -> list[str]:
    """Name all objects that a job's story must have: in each epoch they are numbered from 0."""
    last: dict[int, int] = {}
    for key in story_keys(store):
        epoch, number = map(int, key.removeprefix(_STORY).split("-"))
        last[epoch] = max(number, last.get(epoch, 0))
    return [story_key(epoch, n) for epoch, most in sorted(last.items()) for n in range(most + 1)]


def read_story_object(store: Store, key: str) -> list[StoryLine]:
    """Read the lines of the story that an object holds."""
    body = store.get(key)
    if body is None:
        raise SnapshotCorrupt(f"{key} is not in the store")
    return decode_record(key, body, _decoder)
