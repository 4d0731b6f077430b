"""How `weir status` shows a live job."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from weir.cli.command_line import say
from weir.cli.tables import show_rows
from weir.errors import SnapshotCorrupt
from weir.wording import counted, in_one_line

if TYPE_CHECKING:
    from weir.files.object_store import ObjectStore
    from weir.job.status import JobStatus, VertexStatus

IF_GONE = "if its process is gone, weir run … --resume goes on"
_WORDS = ("vertex", "host", "state", "in", "out")
_LAGS = ("lag s", "lag ticks")
_LEFT_OUT = ("in", "out", "snapshots", "recoveries", "queue", *_LAGS, "host")
"""Columns that a narrow terminal leaves out, in this order."""


def has_plain_ticks(store: ObjectStore) -> bool:
    """Tell whether a job's event times are plain numbers. Without its plan they count as
    microseconds."""
    from weir.job.plan_drawing import read_plan

    try:
        plan = read_plan(store)
    except SnapshotCorrupt as error:
        say(f"weir: warning: {in_one_line(str(error))}", err=True)
        return False
    return plan is not None and plan.plain_ticks


def show_status(job: JobStatus, now: float, *, plain_ticks: bool) -> None:
    """Print the status of a job, or how it ended; `now` is in seconds since 1970. With
    `plain_ticks`, event times and lags are plain numbers."""
    hosts = "" if job.over else f", {len(job.hosts)} of {job.hosts_wanted} hosts"
    say(
        f"{in_one_line(job.state)} at {clock(job.time)}, epoch {job.epoch}, "
        f"{counted(job.events, 'event')} read, "
        f"{counted(job.recoveries, 'recovery', 'recoveries')}{hosts}"
    )
    if quiet := job.quiet_for(now):
        say(f"no news for {quiet:,} s: what follows is from the last report; {IF_GONE}")
    if job.error:
        say(f"error: {in_one_line(job.error)}")
    if job.trouble:
        say(f"trouble: {in_one_line(job.trouble)}")
    for what in job.preparing:
        say(in_one_line(what))
    rows = [_vertex_cells(v, over=job.over, plain_ticks=plain_ticks) for v in job.vertices]
    left_out = show_rows(rows, _LEFT_OUT, _WORDS)
    for v in job.vertices:
        if v.step_seconds is not None:
            since = f"since {clock(job.time - v.step_seconds)}, {v.step_seconds:.0f} s"
            where = f"{v.id} keeps host {v.host} busy"
            say(in_one_line(f"{where} with one step {since}, {v.step_rows}"))
        if v.waits_seconds is not None:
            say(in_one_line(f"{v.id} has waited for {v.waits_seconds:.0f} s: {v.waits}"))
    for host in job.hosts:
        vertices = ", ".join(host.vertices)
        say(in_one_line(f"host {host.id}: pid {host.pid} on {host.machine}: {vertices}"))
    if left_out:
        say(f"a wider terminal also shows {', '.join(left_out)}; --json shows everything")


def _vertex_cells(v: VertexStatus, *, over: bool, plain_ticks: bool) -> dict[str, str]:
    """Return the texts of a vertex's columns. When the job is over, columns that matter only while
    it runs are left out."""
    lag = "" if v.lag is None else f"{v.lag:,}" if plain_ticks else f"{v.lag / 1e6:.3f}"
    cells = {
        "vertex": v.id,
        "host": v.host or "",
        "state": v.status,
        "events/s": f"{v.events_per_second:,.0f}",
        _LAGS[plain_ticks]: lag,
        "in": " ".join(map(str, v.inputs)),
        "out": " ".join(map(str, v.outputs)),
        "state rows": f"{v.state_rows:,}",
        "queue": f"{v.queued_bytes:,}",
        "snapshots": f"{v.snapshots:,}",
        "recoveries": f"{v.recoveries:,}",
    }
    alive = ("host", "events/s", *_LAGS, "queue") if over else ()
    return {name: text for name, text in cells.items() if name not in alive}


def clock(seconds: float) -> str:
    """Return a time since 1970 as text for people."""
    try:
        return datetime.fromtimestamp(seconds, UTC).isoformat(sep=" ", timespec="milliseconds")
    except (ValueError, OverflowError, OSError):
        return f"{seconds} s since 1970"  # beyond the calendar's range
