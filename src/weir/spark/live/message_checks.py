"""Checks all messages from peers before anything uses them.

A peer that knows the job's secret may still be broken, or of another version of Weir.

Contract
1. Whatever bytes come, each function here returns a message that its reader can work with, or
   raises a `RunError` that says what is wrong with it. `link_messages.py` does so for the messages
   between hosts.
2. Only the form is checked: known names, as many positions as there are streams, numbers in range,
   columns of the types that the plan says, buffers that Arrow can read safely. Whether a message is
   true is a matter of the protocol (`job/messages.py`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import msgspec
import pyarrow as pa

from weir.errors import RunError
from weir.events.arrow_streams import check_intact
from weir.job.messages import (
    Checkpoint,
    Figures,
    Orders,
    Preparing,
    Pulse,
    Report,
    VertexReport,
    decode_orders,
    decode_preparing,
    decode_pulse,
    decode_report,
)
from weir.job.poison import Step
from weir.reliable.object_names import is_known
from weir.reliable.objects import ObjectRef
from weir.runtime.topology import Topology, VertexSpec

_SAME = "do all machines have the same version of Weir?"
LARGEST = 2**63 - 1
UNREADABLE = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
"""The errors that msgspec raises at bytes that are no message of a type."""


def check_record(record: pa.RecordBatch, times: int) -> None:
    """Check the rows of an entry, whose first columns have times and origins."""
    # Offsets that point elsewhere would crash the process: all of them are looked at, which takes
    # 5 ns a text.
    check_intact(record)
    if any(column.null_count for column in record.columns[:times]):
        raise bad_message("rows", "NULL in a lifetime or an origin")


# --- reports and orders --------------------------------------------------------------------------


def read_pulse(body: bytes, topology: Topology) -> Pulse:
    """Decode and check a sign of life that the companion of a host sent."""
    try:
        pulse = decode_pulse(body)
    except UNREADABLE as error:
        raise bad_message("a sign of life", error) from None
    _check_step("a sign of life", pulse.step, topology)
    if pulse.death is not None:
        _check_step("a sign of life", pulse.death.step, topology)
    return pulse


def read_preparing(body: bytes, hosts: int) -> Preparing:
    """Decode and check a sign of life of one of so many hosts, which gets ready."""
    what = "a sign of a host that gets ready"
    try:
        preparing = decode_preparing(body)
    except UNREADABLE as error:
        raise bad_message(what, error) from None
    if not 0 <= preparing.slot < hosts:
        raise bad_message(what, f"slot {preparing.slot} of {hosts} hosts")
    _check_counts(what, (preparing.ready, preparing.needed))
    return preparing


def _check_step(what: str, step: Step | None, topology: Topology) -> None:
    if step is None:
        return
    spec = topology.vertices.get(step.vertex)
    if spec is None:
        raise bad_message(what, f"a step of vertex {step.vertex!r}, which the job does not have")
    if not 0 <= step.input < max(1, len(spec.inputs)):
        raise bad_message(what, f"a step at input {step.input} of vertex {spec.id}")
    _check_counts(what, (step.first, step.end - step.first, step.count, step.pieces))
    if not 0 <= step.seconds < math.inf:
        raise bad_message(what, f"a step of {step.seconds} s")
    if max(abs(step.since), abs(step.until)) > LARGEST + 1:
        raise bad_message(what, "a step at no time")


def read_report(body: bytes, topology: Topology, hosts: int) -> Report:
    """Decode and check the report of one of so many hosts, on vertices of this job."""
    try:
        report = decode_report(body)
    except UNREADABLE as error:
        raise bad_message("a report", error) from None
    if not 0 <= report.slot < hosts:
        raise bad_message("a report", f"slot {report.slot} of {hosts} hosts")
    _check_counts("a report", (report.number, report.pid, report.taken))
    _check_counts("a report", (report.since, report.upto - report.since))
    if not math.isfinite(report.clock):
        raise bad_message("a report", f"a clock that shows {report.clock}")
    _check_step("a report", report.step, topology)
    for death in report.deaths:
        _check_step("a report", death.step, topology)
    for vertex in report.vertices:
        spec = topology.vertices.get(vertex.vertex)
        if spec is None:
            raise bad_message(
                "a report", f"a vertex {vertex.vertex!r}, which the job does not have"
            )
        _check_vertex(spec, vertex, whole=report.since == 0)
    return report


def _check_vertex(spec: VertexSpec, report: VertexReport, *, whole: bool) -> None:
    what = f"the report of vertex {spec.id}"
    _check_counts(what, (report.incarnation, report.kept, *report.flushed.values()))
    if report.figures is not None:
        _check_figures(what, spec, report.figures)
    for checkpoint in report.checkpoints:
        _check_checkpoint(what, spec, checkpoint)
    _check_log(what, spec, report.log_end)
    for stream, segments in report.segments.items():
        if stream not in spec.outputs:
            raise bad_message(what, f"a stream {stream!r}, which it does not write")
        if not (segments or whole):
            raise bad_message(what, f"no segment of stream {stream!r}, though that is new")
        for segment in segments:
            _check_counts(what, (segment.first, segment.end - segment.first))
            # The manager will delete this object one day, so its name must be right.
            if not (segment.key.startswith(f"streams/{stream}/") and is_known(segment.key)):
                raise bad_message(what, f"a segment {segment.key!r}")


def _check_figures(what: str, spec: VertexSpec, figures: Figures) -> None:
    reads, writes = _widths(spec)
    # One that is still loading has no positions yet.
    if len(figures.inputs) not in (0, reads) or len(figures.outputs) not in (0, writes):
        raise bad_message(what, f"{len(figures.inputs)} inputs and {len(figures.outputs)} outputs")
    if abs(figures.cti) > LARGEST + 1:
        raise bad_message(what, f"the time {figures.cti}")
    counts = (figures.events, figures.state_rows, figures.queued_bytes, figures.late, figures.bad)
    _check_counts(what, (*figures.inputs, *figures.outputs, *counts))
    for cti, at in figures.marks:
        if abs(cti) > LARGEST + 1 or not math.isfinite(at):
            raise bad_message(what, f"a mark ({cti}, {at})")


def _check_log(what: str, spec: VertexSpec, end: ObjectRef | None) -> None:
    if end is not None and not (end.key.startswith(f"ingress/{spec.id}/") and is_known(end.key)):
        raise bad_message(what, f"a record {end.key!r} of its log")


def _check_checkpoint(what: str, spec: VertexSpec, saved: Checkpoint) -> None:
    reads, writes = _widths(spec)
    # Sinks that commit have commits; those that hand rows on have checkpoints, like the others.
    kinds = ("checkpoints", "commits") if spec.kind == "sink" else ("checkpoints",)
    mine = tuple(f"{kind}/{spec.id}/" for kind in kinds)
    if not (saved.key.startswith(mine) and is_known(saved.key)):
        raise bad_message(what, f"a checkpoint {saved.key!r}")
    if (len(saved.inputs), len(saved.needs), len(saved.outputs)) != (reads, reads, writes):
        raise bad_message(what, f"a checkpoint {saved.key!r} of other inputs and outputs")
    _check_counts(
        what,
        (*saved.inputs, *saved.needs, *saved.outputs, saved.incarnation, saved.number, saved.log),
    )


def _widths(spec: VertexSpec) -> tuple[int, int]:
    """Count the input positions (for a source: its offset) and output positions of a vertex."""
    return (1 if spec.kind == "source" else len(spec.inputs)), len(spec.outputs)


def read_orders(body: bytes, topology: Topology) -> Orders:
    """Decode and check the manager's orders, on vertices of this job."""
    try:
        orders = decode_orders(body)
    except UNREADABLE as error:
        raise bad_message("orders", error) from None
    _check_counts("orders", (orders.since, orders.upto - orders.since, orders.taken, orders.heard))
    for order in orders.vertices:
        spec = topology.vertices.get(order.vertex)
        if spec is None:
            raise bad_message("orders", f"a vertex {order.vertex!r}, which the job does not have")
        what = f"the orders of vertex {spec.id}"
        if order.restart is not None:
            _check_checkpoint(what, spec, order.restart)
        _check_log(what, spec, order.log_end)
        _check_counts(what, (order.incarnation, *order.collect.values(), *order.floors.values()))
    for vertex in (*orders.dropped, *orders.served):
        if vertex not in topology.vertices:
            raise bad_message("orders", f"a vertex {vertex!r}, which the job does not have")
    for stream in (*orders.segments, *orders.collect, *orders.floors):
        if stream not in topology.streams:
            raise bad_message("orders", f"a stream {stream!r}, which the job does not have")
    _check_counts("orders", (*orders.collect.values(), *orders.floors.values()))
    return orders


def _check_counts(what: str, numbers: Iterable[int]) -> None:
    for number in numbers:
        if not 0 <= number <= LARGEST:
            raise bad_message(what, f"the number {number}")


def bad_message(what: str, why: object) -> RunError:
    """Make the error that a peer's message cannot be used."""
    return RunError(f"a peer sent {what} that cannot be used: {why}; {_SAME}")
