"""Reads the committed rows of a live job, while it runs or later, and writes them to files.

The manifest of an output is the log of its commits, `commits/<sink>/<number>` in the job's store.
Each commit is made once and whole, refers to the part that holds its rows and to the commit before
it, and says how many rows it has and the count and digest of all rows so far. The manager's record
refers to the last commit, so a reader notices what is lost or changed (`job/commit_log.py`): that
is an error, and no file is written then. What a reader has seen never changes and never goes away,
so a reader that has read up to some commit goes on from there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import msgspec
import pyarrow as pa

from weir.errors import PlanError, RunError
from weir.events.batch import Batch, concat_batches, empty_batch
from weir.events.order import in_order
from weir.files.object_prefetch import reading_ahead
from weir.files.object_store import existing_store
from weir.files.writers import OutputForm, OutputWriter, put_all_in_place
from weir.job.commit_log import ChainedCommit, read_chain, read_part
from weir.job.job_identity import JobRecord, find_output, read_job
from weir.job.ledger import Ledger
from weir.job.record_reader import check_commits, job_ledger
from weir.plan.program import Output, StreamKind
from weir.reliable.digest import Digest
from weir.reliable.object_names import UNCHECKED, commit_key
from weir.reliable.store import Store
from weir.runtime.outputs import output_writer
from weir.runtime.topology import vertex_name


@dataclass(frozen=True, slots=True)
class Committed:
    """What `read_committed` returns: the rows from a commit on (`table`), and how many commits and
    rows the output has in all, with their digest. `finished`: no more rows will come,
    and they passed the job's check, if it has one."""

    table: pa.Table
    commits: int
    rows: int
    digest: str
    finished: bool


def read_committed(
    store: str, output: str, *, kind: StreamKind = "rows", since: int = 0
) -> Committed:
    """Read the committed rows of a live job's output, while the job runs or later.

    `store` is the job's store. Rows come in the order in which a file has them. `since` leaves out
    the first so many commits: give the `commits` of an earlier answer to read only what has come
    since. `kind` asks for the late or the bad rows of an input.
    """
    if since < 0:
        raise PlanError(f"`since` counts commits, so it is 0 or more, not {since}")
    reader = OutputReader(existing_store(store), output, kind)
    look = reader.look(since)
    batches = [rows for link in look.commits for rows in reader.rows(link)]
    return Committed(
        table=reader.table(batches),
        commits=look.end,
        rows=look.digest.count,
        digest=str(look.digest),
        finished=look.finished,
    )


@dataclass(frozen=True, slots=True)
class Look:
    """A look says what is committed of an output: the commits from a number on, how many there are
    in all (`end`), the digest of all rows, and whether no more will come."""

    commits: Sequence[ChainedCommit]
    end: int
    digest: Digest
    finished: bool


class OutputReader:
    """Reads the commits of one output, and the rows that they name."""

    def __init__(self, store: Store, name: str, kind: StreamKind = "rows") -> None:
        self._job = existing_job(store)
        job = self._job
        number = find_output(job.outputs, name, kind)
        self._store, self._sink = store, vertex_name("sink", number)
        self._has_looked = False
        self.output = job.outputs[number]
        self.form = OutputForm(".jsonl", self.output.schema, self.output.kind != "bad")

    def look(self, since: int = 0) -> Look:
        """Read what commits there are now, without the first `since`, which must be there. The
        first look is thorough; the next ones are quick, for the record will refer to what comes."""
        ledger = job_ledger(self._store, self._job, thorough=not self._has_looked)
        first, is_new = max(since - 1, 0), not self._has_looked
        links = commits(self._store, self._sink, ledger, first, thorough=is_new)
        if since and not links:
            raise RunError(f"{self.output.title} has no commit {since - 1} yet")
        self._has_looked = True
        last = links[-1].commit if links else None
        return Look(
            links[1:] if since else links,
            0 if last is None else last.number + 1,
            Digest() if last is None else last.digest,
            ledger is not None and _finished(self._store, ledger),
        )

    def rows(self, commit: ChainedCommit) -> list[Batch]:
        """Read the sorted runs of a commit."""
        return [rows for _, rows in read_part(self._store, commit)]

    def table(self, batches: list[Batch]) -> pa.Table:
        """Make a table of rows, in the order and with the columns that a file has."""
        rows = concat_batches([empty_batch(self.form.schema.types), *batches])
        rows = in_order(rows)
        return pa.Table.from_batches([self.form.record(rows)])

    def write(self, path: str) -> Digest:
        """Write what is committed now to a file (or a folder of parts), as a finished run would."""
        look = self.look()
        writers = len(look.commits[-1].commit.inputs) if look.commits else 1
        lifetime = self.output.kind != "bad"
        writer = OutputWriter(path, self.output.schema, writers, lifetime=lifetime)
        with ExitStack() as aborting:
            aborting.callback(writer.abort)
            for input, rows in _all_runs(self._store, look.commits):
                writer.write(input, rows)
            writer.close(look.digest)
        return look.digest


