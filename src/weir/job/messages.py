"""The messages between hosts and the job manager: reports, signs of life, orders.

Rules
1. Reports and orders say what has changed since what the other side has (`facts.py`): the facts of
   a host are the states of its instances, their checkpoints and their segments; those of the
   manager are the instances to run, who serves which stream, and what was collected. A message with
   `since` = 0 says everything that is so. So a message that is lost, late or doubled costs time and
   nothing else.
2. Of the reports of one session, and of the orders of one manager, only those with a larger
   `number` than the last count. Orders of a smaller epoch never count. Two managers have one epoch
   only after the store has lost records: they are told apart by their names.
3. An *incarnation* is the number of an instance of a vertex. No two instances have the same one,
   and a newer instance has a larger one, across epochs too.
4. `Figures` are for onlookers: nobody decides by them. They are no facts, and are said about once a
   second, and with the status of an instance whenever that changes.

Decoders are made here, once (as everywhere): two threads that are the first to decode a type at
the same moment crash the process (msgspec 0.22).
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

from weir.job.delays import EventTimeMark
from weir.job.poison import Death, Step
from weir.reliable.log import Segment
from weir.reliable.objects import ObjectRef


class Checkpoint(msgspec.Struct, frozen=True, array_like=True):
    """A snapshot in the store, or a commit of a sink: which object it is, and at which positions
    it was taken."""

    ref: ObjectRef
    number: int
    """Counts the checkpoints of the vertex: an instance counts on from the one it began from."""
    incarnation: int
    """Which instance took it."""
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    needs: tuple[int, ...]
    """From which positions on an instance that loads it reads its inputs: earlier than `inputs`
    where state is rebuilt by replay."""
    log: int = 0
    """For a source, the number of the first record of its log that is needed."""

    @property
    def key(self) -> str:
        return self.ref.key


KEPT_CHECKPOINTS = 3
"""So many checkpoints of an instance are reported; the manager has heard of older ones, or does
without them."""

HeldBy: TypeAlias = Literal["store", "readers"]
"""What holds an instance up: rows that are not durable yet, or not read yet."""


Status: TypeAlias = Literal["loading", "running", "behind", "done", "failed"]
"""What an instance does: load its state, run, need rows that are gone, have nothing more to do, or
have failed."""


class Figures(msgspec.Struct, frozen=True, array_like=True):
    """How far an instance is, and how much it has done."""

    inputs: tuple[int, ...] = ()
    """Positions in its input streams; for a source, the offset of the next row."""
    outputs: tuple[int, ...] = ()
    """Positions in its output streams."""
    cti: int = 0
    """The event time up to which it has written all."""
    events: int = 0
    """How many rows this instance has read; for a source, how many were admitted in all."""
    state_rows: int = 0
    """How many rows its state has."""
    queued_bytes: int = 0
    """What has arrived from other hosts and was not read yet."""
    late: int = 0
    bad: int = 0
    """How many rows a source has rejected as late, and as bad."""
    held: HeldBy | None = None
    """What back pressure keeps it from stepping, if anything does."""
    marks: tuple[EventTimeMark, ...] = ()
    """For a source or a sink, when it has reached which event time, of late; see `delays.py`."""


class VertexReport(msgspec.Struct, frozen=True, array_like=True):
    """Reports the status of one instance, and what it has stored."""

    vertex: str
    incarnation: int
    status: Status
    checkpoints: tuple[Checkpoint, ...] = ()
    """The last few checkpoints that it has stored."""
    segments: dict[str, tuple[Segment, ...]] = {}
    """The durable segments of its output streams."""
    flushed: dict[str, int] = {}
    """For each of its streams the first row of the last segment whose write has ended; where
    `segments` are those that are new, it is that of the last of them, and not said."""
    corrupt: tuple[str, ...] = ()
    """Objects of the store that could not be read."""
    error: str | None = None
    """Why it has failed, or is behind, if it is."""
    kept: int = 0
    """The last `Orders.checkpoint` that it has done: a checkpoint was stored since, or nothing had
    changed."""
    log_end: ObjectRef | None = None
    """For a source, the last record of its log that it knows of."""
    waits: str | None = None
    """For a source, what keeps anything from coming, if anything does; it does not end the job."""
    figures: Figures | None = None
    """None: they are not said this time."""


class Report(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a host tells the manager."""

    session: str
    """The name of the host, which is new each time it starts."""
    number: int
    """Grows with every report of the session."""
    epoch: int
    """The largest epoch that the host had orders of."""
    address: str
    """Where other hosts can read its streams."""
    slot: int
    """Which of the job's hosts it is: a number that stays when it starts again."""
    pid: int
    machine: str
    """Its process, and the name of the machine, for onlookers."""
    vertices: tuple[VertexReport, ...] = ()
    """The instances of which there is something to say; their checkpoints, segments and `flushed`
    are those after `since`."""
    trouble: str | None = None
    """What keeps the host from going on, if anything does: a store out of reach, say."""
    step: Step | None = None
    """The step that the host is at while this is sent; None: none that takes long."""
    deaths: tuple[Death, ...] = ()
    """The deaths of hosts that ran in this slot before; see `poison.py`."""
    unreached: tuple[str, ...] = ()
    """Addresses of hosts from which rows are wanted, and nothing at all has come for a while."""
    trouble_lasts: bool = False
    """Whether the trouble will stay: asking again does not help."""
    clock: float = 0.0
    """What the clock of the marks shows when this is sent; 0: there is none."""
    since: int = 0
    upto: int = 0
    """It has the host's facts after the one number, up to the other."""
    taken: int = 0
    """Up to which of the manager's facts the host has all."""
    manager: str = ""
    """The name of the manager whose orders it has followed last."""


