"""The live runner: a program continuously on Spark, exactly once through failures.

Hosts are the tasks of one Spark job (`mapInArrow`, so that it runs under Spark Connect too); Spark
starts lost ones again while the others go on. The manager runs here, in the driver. Finite inputs
end the job, and its files are then byte-identical to the other runners'.
"""

from __future__ import annotations

import hashlib
import secrets
import socket
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql.utils import is_remote

from weir.errors import InputError, PlanError, RunError, SnapshotCorrupt
from weir.events.batch import Batch
from weir.events.printable import printable
from weir.files.chunks import Partition
from weir.files.object_store import ObjectStore, folder_of
from weir.files.sinks import DIRECT
from weir.ingress.following import Followed
from weir.ingress.ingress_log import begin_log
from weir.job.committed import write_outputs
from weir.job.job_record import JobRecord, encode_job, output_record, read_job
from weir.job.ledger import Ledger
from weir.job.manager import Manager
from weir.job.placing import Placement
from weir.job.records import check_commits, job_ledger, sweep
from weir.job.settings import HostSettings, ManagerSettings
from weir.job.signals import Ended
from weir.job.status import JobStatus
from weir.job.story import StoryLine
from weir.plan.code_fingerprint import changes, program_code
from weir.plan.durations import UNITS, parse_duration
from weir.plan.explain import explain
from weir.plan.nodes import Output, Program
from weir.plan.rewrites.rewrite import rewrite
from weir.plan.stages import StagedPlan, cut_stages
from weir.plan.strategy import default_strategy, step_limit
from weir.plan.user_code import describe
from weir.reliable.keys import JOB
from weir.reliable.store import ObjectExists
from weir.reliable.strategies import Strategy
from weir.runtime.instances import EmitRows
from weir.runtime.outputs import check_outputs, output_schema
from weir.runtime.reports import InputReport, OutputReport, RunReport
from weir.runtime.strategies import strategies
from weir.runtime.topology import Topology, make_topology
from weir.spark.live.flight import ChannelErrors, Client, Security
from weir.spark.live.host_job import LiveJob, source_of, vertex_titles
from weir.spark.live.hosts import Hosts, Setting, check_spark
from weir.spark.live.manager import ManagerDriver
from weir.spark.live.tls import Tls
from weir.spark.offline.frames import all_partitions, frame_sources
from weir.spark.sampling import rows_share_keys
from weir.spark.signals import signals_ask

Watch = Callable[[JobStatus], None]
LONGEST_FOLDER = 64
"""The name of a socket has about 100 characters at most."""
GRACE = "10s"
"""How long the last checkpoint of a job that is stopped may take."""


def grace_seconds(given: str) -> float:
    """The seconds of a duration.

    >>> grace_seconds("1500ms")
    1.5
    """
    ticks = parse_duration(given)
    if given.strip().isdigit():
        raise PlanError(f"the grace of a stop has a unit, like {given.strip()}s")
    if not 0 <= ticks <= UNITS["d"]:
        raise PlanError(f"the grace of a stop is from 0s to 1d, not {given}")
    return ticks / UNITS["s"]


@dataclass(frozen=True, slots=True)
class LiveSettings:
    """How a live job runs; none of it changes its answer."""

    hosts: int = 2
    host: HostSettings = field(default_factory=HostSettings)
    manager: ManagerSettings = field(default_factory=ManagerSettings)
    address: str | None = None
    """Where hosts and manager listen; by default, on a local master, at sockets in a folder of
    this user's own, or at the loopback address where that cannot be (with TLS, say)."""
    tls: Tls | None = None
    """Channels are encrypted with it; see `tls.py`."""


