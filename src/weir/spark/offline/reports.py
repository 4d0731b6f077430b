"""What tasks tell the driver: small typed records among the rows of the last exchange."""

from __future__ import annotations

import base64
import pickle
from collections.abc import Iterable
from typing import TypeAlias

import msgspec
import pyarrow as pa

from weir.errors import WeirError
from weir.reliable.digest import Digest
from weir.spark.offline.blocks import REPORT, BlockRow


class SourceReport(msgspec.Struct, tag="source", frozen=True):
    """A partition was read: how many events were admitted, how many rows turned away."""

    piece: int
    source: str
    events: int
    late: int
    bad: int


class DigestReport(msgspec.Struct, tag="digest", frozen=True):
    """Rows of an output went by: the digest of them."""

    piece: int
    sink: int
    total: str
    count: int

    @property
    def digest(self) -> Digest:
        return Digest(int(self.total, 16), self.count)


class FileReport(msgspec.Struct, tag="file", frozen=True):
    """A file of an output is whole: which vertex of which stage wrote it, and where it lies."""

    piece: int
    sink: int
    stage: int
    vertex: int
    path: str


class ChecksumReport(msgspec.Struct, tag="checksum", frozen=True):
    """The ordered checksum of a stream."""

    piece: int
    stream: str
    checksum: str


class ErrorReport(msgspec.Struct, tag="error", frozen=True):
    """A program failed in a task of a wave. Later waves got too few rows, and may fail too."""

    piece: int
    wave: int
    error: str


Report: TypeAlias = SourceReport | DigestReport | FileReport | ChecksumReport | ErrorReport

_decoder = msgspec.json.Decoder(Report)


def report_row(report: Report) -> BlockRow:
    return BlockRow(REPORT, 0, 0, msgspec.json.encode(report))


def read_report(block: bytes | pa.Buffer) -> Report:
    report: Report = _decoder.decode(block)
    return report


def output_digest(reports: Iterable[Report], piece: int, sink: int) -> Digest:
    """The digest of a whole output."""
    mine = (
        r.digest
        for r in reports
        if isinstance(r, DigestReport) and (r.piece, r.sink) == (piece, sink)
    )
    return sum(mine, Digest())


def checksums(reports: Iterable[Report]) -> dict[str, str]:
    """The ordered checksums of a program's streams, by their names."""
    return {r.stream: r.checksum for r in reports if isinstance(r, ChecksumReport)}


def first_error(reports: Iterable[Report]) -> WeirError | None:
    """The error that was reported, if one was; of several that of the first wave."""
    errors = sorted((r for r in reports if isinstance(r, ErrorReport)), key=lambda r: r.wave)
    return unpacked(errors[0].error) if errors else None


# --- errors across processes -----------------------------------------------------------------


def packed(error: WeirError) -> str:
    return base64.b64encode(pickle.dumps(error)).decode()


def unpacked(text: str) -> WeirError:
    error = pickle.loads(base64.b64decode(text))
    assert isinstance(error, WeirError)
    return error
