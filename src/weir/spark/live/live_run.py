"""The live runner: it runs a program continuously on Spark, exactly once through failures.

Hosts are the tasks of one Spark job (`mapInArrow`, so that it runs under Spark Connect too); Spark
starts lost ones again while the others go on. The manager runs here, in the driver. Finite inputs
end the job, and its files are then byte-identical to the other runners'.
"""

from __future__ import annotations

import secrets
import sys
import time
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec
from pyspark.sql import SparkSession
from pyspark.sql.utils import is_remote

from weir.errors import PlanError, RunError, SnapshotCorrupt
from weir.events.batch import Batch
from weir.files.object_store import ObjectStore
from weir.ingress.connectors.registry import has_end
from weir.job.history import HistoryKeeper, read_history
from weir.job.ledger import Ledger
from weir.job.manager import Manager
from weir.job.output_reader import write_outputs
from weir.job.placement import Placement
from weir.job.plan_drawing import DrawnPlan, draw_plan
from weir.job.record_reader import sweep, take_over
from weir.job.settings import host_settings
from weir.job.signals import EndJob
from weir.job.status import STATUS, JobStatus, whole_status
from weir.job.story import StoryLine
from weir.plan.holds import overlaps
from weir.plan.program import DIRECT, Output, Program
from weir.plan.settings import step_limit
from weir.plan.stages import StagedPlan
from weir.plan.strategy import default_strategy
from weir.plan.usercode.functions import describe
from weir.reliable.codec import encode_record
from weir.reliable.object_names import PLAN, UNCHECKED
from weir.reliable.strategies import Strategy
from weir.runtime.instance_factory import EmitRows
from weir.runtime.partitions import Partitions
from weir.runtime.program_plan import PlannedProgram
from weir.runtime.reports import OnProgress, RunReport, SinkTotal, SourceTotal, run_report
from weir.runtime.topology import Topology
from weir.runtime.vertices import source_of, vertex_strategies
from weir.shadow.app_shadow import app_shadow
from weir.spark.live.addresses import Endpoint, address_settings, listening
from weir.spark.live.flight import ChannelErrors, Client, Security
from weir.spark.live.host_tasks import Hosts, Setting, check_spark
from weir.spark.live.job_description import JobDescription, vertex_titles
from weir.spark.live.live_check import check_answer
from weir.spark.live.live_settings import LiveSettings
from weir.spark.live.loop_search import LoopSearch
from weir.spark.live.manager_driver import ManagerDriver
from weir.spark.live.shadow_gate import ShadowGate, log_heads
from weir.spark.process_signals import signals_ask
from weir.wording import counted, printable

OnStatus = Callable[[JobStatus], None]