@dataclass(frozen=True, slots=True)
class LiveRun:
    """A job that has its store: what is to be run, and where it left off."""

    program: Program
    directory: str | Path
    plan: StagedPlan
    topology: Topology
    strategies: Mapping[str, Strategy]
    partitions: Mapping[str, tuple[Partition, ...]]
    objects: ObjectStore
    ledger: Ledger
    cut: int | None
    settings: LiveSettings
    log_token: str = ""
    notes: tuple[str, ...] = ()
    """What the story says of the job before it begins."""

    def run(
        self,
        spark: SparkSession,
        *,
        callbacks: Mapping[str, EmitRows] | None = None,
        watch: Watch | None = None,
        stop: Callable[[], bool] | None = None,
    ) -> RunReport | None:
        """Until the inputs end; None when it was stopped before, by Ctrl-C or SIGTERM or because
        `stop` said so. Rows of an OUTPUT … TO 'callback:' go to the function of that name, in the
        hosts, as they come."""
        given = callbacks or {}
        check_callbacks(self.program, given)
        callbacks_of = _of_kind(self.program, "callback:")
        emits = {n: _guarded(o.name, given[o.name]) for n, o in callbacks_of.items()}
        if self.ledger.finished:
            report = self._report(self.ledger, ())
            self.objects.delete(sweep(self.objects, self.ledger))
            return report
        ended, machine = self.drive(spark, emits, watch, stop)
        if ended.error:
            raise RunError(ended.error)
        if ended.stopped:
            return None
        report = self._report(machine.ledger, machine.placements)
        self.objects.delete(sweep(self.objects, machine.ledger))
        return report

    def drive(
        self,
        spark: SparkSession,
        emits: Mapping[int, EmitRows] | None = None,
        watch: Watch | None = None,
        stop: Callable[[], bool] | None = None,
    ) -> tuple[Ended, Manager]:
        """Run the job until it ends, one way or another."""
        if warned := check_spark(_setting(spark), self.settings.hosts):
            warnings.warn(warned, RuntimeWarning, stacklevel=2)
        manager_settings = replace(
            self.settings.manager, hosts=self.settings.hosts, step_limit=step_limit(self.program)
        )
        machine = Manager(
            self.topology, self.strategies, self.ledger, manager_settings, time.monotonic(),
            name=secrets.token_hex(8), titles=vertex_titles(
                self.program, self.plan, self.topology, self.partitions
            ),
        )  # fmt: skip
        machine.story += [StoryLine(time.monotonic(), "", note) for note in self.notes]
        security = Security(secrets.token_hex(32), self.settings.tls)
        with _listening(spark, self.settings) as address:
            return self._drive(spark, machine, security, address, emits or {}, watch, stop), machine

    def _drive(
        self,
        spark: SparkSession,
        machine: Manager,
        security: Security,
        address: str,
        emits: Mapping[int, EmitRows],
        watch: Watch | None,
        stop: Callable[[], bool] | None,
    ) -> Ended:
        driver = ManagerDriver(machine, self.objects, address, security, _show)
        _check_channel(driver, address, security)
        job = LiveJob(
            self.plan, self.topology, self.strategies, self.partitions, self.objects.place,
            driver.url, address, security, self.settings.host, dict(emits),
            _of_kind(self.program, "console:"), self.cut, self.log_token,
        )  # fmt: skip
        hosts = Hosts(spark, job, self.settings.hosts)
        try:
            with signals_ask() as asked:
                hosts.start()
                ended = driver.run(
                    hosts.check,
                    watch or (lambda _: None),
                    lambda: asked() != 0 or (stop is not None and stop()),
                )
                if not machine.resigned:  # else hosts are told nothing, and would stay
                    driver.release(lambda: hosts.gone, within=10.0)
        finally:
            hosts.stop()
            driver.close()
            self.objects.close()
        return ended

    def _report(self, ledger: Ledger, placements: Sequence[Placement]) -> RunReport:
        """Write the outputs, and say what was read and written."""
        files = {n: o for n, o in enumerate(self.program.outputs) if o.path not in DIRECT}
        writers = {n: len(sink.inputs) for n, sink in enumerate(self.topology.sinks)}
        try:
            digests = write_outputs(self.objects, ledger, files, writers, self.directory)
        except SnapshotCorrupt:
            raise  # it says what is lost and what can be done
        except RunError as error:
            raise RunError(
                f"{error}; all rows are committed in the store, so mend it and run again with "
                "--resume, or read them with weir read"
            ) from error
        inputs: dict[str, InputReport] = {}
        events = 0
        for placement in placements:
            spec, found = self.topology.vertices[placement.vertex], placement.report
            if spec.kind != "source" or found is None:
                continue
            name = source_of(self.plan, spec).name
            known = inputs.get(name, InputReport(name, 0, 0, 0))
            inputs[name] = InputReport(
                name, known.partitions + 1, known.late + found.late, known.bad + found.bad
            )
            events += found.inputs[0] - found.late - found.bad
        outputs = tuple(
            OutputReport(o.name, o.kind, str(Path(self.directory) / o.path), d.count, str(d))
            for o, d in zip(files.values(), digests, strict=True)
        )
        return RunReport(events, tuple(inputs.values()), outputs)


