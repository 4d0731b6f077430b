"""Committed rows of a live job: read back while it runs or later, and made into files.

The manifest of an output is the log of its commits, `commits/<sink>/<number>` in the job's store:
each is made once and whole, refers to the part that holds its rows and to the commit before it, and
says how many rows there are and the count and digest of all so far. The manager's record refers to
the last commit, so what is lost or changed is found (`job/commits.py`); it is an error, and nothing
is written then. Of what a reader has seen nothing changes and nothing goes away, so who has read up
to a number goes on from there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import msgspec
import pyarrow as pa

from weir.errors import RunError
from weir.events.batch import Batch, concat_batches, empty_batch
from weir.events.order import in_order
from weir.io.object_store import existing_store
from weir.io.writers import OutputForm, OutputWriter, put_all_in_place
from weir.job.commits import Commit, Link, read_chain, read_part
from weir.job.job_record import JobRecord, find_output, read_job
from weir.job.ledger import Ledger
from weir.job.records import check_commits, job_ledger
from weir.local.files import output_writer
from weir.plan.nodes import Output
from weir.reliable.digest import Digest
from weir.reliable.store import Store

Kind = Literal["rows", "late", "bad"]


@dataclass(frozen=True, slots=True)
class Committed:
    """Committed rows of an output: those from a commit on (`table`), and how many commits and
    rows there are in all, with their digest. `finished`: no more will come."""

    table: pa.Table
    commits: int
    rows: int
    digest: str
    finished: bool


def read_committed(store: str, output: str, *, kind: Kind = "rows", since: int = 0) -> Committed:
    """The rows of a live job's output that are there for good, while the job runs or later.

    `store` is the job's store. Rows come in the order of a file. `since` leaves the first so many
    commits out: with the `commits` of an earlier answer only what has come since is read. `kind`
    asks for the late or the bad rows of an input.
    """
    reader = OutputReader(existing_store(store), output, kind)
    finished = reader.finished  # first: what is committed afterwards is the next reader's
    batches, last = [], reader.commit(since - 1) if since else None
    for commit, rows in reader.commits(since):
        last = commit
        batches += rows
    return Committed(
        reader.table(batches),
        0 if last is None else last.number + 1,
        0 if last is None else last.count,
        str(Digest() if last is None else last.digest),
        finished,
    )


class OutputReader:
    """Reads the commits of one output; see the module's docstring."""

    def __init__(self, store: Store, name: str, kind: str = "rows") -> None:
        self._job = existing_job(store)
        job = self._job
        number = find_output(job.outputs, name, kind)
        self._store, self._sink = store, f"sink.{number}"
        self.output = job.outputs[number]
        self.form = OutputForm(".jsonl", self.output.schema, self.output.kind != "bad")

    @property
    def finished(self) -> bool:
        ledger = job_ledger(self._store, self._job)
        return ledger is not None and ledger.finished

    def commit(self, number: int) -> Commit:
        for link in self._links(number):
            return link.commit
        raise RunError(f"{self.output.title} has no commit {number} yet")

    def commits(self, since: int = 0) -> Iterator[tuple[Commit, list[Batch]]]:
        """The commits that are there, from this number on, each with its sorted runs."""
        for link in self._links(since):
            yield link.commit, [rows for _, rows in read_part(self._store, link)]

    def _links(self, since: int = 0) -> list[Link]:
        return commits(self._store, self._sink, job_ledger(self._store, self._job), since)

    def table(self, batches: list[Batch]) -> pa.Table:
        """Rows as a file has them."""
        rows = concat_batches([empty_batch(self.form.schema.types), *batches])
        rows = in_order(rows)
        return pa.Table.from_batches([self.form.record(rows)])

    def write(self, path: str) -> Digest:
        """What is committed now, as a file (or a folder of parts) like a finished run's."""
        found = self._links()
        writers = len(found[-1].commit.inputs) if found else 1
        lifetime = self.output.kind != "bad"
        writer = OutputWriter(path, self.output.schema, writers, lifetime=lifetime)
        digest = Digest()
        with ExitStack() as aborting:
            aborting.callback(writer.abort)
            for link in found:
                digest = link.commit.digest
                for place, rows in read_part(self._store, link):
                    writer.write(place, rows)
            writer.close(digest)
        return digest


class Manifest(msgspec.Struct, frozen=True):
    """How much of an output is committed."""

    name: str
    kind: Kind
    path: str
    commits: int
    rows: int
    digest: str
    finished: bool


def manifests(store: Store) -> list[Manifest]:
    """The outputs of a job that are kept, and how much of each is committed."""
    job = existing_job(store)
    ledger = job_ledger(store, job) or Ledger()
    check_commits(store, ledger)
    found = []
    for number, output in enumerate(job.outputs):
        if not output.kept:
            continue
        known = ledger.checkpoints.get(f"sink.{number}", ())
        links = commits(store, f"sink.{number}", ledger, known[-1].number if known else 0)
        last = links[-1].commit if links else None
        count, digest = (0, Digest()) if last is None else (last.number + 1, last.digest)
        found.append(
            Manifest(
                output.name, output.kind, output.path,
                count, digest.count, str(digest), ledger.finished,
            )
        )  # fmt: skip
    return found


# --- commits and their parts ---------------------------------------------------------------------


def existing_job(store: Store) -> JobRecord:
    job = read_job(store)
    if job is None:
        raise RunError("the store holds no job")
    return job


def commits(store: Store, sink: str, ledger: Ledger | None, since: int = 0) -> list[Link]:
    """The commits of an output that are there, in order, from a number on."""
    known = ledger.checkpoints.get(sink, ()) if ledger is not None else ()
    return read_chain(store, sink, known[-1].ref if known else None, since)


def write_outputs(
    store: Store,
    ledger: Ledger,
    outputs: Mapping[int, Output],
    inputs: Mapping[int, int],
    directory: str | Path,
) -> list[Digest]:
    """Put outputs, by their numbers, in their places, as the other runners do; `inputs` says how
    many vertices write each, `ledger` is the last record."""
    digests: list[Digest] = []
    with ExitStack() as aborting:
        writers = []
        for number, output in outputs.items():
            writer = output_writer(output, Path(directory), inputs[number])
            aborting.callback(writer.abort)
            writers.append(writer)
            digest = Digest()
            for link in commits(store, f"sink.{number}", ledger):
                digest = link.commit.digest
                for place, rows in read_part(store, link):
                    writer.write(place, rows)
            digests.append(digest)
        put_all_in_place([w.finish(digest) for w, digest in zip(writers, digests, strict=True)])
    return digests