class Manifest(msgspec.Struct, frozen=True):
    """A manifest says how much of an output is committed."""

    name: str
    kind: StreamKind
    path: str
    commits: int
    rows: int
    digest: str
    finished: bool


def manifests(store: Store) -> list[Manifest]:
    """List the outputs of a job that are kept in the store, and how much of each is committed."""
    job = existing_job(store)
    ledger = job_ledger(store, job) or Ledger()
    check_commits(store, ledger)
    finished = _finished(store, ledger)
    listed = []
    for number, output in enumerate(job.outputs):
        if not output.kept:
            continue
        sink = vertex_name("sink", number)
        recorded = ledger.checkpoints.get(sink, ())
        links = commits(store, sink, ledger, recorded[-1].number if recorded else 0)
        last = links[-1].commit if links else None
        count, digest = (0, Digest()) if last is None else (last.number + 1, last.digest)
        listed.append(
            Manifest(
                name=output.name,
                kind=output.kind,
                path=output.path,
                commits=count,
                rows=digest.count,
                digest=str(digest),
                finished=finished,
            )
        )
    return listed


def _finished(store: Store, ledger: Ledger) -> bool:
    """Say whether a job has finished, and passed its check if there was to be one."""
    return ledger.finished and store.get(UNCHECKED) is None


# --- commits and their parts ---------------------------------------------------------------------


def existing_job(store: Store) -> JobRecord:
    """Read the job's record; RunError when the store holds no job."""
    job = read_job(store)
    if job is None:
        raise RunError("the store holds no job")
    return job


def commits(
    store: Store, sink: str, ledger: Ledger | None, since: int = 0, *, thorough: bool = True
) -> list[ChainedCommit]:
    """Read the commits of an output, in order, from a number on; see `read_chain`."""
    recorded = ledger.checkpoints.get(sink, ()) if ledger is not None else ()
    return read_chain(store, sink, recorded[-1].ref if recorded else None, since, thorough=thorough)


def _all_commits(store: Store, sink: str, ledger: Ledger) -> list[ChainedCommit]:
    """Read all commits of an output, ahead of the chain from the last one back to the first."""
    recorded = ledger.checkpoints.get(sink, ())
    last = recorded[-1].number if recorded else -1
    with reading_ahead(store, (commit_key(sink, n) for n in range(last, -1, -1))) as ahead:
        return commits(ahead, sink, ledger)


def _all_runs(store: Store, links: Sequence[ChainedCommit]) -> Iterator[tuple[int, Batch]]:
    """Read the sorted runs of these commits, each with the input of the sink that it came from."""
    parts = (link.commit.part for link in links)
    with reading_ahead(store, (part.key for part in parts if part is not None)) as ahead:
        for link in links:
            yield from read_part(ahead, link)


def write_outputs(
    store: Store,
    ledger: Ledger,
    outputs: Mapping[int, Output],
    inputs: Mapping[int, int],
    directory: str | Path,
) -> list[Digest]:
    """Write the committed rows of these outputs to their files, as the other runners do. `outputs`
    has them by number, `inputs` says how many vertices write each, `ledger` is the last record."""
    digests: list[Digest] = []
    with ExitStack() as aborting:
        writers = []
        for number, output in outputs.items():
            writer = output_writer(output, Path(directory), inputs[number])
            aborting.callback(writer.abort)
            writers.append(writer)
            links = _all_commits(store, vertex_name("sink", number), ledger)
            for input, rows in _all_runs(store, links):
                writer.write(input, rows)
            digest = links[-1].commit.digest if links else Digest()
            digests.append(digest)
        put_all_in_place([w.finish(digest) for w, digest in zip(writers, digests, strict=True)])
    return digests
