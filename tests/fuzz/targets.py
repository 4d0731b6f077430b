"""What is fuzzed: for each target some good samples, and a function that takes any bytes.

The function gives "accepted" or "refused" (an error of Weir's, with all that it must say); whatever
else it raises is a bug.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import msgspec
import numpy as np
import pyarrow as pa

from fuzz.store import DECODERS
from machine.jobs import checkpoint, make, order, report, says, segment, stored, topology
from property.test_script_fuzz import PROGRAMS, STREAMS, outcome
from weir.errors import RunError, WeirError
from weir.events.batch import Batch
from weir.job.garbage_sweep import EPOCH_BITS
from weir.job.host import Host
from weir.job.ledger import Ledger
from weir.job.manager import Manager
from weir.job.messages import Orders, Preparing, ServedBy, VertexReport
from weir.job.poison import Death, Step
from weir.job.settings import HostSettings, ManagerSettings
from weir.job.signals import OrdersArrived, Prepares, Put, Reported
from weir.job.status import status_of
from weir.reliable.cursor import Cursor
from weir.reliable.digest import digest
from weir.reliable.object_names import ingress_key
from weir.reliable.objects import SEAL, ObjectRef
from weir.reliable.strategies import CheckpointStrategy
from weir.reliable.stream import Entry
from weir.spark.live.link_messages import (
    Bring,
    Gone,
    Leave,
    Room,
    Want,
    Yours,
    pack_hello,
    pack_message,
    read_hello,
    read_rows,
    read_words,
)
from weir.spark.live.message_checks import (
    read_orders,
    read_preparing,
    read_report,
)

JOB = topology()
STRATEGIES = {v: CheckpointStrategy(1.0) for v in JOB.vertices}
LONGEST_LOG = 1000
"""Collecting a log takes as long as it is long, which a report may claim."""

pack = msgspec.msgpack.encode


@dataclass(frozen=True, slots=True)
class Target:
    samples: Callable[[], Sequence[bytes]]
    run: Callable[[bytes], str]


def _script(data: bytes) -> str:
    text = STREAMS + data.decode("utf-8", "surrogateescape")
    return {"program": "accepted", "error": "refused"}[outcome(text, Path("/nowhere"))]


def _hello(data: bytes) -> str:
    try:
        read_hello(data)
    except RunError:
        return "refused"
    return "accepted"


# --- reports and orders --------------------------------------------------------------------------


def _manager() -> Manager:
    """One that has placed all vertices on the host of session a."""
    settings = ManagerSettings(hosts=1, patience=0.0)
    made = Manager(JOB, STRATEGIES, Ledger(), settings, 0.0, name="m")
    made.handle(Reported(report("a", 0)), 0.0)
    for command in made.tick(0.0):
        if isinstance(command, Put) and command.new:
            made.handle(stored(command.key), 0.0)
    return made


def _reports() -> list[bytes]:
    source, inner, sink = ((1 << EPOCH_BITS) | n for n in (1, 2, 3))
    running = (
        says(
            "0.0",
            source,
            inputs=(9,),
            outputs=(7,),
            cti=5,
            events=9,
            late=1,
            bad=1,
            checkpoints=(checkpoint("0.0", 1, 5, 5, source, log=3),),
            segments={"0.0/0": (segment("0.0/0", 0, 6, source),)},
            flushed={"0.0/0": 0},
            log_end=ObjectRef(ingress_key("0.0", 4), 0, 9, 9, "ab"),
        ),
        says(
            "1.0",
            inner,
            inputs=(7,),
            outputs=(7,),
            cti=5,
            events=7,
            state_rows=3,
            queued_bytes=100,
            checkpoints=(checkpoint("1.0", 1, 5, 5, inner), checkpoint("1.0", 2, 6, 6, inner)),
            segments={"1.0/0": (segment("1.0/0", 0, 7, inner),)},
        ),
        says("sink.0", sink, inputs=(3,), cti=2, events=3, kept=1),
    )
    done = says("sink.0", sink, "done", inputs=(7,), cti=2**63 - 1, events=7)
    corrupt = VertexReport("1.0", inner, "loading", corrupt=("checkpoints/1.0/1-1",), error="x")
    failed = VertexReport("1.0", inner, "failed", error="it failed")
    behind = VertexReport("0.0", source, "behind", error="a log")
    said = [running, (*running[:2], done), (corrupt,), (failed,), (behind,), ()]
    died = Death("b", Step("1.0", "step", 0, 3, 4, pieces=1, sample="7"), "killed by signal 9")
    deaths = msgspec.structs.replace(
        report("a", 9, *running), step=Step("0.0", seconds=3.0), deaths=(died, died)
    )
    return [*(pack(report("a", n + 1, *vertices)) for n, vertices in enumerate(said)), pack(deaths)]


def _preparing(data: bytes) -> str:
    try:
        found = read_preparing(data, 2)
    except RunError as error:
        assert "that cannot be used" in str(error)
        return "refused"
    manager = _manager()
    manager.handle(Prepares(found), 1.0)
    msgspec.json.encode(status_of(manager, 2.0, 0.0))
    return "accepted"


def _report(data: bytes) -> str:
    try:
        found = read_report(data, JOB, 1)
    except RunError as error:
        assert "that cannot be used" in str(error)
        return "refused"
    if any(c.log > LONGEST_LOG for v in found.vertices for c in v.checkpoints):
        return "accepted"
    manager = _manager()
    for now in (1.0, 2.0):
        for command in (*manager.handle(Reported(found), now), *manager.tick(now)):
            if isinstance(command, Put) and command.new:
                command.encode()
                manager.handle(stored(command.key), now)
    msgspec.json.encode(status_of(manager, 2.0, 0.0))
    return "accepted"


def _orders_samples() -> list[bytes]:
    place = (ServedBy("b", "grpc://h:1", 3),)
    inner = order(
        "1.0",
        2,
        checkpoint("1.0", 1, 5, 5),
        inputs={"0.0/0": place},
        floors={"0.0/0": 1},
        collect={"1.0/0": 2},
        segments={"1.0/0": (segment("1.0/0", 0, 7),)},
    )
    vertices = [(inner,), (order("0.0"), order("sink.0")), (order("0.0"), inner), ()]
    return [
        *(pack(Orders(1, n, "a", found, checkpoint=1)) for n, found in enumerate(vertices)),
        pack(Orders(1, 9, "a", stop=True, over=True)),
        pack(Orders(1, 7, "a", (order("0.0"), inner), upto=3)),
        pack(
            Orders(
                1,
                8,
                "a",
                upto=5,
                taken=2,
                heard=1,
                dropped=("sink.0",),
                served={"0.0": place},
                segments={"1.0/0": (segment("1.0/0", 0, 9),)},
                collect={"1.0/0": 4},
                floors={"0.0/0": 2},
            )
        ),
    ]


def _orders(data: bytes) -> str:
    try:
        found = read_orders(data, JOB)
    except RunError as error:
        assert "that cannot be used" in str(error)
        return "refused"
    host = Host("a", JOB, STRATEGIES, make, HostSettings())
    host.handle(OrdersArrived(found), 0.0)
    host.work(0.0)
    host.report(9.0, "grpc://h:1", 0, 1, "m")
    return "accepted"


# --- rows ----------------------------------------------------------------------------------------

_TYPES = (pa.int64(), pa.string(), pa.list_(pa.string()), pa.decimal128(9, 2), pa.bool_())


@cache
def _messages() -> tuple[bytes, ...]:
    """The length of the words in two bytes, the words, then the body."""
    numbers = np.arange(4, dtype=np.int64)
    columns = (
        pa.array([1, None, 3, 4]),
        pa.array(["a", "éé", None, ""]),
        pa.array([["x"], [], None, ["y", None]]),
        pa.array([1, 2, None, 4], pa.decimal128(9, 2)),
        pa.array([True, None, False, True]),
    )
    filled = Batch(numbers, numbers + 1, columns, (numbers, numbers))
    claim = (1, Entry(3, filled.slice(0, 0), 12), 0)
    asked = (Want(3, "1.0/0", 300, 1 << 20), Room(3, 77), Leave(3), Gone(2), Yours())
    made = [
        pack_message((), [(1, Entry(3, filled, 9), 100)]),
        pack_message(asked, [(1, Entry(3, filled.slice(1, 3), 9), 50), claim]),
        pack_message((), [claim]),
        pack_message(asked, ()),
    ]
    return tuple(len(words).to_bytes(2, "little") + words + body for words, body in made)


def _message(data: bytes) -> str:
    size = int.from_bytes(data[:2], "little")
    words, body = data[2 : 2 + size], pa.py_buffer(data[2 + size :])
    at, found = 0, "accepted"
    try:
        said = read_words(words, len(body))
    except RunError as error:
        assert "that cannot be used" in str(error)
        return "refused"
    for word in said:
        if not isinstance(word, Bring):
            continue
        piece = pa.py_buffer(body.slice(at, word.length).to_pybytes())
        at += word.length
        try:
            _use(read_rows(word, piece, _TYPES))
        except RunError as error:
            assert "that cannot be used" in str(error)
            found = "refused"
    return found


def _use(entry: Entry) -> None:
    cursor = Cursor("s", "r")
    cursor.register("r", entry.seq)
    assert cursor.arrive(entry)
    found = cursor.read_next("r")
    assert found is not None
    digest(found.rows)
    found.rows.take(np.arange(len(found.rows))[::-1])
    for column in found.rows.columns:
        column.to_pylist()


# --- the store -----------------------------------------------------------------------------------


def _stored(name: str, *, sealed: bool) -> Target:
    """`sealed`: the checksum is right whatever the bytes are, as if they had been written so."""
    decoder = DECODERS[name]

    def run(data: bytes) -> str:
        try:
            decoder.decode(decoder.seal(data) if sealed else data)
        except WeirError:
            return "refused"
        return "accepted"

    def samples() -> list[bytes]:
        made = decoder.samples()
        return [s[SEAL:] for s in made] if sealed else list(made)

    return Target(samples, run)


TARGETS: dict[str, Target] = {
    "script": Target(lambda: [p.encode() for p in PROGRAMS], _script),
    "hello": Target(lambda: [pack_hello("grpc://h:1"), pack_hello("grpc+unix:///é")], _hello),
    "report": Target(_reports, _report),
    "preparing": Target(lambda: [pack(Preparing(1, "w", 3, 30))], _preparing),
    "orders": Target(_orders_samples, _orders),
    "message": Target(_messages, _message),
    **{f"store {name}": _stored(name, sealed=False) for name in DECODERS},
    **{
        f"store {name}, sealed": _stored(name, sealed=True)
        for name, decoder in DECODERS.items()
        if decoder.key
    },
}
