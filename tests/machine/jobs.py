"""Small jobs for the machines' tests: one source, one inner vertex, one sink."""

from collections.abc import Mapping, Sequence

import msgspec
import numpy as np
import pyarrow as pa

from weir.events.batch import OPEN, Batch, concat_batches
from weir.job.messages import Checkpoint, Figures, Report, Status, VertexOrder, VertexReport
from weir.job.signals import Stored
from weir.reliable.log import LogStream, Segment
from weir.reliable.object_names import commit_key
from weir.reliable.objects import ObjectRef
from weir.reliable.store import Body
from weir.reliable.stream import Entry
from weir.reliable.vertex import RowSpan, See, Snapshot
from weir.runtime.instance import Instance, SinkInstance, SourceInstance, make_cursors
from weir.runtime.topology import OutletSpec, Topology, VertexSpec, wire

SOURCE = VertexSpec("0.0", "source", 0, 0, outlets=(OutletSpec("0.0/0"),))
INNER = VertexSpec("1.0", "inner", 1, 0, ("0.0/0",), (0,), (OutletSpec("1.0/0"),))


def topology(sinks: int = 1) -> Topology:
    readers = [VertexSpec(f"sink.{n}", "sink", n, 0, ("1.0/0",), (0,)) for n in range(sinks)]
    return wire((SOURCE, INNER, *readers))


def rows(first: int, count: int) -> Batch:
    """Rows that say their own number."""
    numbers = np.arange(first, first + count, dtype=np.int64)
    return Batch(numbers, numbers + 1, (pa.array(numbers),))


def entry(first: int, count: int, cti: int | None = None) -> Entry:
    return Entry(first, rows(first, count), first + count if cti is None else cti)


class Copying:
    """An instance that writes what it reads; a source writes what it is given."""

    cti = events = state_rows = next_offset = 0
    turned_away = (0, 0)
    resume: bytes | None = None
    log_record: ObjectRef | None = None
    caught_up = True

    def __init__(self, spec: VertexSpec, streams: Mapping[str, LogStream]) -> None:
        self.spec, self.streams = spec, streams
        self.cursors = make_cursors(spec)
        self._entries: list[Entry | None] = []

    @property
    def out(self) -> LogStream:
        return next(iter(self.streams.values()))

    @property
    def done(self) -> bool:
        return self.cti == OPEN

    @property
    def marker(self) -> tuple[int, ...]:
        return (self.cti, self.next_offset, *(c.position for c in self.cursors))

    @property
    def wants_chunk(self) -> bool:
        return not self._entries and not self.done

    def take_chunk(self, chunk: object) -> None:
        assert chunk is None or isinstance(chunk, Entry)
        self._entries.append(chunk)

    def watch(self, see: See, pieces: int) -> None:
        self.see, self.pieces = see, pieces

    def work(self) -> bool:
        found = [e for c in self.cursors if (e := c.read_next(c.reader)) is not None]
        if self._entries:
            chunk = self._entries.pop()
            found = [chunk or Entry(self.next_offset, rows(0, 0), OPEN)]
            self.next_offset = found[0].end
        for e in found:
            self.see(RowSpan(0, e.seq, e.end, True, self.cti, max(self.cti, e.cti)), e.rows)
            self.cti = max(self.cti, e.cti)
            self.events += len(e.rows)
            self.out.write(Entry(self.out.written, e.rows, self.cti))
        return bool(found)

    def snapshot(self) -> Snapshot:
        inputs = tuple(c.position for c in self.cursors) or (self.next_offset,)
        return Snapshot(inputs, (self.out.written,), {"cti": pa.table({"cti": [self.cti]})})

    def load(self, snapshot: Snapshot) -> None:
        self.cti = snapshot.tables["cti"]["cti"][0].as_py()
        self.next_offset = snapshot.inputs[0]
        for cursor, seq in zip(self.cursors, snapshot.inputs, strict=False):
            cursor.register(cursor.reader, seq)
        self.out.write(Entry(self.out.written, rows(0, 0), self.cti))


class CopyingSource(Copying, SourceInstance):
    """A source of the same kind; its chunks are entries."""


def make(
    spec: VertexSpec,
    segments: Mapping[str, Sequence[Segment]],
    snapshot: Snapshot | None,
    *,
    check: bool = False,
) -> Instance:
    if spec.kind == "sink":
        return SinkInstance(spec)
    starts = snapshot.outputs if snapshot is not None else (0,)
    streams = {
        name: LogStream(name, segments.get(name, ()), start, check=check)
        for name, start in zip(spec.outputs, starts, strict=True)
    }
    made = (CopyingSource if spec.kind == "source" else Copying)(spec, streams)
    if snapshot is not None:
        made.load(snapshot)
    return made


def read_rows(stream: LogStream, reader: str) -> list[int]:
    """The numbers of all rows that can be read now."""
    found: list[Batch] = []
    while (e := stream.read_next(reader)) is not None:
        found.append(e.rows)
    return concat_batches(found).columns[0].to_pylist() if found else []


def order(
    vertex: str,
    incarnation: int = 1,
    restart: Checkpoint | None = None,
    **changed: object,
) -> VertexOrder:
    given: dict[str, object] = {
        "writes_log": True,
        "takes_checkpoints": True,
        "segments": {},
        "collect": {},
        "inputs": {},
        "floors": {},
        **changed,
    }
    return VertexOrder(vertex, incarnation, restart, **given)  # type: ignore[arg-type]


def checkpoint(
    vertex: str, number: int, inputs: int, outputs: int, incarnation: int = 1, log: int = 0
) -> Checkpoint:
    key = f"checkpoints/{vertex}/{incarnation:016}-{number:08}"
    return Checkpoint(ObjectRef(key), number, incarnation, (inputs,), (outputs,), (inputs,), log)


def sealed(made: Checkpoint, body: Body) -> Checkpoint:
    """A checkpoint whose object has this content."""
    return msgspec.structs.replace(made, ref=ObjectRef.of(made.key, body))


def stored(key: str) -> Stored:
    """An object of this name is durable."""
    return Stored(ObjectRef(key))


def commit(number: int, inputs: int) -> Checkpoint:
    ref = ObjectRef(commit_key("sink.0", number))
    return Checkpoint(ref, number, 1, (inputs,), (), (inputs,))


def segment(stream: str, first: int, end: int, incarnation: int = 1) -> Segment:
    ref = ObjectRef(f"streams/{stream}/{first:016}-{incarnation:016}")
    return Segment(ref, first, end, end, "")


def report(
    session: str,
    number: int,
    *vertices: VertexReport,
    epoch: int = 0,
    manager: str = "",
    trouble: str = "",
    trouble_lasts: bool = False,
) -> Report:
    """A report of everything; the host has nothing of the manager."""
    return Report(
        session=session,
        number=number,
        epoch=epoch,
        manager=manager,
        address=session,
        slot=0,
        pid=1,
        machine="m",
        vertices=vertices,
        trouble=trouble,
        trouble_lasts=trouble_lasts,
        upto=number,
    )


def says(vertex: str, incarnation: int, status: Status = "running", **more: object) -> VertexReport:
    """What an instance reports; its figures are among the rest."""
    figures = {name: more.pop(name) for name in Figures.__struct_fields__ if name in more}
    return VertexReport(
        vertex,
        incarnation,
        status,
        figures=Figures(**figures),  # type: ignore[arg-type]
        **more,  # type: ignore[arg-type]
    )
