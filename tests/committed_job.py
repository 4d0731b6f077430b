"""A store as a live job fills it, commit by commit."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa

from weir.events.batch import Batch
from weir.events.types import BIGINT
from weir.files.object_store import ObjectStore
from weir.job.commit_log import Commit, encode_part
from weir.job.job_identity import Decisions, JobRecord, encode_job, output_record
from weir.job.ledger import Ledger
from weir.job.messages import Checkpoint
from weir.plan.plan_fingerprint import PlanFingerprint
from weir.plan.program import Program
from weir.reliable.codec import encode_record
from weir.reliable.digest import Digest, digest
from weir.reliable.object_names import JOB, commit_key, part_key, record_key
from weir.reliable.objects import ObjectRef
from weir.runtime.outputs import output_schema
from weir.script.program import parse_program

PROGRAM = """
STREAM A (t BIGINT, v BIGINT) FROM 'a.jsonl' WITH (vs = t);
B = SELECT v FROM A;
OUTPUT B TO 'b.csv';
OUTPUT BAD OF A TO 'bad.jsonl';
OUTPUT A TO 'console:';
"""


def rows(*values: int) -> Batch:
    vs = np.array(values, dtype=np.int64)
    return Batch(vs, vs + 1, (pa.array(values, BIGINT),))


class Job:
    """A store as a live job fills it."""

    def __init__(self, folder: Path) -> None:
        self.program: Program = parse_program(PROGRAM)
        self.store = ObjectStore(str(folder / "store"))
        outputs = tuple(
            output_record(o, output_schema(o), kept=o.path != "console:")
            for o in self.program.outputs
        )
        self.store.put(
            JOB, encode_job(JobRecord(PlanFingerprint(), Decisions(), outputs)), new=True
        )
        self._number, self._total, self._read = 0, Digest(), 0
        self._last: ObjectRef | None = None

    def write_part(self, batch: Batch) -> ObjectRef:
        part = part_key("sink.0", 1, self._number)
        body = encode_part(part, [(0, batch)])
        self.store.put(part, body)
        return ObjectRef.of(part, body)

    def commit(self, batch: Batch) -> None:
        part = self.write_part(batch)
        self._total += digest(batch)
        self._read += len(batch)
        commit = Commit(
            self._number,
            1,
            part,
            len(batch),
            (self._read,),
            f"{self._total.total:032x}",
            self._total.count,
            self._last,
        )
        key = commit_key("sink.0", self._number)
        body = encode_record(key, commit)
        self.store.put(key, body, new=True)
        self._number, self._last = self._number + 1, ObjectRef.of(key, body)

    def finish(self, *, names_last: bool = False) -> None:
        ledger = Ledger(number=0, finished=True)
        if names_last and self._last is not None:
            at = (self._read,)
            last = Checkpoint(self._last, self._number - 1, 1, at, (), at)
            ledger.checkpoints["sink.0"] = (last,)
        self.store.put(record_key(0), ledger.encode(), new=True)
