"""What a store was made for: which plan over which data, the user's code, and the outputs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec

from weir.errors import RunError
from weir.events.types import NULL, parse_type, type_name
from weir.job.keys import JOB, code_key
from weir.plan.nodes import Output, Schema
from weir.reliable.codec import decode_record
from weir.reliable.store import Store


class OutputRecord(msgspec.Struct, frozen=True):
    """An output, so that its rows can be read without the program. `kept` is whether they are
    committed to the store; those of a console or a callback are not."""

    name: str
    kind: Literal["rows", "late", "bad"]
    path: str
    kept: bool
    time: str
    columns: tuple[tuple[str, str], ...]

    @property
    def schema(self) -> Schema:
        columns = tuple((n, NULL if t == "NULL" else parse_type(t)) for n, t in self.columns)
        return Schema(columns, parse_type(self.time))

    @property
    def title(self) -> str:
        return self.name if self.kind == "rows" else f"{self.kind} rows of {self.name}"


class JobRecord(msgspec.Struct, frozen=True):
    """See the module's docstring."""

    plan: str
    parallelism: int
    partitions: dict[str, tuple[str, ...]]
    outputs: tuple[OutputRecord, ...] = ()
    token: str = ""
    """Marks the first record of each source's log as this job's."""
    code: dict[str, str] | None = None
    """The fingerprints of the user's code, by module or function; None: they were not kept."""


class CodeRecord(msgspec.Struct, frozen=True):
    """The user's code that a job went on with, and what was different from before."""

    code: dict[str, str]
    changes: tuple[str, ...]


def output_record(output: Output, schema: Schema, *, kept: bool) -> OutputRecord:
    columns = tuple((name, type_name(dtype)) for name, dtype in schema.columns)
    return OutputRecord(
        output.name, output.kind, output.path, kept, type_name(schema.time), columns
    )


_decoder = msgspec.json.Decoder(JobRecord)


def read_job(store: Store) -> JobRecord | None:
    """What the store was made for; None where there is no job."""
    body = store.get(JOB)
    return None if body is None else _decoder.decode(decode_record(body))


_code_decoder = msgspec.json.Decoder(CodeRecord)


def last_code(store: Store, job: JobRecord) -> tuple[int, dict[str, str] | None]:
    """How often the job went on with other code, and the fingerprints of what it runs with."""
    keys = store.list("code/")
    body = store.get(code_key(len(keys) - 1)) if keys else None
    if body is None:
        return len(keys), job.code
    return len(keys), _code_decoder.decode(decode_record(body)).code


def find_output(outputs: Sequence[OutputRecord], name: str, kind: str) -> int:
    """The number of a job's output; RunError says which there are."""
    named = [n for n, o in enumerate(outputs) if (o.name, o.kind) == (name, kind)]
    for number in named:
        if outputs[number].kept:
            return number
    for number in named:
        title, path = outputs[number].title, outputs[number].path
        raise RunError(f"rows of {title} go to '{path}' and are not kept")
    known = ", ".join(o.title for o in outputs if o.kept) or "none"
    wanted = name if kind == "rows" else f"{kind} rows of {name}"
    raise RunError(f"the job has no output '{wanted}'; those that are kept: {known}")
