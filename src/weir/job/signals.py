"""What goes into the machines and what they ask for.

Signals tell a machine what happened; commands tell its driver what to do. Drivers do I/O and
keep no rule: the Spark driver with threads, Flight and a store, the simulator with a seed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from weir.files.chunks import Chunk
from weir.job.messages import Orders, Pulse, Report
from weir.reliable.objects import ObjectRef
from weir.reliable.store import Body
from weir.reliable.stream import Entry

# --- the store -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Put:
    """Write an object, durably; `new`: only if there is none of that name."""

    key: str
    encode: Callable[[], Body]
    new: bool = False


@dataclass(frozen=True, slots=True)
class Get:
    """Read an object."""

    key: str


@dataclass(frozen=True, slots=True)
class Delete:
    """Remove objects; one that is not there is removed."""

    keys: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class List:
    """Say which objects there are whose names begin like this. Nobody needs the answer."""

    prefix: str


@dataclass(frozen=True, slots=True)
class Stored:
    """It is durable, and is this object."""

    ref: ObjectRef

    @property
    def key(self) -> str:
        return self.ref.key


@dataclass(frozen=True, slots=True)
class Refused:
    """There is an object of that name already."""

    key: str


@dataclass(frozen=True, slots=True)
class Unstored:
    """It could not be written, and is not there as far as anybody knows."""

    key: str
    why: str


@dataclass(frozen=True, slots=True)
class Loaded:
    """What an object holds; None: there is none."""

    key: str
    body: bytes | None


@dataclass(frozen=True, slots=True)
class Unloaded:
    """An object could not be read now."""

    key: str
    why: str


@dataclass(frozen=True, slots=True)
class Listed:
    """What the store lists, as it was some time ago."""

    keys: tuple[str, ...]


# --- channels ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Connect:
    """Read a stream of another host from a row on, for input number `input` of a vertex."""

    vertex: str
    input: int
    connection: int
    address: str
    stream: str
    seq: int


@dataclass(frozen=True, slots=True)
class Disconnect:
    """The connection of this input is no longer wanted."""

    vertex: str
    input: int


@dataclass(frozen=True, slots=True)
class Arrived:
    """An entry came over a connection."""

    vertex: str
    input: int
    connection: int
    entry: Entry


@dataclass(frozen=True, slots=True)
class Lost:
    """A connection broke."""

    vertex: str
    input: int
    connection: int


@dataclass(frozen=True, slots=True)
class Misled:
    """What came over a connection cannot be what was asked for."""

    vertex: str
    input: int
    connection: int
    why: str


@dataclass(frozen=True, slots=True)
class Consumed:
    """So many bytes that had arrived for this input are worked off."""

    vertex: str
    input: int
    connection: int
    size: int


@dataclass(frozen=True, slots=True)
class Subscribed:
    """Another host reads a stream of this one, from a row on."""

    subscription: str
    stream: str
    seq: int


@dataclass(frozen=True, slots=True)
class Unsubscribed:
    """It reads no longer."""

    subscription: str


@dataclass(frozen=True, slots=True)
class Taken:
    """So many bytes of what was delivered have left."""

    subscription: str
    size: int


@dataclass(frozen=True, slots=True)
class Deliver:
    """Send an entry to whoever subscribed."""

    subscription: str
    entry: Entry


@dataclass(frozen=True, slots=True)
class EndSubscription:
    """This host does not serve that stream (any more)."""

    subscription: str


# --- sources, the manager, the clock ---------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Pull:
    """Read the next chunk of a source's partition, from an offset on."""

    vertex: str
    incarnation: int
    offset: int
    resume: bytes | None = None
    """Where the source goes on; see `SourceInstance.resume`."""
    log_end: ObjectRef | None = None
    """Up to this record the log must be there."""


@dataclass(frozen=True, slots=True)
class ChunkRead:
    """A chunk for `SourceInstance.take_chunk`; None: the partition has ended."""

    vertex: str
    incarnation: int
    chunk: Chunk | None


@dataclass(frozen=True, slots=True)
class SourceFailed:
    """A partition cannot be read: the offsets that are needed are gone, say."""

    vertex: str
    incarnation: int
    why: str


@dataclass(frozen=True, slots=True)
class SourceBehind:
    """Records of a partition's log that are needed are gone: other instances are ahead."""

    vertex: str
    incarnation: int
    why: str


@dataclass(frozen=True, slots=True)
class OrdersArrived:
    """The manager's answer."""

    orders: Orders


@dataclass(frozen=True, slots=True)
class Reported:
    """A host's report."""

    report: Report


@dataclass(frozen=True, slots=True)
class Pulsed:
    """A host is busy, and alive."""

    pulse: Pulse


@dataclass(frozen=True, slots=True)
class Answer:
    """Orders for the host of a session."""

    session: str
    orders: Orders


@dataclass(frozen=True, slots=True)
class Ended:
    """The job is over: finished, stopped, or failed for this reason."""

    error: str = ""
    stopped: bool = False


@dataclass(frozen=True, slots=True)
class BeginAnew:
    """The session is over; the driver makes a new host, unless the job is over too."""

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
    | SourceBehind
    | OrdersArrived
)
HostCommand: TypeAlias = (
    Put | Get | Connect | Disconnect | Consumed | Deliver | EndSubscription | Pull | BeginAnew
)
ManagerSignal: TypeAlias = StoreSignal | Reported | Pulsed
ManagerCommand: TypeAlias = Put | Get | Delete | List | Answer | Ended
