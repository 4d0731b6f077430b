"""The small records with which tasks report, among the rows of the last exchange."""

from __future__ import annotations

import base64
import pickle
from collections.abc import Iterable
from typing import TypeAlias

import msgspec
import pyarrow as pa

from weir.errors import WeirError
from weir.reliable.differences import RowDifference
from weir.reliable.digest import Digest
from weir.runtime.reports import SourceTotal
from weir.runtime.vertices import source_of
from weir.spark.offline.blocks import REPORT, BlockRow
from weir.spark.offline.waves import Layout


class SourceReport(msgspec.Struct, tag="source", frozen=True):
    """A partition was read."""

    layout: int
    total: SourceTotal


class DigestReport(msgspec.Struct, tag="digest", frozen=True):
    """The digest of some rows of an output."""

    layout: int
    sink: int
    total: str
    count: int

    @property
    def digest(self) -> Digest:
        return Digest(int(self.total, 16), self.count)


class FileReport(msgspec.Struct, tag="file", frozen=True):
    """A finished file of an output: the sink's stream in it (`part`; 0 if all are in it), the task
    that wrote it, and its path."""

    layout: int
    sink: int
    part: int
    task: int
    path: str


class ChecksumReport(msgspec.Struct, tag="checksum", frozen=True):
    """The ordered checksum of a stream."""

    layout: int
    stream: str
    checksum: str


class DifferenceReport(msgspec.Struct, tag="difference", frozen=True):
    """A stream has another row than in the first run."""

    layout: int
    difference: RowDifference


class ErrorReport(msgspec.Struct, tag="error", frozen=True):
    """A program failed in a task of a wave. Later waves got too few rows, and may fail too."""

    layout: int
    wave: int
    error: str


TaskReport: TypeAlias = (
    SourceReport | DigestReport | FileReport | ChecksumReport | DifferenceReport | ErrorReport
)

_decoder = msgspec.json.Decoder(TaskReport)


def report_row(report: TaskReport) -> BlockRow:
    return BlockRow(REPORT, 0, 0, msgspec.json.encode(report))


def read_task_report(block: bytes | pa.Buffer) -> TaskReport:
    report: TaskReport = _decoder.decode(block)
    return report


def output_digest(reports: Iterable[TaskReport], layout: int, sink: int) -> Digest:
    """Add up the digest of a whole output."""
    mine = (
        r.digest
        for r in reports
        if isinstance(r, DigestReport) and (r.layout, r.sink) == (layout, sink)
    )
    return sum(mine, Digest())


def checksums(reports: Iterable[TaskReport]) -> dict[str, str]:
    """Return the ordered checksums of a program's streams, by their names."""
    return {r.stream: r.checksum for r in reports if isinstance(r, ChecksumReport)}


def differences(reports: Iterable[TaskReport]) -> list[RowDifference]:
    """Return, for each stream that differs, the first row that is not the same as in the first
    run."""
    return [r.difference for r in reports if isinstance(r, DifferenceReport)]


def source_totals(layout: Layout, reports: Iterable[TaskReport]) -> list[SourceTotal]:
    """Return how much was read of each source, in the topology's order; nothing if no task ran."""
    nothing = [
        SourceTotal(
            vertex=spec.id, source=source_of(layout.plan, spec).name, events=0, late=0, bad=0
        )
        for spec in layout.topology.sources
    ]
    return nothing + [r.total for r in reports if isinstance(r, SourceReport)]


def first_error(reports: Iterable[TaskReport]) -> WeirError | None:
    """Return the first wave's error, or None."""
    errors = sorted((r for r in reports if isinstance(r, ErrorReport)), key=lambda r: r.wave)
    return unpacked(errors[0].error) if errors else None


# --- errors across processes -----------------------------------------------------------------


def packed(error: WeirError) -> str:
    return base64.b64encode(pickle.dumps(error)).decode()


def unpacked(text: str) -> WeirError:
    error = pickle.loads(base64.b64decode(text))
    assert isinstance(error, WeirError)
    return error
