"""What a manager does step by step, done from scratch: the slow twin of its bookkeeping."""

from collections.abc import Iterator, Mapping

from weir.errors import SnapshotCorrupt
from weir.job.ledger import UNREAD, Ledger, Restarts, collect_all, restarts
from weir.job.ledger_difference import decode_written
from weir.reliable.object_names import ingress_key, ingress_log, is_ephemeral
from weir.reliable.strategies import Strategy
from weir.runtime.topology import Topology


def read_base(key: str, body: bytes) -> Ledger:
    """The ledger of a record that is a base."""
    record = decode_written(key, body)
    if not isinstance(record, Ledger):
        raise SnapshotCorrupt(f"{key} is no base")
    return record


def follow(ledger: Ledger | None, key: str, body: bytes) -> Ledger:
    """The ledger of a record, after that of the record before it."""
    record = decode_written(key, body)
    if isinstance(record, Ledger):
        return record
    assert ledger is not None, f"{key} is a difference to nothing"
    record.apply_to(ledger)
    return ledger


def collect(
    topology: Topology, strategies: Mapping[str, Strategy], ledger: Ledger
) -> tuple[str, ...]:
    """Remove from the ledger what nobody needs; return the objects to delete once the ledger is
    durable without them."""
    if ledger.finished:
        return collect_all(ledger)
    restart = restarts(topology, strategies, ledger)
    garbage: list[str] = []
    for vertex, checkpoints in ledger.checkpoints.items():
        usable = restart.checkpoint[vertex]
        start = checkpoints.index(usable) if usable is not None else 0
        garbage += [c.key for c in checkpoints[:start] if is_ephemeral(c.key)]
        ledger.checkpoints[vertex] = checkpoints[start:]
    for stream, segments in ledger.segments.items():
        needed = restart.needed.get(stream, UNREAD)
        garbage += [s.key for s in segments if s.end <= needed]
        ledger.segments[stream] = tuple(s for s in segments if s.end > needed)
    for stream, needed in restart.needed.items():
        ledger.collected[stream] = max(ledger.collected.get(stream, 0), needed)
    return (*garbage, *_collect_logs(restart, ledger))


def _collect_logs(restart: Restarts, ledger: Ledger) -> Iterator[str]:
    """Collect the records of logs that no restart needs, in the order in which they must be
    deleted."""
    for vertex, usable in restart.checkpoint.items():
        log = ingress_log(vertex)
        first, needed = ledger.collected.get(log, 0), 0 if usable is None else usable.log
        if needed > first:
            ledger.collected[log] = needed
            yield from (ingress_key(vertex, number) for number in range(first, needed))
