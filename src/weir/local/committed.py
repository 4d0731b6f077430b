"""Committed rows of a live job: read back from its store, and made into a finite run's files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path

from weir.errors import SnapshotCorrupt
from weir.events.batch import Batch
from weir.io.writers import put_all_in_place
from weir.job.commits import Commit, decode_commit, decode_part
from weir.job.keys import commit_key
from weir.local.files import output_writer
from weir.plan.nodes import Output
from weir.reliable.digest import Digest
from weir.reliable.store import Store


def commits(store: Store, sink: str) -> Iterator[Commit]:
    """The commits of an output, in order."""
    number = 0
    while (body := store.get(commit_key(sink, number))) is not None:
        yield decode_commit(body)
        number += 1


def committed_runs(store: Store, commit: Commit) -> list[tuple[int, Batch]]:
    """The sorted runs of a commit, with the input of the sink each came from."""
    if not commit.part:
        return []
    body = store.get(commit.part)
    if body is None:
        raise SnapshotCorrupt(f"{commit.part}, which commit {commit.number} names, is not there")
    return decode_part(body)


def write_outputs(
    store: Store, outputs: Mapping[int, Output], inputs: Mapping[int, int], directory: str | Path
) -> list[Digest]:
    """Put outputs, by their numbers, in their places, as the other runners do; `inputs` says how
    many vertices write each."""
    digests: list[Digest] = []
    with ExitStack() as aborting:
        writers = []
        for number, output in outputs.items():
            writer = output_writer(output, Path(directory), inputs[number])
            aborting.callback(writer.abort)
            writers.append(writer)
            digest = Digest()
            for commit in commits(store, f"sink.{number}"):
                digest = commit.digest
                for place, rows in committed_runs(store, commit):
                    writer.write(place, rows)
            digests.append(digest)
        put_all_in_place([w.finish(digest) for w, digest in zip(writers, digests, strict=True)])
    return digests
