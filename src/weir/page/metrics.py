"""Serves the figures of a live job to Prometheus, in its text format.

Rules
1. Figures come from the job's last status. Labels contain only names of vertices and outputs, and
   the job's state.
2. A counter that falls falls to 0, because Prometheus interprets any fall as a restart from 0. Rows
   that sources have read or rejected under this driver are counted once each, even if a source is
   placed again and reads rows again from its checkpoint. For other vertices, the count of rows read
   starts at 0 at each placement. Snapshots and recoveries are counted over the vertex's whole life.
3. The metrics end with the job: `weir status` shows how it ended.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from http import HTTPStatus
from typing import TypeAlias

import msgspec

from weir.errors import PlanError, RunError
from weir.job.delays import BUCKETS, bucket_end
from weir.job.history import unread_rows
from weir.job.plan_drawing import DrawnPlan
from weir.job.status import JobStatus, VertexStatus
from weir.page.quiet_server import QuietRequest, QuietServer

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_STATES = ("starting", "running", "checking")
_BOUNDS = range(0, 7 * BUCKETS + 1, BUCKETS // 4)
"""The bucket limits that are served, four for each factor of ten: from 0.1 ms to 1000 s."""
Labels: TypeAlias = Mapping[str, str]


def metrics_text(status: JobStatus, plan: DrawnPlan) -> str:
    """Return the figures of a status in Prometheus' text format."""
    return "".join(f"{line}\n" for line in _lines(status, plan))


def _lines(status: JobStatus, plan: DrawnPlan) -> Iterator[str]:
    unread = unread_rows(plan, status.vertices)
    stages = {v.id: str(v.stage) for v in plan.vertices}
    own = [
        ({"vertex": v.id, "kind": v.kind, "stage": stages.get(v.id, "")}, v)
        for v in {v.id: v for v in reversed(status.vertices)}.values()
    ]
    sources = [(labels, v) for labels, v in own if v.kind == "source"]
    states = [({"state": state}, float(state == status.state)) for state in _STATES]
    yield from _family("weir_job_state", "gauge", "1 for the state that the job is in.", states)
    job: list[tuple[str, str, str, float]] = [
        ("weir_status_timestamp_seconds", "gauge", "The time of these figures.", status.time),
        ("weir_epoch", "gauge", "How many drivers have run the job.", status.epoch),
        ("weir_events_total", "counter", "Events read under this driver.", status.events),
        ("weir_recoveries_total", "counter", "Recoveries of vertices.", status.recoveries),
        ("weir_hosts", "gauge", "Hosts that are connected.", len(status.hosts)),
        ("weir_hosts_wanted", "gauge", "Hosts requested.", status.hosts_wanted),
    ]
    for name, kind, text, value in job:
        yield from _family(name, kind, text, [({}, value)])
    each: list[tuple[str, str, str, list[tuple[Labels, float]]]] = [
        (
            "weir_vertex_events_total",
            "counter",
            "Rows read by the vertex.",
            [(labels, v.events) for labels, v in own],
        ),
        (
            "weir_vertex_events_per_second",
            "gauge",
            "Rows read per second, recently.",
            [(labels, v.events_per_second) for labels, v in own],
        ),
        (
            f"weir_vertex_lag_{'ticks' if plan.plain_ticks else 'seconds'}",
            "gauge",
            "How far the vertex's event time is behind the most advanced vertex.",
            [
                (labels, v.lag if plan.plain_ticks else v.lag / 1e6)
                for labels, v in own
                if v.lag is not None
            ],
        ),
        (
            "weir_vertex_unread_rows",
            "gauge",
            "Rows written for the vertex and not yet read by it.",
            [(labels, unread[v.id]) for labels, v in own if v.id in unread],
        ),
        (
            "weir_vertex_queued_bytes",
            "gauge",
            "Bytes from other hosts, waiting to be read.",
            [(labels, v.queued_bytes) for labels, v in own],
        ),
        (
            "weir_vertex_state_rows",
            "gauge",
            "Rows in the vertex's state.",
            [(labels, v.state_rows) for labels, v in own],
        ),
        (
            "weir_vertex_held",
            "gauge",
            "1 while back pressure from the store or from readers stops the vertex.",
            [
                ({**labels, "by": by}, float(v.held == by))
                for labels, v in own
                for by in ("store", "readers")
            ],
        ),
        (
            "weir_vertex_snapshots_total",
            "counter",
            "Snapshots and commits that were stored.",
            [(labels, v.snapshots) for labels, v in own],
        ),
        (
            "weir_vertex_recoveries_total",
            "counter",
            "Recoveries of the vertex.",
            [(labels, v.recoveries) for labels, v in own],
        ),
        (
            "weir_source_late_rows_total",
            "counter",
            "Rows that were rejected as late.",
            [(labels, v.late) for labels, v in sources],
        ),
        (
            "weir_source_bad_rows_total",
            "counter",
            "Rows that were rejected as bad.",
            [(labels, v.bad) for labels, v in sources],
        ),
    ]
    for family in each:
        yield from _family(*family)
    yield from _delays(status, plan)


