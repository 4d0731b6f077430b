"""The job's record: the plan, data, user code and outputs that a store was made for.

Rules
1. The record is made once, when the job begins, and never changes. What can change while the job
   lives is in the manager's records (`Ledger`): the user's code, the strategies.
2. What was decided when the job began is used again whenever it goes on: nothing is sampled or
   counted again, so data that has grown since changes no decision.
3. A program is the job's if its staged plan has the same fingerprint.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from weir.errors import RunError, SnapshotCorrupt
from weir.events.types import parse_stored_type, stored_type_name
from weir.plan.plan_fingerprint import PlanFingerprint
from weir.plan.program import Output, StreamKind, output_title
from weir.plan.schema import Schema
from weir.reliable.codec import decode_record, encode_record
from weir.reliable.object_names import JOB, is_known
from weir.reliable.store import Store


class OutputRecord(msgspec.Struct, frozen=True):
    """Describes an output, so that its rows can be read without the program. `kept` says whether
    they are committed to the store; those of a console or a callback are not."""

    name: str
    kind: StreamKind
    path: str
    kept: bool
    time: str
    columns: tuple[tuple[str, str], ...]

    @property
    def schema(self) -> Schema:
        columns = tuple((name, parse_stored_type(written)) for name, written in self.columns)
        return Schema(columns, parse_stored_type(self.time))

    @property
    def title(self) -> str:
        return output_title(self.name, self.kind)


FORMAT = 6
"""The version of the store's layout: what objects there are, what they hold (kernels' snapshots
too), and how they are sealed and named."""
_HEAD = "weir store, format "


class Decisions(msgspec.Struct, frozen=True):
    """Holds what was decided when the job began; see rule 2."""

    parallelism: int = 1
    partitions: dict[str, tuple[str, ...]] = {}
    """The names of each source's partitions."""
    two_phase: tuple[bool, ...] = ()
    """Whether each grouped aggregate that could be computed in two phases is, in the order in which
    the rewrite asks (`rewrites/two_phase.py`)."""


class JobRecord(msgspec.Struct, frozen=True):
    """Says what a job is, by the module's rules."""

    plan: PlanFingerprint
    decisions: Decisions
    outputs: tuple[OutputRecord, ...] = ()
    token: str = ""
    """Marks the manager's records and the first record of each source's log as this job's."""
    code: dict[str, str] | None = None
    """The fingerprints of the user's code that the job was begun with, by module or function; None:
    they were not kept. See `Ledger.code`."""


def output_record(output: Output, schema: Schema, *, kept: bool) -> OutputRecord:
    """Describe an output whose rows have this schema."""
    columns = tuple((name, stored_type_name(dtype)) for name, dtype in schema.columns)
    return OutputRecord(
        name=output.name,
        kind=output.kind,
        path=output.path,
        kept=kept,
        time=stored_type_name(schema.time),
        columns=columns,
    )


_decoder = msgspec.json.Decoder(JobRecord)


def encode_job(job: JobRecord) -> bytes:
    """Encode the job's object: a line with the format's version, which every version can read, then
    the record."""
    return f"{_HEAD}{FORMAT}\n".encode() + encode_record(JOB, job)


def read_job(store: Store) -> JobRecord | None:
    """Read the job's record; None where there is no job, RunError when the store has the format of
    another version."""
    body = store.get(JOB)
    if body is None and any(is_known(key) for key in store.list("records/")):
        raise SnapshotCorrupt(
            f"the object '{JOB}' is not in the store, but records of a job are: put it back from a "
            "version or a backup of the store, or start the job again with an empty store"
        )
    if body is None:
        return None
    head, _, record = body.partition(b"\n")
    version = head.decode("ascii", "replace").removeprefix(_HEAD)
    if version != str(FORMAT) or len(head) == len(version):
        is_number = version.isdigit() and len(version) < 6
        what = f"is in format {version}" if is_number else "has no format that this version knows"
        raise RunError(
            f"the store {what}; this version of Weir reads and writes format {FORMAT}: use the "
            "version that made it, or start the job again with an empty store"
        )
    return decode_record(JOB, record, _decoder)


def find_output(outputs: Sequence[OutputRecord], name: str, kind: StreamKind) -> int:
    """Find the number of a job's output; RunError says which there are."""
    named = [n for n, o in enumerate(outputs) if (o.name, o.kind) == (name, kind)]
    for number in named:
        if outputs[number].kept:
            return number
    for number in named:
        title, path = outputs[number].title, outputs[number].path
        raise RunError(f"rows of {title} go to '{path}' and are not kept")
    kept = ", ".join(o.title for o in outputs if o.kept) or "none"
    title = output_title(name, kind)
    raise RunError(f"the job has no output '{title}'; those that are kept: {kept}")