def prepare_live(
    program: Program,
    store: str,
    *,
    directory: str | Path = ".",
    parallelism: int = 1,
    cut: int | None = None,
    resume: bool = False,
    accept_code_changes: bool = False,
    settings: LiveSettings | None = None,
) -> LiveRun:
    """Check everything that can be checked without Spark, and take the store."""
    in_files = tuple(o for o in program.outputs if o.path not in DIRECT)
    if in_files or not program.outputs:
        check_outputs(replace(program, outputs=in_files), directory)
    _refuse_frames(program)
    place = store if folder_of(store) is None else str(folder_of(store))
    objects = ObjectStore(place, make=not resume)
    found = all_partitions(program, directory)
    pays = partial(rows_share_keys, partitions=found)
    plan = cut_stages(rewrite(program, pays), parallelism)
    code = program_code(program)
    job = _claim_store(objects, program, plan, parallelism, found, code, resume)
    partitions = {n: _same_partitions(job.partitions[n], parts) for n, parts in found.items()}
    ledger = job_ledger(objects, job)
    if ledger is not None:
        check_commits(objects, ledger)
    begun = ledger or Ledger(token=job.token)
    known = job.code if begun.code is None else begun.code
    changed = _check_code(objects.place, known, code, accept_code_changes)
    begun.code = code
    live = make_live(program, directory, plan, partitions, objects, begun, cut, settings)
    if ledger is None:
        # Nobody has begun. Later these may have been collected, and must not be made anew.
        for vertex in _followed(live):
            begin_log(objects, vertex, job.token)
    notes = (f"goes on with other code: {', '.join(changed)}",) if changed else ()
    return replace(live, log_token=job.token, notes=notes)


def make_live(
    program: Program,
    directory: str | Path,
    plan: StagedPlan,
    partitions: Mapping[str, tuple[Partition, ...]],
    objects: ObjectStore,
    ledger: Ledger,
    cut: int | None,
    settings: LiveSettings | None = None,
) -> LiveRun:
    """A run over partitions that are there, in a store that is its own."""
    topology = make_topology(plan, plan.vertex_counts(lambda s: len(partitions[s.name])))
    return LiveRun(
        program, directory, plan, topology, strategies(plan, topology, default_strategy(program)),
        partitions, objects, ledger, cut, settings or LiveSettings(),
    )  # fmt: skip


def _followed(live: LiveRun) -> Iterator[str]:
    """The vertices whose sources have a log."""
    for spec in live.topology.order:
        if spec.kind == "source":
            partition = live.partitions[source_of(live.plan, spec).name][spec.index]
            if isinstance(partition, Followed):
                yield spec.id


def _show(text: bytes) -> None:
    if sys.stdout is None:
        return  # it was closed from the start: nobody wants to see them
    if sys.stdout.isatty():  # JSON has escapes for some of what terminals obey, not for all
        text = printable(text.decode()).encode()
    sys.stdout.buffer.write(text)
    sys.stdout.flush()


def _of_kind(program: Program, path: str) -> dict[int, Output]:
    return {n: output for n, output in enumerate(program.outputs) if output.path == path}


def _guarded(name: str, emit: EmitRows) -> EmitRows:
    """A callback whose own errors end the job, rather than its host again and again."""

    def guarded(partition: int, seq: int, rows: Batch) -> None:
        try:
            emit(partition, seq, rows)
        except BaseException as error:  # the user's code may raise anything, SystemExit too
            raise RunError(
                f"the callback of {name} failed on {len(rows)} rows from {seq} of partition "
                f"{partition} on: {describe(error)}"
            ) from error

    return guarded


