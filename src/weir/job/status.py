"""The status of a job, for onlookers: `weir status`, `weir story`, progress.

Contract
1. The manager's driver writes the status to the store while the job runs, and once more when it
   ends: finished, stopped or failed, and why.
2. A job that is to be checked (`--check`) has finished when it passed: before, its last state is
   checking, stopped or failed.
3. The status that `read_status` returns of a job that is over has no hosts, rates or steps,
   whatever was written last.
4. A driver that was killed writes nothing: then the last status stays, with its time, and onlookers
   say that nothing new came (`quiet_for`).
5. Nothing depends on the status: whoever runs the job takes a damaged one for none
   (`whole_status`).
"""

from __future__ import annotations

import msgspec

from weir.errors import SnapshotCorrupt
from weir.events.batch import OPEN, START
from weir.job.manager import Manager
from weir.job.messages import Preparing
from weir.job.placement import Placement
from weir.job.record_reader import last_record
from weir.job.signals import EndJob
from weir.reliable.codec import decode_record
from weir.reliable.object_names import UNCHECKED
from weir.reliable.store import Store

STATUS = "status"
UNHEARD = 3.0
"""Seconds: a rate that is older counts as 0."""
QUIET = 15.0
"""Seconds without a status, which a driver writes about each second: it is busy beyond measure, cut
off from its store, or gone."""
_BROKEN_OFF = ("stopped", "failed", "ended")
"""The states of a job that ended before its time; earlier versions wrote the last for all."""
_OVER = ("finished", "checking", *_BROKEN_OFF)
"""The states of a job whose vertices run no more."""


class VertexStatus(msgspec.Struct, frozen=True):
    """The status of one instance. `reached` is the event time up to which it has written all;
    `lag` is how many ticks that is behind the vertex that is furthest; `snapshots` and `recoveries`
    are counted over the vertex's whole life, also under drivers that are gone."""

    id: str
    kind: str
    host: str | None
    status: str
    incarnation: int
    events: int
    events_per_second: float
    reached: int | None
    lag: int | None
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    state_rows: int
    queued_bytes: int
    checkpoint: int | None
    snapshots: int = 0
    recoveries: int = 0
    step_seconds: float | None = None
    """How long it has been at its present step, if that takes long enough to be noticed."""
    step_rows: str = ""
    """At which rows it is in that step."""
    waits: str = ""
    """For a source, what keeps anything from coming: nobody listens at its socket, say."""
    waits_seconds: float | None = None
    """For how long it has waited for that."""
    held: str = ""
    """Why it may not step, though it could: it waits for the `store`, or for its `readers`."""
    late: int = 0
    bad: int = 0
    """For a source, how many rows it has rejected as late, and as bad."""
    delays: dict[int, int] = {}
    """For a sink, how many of its delays fell into which bucket under this driver (`delays.py`)."""

    @property
    def is_told(self) -> bool:
        """Whether a source's counts are known: one that waits for a host, or loads, has none."""
        return bool(self.inputs)


class HostStatus(msgspec.Struct, frozen=True):
    """The status of one host, and the vertices of which it runs instances."""

    id: str
    pid: int
    machine: str
    address: str
    vertices: tuple[str, ...]


class JobStatus(msgspec.Struct, frozen=True):
    """The status of a whole job at a time (in seconds since 1970)."""

    state: str
    time: float
    epoch: int
    recoveries: int
    events: int
    reached: int | None
    vertices: tuple[VertexStatus, ...]
    hosts: tuple[HostStatus, ...]
    trouble: str = ""
    hosts_wanted: int = 0
    error: str = ""
    """Why it failed."""
    preparing: tuple[str, ...] = ()
    """What hosts do that are not there yet: they compile loops."""

    @property
    def over(self) -> bool:
        """Whether its vertices run no more."""
        return self.state in _OVER

    def quiet_for(self, now: float) -> int:
        """Return for how many seconds nothing was heard of a job that should be running, by the
        onlooker's clock; 0: it is heard of, or over."""
        quiet = int(now - self.time)
        return quiet if quiet >= QUIET and not self.over else 0

    @property
    def broken_off(self) -> bool:
        """Whether nobody runs it any more, though it has not finished."""
        return self.state in _BROKEN_OFF


def status_of(manager: Manager, now: float, shift: float, ended: EndJob | None = None) -> JobStatus:
    """Make the status of a job, which may have `ended`; `shift` is added to the machine's clock to
    get seconds since 1970."""
    times = [p.figures.cti for p in manager.placements if p.report and _is_time(p.figures.cti)]
    front = max(times, default=None)
    vertices = tuple(_vertex(manager, p, front, now) for p in manager.placements)
    sources = [v for v in vertices if v.kind == "source"]
    reached = [v.reached for v in sources if v.reached is not None]
    return JobStatus(
        state=_state(manager, ended),
        time=now + shift,
        epoch=manager.ledger.epoch,
        recoveries=sum(manager.ledger.recoveries.values()),
        events=sum(v.events for v in sources),
        reached=min(reached) if len(reached) == len(sources) and sources else None,
        vertices=vertices,
        hosts=tuple(
            HostStatus(
                id=host.session,
                pid=host.report.pid,
                machine=host.report.machine,
                address=host.report.address,
                vertices=tuple(p.vertex for p in manager.instances_on(host.session)),
            )
            for host in manager.hosts.values()
        ),
        trouble=manager.trouble(now) or "",
        hosts_wanted=manager.settings.hosts,
        error=(ended.error if ended is not None else None) or "",
        preparing=tuple(map(_compiles, manager.preparing)),
    )


