"""Runs a live job, and looks at its store (`weir status`, `story`, `store`, `read`)."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer
from rich.table import Table

from weir.cli.command_line import (
    INTERRUPTED,
    MOST_ROWS,
    TERMINATED,
    DebugOption,
    JsonOption,
    Usage,
    clean_errors,
    ended_by,
    put,
    put_json,
    say,
)
from weir.cli.job_status import clock, has_plain_ticks, show_status
from weir.cli.progress import Meter, counting
from weir.cli.tables import cell, show_table
from weir.errors import RunError, SnapshotCorrupt
from weir.wording import counted, in_one_line

if TYPE_CHECKING:
    from weir.files.object_store import ObjectStore
    from weir.job.output_reader import Manifest, OutputReader
    from weir.job.status import JobStatus
    from weir.job.story import StoryLine
    from weir.plan.program import Program
    from weir.runtime.reports import RunReport
    from weir.spark.live.job_setup import ResumeChoice
    from weir.spark.live.live_run import LiveRun

StoreLocation = Annotated[str, typer.Argument(metavar="STORE", help="The store of a live job.")]

FOLLOW_EVERY = 0.2
WATCH_EVERY = 1.0
"""How often a reader that follows a job checks whether it is running, in seconds."""
SILENCE = 10.0
"""Without a new report for this many seconds, nobody seems to run a job."""


def run_to_end(
    program: Program,
    store: str,
    meter: Meter,
    *,
    master: str | None,
    settings: Mapping[str, str],
    directory: Path,
    cut: int | None,
    parallelism: int | None,
    resume: ResumeChoice,
    accept_code_changes: bool,
    hosts: int | None,
    grace: str | None,
    check: bool = False,
    shadow: int | None = None,
    tls: tuple[Path, Path, Path | None] | None = None,
    page: bool = False,
    metrics: str | None = None,
) -> RunReport:
    """Run a live job; if it is stopped before its end, exit like an interrupted command. Meanwhile
    serve its page if `page` is set, and its metrics at the address `metrics`."""
    from weir.job.settings import ManagerSettings
    from weir.page.metrics import metrics_address
    from weir.spark.live.host_tasks import check_spark, live_master, live_settings
    from weir.spark.live.job_setup import prepare_live
    from weir.spark.live.live_run import check_callbacks
    from weir.spark.live.live_settings import GRACE, LiveSettings, grace_seconds
    from weir.spark.live.run_live import watching
    from weir.spark.live.tls import read_tls
    from weir.spark.process_signals import signals_ask
    from weir.spark.session import check_files, is_submitted, session

    check_callbacks(program, ())
    metrics_at = None if metrics is None else metrics_address(metrics)
    if resume is True:
        opened_store(store)
    hosts = LiveSettings().hosts if hosts is None else hosts
    grace = GRACE if grace is None else grace
    chosen = master if is_submitted() else master or live_master(hosts)
    wanted = live_settings(chosen, settings)
    check_spark({**wanted, "spark.master": chosen or ""}.get, hosts)  # before it owns the store
    check_files()
    live = prepare_live(
        program,
        store,
        directory=directory,
        cut=cut,
        parallelism=parallelism,
        resume=resume,
        accept_code_changes=accept_code_changes,
        how=LiveSettings(
            hosts=hosts,
            manager=ManagerSettings(stop_limit=grace_seconds(grace)),
            check=check,
            tls=None if tls is None else read_tls(*tls),
            shadow=shadow,
        ),
    )
    if live.ledger.finished:
        say("weir: the job had finished already; its outputs are put in their places", err=True)
        with meter:
            return live.finish(watching(meter.take))
    try:
        with (
            _onlooking(live, page, metrics_at) as look,
            session(chosen, wanted) as spark,
            meter,
            signals_ask() as asked,
        ):
            shown = watching(meter.take)
            assert shown is not None
            report = live.run(spark, watch=lambda status: (look(status), shown(status))[-1])
            code = TERMINATED if asked() == signal.SIGTERM else INTERRUPTED
    except KeyboardInterrupt as interrupt:
        word, code = ended_by(interrupt)
        report = None
    else:
        word = "stopped"
    if report is None:
        say(f"weir: {word}; continue with --resume --store {store}", err=True)
        raise typer.Exit(code)
    return report


@contextmanager
def _onlooking(
    live: LiveRun, page: bool, metrics_at: tuple[str, int] | None
) -> Iterator[Callable[[JobStatus], None]]:
    """Serve the page and the metrics of a job, if wanted, while the block runs, and print their
    addresses. Yield the function that takes each status."""
    from weir.page.metrics import serving_metrics
    from weir.page.server import serving

    with ExitStack() as served:
        if page:
            address = served.enter_context(serving(live.objects))
            say(f"weir: the job's page: {address}", err=True)
        if metrics_at is None:
            yield lambda _: None
            return
        take, address = served.enter_context(serving_metrics(metrics_at, live.drawn))
        say(f"weir: metrics: {address}", err=True)
        yield take


def status(store: StoreLocation, as_json: JsonOption = False, debug: DebugOption = False) -> None:
    """Show the state of a live job: vertices, hosts, rates, lag and positions; or how it ended.

    Example: [bold]weir status /var/weir/clicks --json[/bold]
    """
    with clean_errors(debug):
        from weir.job.status import read_status

        opened = opened_store(store)
        status = read_status(opened)
        if status is None:
            raise Usage(f"the job in '{store}' has not reported anything yet")
        if as_json:
            put(msgspec.json.encode(status) + b"\n")
            return
        show_status(status, time.time(), plain_ticks=has_plain_ticks(opened))


def story(
    store: StoreLocation,
    vertex: Annotated[
        str | None,
        typer.Argument(metavar="[VERTEX]", help="As in `weir status`. \\[default: all]"),
    ] = None,
    as_json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Show what happened to a vertex: placements, checkpoints, failures, recoveries.

    Example: [bold]weir story /var/weir/clicks 2.0[/bold]
    """
    with clean_errors(debug):
        from weir.job.story import whole_story

        opened = opened_store(store)
        lines, damage = whole_story(opened)
        for what in damage:
            say(f"weir: warning: {in_one_line(what)}; the story lacks its lines", err=True)
        vertices = _vertices(opened, lines)
        if not lines and not vertices:
            raise Usage(f"the job in '{store}' has not reported anything yet")
        if vertex is not None:
            if vertex not in vertices:
                raise Usage(f"there is no vertex '{vertex}'; there are {', '.join(vertices)}")
            lines = [line for line in lines if line.vertex in (vertex, "")]
        if as_json:
            put(msgspec.json.encode(lines) + b"\n")
            return
        for line in lines:
            who = f"{line.vertex}: " if line.vertex else ""
            say(f"{clock(line.time)}  {in_one_line(who + line.what)}")