@dataclass(frozen=True, slots=True)
class LiveRun:
    """A live job that is ready to run: its plan, its store, and what is durable of it."""

    program: Program
    directory: str | Path
    plan: StagedPlan
    topology: Topology
    strategies: Mapping[str, Strategy]
    partitions: Partitions
    objects: ObjectStore
    ledger: Ledger
    cut: int | None
    settings: LiveSettings
    parallelism: int = 1
    log_token: str = ""
    notes: tuple[str, ...] = ()
    """The first lines of the job's story."""
    loops: LoopSearch | None = None
    """Finds the loops that its hosts must have before they come; None: each compiles as it runs."""

    def run(
        self,
        spark: SparkSession,
        *,
        callbacks: Mapping[str, EmitRows] | None = None,
        watch: OnStatus | None = None,
        stop: Callable[[], bool] | None = None,
    ) -> RunReport | None:
        """Run the job until its inputs end, and write its outputs; return None when it was stopped
        before, by Ctrl-C or SIGTERM or because `stop` said so. Rows of an OUTPUT … TO 'callback:'
        go to the function of that name, in the hosts, as they come."""
        given = callbacks or {}
        check_callbacks(self.program, given)
        callbacks_of = _of_kind(self.program, "callback:")
        emits = {n: _guarded(o.name, given[o.name]) for n, o in callbacks_of.items()}
        if self.ledger.finished:
            return self.finish(watch)
        ended, machine = self.drive(spark, emits, watch, stop)
        if ended.error:
            raise RunError(ended.error)
        if ended.stopped:
            return None
        return self._finished(machine.ledger, machine.placements, watch)

    def finish(self, watch: OnStatus | None = None) -> RunReport:
        """Put the outputs of a job that had finished already in their places; Spark is not needed
        for it."""
        return self._finished(self.ledger, (), watch)

    def _finished(
        self, ledger: Ledger, placements: Sequence[Placement], watch: OnStatus | None
    ) -> RunReport:
        """Check the answer, if that was asked for, and put the outputs in their places."""
        if watch is not None and (status := whole_status(self.objects)) is not None:
            self.objects.on_wait = lambda why: watch(msgspec.structs.replace(status, trouble=why))
        if self.settings.check:
            self._check(watch)
        report = self._report(ledger, placements)
        self.objects.delete(sweep(self.objects, ledger))
        return report

    def _check(self, watch: OnStatus | None) -> None:
        """Check the answer; the status says so, and how the check ended if it did not pass."""
        self._tell("checking")
        try:
            check_answer(
                program=self.program,
                store=self.objects,
                directory=self.directory,
                cut=self.cut,
                parallelism=self.parallelism,
                progress=self._checking(watch),
            )
        except Exception as error:
            self._tell("failed", str(error) or type(error).__name__)
            raise
        except BaseException:  # Ctrl-C or SIGTERM
            self._tell("stopped")
            raise
        self.objects.delete([UNCHECKED])

    def _tell(self, state: str, error: str = "") -> None:
        """Write the job's last status again, with another state."""
        status = whole_status(self.objects)
        if status is not None:
            told = msgspec.structs.replace(status, state=state, error=error, time=time.time())
            self.objects.put(STATUS, encode_record(STATUS, told))

    def _checking(self, watch: OnStatus | None) -> OnProgress | None:
        """Make a function that shows how far the check is: the job's last status, checking."""
        status = whole_status(self.objects)
        if watch is None or status is None:
            return None
        return lambda come: watch(
            msgspec.structs.replace(
                status, state="checking", events=come.events, reached=come.reached
            )
        )

    def drive(
        self,
        spark: SparkSession,
        emits: Mapping[int, EmitRows] | None = None,
        watch: OnStatus | None = None,
        stop: Callable[[], bool] | None = None,
    ) -> tuple[EndJob, Manager]:
        """Run the job until it ends, one way or another."""
        if warned := check_spark(_setting(spark), self.settings.hosts):
            warnings.warn(warned, RuntimeWarning, stacklevel=2)
        manager_settings = replace(
            self.settings.manager,
            hosts=self.settings.hosts,
            step_limit=step_limit(self.program),
            trouble_limit=self.settings.host.store_patience,
        )
        name = secrets.token_hex(8)
        gate = self._gate()
        ledger = take_over(self.objects, self.ledger, name)  # Spark has taken long to start
        machine = Manager(
            topology=self.topology,
            strategies=self.strategies,
            ledger=ledger,
            settings=manager_settings,
            now=time.monotonic(),
            name=name,
            titles=vertex_titles(self.program, self.plan, self.topology, self.partitions),
            holds=overlaps(self.plan),
            held=gate is not None,
        )
        history, told = self._figures()
        notes = (*self.notes, *told)
        machine.story += [StoryLine(time.monotonic(), "", note) for note in notes]
        security = Security(secrets.token_hex(32), self.settings.tls)
        addresses = address_settings(self.program, _setting(spark))
        with listening(
            _setting(spark),
            addresses,
            tls=self.settings.tls is not None,
            connect=spark.client.host if is_remote() else "",
        ) as (manager_at, host_at):
            store = self.objects.impatient()
            driver = ManagerDriver(
                manager=machine,
                store=store,
                at=manager_at,
                security=security,
                show=_show,
                history=history,
            )
            _check_channel(driver, manager_at, security)
            job = JobDescription(
                plan=self.plan,
                topology=self.topology,
                strategies=self.strategies,
                partitions=self.partitions,
                store=self.objects.location,
                manager=driver.url,
                host_at=host_at,
                addresses=addresses,
                security=security,
                host_settings=self.settings.host,
                emits=dict(emits or {}),
                console=_of_kind(self.program, "console:"),
                cut=self.cut,
                log_token=self.log_token,
                needed=self.program.needed,
            )
            look = None if gate is None else lambda: gate.look(machine, time.monotonic())
            return self._drive(
                spark=spark, driver=driver, job=job, watch=watch, stop=stop, look=look
            ), machine

    def _gate(self) -> ShadowGate | None:
        """Return what holds the sinks of an app until it was compared with the serial loop."""
        shadow = app_shadow(self.program, self.settings.shadow)
        if shadow is None:
            return None
        read = log_heads(
            plan=self.plan,
            topology=self.topology,
            partitions=self.partitions,
            store=self.objects,
            token=self.log_token,
        )
        is_finite = all(has_end(part) for parts in self.partitions.values() for part in parts)
        return ShadowGate(shadow, read, is_finite)

    @property
    def drawn(self) -> DrawnPlan:
        """The plan as onlookers draw it."""
        names = {name: [p.name for p in parts] for name, parts in self.partitions.items()}
        return draw_plan(self.plan, self.topology, self.ledger.strategies, names)

    def _figures(self) -> tuple[HistoryKeeper, Sequence[str]]:
        """Write the plan for onlookers, and go on with the history of the job's figures; return it,
        and what the story is to say of it."""
        drawn = self.drawn
        self.objects.put(PLAN, encode_record(PLAN, drawn))
        try:
            return HistoryKeeper(drawn, read_history(self.objects)), ()
        except SnapshotCorrupt as error:  # it is only for onlookers
            return HistoryKeeper(drawn), (f"the figures over time start over: {error}",)

    def _drive(
        self,
        spark: SparkSession,
        driver: ManagerDriver,
        job: JobDescription,
        watch: OnStatus | None,
        stop: Callable[[], bool] | None,
        look: Callable[[], None] | None,
    ) -> EndJob:
        search = self.loops

        def prepared() -> JobDescription:
            return job if search is None else replace(job, loops=search.code(driver.see))

        hosts = Hosts(spark, prepared, self.settings.hosts)

        def check() -> None:
            hosts.check()
            if look is not None:
                look()

        try:
            with signals_ask() as asked:
                hosts.start()
                ended = driver.run(
                    check,
                    watch or (lambda _: None),
                    lambda: asked() != 0 or (stop is not None and stop()),
                    hosts.why_absent,
                )
                if not driver.resigned:  # else hosts are told nothing, and would stay
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
            digests = write_outputs(
                store=self.objects,
                ledger=ledger,
                outputs=files,
                inputs=writers,
                directory=self.directory,
            )
        except SnapshotCorrupt:
            raise  # it says what is lost and what can be done
        except RunError as error:
            raise RunError(
                f"{error}; all rows are committed in the store, so fix it and run again with "
                "--resume, or read them with weir read"
            ) from error
        read = source_totals(self.plan, self.topology, placements)
        return run_report(self.directory, read, map(SinkTotal, files.values(), digests))


