"""What hosts and the job manager tell each other, and what is kept of it.

Rules
1. A host reports its whole state, the manager orders the whole of what a host shall do. So a
   message that is lost, late or doubled costs time and nothing else: the next one says it all.
2. Of reports of one session, and of orders of one epoch, only a larger `number` counts; orders
   of a smaller epoch never do.
3. An *incarnation* is one instance of a vertex; larger ones are newer, in all epochs.

Decoders are made here, once (as everywhere): two threads that are the first to decode a type at
the same moment crash the process (msgspec 0.22).
"""

from __future__ import annotations

from typing import Literal

import msgspec

from weir.job.poison import Death, Step
from weir.reliable.log import Segment
from weir.reliable.objects import ObjectRef


class Checkpoint(msgspec.Struct, frozen=True):
    """A snapshot in the store: where it lies, the positions it holds for, and from where on its
    inputs are needed (earlier than its positions where state is rebuilt by replay)."""

    ref: ObjectRef
    number: int
    incarnation: int
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    needs: tuple[int, ...]
    log: int = 0
    """Of a source, the number of the first record of its log that is needed."""

    @property
    def key(self) -> str:
        return self.ref.key


class VertexReport(msgspec.Struct, frozen=True):
    """How an instance is."""

    vertex: str
    incarnation: int
    status: Literal["loading", "running", "behind", "done", "failed"]
    inputs: tuple[int, ...] = ()
    """Positions in its input streams; of a source, the offset of the next row."""
    outputs: tuple[int, ...] = ()
    cti: int = 0
    events: int = 0
    state_rows: int = 0
    queued_bytes: int = 0
    late: int = 0
    bad: int = 0
    checkpoints: tuple[Checkpoint, ...] = ()
    segments: dict[str, tuple[Segment, ...]] = {}
    corrupt: tuple[str, ...] = ()
    """Objects of the store that could not be read."""
    error: str = ""
    flushed: dict[str, int] = {}
    """For each of its streams the first row of the last segment whose write has ended."""
    kept: int = 0
    """The last `Orders.checkpoint` since when a checkpoint of it was stored, or nothing changed."""
    log_end: ObjectRef | None = None
    """Of a source, the last record of its log that it knows of."""


class Report(msgspec.Struct, frozen=True):
    """A host to the manager. `session` is new each time a host begins anew."""

    session: str
    number: int
    epoch: int
    """The largest epoch that it had orders of."""
    address: str
    slot: int
    pid: int
    machine: str
    vertices: tuple[VertexReport, ...] = ()
    trouble: str = ""
    """What keeps the host from going on, a store out of reach say."""
    step: Step | None = None
    """What it is at while this is sent; None: nothing that takes long."""
    deaths: tuple[Death, ...] = ()
    """Of hosts that were here before; see `poison.py`."""


class Pulse(msgspec.Struct, frozen=True):
    """A sign of life from beside a host that cannot give one itself: its process is there, and
    at this step."""

    session: str
    step: Step


class ServedBy(msgspec.Struct, frozen=True):
    """Where an instance that writes a stream can be reached."""

    session: str
    address: str
    incarnation: int


class VertexOrder(msgspec.Struct, frozen=True):
    """Run this instance."""

    vertex: str
    incarnation: int
    restart: Checkpoint | None
    writes_log: bool
    takes_checkpoints: bool
    segments: dict[str, tuple[Segment, ...]]
    """The durable part of its output streams."""
    collect: dict[str, int]
    """For each of them, the number below which nobody will ask."""
    inputs: dict[str, tuple[ServedBy, ...]]
    """For each input stream who serves it, the best first."""
    floors: dict[str, int]
    """For each input stream the number below which rows are gone: a copy that still needs some
    has fallen behind the one that takes checkpoints."""
    log_end: ObjectRef | None = None
    """Of a source, the last record of its log that anybody knows of: up to it all must be there."""
    pieces: int = 0
    """Run it with so many rows at a time, for it may be poisoned; 0: as many as there are."""


class Orders(msgspec.Struct, frozen=True):
    """The manager to a host: all that it shall run."""

    epoch: int
    number: int
    session: str
    vertices: tuple[VertexOrder, ...] = ()
    checkpoint: int = 0
    """Take a checkpoint of every vertex when this number grows."""
    stop: bool = False
    """Begin anew: the manager counts this session as lost, or the job is over."""
    over: bool = False
    record: int = -1
    """The number of the newest record that is durable."""


decode_report = msgspec.msgpack.Decoder(Report).decode
decode_orders = msgspec.msgpack.Decoder(Orders).decode
decode_pulse = msgspec.msgpack.Decoder(Pulse).decode
