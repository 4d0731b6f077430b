"""The decoders of the store in one table: name, function, samples of what it reads.

Each must give what was written, or an error of Weir's: `SnapshotCorrupt` or another RunError, or an
InputError for files that users keep.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from log_talk import talked
from machine.jobs import checkpoint, entry, rows, segment
from weir.errors import SnapshotCorrupt
from weir.files.sidecar import Sidecar, read_sidecar, sidecar_schema, write_sidecar
from weir.ingress.ingress_log import IngressLog, first_record
from weir.ingress.source_signals import IngressRecord
from weir.job.commit_log import Commit, decode_commit, decode_part, encode_part
from weir.job.history import History, Sample, read_history
from weir.job.job_identity import Decisions, JobRecord, OutputRecord, encode_job, read_job
from weir.job.ledger import Ledger
from weir.job.ledger_difference import LedgerDifference
from weir.job.plan_drawing import draw_plan, read_plan
from weir.job.record_reader import encode_hint, last_record, read_hint
from weir.job.status import STATUS, read_status
from weir.job.story import StoryLine, read_story, story_key
from weir.plan.plan_fingerprint import PlanFingerprint, PlanPart
from weir.reliable.codec import (
    decode_entries,
    decode_snapshot,
    encode_entries,
    encode_packed,
    encode_record,
    encode_snapshot,
)
from weir.reliable.object_names import (
    HISTORY,
    LATEST_RECORD,
    commit_key,
    ingress_key,
    part_key,
    record_key,
)
from weir.reliable.object_names import PLAN as DRAWN
from weir.reliable.objects import ObjectRef, seal_of
from weir.reliable.store import Body, ObjectExists
from weir.reliable.vertex import Snapshot
from weir.runtime.program_plan import plan_program
from weir.script.program import parse_program
from whole_ledger import follow, read_base


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
    """What reads the object of this name; without one, nothing seals it."""

    key: str
    decode: Callable[[bytes], object]
    samples: Callable[[], Sequence[bytes]]

    def seal(self, content: bytes) -> bytes:
        """What anybody could write who knows how objects are sealed."""
        return seal_of(self.key, content) + content


class LogStore(OneObject):
    """A store with the first record of a log, and these bytes as the second."""

    def get(self, key: str) -> bytes | None:
        if key == ingress_key("0.0", 0):
            return encode_record(key, IngressRecord(0, writer="token"))
        return self._body if key == ingress_key("0.0", 1) else None


def _log(body: bytes) -> object:
    first = first_record("0.0", "token")
    second = ObjectRef.of(ingress_key("0.0", 1), body)  # the job has heard of it
    log, store = IngressLog("0.0", first, second, writer="w"), LogStore(body)
    talked(log.begin(), store)
    return talked(log.read(), store)


def _log_sample() -> bytes:
    first = first_record("0.0", "token")
    record = IngressRecord(3, b"a\nb\n", writer="token", before=first.seal)
    return encode_record(ingress_key("0.0", 1), record)


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

    return [encode_record(STATUS, status_of(_manager(), 1.0, 0.0))]


def _plan_samples() -> list[bytes]:
    program = parse_program("STREAM A (vs BIGINT, ve BIGINT) FROM 'a.jsonl'; OUTPUT A TO 'b.csv';")
    planned, names = plan_program(program), {"A": ["a.jsonl"]}
    drawn = draw_plan(planned.stages, planned.topology(names), {"0": "replay"}, names)
    return [encode_record(DRAWN, drawn)]


_SNAPSHOT = Snapshot(
    (3, 4), (5,), {"a": pa.table({"x": [1, 2], "s": ["é", None]}), "b": pa.table({"y": [1.5]})}
)
_LEDGER = Ledger(
    epoch=3,
    manager="m",
    number=7,
    base=7,
    checkpoints={"1.0": (checkpoint("1.0", 1, 5, 5),)},
    segments={"0.0/0": (segment("0.0/0", 0, 7),)},
    collected={"0.0/0": 2},
    incarnations=4,
)
_NEXT = LedgerDifference(
    number=8,
    before=7,
    base=7,
    epoch=3,
    manager="m",
    incarnations=5,
    checkpoints={"1.0": (1, 0, (checkpoint("1.0", 2, 6, 6),))},
    segments={"0.0/0": (0, 1, (segment("0.0/0", 7, 9),))},
    collected={"0.0/0": 3},
    suspects={"1.0": ()},
)
_FIRST = Ledger(number=0)
PLAN = PlanFingerprint((PlanPart("stage 0", "1 vertex", "a"),))
_OUTPUT = OutputRecord("Sums", "rows", "sums.csv", True, "BIGINT", (("k", "STRING"),))

_SAMPLE = Sample(1.5, 1.0, 3.0, 2, (3.0,), (1,), (2,), (4.0,), ({3: 4},))
_PART, _COMMIT, _RECORD = part_key("sink.0", 1, 1), commit_key("sink.0", 1), record_key(7)
_STORY = story_key(1, 0)


def _followed(body: bytes) -> Ledger:
    """The ledger after a difference."""
    return follow(_LEDGER.copied(), record_key(8), body)


def _found(store: OneObject) -> object:
    """The last record; where there is none, the bytes were refused."""
    found = last_record(store)
    if found is None:
        raise SnapshotCorrupt("there is no record")
    return found


DECODERS: dict[str, Decoder] = {
    "entries": Decoder(
        "s",
        lambda b: decode_entries("s", b),
        lambda: [bytes(encode_entries("s", [entry(0, 3), entry(3, 2)]))],
    ),
    "snapshot": Decoder(
        "s", lambda b: decode_snapshot("s", b), lambda: [bytes(encode_snapshot("s", _SNAPSHOT))]
    ),
    "part": Decoder(
        _PART,
        lambda b: decode_part(_PART, b),
        lambda: [bytes(encode_part(_PART, [(0, rows(0, 3)), (1, rows(5, 1))]))],
    ),
    "commit": Decoder(
        _COMMIT,
        lambda b: decode_commit(_COMMIT, b).digest,
        lambda: [encode_record(_COMMIT, Commit(1, 2, ObjectRef(_PART), 3, (4, 5), "00ff", 3))],
    ),
    "ledger": Decoder(_RECORD, lambda b: read_base(_RECORD, b), lambda: [_LEDGER.encode()]),
    "ledger difference": Decoder(
        record_key(8), _followed, lambda: [encode_packed(record_key(8), _NEXT)]
    ),
    "last record": Decoder(
        record_key(0), lambda b: _found(OneObject(b"", b)), lambda: [_FIRST.encode()]
    ),
    "hint": Decoder(
        LATEST_RECORD,
        lambda b: _found(
            OneObject(b"", _FIRST.encode() if read_hint(OneObject(b"", b"", b)) == 0 else None)
        ),
        lambda: [encode_hint(0)],
    ),
    "job": Decoder(
        "",
        lambda b: [o.schema for o in getattr(read_job(OneObject(b)), "outputs", ())],
        lambda: [
            encode_job(JobRecord(PLAN, Decisions(2, {"A": ("a.csv",)}, (True,)), (_OUTPUT,), "t"))
        ],
    ),
    "status": Decoder(
        STATUS, lambda b: read_status(OneObject(b, _FIRST.encode())), _status_samples
    ),
    "story": Decoder(
        _STORY,
        lambda b: read_story(OneObject(b)),
        lambda: [encode_record(_STORY, [StoryLine(1.5, "1.0", "done")])],
    ),
    "plan": Decoder(DRAWN, lambda b: read_plan(OneObject(b)), _plan_samples),
    "history": Decoder(
        HISTORY,
        lambda b: read_history(OneObject(b)),
        lambda: [encode_record(HISTORY, History(1.0, (_SAMPLE,)))],
    ),
    "log": Decoder(ingress_key("0.0", 1), _log, lambda: [_log_sample()]),
    "digest file": Decoder("", _digest_file, _digest_samples),
}