def _compiles(preparing: Preparing) -> str:
    count = f", {preparing.ready} of {preparing.needed}" if preparing.needed else ""
    return f"compiling loops on {preparing.machine}{count}"


def _state(manager: Manager, ended: EndJob | None) -> str:
    if ended is not None:
        return "failed" if ended.error else "stopped" if ended.stopped else "finished"
    placed = all(p.report is not None for p in manager.placements if p.copy == 0)
    return "running" if placed else "starting"


def _vertex(manager: Manager, placement: Placement, front: int | None, now: float) -> VertexStatus:
    """Make the status of an instance; `front` is the event time that the furthest vertex has
    reached."""
    report = placement.report
    spec = manager.topology.vertices[placement.vertex]
    step_seconds, step_rows = _step(manager, placement)
    if report is None:
        return VertexStatus(
            id=placement.vertex,
            kind=spec.kind,
            host=placement.session,
            status="loading" if placement.session is not None else "waiting for a host",
            incarnation=placement.incarnation,
            events=0,
            events_per_second=0.0,
            reached=None,
            lag=None,
            inputs=(),
            outputs=(),
            state_rows=0,
            queued_bytes=0,
            checkpoint=None,
            snapshots=manager.ledger.snapshots.get(placement.vertex, 0),
            recoveries=manager.ledger.recoveries.get(placement.vertex, 0),
            step_seconds=step_seconds,
            step_rows=step_rows,
        )
    figures = placement.figures
    reached = figures.cti if figures.cti != START else None
    has_lag = front is not None and reached is not None and _is_time(reached)
    waits_since = placement.waits_since
    return VertexStatus(
        id=placement.vertex,
        kind=spec.kind,
        host=placement.session,
        status=report.status,
        incarnation=placement.incarnation,
        events=figures.events,
        events_per_second=_rate(placement, now),
        reached=reached,
        lag=front - reached if has_lag and front is not None and reached is not None else None,
        inputs=figures.inputs,
        outputs=figures.outputs,
        state_rows=figures.state_rows,
        queued_bytes=figures.queued_bytes,
        checkpoint=placement.checkpoints[-1].number if placement.checkpoints else None,
        snapshots=manager.ledger.snapshots.get(placement.vertex, 0),
        recoveries=manager.ledger.recoveries.get(placement.vertex, 0),
        step_seconds=step_seconds,
        step_rows=step_rows,
        waits=report.waits or "",
        waits_seconds=None if waits_since is None else round(now - waits_since, 1),
        held=figures.held or "",
        late=figures.late,
        bad=figures.bad,
        delays=dict(manager.delays.counts.get(placement.vertex, {})),
    )


def _rate(placement: Placement, now: float) -> float:
    """Return the rate of an instance; of one that has not reported for a while it is not known."""
    return round(placement.rate, 1) if now - placement.rated_at <= UNHEARD else 0.0


def _step(manager: Manager, placement: Placement) -> tuple[float | None, str]:
    host = manager.hosts.get(placement.session or "")
    step = host.step if host is not None else None
    if step is None or step.vertex != placement.vertex:
        return None, ""
    return round(step.seconds, 1), step.rows


def _is_time(cti: int) -> bool:
    return cti not in (START, OPEN)


_status_decoder = msgspec.json.Decoder(JobStatus)


def read_status(store: Store) -> JobStatus | None:
    """Read the last status that was written; None where there is none."""
    body = store.get(STATUS)
    if body is None:
        return None
    status = decode_status(body)
    ledger = last_record(store)
    done = status.state == "finished" or (ledger is not None and ledger.finished)
    if done and store.get(UNCHECKED) is None:
        status = msgspec.structs.replace(status, state="finished", error="")
    elif done and not status.broken_off:
        status = msgspec.structs.replace(status, state="checking")
    return _settled(status, "done" if done else "stopped") if status.over else status


def whole_status(store: Store) -> JobStatus | None:
    """Read the last status that was written; None where there is none, or it is damaged."""
    try:
        return read_status(store)
    except SnapshotCorrupt:
        return None


def decode_status(body: bytes) -> JobStatus:
    """Decode a status as it was written; SnapshotCorrupt if it is damaged."""
    return decode_record(STATUS, body, _status_decoder)


def _settled(status: JobStatus, last: str) -> JobStatus:
    """Remove from a status what only a running job has; `last` is what became of its vertices."""
    vertices = tuple(
        msgspec.structs.replace(
            v,
            host=None,
            status=v.status if v.status in ("done", "failed") else last,
            events_per_second=0.0,
            lag=None,
            queued_bytes=0,
            step_seconds=None,
            step_rows="",
            waits="",
            waits_seconds=None,
            held="",
        )
        for v in status.vertices
    )
    return msgspec.structs.replace(status, vertices=vertices, hosts=(), trouble="", preparing=())
