"""A listing of what a job keeps in its store, and why."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import msgspec

from weir.job.ledger import Ledger
from weir.job.record_reader import last_record
from weir.reliable.object_names import incarnation_of, ingress_log, is_known, number_of
from weir.reliable.store import Store


class SizedStore(Store, Protocol):
    """A store that knows how large its objects are."""

    def sizes(self, prefix: str = "") -> Sequence[tuple[str, int]]: ...


class Kept(msgspec.Struct, frozen=True):
    """Counts objects of one kind that are kept for one reason."""

    kind: str
    of: str
    objects: int
    bytes: int
    why: str


_REASONS = {
    "job": "what the job is",
    "records": "the manager's record: what is durable, and where each vertex would restart",
    "status": "for weir status",
    "unchecked": "the job was begun with --check, and its answer is not checked yet",
    "story": "for weir story",
    "plan": "the plan as weir ui and weir report draw it",
    "history": "figures over time, for weir ui and weir report",
    "commits": "the manifest of the output: which rows are committed",
    "parts": "committed rows of the output, for its file and for weir read",
}


def kept_objects(store: SizedStore) -> list[Kept]:
    """Count everything in the store, by kind, by stream or vertex, and by reason."""
    sizes = store.sizes()
    ledger = last_record(store) or Ledger()
    groups: dict[tuple[str, str, str], list[int]] = {}
    for key, size in sizes:
        groups.setdefault(_group(key, ledger), []).append(size)
    return [
        Kept(kind=kind, of=of, objects=len(sizes_of), bytes=sum(sizes_of), why=why)
        for (kind, of, why), sizes_of in groups.items()
    ]


def _group(key: str, ledger: Ledger) -> tuple[str, str, str]:
    kind = key.split("/", 1)[0]
    if not is_known(key):
        return kind, "", "not of this job; nobody reads it, and nobody deletes it"
    match kind:
        case "checkpoints":
            vertex = key.split("/")[1]
            named = any(c.key == key for c in ledger.checkpoints.get(vertex, ()))
            why = f"vertex {vertex} would restart from it, or from a later one"
            return kind, vertex, why if named else _unnamed(key)
        case "streams":
            stream = key.removeprefix("streams/").rsplit("/", 1)[0]
            named = any(s.key == key for s in ledger.segments.get(stream, ()))
            start = ledger.collected.get(stream, 0)
            why = f"its readers may ask for rows from {start} on"
            return kind, stream, why if named else _unnamed(key)
        case "ingress":
            vertex = key.split("/")[1]
            kept = ledger.collected.get(ingress_log(vertex), 0)
            why = f"what cannot be read again; vertex {vertex} would restart from record {kept}"
            late = "no restart needs it; the next sweep deletes it"
            return kind, vertex, why if number_of(key) >= kept else late
        case "commits" | "parts":
            return kind, key.split("/")[1], _REASONS[kind]
        case _:
            return kind, "", _REASONS[kind]


def _unnamed(key: str) -> str:
    return f"not in the record yet, or left by incarnation {incarnation_of(key)}"