def make_live(
    program: Program,
    planned: PlannedProgram,
    partitions: Partitions,
    objects: ObjectStore,
    *,
    ledger: Ledger,
    directory: str | Path = ".",
    cut: int | None = None,
    how: LiveSettings | None = None,
) -> LiveRun:
    """Make a live run of a planned program over these partitions, with a store that is its own.
    What the program SETs for hosts overrides `how`."""
    settings = how or LiveSettings()
    check = settings.host.check or settings.check
    host = host_settings(program, replace(settings.host, check=check))
    topology = planned.topology(partitions)
    return LiveRun(
        program=program,
        directory=directory,
        plan=planned.stages,
        topology=topology,
        strategies=vertex_strategies(planned.stages, topology, default_strategy(program)),
        partitions=partitions,
        objects=objects,
        ledger=ledger,
        cut=cut,
        settings=replace(settings, host=host),
    )


def source_totals(
    plan: StagedPlan, topology: Topology, placements: Sequence[Placement]
) -> Iterator[SourceTotal]:
    """Count what each source has read, by its last report."""
    for placement in placements:
        spec, found = topology.vertices[placement.vertex], placement.figures
        if spec.kind == "source" and placement.report is not None:
            name = source_of(plan, spec).name
            yield SourceTotal(
                vertex=spec.id, source=name, events=found.events, late=found.late, bad=found.bad
            )


def _show(text: bytes) -> None:
    if sys.stdout is None:
        return  # stdout was closed from the start: nobody wants to see the rows
    if sys.stdout.isatty():  # JSON has escapes for some of what terminals obey, not for all
        text = printable(text.decode()).encode()
    sys.stdout.buffer.write(text)
    sys.stdout.flush()


def _of_kind(program: Program, path: str) -> dict[int, Output]:
    return {n: output for n, output in enumerate(program.outputs) if output.path == path}


def _guarded(name: str, emit: EmitRows) -> EmitRows:
    """Wrap a callback so that its errors end the job, and not one host after another."""

    def guarded(partition: int, seq: int, rows: Batch) -> None:
        try:
            emit(partition, seq, rows)
        except BaseException as error:  # the user's code may raise anything, SystemExit too
            raise RunError(
                f"the callback of {name} failed on {counted(len(rows), 'row')} from {seq} of "
                f"partition {partition} on: {describe(error)}"
            ) from error

    return guarded


def check_callbacks(program: Program, given: Collection[str]) -> None:
    """Check that there is a function for every output that wants one."""
    for output in _of_kind(program, "callback:").values():
        if output.name not in given:
            hint = f"weir.run_live(…, callbacks={{'{output.name}': function}}) in Python"
            raise PlanError(f"OUTPUT {output.name} TO 'callback:' has no function", hint=hint)


def _setting(spark: SparkSession) -> Setting:
    return lambda name, otherwise: spark.conf.get(name, otherwise) or otherwise


def _check_channel(driver: ManagerDriver, at: Endpoint, security: Security) -> None:
    """With TLS, check that the manager's server lets a client in: a host that is refused could not
    tell why."""
    if security.tls is None:
        return
    try:
        Client(driver.url, security).act("hello", b"")
    except ChannelErrors as error:
        driver.close()
        raise PlanError(
            f"the certificate is not accepted at {at.name or at.bind}: {error}",
            hint="it must name that address (subjectAltName) and be signed by the authority given",
        ) from None