def _vertices(store: ObjectStore, lines: Sequence[StoryLine]) -> Sequence[str]:
    """Return the vertices of a job: those in its plan, if it is readable, and those in these lines
    of its story."""
    from weir.job.plan_drawing import read_plan

    try:
        plan = read_plan(store)
    except SnapshotCorrupt:
        plan = None
    drawn = [vertex.id for vertex in plan.vertices] if plan is not None else []
    return list(dict.fromkeys([*drawn, *(line.vertex for line in lines if line.vertex)]))


def store(
    location: StoreLocation,
    verify: Annotated[
        bool, typer.Option("--verify", help="Read everything, and say what is lost or changed.")
    ] = False,
    as_json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Show what a live job keeps in its store, and why.

    Example: [bold]weir store /var/weir/clicks --verify[/bold]

    With --verify, every object that the job refers to is read and compared with its checksum; exit
    code 1 if one is missing or changed.
    """
    with clean_errors(debug):
        from weir.job.store_listing import kept_objects

        if verify:
            _verify(location, as_json)
            return
        listing = kept_objects(opened_store(location))
        if as_json:
            put_json([msgspec.to_builtins(k) for k in listing])
            return
        table = Table("kind", "of", "objects", "bytes", "why", box=None)
        for kept in listing:
            cells = (kept.kind, kept.of, f"{kept.objects:,}", f"{kept.bytes:,}", kept.why)
            table.add_row(*map(cell, cells))
        show_table(table)
        say(f"{counted(sum(k.bytes for k in listing), 'byte')} in all")


def _verify(location: str, as_json: bool) -> None:
    from weir.job.store_check import verify_store

    with counting("objects checked", quiet=as_json) as progress:
        check = verify_store(opened_store(location), progress)
    if as_json:
        put_json(msgspec.to_builtins(check))
    else:
        for damage in check.damage:
            say(in_one_line(damage.what))
        lines = [
            f"{counted(check.objects, 'object')} checked, {len(check.damage):,} missing or changed"
        ]
        if check.unreferred:
            lines.append(f"{check.unreferred:,} that nothing refers to, which harm nothing")
        if check.strange:
            first = in_one_line(check.strange[0])
            lines.append(f"{len(check.strange):,} that are not of this job, like '{first}'")
        say("; ".join(lines))
    if check.damage:
        raise typer.Exit(1)


class RowKind(StrEnum):
    rows = "rows"
    late = "late"
    bad = "bad"


def read(
    location: StoreLocation,
    output: Annotated[
        str | None,
        typer.Argument(metavar="[OUTPUT]", help="An output. \\[default: all are listed]"),
    ] = None,
    kind: Annotated[
        RowKind, typer.Option(help="The output's rows, or the late or bad ones of an input.")
    ] = RowKind.rows,
    since: Annotated[
        int, typer.Option(min=0, max=MOST_ROWS, metavar="N", help="Skip the first N commits.")
    ] = 0,
    follow: Annotated[
        bool, typer.Option("--follow", help="Keep reading until the job has finished.")
    ] = False,
    to: Annotated[
        str | None, typer.Option(metavar="FILE", help="Write a file; the ending says the format.")
    ] = None,
    as_json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Read the committed rows of a live job's output, while it runs or later.

    Example: [bold]weir read /var/weir/clicks Sums --follow[/bold]

    Prints rows as JSON lines, commit by commit. Without OUTPUT, lists all outputs with their
    commits, rows and digests so far.
    """
    with clean_errors(debug):
        from weir.job.job_identity import find_output
        from weir.job.output_reader import OutputReader, existing_job, manifests

        store = opened_store(location)
        if output is None:
            if follow or to or since:
                raise Usage("--follow, --since and --to need an OUTPUT")
            _show_manifests(manifests(store), as_json)
            return
        if to is not None and (follow or since):
            raise Usage("--to writes all committed rows; it does not go with --follow or --since")
        outputs = existing_job(store).outputs
        try:
            find_output(outputs, output, kind.value)
        except RunError as error:
            raise Usage(str(error)) from error
        reader = OutputReader(store, output, kind.value)
        if to is not None:
            digest = reader.write(to)
            where = in_one_line(f"{reader.output.title} -> {to}")
            say(f"{where}: {counted(digest.count, 'row')}, digest {digest}")
            return
        _print_rows(reader, since, _Onlooker(store) if follow else None)


def _show_manifests(manifests: Sequence[Manifest], as_json: bool) -> None:
    from weir.plan.program import output_title

    if as_json:
        put_json([msgspec.to_builtins(m) for m in manifests])
        return
    for m in manifests:
        who = output_title(m.name, m.kind)
        end = ", finished" if m.finished else ""
        shown = in_one_line(f"{who} ({m.path})")
        commits = counted(m.commits, "commit")
        say(f"{shown}: {counted(m.rows, 'row')}, digest {m.digest}, {commits}{end}")


def _print_rows(reader: OutputReader, since: int, onlooker: _Onlooker | None) -> None:
    """Print the committed rows; with an onlooker, continue until the job is over."""
    from weir.files.sinks import JsonLinesForm

    lines = JsonLinesForm([name for name, _ in reader.form.columns])
    while True:
        broken_off = onlooker.broken_off() if onlooker is not None else ""
        look = reader.look(since)
        for commit in look.commits:
            for rows in reader.rows(commit):
                put(lines.encode(reader.form.record(rows)))
        since = look.end
        if look.finished or onlooker is None or broken_off:
            break
        time.sleep(FOLLOW_EVERY)
    say(f"weir: {counted(since, 'commit')}", err=True)
    if broken_off and not look.finished:
        raise RunError(broken_off)


class _Onlooker:
    """Watches whether a job is running, and warns once if nobody seems to run it."""

    def __init__(self, store: ObjectStore) -> None:
        self._store = store
        self._looked = -WATCH_EVERY
        self._changed = time.monotonic()
        """When the status last changed."""
        self._time: float | None = None
        """The time of the last status."""
        self._warned = False

    def broken_off(self) -> str | None:
        """Return how the job ended, if it ended without finishing."""
        from weir.job.status import whole_status

        now = time.monotonic()
        if now - self._looked < WATCH_EVERY:
            return None
        self._looked = now
        status = whole_status(self._store)
        if status is not None and status.broken_off:
            how = "failed" if status.error else "was stopped"
            error = f": {in_one_line(status.error)}" if status.error else ""
            return f"the job {how}, and no more rows come unless it is resumed{error}"
        reported = status.time if status is not None else None
        if reported != self._time:
            self._time, self._changed, self._warned = reported, now, False
        is_checking = status is not None and status.state == "checking"
        if now - self._changed >= SILENCE and not is_checking and not self._warned:
            self._warned = True
            last = (
                "it has not reported anything yet"
                if reported is None
                else f"its last report is of {clock(reported)}"
            )
            say(f"weir: nobody seems to run the job: {last}; waiting", err=True)
        return None


def opened_store(location: str) -> ObjectStore:
    """Open the store of a live job; raise Usage if there is none."""
    from weir.files.object_store import existing_store
    from weir.job.record_reader import holds_job

    try:
        opened = existing_store(location)
    except RunError as error:
        raise Usage(str(error)) from error
    if not holds_job(opened):
        raise Usage(f"there is no live job in '{location}'")
    return opened