def _delays(status: JobStatus, plan: DrawnPlan) -> Iterator[str]:
    name = "weir_output_delay_seconds"
    yield from _head(name, "histogram", "Delay from sources to output; the sum uses upper bounds.")
    for v in status.vertices:
        if v.kind != "sink":
            continue
        number = int(v.id.rsplit(".", 1)[1])
        output = plan.outputs[number].title if number < len(plan.outputs) else v.id
        labels = {"output": output, "vertex": v.id}
        for bound in _BOUNDS:
            count = sum(n for bucket, n in v.delays.items() if bucket <= bound)
            yield _line(f"{name}_bucket", {**labels, "le": f"{bucket_end(bound):g}"}, count)
        total = sum(v.delays.values())
        yield _line(f"{name}_bucket", {**labels, "le": "+Inf"}, total)
        yield _line(f"{name}_sum", labels, sum(bucket_end(b) * n for b, n in v.delays.items()))
        yield _line(f"{name}_count", labels, total)


def _family(
    name: str, kind: str, text: str, values: Iterable[tuple[Labels, float]]
) -> Iterator[str]:
    yield from _head(name, kind, text)
    for labels, value in values:
        yield _line(name, labels, value)


def _head(name: str, kind: str, text: str) -> Iterator[str]:
    yield f"# HELP {name} {text}"
    yield f"# TYPE {name} {kind}"


def _line(name: str, labels: Labels, value: float) -> str:
    label_text = ",".join(f'{key}="{_escaped(text)}"' for key, text in labels.items())
    return f"{name}{{{label_text}}} {value!r}" if label_text else f"{name} {value!r}"


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")


class _SourceCounts:
    """Counts the rows that sources have read and rejected, by rule 2."""

    def __init__(self) -> None:
        self._first: dict[str, tuple[int, int, int]] = {}
        """The counts of each source before this driver: events, late rows, bad rows."""
        self._most: dict[str, tuple[int, int, int]] = {}

    def counted(self, status: JobStatus) -> JobStatus:
        """Return the status with the counts of rule 2."""
        vertices = [self._vertex(v, status.epoch) for v in status.vertices]
        events = sum(v.events for v in vertices if v.kind == "source")
        return msgspec.structs.replace(status, vertices=tuple(vertices), events=events)

    def _vertex(self, v: VertexStatus, epoch: int) -> VertexStatus:
        if v.kind != "source":
            return v
        if v.is_told:
            counts = (v.events, v.late, v.bad)
            self._first.setdefault(v.id, (0, 0, 0) if epoch == 1 else counts)
            most = self._most.get(v.id, counts)
            self._most[v.id] = (
                max(most[0], counts[0]),
                max(most[1], counts[1]),
                max(most[2], counts[2]),
            )
        first, most = self._first.get(v.id, (0, 0, 0)), self._most.get(v.id, (0, 0, 0))
        events, late, bad = (m - f for m, f in zip(most, first, strict=True))
        return msgspec.structs.replace(v, events=events, late=late, bad=bad)


# --- the server ------------------------------------------------------------------------------


class _MetricsServer(QuietServer):
    def __init__(self, at: tuple[str, int], text: Callable[[], str]) -> None:
        self.text = text
        super().__init__(at, _MetricsRequest)


class _MetricsRequest(QuietRequest):
    server: _MetricsServer

    def do_GET(self) -> None:  # noqa: N802 (the name is that of http.server)
        is_metrics = self.path == "/metrics"
        body = (self.server.text() if is_metrics else "the metrics are at /metrics\n").encode()
        self.send_response(HTTPStatus.OK if is_metrics else HTTPStatus.NOT_FOUND)
        self.send_header("Content-Type", CONTENT_TYPE)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def metrics_address(text: str) -> tuple[str, int]:
    """Read PORT or HOST:PORT; the default host is loopback.

    >>> metrics_address("9464"), metrics_address("0.0.0.0:9464")
    (('127.0.0.1', 9464), ('0.0.0.0', 9464))
    """
    host, _, port = text.rpartition(":")
    if not (port.isascii() and port.isdecimal() and len(port) <= 5 and int(port) < 65536):
        raise PlanError(f"--metrics takes PORT or HOST:PORT, not {text!r}")
    return host or "127.0.0.1", int(port)


@contextmanager
def serving_metrics(
    at: tuple[str, int], plan: DrawnPlan
) -> Iterator[tuple[Callable[[JobStatus], None], str]]:
    """Serve metrics while the block runs; yield the function that takes each status, and the
    address."""
    last: list[JobStatus] = []
    counts = _SourceCounts()

    def text() -> str:
        return metrics_text(last[-1], plan) if last else ""

    def take(status: JobStatus) -> None:
        last[:] = [counts.counted(status)]

    try:
        server = _MetricsServer(at, text)
    except OSError as error:
        why = f"cannot serve metrics on {at[0]}:{at[1]}: {error.strerror or error}"
        raise RunError(why) from None
    thread = threading.Thread(
        target=server.serve_forever, args=(0.05,), daemon=True, name="metrics"
    )
    thread.start()
    try:
        yield take, f"http://{at[0]}:{server.server_address[1]}/metrics"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
