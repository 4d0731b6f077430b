"""Lets Spark read a live job's committed rows: `spark.read.format("weir")`, `readStream` too.

    spark.read.format("weir").option("output", "Sums").load("/var/weir/clicks")

Rules
1. The path is a job's store. Options: `output`, which may be left out if the job has only one;
   `kind` (`rows`, `late`, `bad`); `since`, the number of commits to skip.
2. Rows have the columns of the output's file, in no order. Rows that were read, while the job runs
   or later, are committed and never change.
3. A stream's offset is the number of commits. Each commit is read by exactly one micro-batch, so
   the results are as exact as Spark's own checkpoints and sinks.
4. A task reads whole commits by reference, and verifies their checksums; it lists nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import cast, get_args

import pyarrow as pa
from pyspark.sql import types as t
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    InputPartition,
)
from pyspark.sql.streaming.datasource import ReadLimit

from weir.errors import PlanError
from weir.files.object_store import existing_store, folder_of
from weir.job.commit_log import ChainedCommit
from weir.job.output_reader import OutputReader, manifests
from weir.plan.program import StreamKind, output_title
from weir.spark.spark_types import spark_record, spark_schema

PARTITION_ROWS = 1 << 20
"""A task reads commits until it has this many rows."""
_OPTIONS = ("path", "output", "kind", "since")


@dataclass(frozen=True, slots=True)
class _CommittedRows:
    """The values of the options."""

    store: str
    output: str
    kind: StreamKind
    since: int

    def reader(self) -> OutputReader:
        return OutputReader(existing_store(self.store), self.output, self.kind)


class CommittedSource(DataSource):
    """Spark's format `weir`: the committed rows of an output of a live job."""

    def __init__(self, options: Mapping[str, str]) -> None:
        super().__init__(dict(options))
        self._rows = _committed_rows(options)

    @classmethod
    def name(cls) -> str:
        """Return the name of the format."""
        return "weir"

    def schema(self) -> t.StructType:
        """Return the columns of the output's file."""
        return spark_schema(self._rows.reader().form.columns)

    def reader(self, schema: t.StructType) -> DataSourceReader:
        """Return a reader of everything that is committed now."""
        self._check(schema)
        return _BatchReader(self._rows)

    def streamReader(self, schema: t.StructType) -> DataSourceStreamReader:  # noqa: N802
        """Return a reader of commit after commit."""
        self._check(schema)
        return _StreamReader(self._rows)

    def _check(self, schema: t.StructType) -> None:
        if schema != self.schema():
            hint = "leave .schema(…) out, and select and cast the columns after .load()"
            raise PlanError("the format weir knows its columns from the job", hint=hint)


def _committed_rows(options: Mapping[str, str]) -> _CommittedRows:
    for name in options:
        if name.lower() not in _OPTIONS:
            raise PlanError(f"no option `{name}`; there are {', '.join(_OPTIONS)}")
    location = options.get("path")
    if not location:
        raise PlanError("which job? .load(STORE) names its store")
    folder = folder_of(location)
    store = location if folder is None else str(folder)
    kind = options.get("kind", "rows")
    if kind not in get_args(StreamKind):
        raise PlanError(f"no kind `{kind}`; there are {', '.join(get_args(StreamKind))}")
    since = options.get("since", "0")
    if not (since.isascii() and since.isdecimal()):
        raise PlanError(f"`since` counts commits, so it is 0 or more, not {since}")
    output = options.get("output") or _only_output(store, cast("StreamKind", kind))
    return _CommittedRows(store, output, cast("StreamKind", kind), int(since))


def _only_output(store: str, kind: StreamKind) -> str:
    outputs = manifests(existing_store(store))
    names = [m.name for m in outputs if m.kind == kind]
    if len(names) != 1:
        there = ", ".join(output_title(m.name, m.kind) for m in outputs) or "none"
        raise PlanError(f'which output? .option("output", NAME); the job has {there}')
    return names[0]


# --- reading -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _SomeCommits(InputPartition):
    """Some commits, to be read by one task."""

    commits: Sequence[ChainedCommit]


def _split(commits: Sequence[ChainedCommit]) -> list[_SomeCommits]:
    """Split commits into partitions of about `PARTITION_ROWS` rows."""
    parts: list[list[ChainedCommit]] = []
    rows = PARTITION_ROWS
    for link in commits:
        if rows >= PARTITION_ROWS:
            parts.append([])
            rows = 0
        parts[-1].append(link)
        rows += link.commit.rows
    return [_SomeCommits(part) for part in parts]


def _read(output: _CommittedRows, partition: InputPartition) -> Iterator[pa.RecordBatch]:
    assert isinstance(partition, _SomeCommits)
    reader = output.reader()
    for link in partition.commits:
        for rows in reader.rows(link):
            yield spark_record(reader.form.record(rows))


@dataclass(frozen=True)
class _BatchReader(DataSourceReader):
    """Reads everything that is committed when the query is planned."""

    rows: _CommittedRows

    def partitions(self) -> Sequence[InputPartition]:
        return _split(self.rows.reader().look(self.rows.since).commits)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return _read(self.rows, partition)


class _StreamReader(DataSourceStreamReader):
    """Reads commit after commit."""

    def __init__(self, rows: _CommittedRows) -> None:
        self._rows = rows

    def initialOffset(self) -> dict[str, int]:  # noqa: N802
        return {"commits": self._rows.since}

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:  # noqa: N802
        return {"commits": self._rows.reader().look(start["commits"]).end}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        commits = self._rows.reader().look(start["commits"]).commits
        return _split([link for link in commits if link.commit.number < end["commits"]])

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return _read(self._rows, partition)
