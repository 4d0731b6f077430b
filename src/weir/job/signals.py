"""The signals that go into the machines, and the commands that come out.

A signal tells a machine what happened; a command tells its driver what to do. Drivers do the I/O
and know no rules of the protocol: on Spark with threads, Flight and a store, in the simulator under
a seed. Commands are in the imperative (`Put`, `Connect`), signals say what happened (`Stored`,
`Lost`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from weir.files.chunks import Chunk
from weir.job.messages import Orders, Preparing, Pulse, Report
from weir.reliable.objects import ObjectRef
from weir.reliable.store import Body
from weir.reliable.stream import Entry
from weir.reliable.views import View

# --- the store -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Put:
    """Write an object durably; if `new`, only if there is none of that name."""

    key: str
    encode: Callable[[], Body]
    new: bool = False


@dataclass(frozen=True, slots=True)
class Get:
    """Read an object."""

    key: str


@dataclass(frozen=True, slots=True)
class Delete:
    """Delete objects; it is no error if one is not there."""

    keys: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class List:
    """List the objects whose names begin with this. It may fail without an answer."""

    prefix: str


@dataclass(frozen=True, slots=True)
class Stored:
    """An object was written, and is durable."""

    ref: ObjectRef

    @property
    def key(self) -> str:
        return self.ref.key


@dataclass(frozen=True, slots=True)
class Refused:
    """A new object was not written, because there is one of that name already."""

    key: str


@dataclass(frozen=True, slots=True)
class Unstored:
    """Writing an object failed; it may be there all the same. `lasts`: it will fail again."""

    key: str
    why: str
    lasts: bool = False


@dataclass(frozen=True, slots=True)
class Loaded:
    """An object was read: this is what it holds; None: there is none."""

    key: str
    body: bytes | None


@dataclass(frozen=True, slots=True)
class Unloaded:
    """Reading an object failed; it may succeed later, unless it `lasts`."""

    key: str
    why: str
    lasts: bool = False


@dataclass(frozen=True, slots=True)
class Listed:
    """The store listed these objects; the listing may lag behind."""

    keys: tuple[str, ...]


# --- channels ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Connect:
    """Read a stream of another host, or this view of it, from number `seq` on, for the input of a
    vertex with this index. What arrives carries the number of the connection, which no other of
    this process has."""

    vertex: str
    input: int
    connection: int
    address: str
    stream: str
    seq: int
    credit: int
    """So many bytes may be sent before the vertex has read more; negative: it must read first."""
    view: View | None = None


@dataclass(frozen=True, slots=True)
class Disconnect:
    """End this connection of an input."""

    vertex: str
    input: int
    connection: int


@dataclass(frozen=True, slots=True)
class Arrived:
    """An entry came over a connection; `size` bytes of credit were spent on it."""

    vertex: str
    input: int
    connection: int
    entry: Entry
    size: int


@dataclass(frozen=True, slots=True)
class Lost:
    """A connection broke."""

    vertex: str
    input: int
    connection: int


@dataclass(frozen=True, slots=True)
class Misled:
    """Something came over a connection that cannot be what was asked for."""

    vertex: str
    input: int
    connection: int
    why: str


@dataclass(frozen=True, slots=True)
class MakeRoom:
    """Give the writer credit back: the vertex has read so many bytes of this input."""

    vertex: str
    input: int
    connection: int
    size: int


@dataclass(frozen=True, slots=True)
class Subscribed:
    """Another host wants to read a stream of this one, or a view of it, from number `seq` on; it
    takes `credit` bytes before it has read any."""

    subscription: str
    stream: str
    seq: int
    credit: int
    view: View | None = None


@dataclass(frozen=True, slots=True)
class Unsubscribed:
    """A subscriber reads no longer."""

    subscription: str


@dataclass(frozen=True, slots=True)
class Taken:
    """A subscriber has read so many bytes, and gives as much credit back."""

    subscription: str
    size: int


@dataclass(frozen=True, slots=True)
class Deliver:
    """Send an entry to a subscriber, for `size` bytes of its credit."""

    subscription: str
    entry: Entry
    size: int


@dataclass(frozen=True, slots=True)
class EndSubscription:
    """End a subscription: this host does not serve that stream, or no longer."""

    subscription: str


# --- sources, the manager, the clock ---------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Pull:
    """Read the next chunk of a source's partition, from this offset on."""

    vertex: str
    incarnation: int
    offset: int
    resume: bytes | None = None
    """The state of the source from which it goes on; see `SourceVertex.resume`."""
    log_end: ObjectRef | None = None
    """All records of the log up to this one must be there."""


@dataclass(frozen=True, slots=True)
class ChunkRead:
    """The next chunk was read, for `SourceInstance.take_chunk`; None: the partition has ended."""

    vertex: str
    incarnation: int
    chunk: Chunk | None


@dataclass(frozen=True, slots=True)
class SourceFailed:
    """A partition cannot be read, for example because the rows that are needed are gone."""

    vertex: str
    incarnation: int
    why: str


@dataclass(frozen=True, slots=True)
class SourceWaits:
    """A source waits for something outside, and this keeps it from happening; None: no longer."""

    vertex: str
    incarnation: int
    why: str | None


@dataclass(frozen=True, slots=True)
class SourceBehind:
    """Records of a source's log that the instance needs are gone: another instance is ahead."""

    vertex: str
    incarnation: int
    why: str


@dataclass(frozen=True, slots=True)
class OrdersArrived:
    """The manager answered a report with these orders."""

    orders: Orders


@dataclass(frozen=True, slots=True)
class Reported:
    """A host sent this report."""

    report: Report


@dataclass(frozen=True, slots=True)
class Pulsed:
    """The companion of a host sent this sign of life."""

    pulse: Pulse


@dataclass(frozen=True, slots=True)
class Prepares:
    """A host that is not there yet is getting ready."""

    preparing: Preparing


@dataclass(frozen=True, slots=True)
class HungUp:
    """Neither a host nor its companion keeps a connection open any more."""

    session: str


@dataclass(frozen=True, slots=True)
class Answer:
    """Answer the report of a host with these orders."""

    session: str
    orders: Orders


@dataclass(frozen=True, slots=True)
class EndJob:
    """End the job: it is finished, was stopped, or failed with this error."""

    error: str | None = None
    stopped: bool = False


@dataclass(frozen=True, slots=True)
class EndSession:
    """End this session; make a new host, unless the job is over."""

    over: bool


StoreSignal: TypeAlias = Stored | Refused | Unstored | Loaded | Unloaded | Listed
HostSignal: TypeAlias = (
    StoreSignal
    | Arrived
    | Lost
    | Misled
    | Subscribed
    | Unsubscribed
    | Taken
    | ChunkRead
    | SourceFailed
    | SourceWaits
    | SourceBehind
    | OrdersArrived
)
HostCommand: TypeAlias = (
    Put | Get | Connect | Disconnect | MakeRoom | Deliver | EndSubscription | Pull | EndSession
)
ManagerSignal: TypeAlias = StoreSignal | Reported | Pulsed | HungUp | Prepares
ManagerCommand: TypeAlias = Put | Get | Delete | List | Answer | EndJob