def check_callbacks(program: Program, given: Collection[str]) -> None:
    """There is a function for every output that wants one."""
    for output in _of_kind(program, "callback:").values():
        if output.name not in given:
            hint = f"weir.run_live(…, callbacks={{'{output.name}': function}}) in Python"
            raise PlanError(f"OUTPUT {output.name} TO 'callback:' has no function", hint=hint)


def _refuse_frames(program: Program) -> None:
    for source in frame_sources(program):
        raise PlanError(f"{source.name} is a DataFrame, which has an end: run it offline")


def _claim_store(
    objects: ObjectStore,
    program: Program,
    plan: StagedPlan,
    parallelism: int,
    partitions: Mapping[str, Sequence[Partition]],
    code: dict[str, str],
    resume: bool,
) -> JobRecord:
    """Make the store this job's, or see that it is; what it was made for."""
    text = explain(rewrite(program), plan)
    names = {name: tuple(p.name for p in parts) for name, parts in partitions.items()}
    outputs = tuple(
        output_record(output, output_schema(output), kept=output.path not in DIRECT)
        for output in program.outputs
    )
    wanted = JobRecord(
        hashlib.sha256(text.encode()).hexdigest(), parallelism, names, outputs,
        secrets.token_hex(16), code,
    )  # fmt: skip
    known = read_job(objects)
    if not resume:
        try:
            objects.put(JOB, encode_job(wanted), new=True)
        except ObjectExists:
            raise RunError(
                f"the store '{objects.place}' holds a job already; go on with it by --resume, or "
                "give a folder of its own"
            ) from None
        return wanted
    if known is None:
        raise RunError(f"the store '{objects.place}' holds no job to resume")
    if known.parallelism != wanted.parallelism:
        raise PlanError(
            f"the job in '{objects.place}' was begun with --parallelism {known.parallelism}, not "
            f"{wanted.parallelism}",
            hint="go on with that one: it decides which vertices there are",
        )
    if known.plan != wanted.plan:
        raise PlanError(
            f"the store '{objects.place}' holds the job of another program",
            hint="put the program back as it was, or begin anew with a store of its own",
        )
    return known


def _check_code(
    place: str, known: dict[str, str] | None, code: dict[str, str], accept: bool
) -> list[str]:
    """The user's code is what the job ran with; else what has changed, if that is accepted."""
    changed = changes(known, code) if known is not None else []
    if changed and not accept:
        raise PlanError(
            f"the user's code is not what the job in '{place}' ran with: {', '.join(changed)}",
            hint="rows before and after would come of different functions: put the code back, "
            "begin anew with a store of its own, or go on with --accept-code-changes",
        )
    return changed


def _same_partitions(
    names: Sequence[str], partitions: Sequence[Partition]
) -> tuple[Partition, ...]:
    found = {p.name: p for p in partitions}
    for name in names:
        if name not in found:
            message = "the job was begun with this file, and it is gone; put it back and resume"
            raise InputError(message, file=name)
    return tuple(found[name] for name in names)


def _setting(spark: SparkSession) -> Setting:
    return lambda name, otherwise: spark.conf.get(name, otherwise) or otherwise


@contextmanager
def _listening(spark: SparkSession, settings: LiveSettings) -> Iterator[str]:
    """Where hosts and manager listen: an address, or a folder for their sockets, which only this
    user can enter and which goes with the job."""
    is_local = _setting(spark)("spark.master", "local").startswith("local")
    if settings.address is not None:
        yield settings.address
    elif not is_local:
        yield socket.gethostbyname(socket.gethostname())
    elif settings.tls is not None or is_remote() or len(tempfile.gettempdir()) > LONGEST_FOLDER:
        yield "127.0.0.1"
    else:
        with tempfile.TemporaryDirectory(prefix="weir-", ignore_cleanup_errors=True) as folder:
            yield folder


def _check_channel(driver: ManagerDriver, address: str, security: Security) -> None:
    """With TLS: would hosts be let in? They could not say why not."""
    if security.tls is None:
        return
    try:
        Client(driver.url, security).act("hello", b"")
    except ChannelErrors as error:
        driver.close()
        raise PlanError(
            f"the certificate is not accepted at {address}: {error}",
            hint="it must name that address (subjectAltName) and be signed by the authority given",
        ) from None
