"""The decoders of the store in one table: name, function, samples of what it reads.

Each must give what was written, or an error of Weir's: `SnapshotCorrupt` or another RunError, or an
InputError for files that users keep.
"""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from machine.jobs import checkpoint, entry, rows, segment
from weir.io.ingress_log import IngressLog, IngressRecord, LogPlace, begin_log
from weir.io.sidecar import Sidecar, read_sidecar, sidecar_schema, write_sidecar
from weir.job.commits import Commit, decode_commit, decode_part, encode_part
from weir.job.job_record import JobRecord, OutputRecord, read_job
from weir.job.keys import LATEST_RECORD, record_key
from weir.job.ledger import Ledger, decode_ledger
from weir.job.records import last_record
from weir.job.status import read_status, read_story
from weir.job.story import StoryLine
from weir.reliable.codec import (
    decode_entries,
    decode_snapshot,
    encode_entries,
    encode_record,
    encode_snapshot,
)
from weir.reliable.store import Body, ObjectExists
from weir.reliable.vertex import Snapshot


def seal(body: bytes) -> bytes:
    """A body behind its checksum, as `reliable/codec.py` puts it."""
    return hashlib.sha256(body).digest()[:16] + body


class OneObject:
    """A store that has the same bytes under every name but those of records, of which there is
    one; `hint` is what it says where that is."""

    def __init__(self, body: bytes, record: bytes | None = None, hint: bytes | None = None) -> None:
        self._body, self._record, self._hint = body, record, hint

    def put(self, key: str, body: Body, *, new: bool = False) -> None:
        if new:
            raise ObjectExists(key)

    def get(self, key: str) -> bytes | None:
        if key == LATEST_RECORD:
            return self._hint
        if key.startswith("records/"):
            return self._record if key == record_key(0) else None
        return self._body

    def delete(self, keys: Iterable[str]) -> None: ...

    def list(self, prefix: str = "") -> list[str]:
        return [record_key(0) if prefix.startswith("records") else f"{prefix}000001-00000000"]


@dataclass(frozen=True, slots=True)
class Decoder:
    decode: Callable[[bytes], object]
    samples: Callable[[], Sequence[bytes]]
    sealed: bool = True
    """A checksum stands in front."""


def _log(body: bytes) -> object:
    begin_log(OneObject(body), "0.0", "token")
    return IngressLog(OneObject(body), "0.0", LogPlace(0, "token")).read()


def _digest_file(body: bytes) -> object:
    with tempfile.TemporaryDirectory() as folder:
        output = str(Path(folder) / "o.csv")
        Path(f"{output}.digest").write_bytes(body)
        found = read_sidecar(output)
        assert found is not None
        return sidecar_schema(output, found)


def _digest_samples() -> list[bytes]:
    with tempfile.TemporaryDirectory() as folder:
        output = str(Path(folder) / "o.csv")
        columns = (("k", "STRING"), ("v", "LIST(DECIMAL(5, 2))"))
        write_sidecar(output, Sidecar("00ff-3", 3, "BIGINT", True, columns))
        return [Path(f"{output}.digest").read_bytes()]


def _status_samples() -> list[bytes]:
    from fuzz.targets import _manager  # a job's state needs a manager
    from weir.job.status import status_of

    return [encode_record(status_of(_manager(), 1.0, 0.0))]


_SNAPSHOT = Snapshot(
    (3, 4), (5,), {"a": pa.table({"x": [1, 2], "s": ["é", None]}), "b": pa.table({"y": [1.5]})}
)
_LEDGER = Ledger(
    3, "m", 7, {"1.0": (checkpoint("1.0", 1, 5, 5),)}, {"0.0/0.0": (segment("0.0/0.0", 0, 7),)},
    {"0.0/0.0": 2}, 4,
)  # fmt: skip
_OUTPUT = OutputRecord("Sums", "rows", "sums.csv", True, "BIGINT", (("k", "STRING"),))

DECODERS: dict[str, Decoder] = {
    "entries": Decoder(decode_entries, lambda: [bytes(encode_entries([entry(0, 3), entry(3, 2)]))]),
    "snapshot": Decoder(decode_snapshot, lambda: [bytes(encode_snapshot(_SNAPSHOT))]),
    "part": Decoder(decode_part, lambda: [bytes(encode_part([(0, rows(0, 3)), (1, rows(5, 1))]))]),
    "commit": Decoder(
        lambda b: decode_commit(b).digest,
        lambda: [encode_record(Commit(1, 2, "parts/x", 3, (4, 5), "00ff", 3))],
    ),
    "ledger": Decoder(decode_ledger, lambda: [_LEDGER.encode()]),
    "last record": Decoder(lambda b: last_record(OneObject(b"", b)), lambda: [_LEDGER.encode()]),
    "hint": Decoder(
        lambda b: last_record(OneObject(b"", _LEDGER.encode(), b)),
        lambda: [record_key(0).encode()],
        sealed=False,
    ),
    "job": Decoder(
        lambda b: [o.schema for o in getattr(read_job(OneObject(b)), "outputs", ())],
        lambda: [encode_record(JobRecord("p", 2, {"A": ("a.csv",)}, (_OUTPUT,), "t"))],
    ),
    "status": Decoder(lambda b: read_status(OneObject(b, _LEDGER.encode())), _status_samples),
    "story": Decoder(
        lambda b: read_story(OneObject(b)),
        lambda: [encode_record([StoryLine(1.5, "1.0", "done")])],
    ),
    "log": Decoder(_log, lambda: [encode_record(IngressRecord(3, b"a\nb\n", writer="token"))]),
    "digest file": Decoder(_digest_file, _digest_samples, sealed=False),
}