class Pulse(msgspec.Struct, frozen=True):
    """A sign of life that a companion sends for a host, which may be too busy to send one itself:
    the host's process is there, and is at this step; or it has just died."""

    session: str
    step: Step | None = None
    death: Death | None = None


class Preparing(msgspec.Struct, frozen=True):
    """A sign of life of a host that is not there yet: it compiles the loops that its job needs."""

    slot: int
    """Which of the job's hosts it will be; `DRIVER`: the driver compiles, before any can come."""
    machine: str
    ready: int
    needed: int
    """How many loops are ready, and how many are needed; 0: that is not known yet."""


DRIVER = -1


class ServedBy(msgspec.Struct, frozen=True, array_like=True):
    """Names an instance that serves a stream: the session of its host, the host's address, and its
    incarnation."""

    session: str
    address: str
    incarnation: int


class VertexOrder(msgspec.Struct, frozen=True):
    """Tells a host to run this instance."""

    vertex: str
    incarnation: int
    restart: Checkpoint | None
    """The checkpoint that it begins from; None: it begins at the beginning."""
    writes_log: bool
    """Whether it writes the segments of its streams: one instance of each vertex does."""
    takes_checkpoints: bool
    """Whether it takes checkpoints: one instance of each vertex does."""
    segments: dict[str, tuple[Segment, ...]]
    """The durable part of its output streams."""
    collect: dict[str, int]
    """For each output stream the number below which nobody will ask for rows."""
    inputs: dict[str, tuple[ServedBy, ...]]
    """For each input stream the instances that serve it, the one to try first in front."""
    floors: dict[str, int]
    """For each input stream the number below which rows are gone. An instance that still needs such
    rows has fallen behind the instance of its vertex that takes checkpoints."""
    log_end: ObjectRef | None = None
    """For a source, the last record of its log that the manager knows of: all records up to it must
    be there."""
    pieces: int = 0
    """How many rows it is to process at a time, because it may be poisoned; 0: as many as there
    are."""


class Orders(msgspec.Struct, frozen=True, omit_defaults=True):
    """What the manager tells a host: which instances it is to run, and what they have to know."""

    epoch: int
    """The epoch of the manager."""
    number: int
    """Grows with all orders of the epoch."""
    session: str
    """The host that is meant."""
    vertices: tuple[VertexOrder, ...] = ()
    """The instances that it is to run; if `since` is 0, these and no others."""
    checkpoint: int = 0
    """When this number grows, a checkpoint of every instance is to be taken."""
    stop: bool = False
    """The host is to start over: the manager counts this session as lost, or the job is over."""
    over: bool = False
    """Whether the job is over."""
    record: int = -1
    """The number of the manager's newest durable record."""
    held: bool = False
    """Whether sinks wait: they neither hand rows on nor commit them yet."""
    since: int = 0
    upto: int = 0
    """They have the manager's facts for this session after the one number, up to the other."""
    taken: int = 0
    """Up to which of the host's facts the manager has all."""
    heard: int = 0
    """The number of the last report that the manager has heard."""
    manager: str = ""
    """The name of the manager; see `Ledger.manager`."""
    dropped: tuple[str, ...] = ()
    """The vertices of which the host is to run no instance any more."""
    served: dict[str, tuple[ServedBy, ...]] = {}
    """The instances that serve the streams of a vertex, where that has changed; see
    `VertexOrder.inputs`."""
    segments: dict[str, tuple[Segment, ...]] = {}
    collect: dict[str, int] = {}
    floors: dict[str, int] = {}
    """What has changed of these; see `VertexOrder`."""


decode_report = msgspec.msgpack.Decoder(Report).decode
decode_orders = msgspec.msgpack.Decoder(Orders).decode
decode_preparing = msgspec.msgpack.Decoder(Preparing).decode
decode_pulse = msgspec.msgpack.Decoder(Pulse).decode
