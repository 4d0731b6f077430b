"""The job manager: it places vertices on hosts, follows what is durable, and recovers vertices.

Rules
1. The manager gives no orders before its first record is durable. It stops, and from then on tells
   nobody anything, when another manager has taken over or it cannot write its record
   (`record_writer.py`), and when a host reports that it follows a later epoch.
2. When a host is lost, its instances are placed again at once, as new incarnations
   (`placement.py`).
3. A host that was not heard of for `silence` seconds is lost permanently, and so is one of two that
   do not reach each other (`host_registry.py`): if it comes back, it is ordered to start over, and
   what it reports of its vertices no longer counts. A job that has had no host at all for
   `host_limit` seconds ends, and keeps everything.
4. The manager deletes objects, and lets hosts forget rows, only when a durable record says that
   they are garbage.
5. The job is finished when every sink has committed its last row. It fails when a vertex fails, and
   then keeps everything.
6. Now and then the manager sweeps the store for objects that nothing refers to
   (`garbage_sweep.py`).
7. A host that is known to have died is lost at once. A vertex that kills its hosts at the same
   rows ends the job (`poison.py`); so do many deaths in no step, in short succession, if nothing
   is stored in between (`host_failures.py`).
8. A host that is at a long step gives signs of life, and is not lost. A step that takes longer than
   `step_limit`, if there is one, ends the job.
9. What a report says is taken in when the manager has all facts before it (`facts.py`); every
   answer says up to where it has, and has what the host does not know. The manager's work follows
   what changes: nothing looks at all vertices or streams for a report or as time passes.
10. The sinks of a job that begins `held` wait until they are released: nothing is committed before.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence

from weir.ingress.ingress_log import LOST_RECORD
from weir.job.commit_log import LOST, PUT_BACK
from weir.job.delays import Delays
from weir.job.garbage_sweep import Sweeper
from weir.job.host_failures import HostFailures
from weir.job.host_registry import HostRegistry, HostState
from weir.job.ledger import (
    Ledger,
    forget,
    learn_checkpoints,
    learn_log,
    learn_segments,
    restarts,
    without,
)
from weir.job.low_water import LowWater
from weir.job.messages import Orders, Preparing, Pulse, Report, VertexReport
from weir.job.placement import Placement, Placements, first_gap, gap_before, log_is_ahead
from weir.job.poison import Death
from weir.job.record_writer import TAKEN_OVER, RecordWriter
from weir.job.settings import ManagerSettings
from weir.job.signals import (
    Answer,
    EndJob,
    Get,
    HungUp,
    Listed,
    Loaded,
    ManagerCommand,
    ManagerSignal,
    Prepares,
    Pulsed,
    Refused,
    Reported,
    Stored,
    Unloaded,
    Unstored,
)
from weir.job.store_trouble import MANAGER, StoreTrouble
from weir.job.story import StoryLine
from weir.reliable.object_names import is_ephemeral
from weir.reliable.strategies import Strategy
from weir.runtime.topology import Topology


class Manager:
    """A machine that takes signals of hosts and of the store, and gives orders and requests."""

    def __init__(
        self,
        topology: Topology,
        strategies: Mapping[str, Strategy],
        ledger: Ledger,
        settings: ManagerSettings,
        now: float,
        *,
        name: str,
        titles: Mapping[str, str] | None = None,
        holds: Mapping[int, int] | None = None,
        held: bool = False,
    ) -> None:
        """`ledger` is the last record (a new one for a new job); no two managers of a job may
        ever have the same `name`. `titles` say what vertices do, for messages; `holds` is for
        `Delays`; `held` is that of rule 10."""
        self.topology, self.ledger, self.settings = topology, ledger, settings
        self._strategies = strategies
        ledger.watch()
        self._low_water = LowWater(topology, strategies, ledger)
        self._failures = HostFailures(ledger, titles or {}, settings.deaths)
        self._registry = HostRegistry(now)
        self.hosts: Mapping[str, HostState] = self._registry.hosts  # those that are there
        self._placements = Placements(topology, strategies, ledger)
        self.placements: Sequence[Placement] = self._placements.all  # writers before readers
        self._records = RecordWriter(
            ledger,
            settings,
            now,
            collect=self._low_water.collect,
            tell=lambda what, at: self._tell("", what, at, "manager"),
        )
        self._sweeper = Sweeper(settings.sweep_every, now)
        self._trouble = StoreTrouble(now)
        self.delays = Delays(topology, holds or {})  # for onlookers: how late sinks are
        ledger.epoch += 1
        ledger.manager = name
        ledger.incarnations = 0
        self._orders = 0  # the number of the last orders
        self._spoiled: set[str] = set()
        """Objects that could not be read; other instances of a vertex may still report them."""
        self.held = held  # whether sinks wait, by rule 10
        self._sink_done = False  # whether a sink is done that was not when that was looked at
        self._stop_asked: float | None = None  # when the user asked the job to stop
        self._ended: EndJob | None = None
        """How the job ends, once its last record is durable."""
        self._now = now  # the time of the last tick
        self._over = False  # whether the job has ended: hosts are told so, and nothing else happens
        self.resigned = False
        """Whether the manager has stopped, and tells nobody anything any more."""
        self.story: list[StoryLine] = []  # what has happened since the manager began
        self._out: list[ManagerCommand] = []  # commands that the driver has not been given yet

    @property
    def preparing(self) -> list[Preparing]:
        """The hosts that are not there yet, and get ready."""
        return [preparing for preparing, _ in self._registry.preparing.values()]

    def instances_on(self, session: str) -> list[Placement]:
        """List the instances that a host runs, writers before readers."""
        return self._placements.on(session)

    # --- signals -----------------------------------------------------------------------------

    def handle(self, signal: ManagerSignal, now: float) -> list[ManagerCommand]:
        """Take in what happened; return what is to be done."""
        match signal:
            case Reported(report):
                self._reported(report, now)
            case Pulsed(pulse):
                self._pulsed(pulse, now)
            case HungUp(session):
                self._registry.hang_up(session, now)
            case Prepares(preparing):
                if self._registry.see_preparing(preparing, now):
                    self._tell("", f"loops are compiled on {preparing.machine}", now)
            case Stored(ref):
                self._trouble.record_written(now)
                self._recorded(self._records.stored(ref.key, now), now)
            case Refused(key):
                # It is another manager's, or our own: we may not have heard that we wrote it.
                self._out.append(Get(key))
            case Loaded(key, body):
                self._recorded(self._records.loaded(key, body, now), now)
                self._out += self._sweeper.loaded(key, body)
            case Listed(keys):
                self._listed(keys)
            case Unstored(key, why, lasts) | Unloaded(key, why, lasts):
                ending = self._ended.error if self._ended is not None else None
                if self._records.failed(key, why, now, ending, lasts=lasts):
                    self._trouble.hear(MANAGER, why, lasts, now)
                self._recorded([], now)
        return self._drained()

    def tick(self, now: float) -> list[ManagerCommand]:
        """Take in that time has passed; return what is to be done."""
        if not self._over:
            self._now = now
            self._registry.allow_for_sleep(now, self.settings.silence)
            lost = self._registry.silent(now, self.settings.silence)
            lost |= self._trouble.alone(len(self.hosts), self.settings.apart_limit)
            for session, why in lost.items():
                self.lose(session, now, why)
            if parted := self._registry.parted(now, self.settings.parted):
                self.lose(parted[0], now, parted[1])
            for line in self._trouble.news(now):
                self._tell("", line, now, "trouble")
            self._registry.forget_preparing(now, self.settings.silence)
            self._place(now)
            self._check_stop(now)
            self._check_hosts(now)
            hurry = self._ended is not None or self.ledger.finished
            self._out += self._records.write(now, hurry=hurry)
            if self._records.established:
                self._out += self._sweeper.sweep(now)
        return self._drained()

    def stop(self, now: float) -> None:
        """Take a last checkpoint of everything, then end."""
        if self._stop_asked is None:
            self._stop_asked = now
            self._tell("", "asked to stop", now, "end")

    def release(self, why: str, now: float) -> None:
        """Let the sinks go on, by rule 9; the story says why."""
        self.held = False
        self._tell("", why, now, "manager")

    def _drained(self) -> list[ManagerCommand]:
        out, self._out = self._out, []
        return out

    def _tell(self, vertex: str, what: str, now: float, kind: str = "") -> None:
        self.story.append(StoryLine(now, vertex, what, kind))

    # --- hosts -------------------------------------------------------------------------------

    def _reported(self, report: Report, now: float) -> None:
        if self.resigned:
            return  # its hosts may follow another manager now
        if self.ledger.finished:
            self._count(report)
        if self._over or report.session in self._registry.lost:
            self._out.append(Answer(report.session, self._stop_order(report.session)))
            return
        if report.epoch > self.ledger.epoch:
            self._resign(TAKEN_OVER)
            return
        if self._registry.is_overtaken(report):
            return
        if report.session not in self.hosts:
            line = f"host {report.session} came, slot {report.slot}, pid {report.pid}"
            self._tell("", line, now, "host")
        if self._registry.hear(report, now):
            self._trouble.hear(report.session, report.trouble, report.trouble_lasts, now)
            # Once the job has finished, reports say nothing that matters but for the totals.
            if not self.ledger.finished:
                self._take_in(report, now)
        self._check_finished(now)
        self._place(now)
        if self._records.established and report.session not in self._registry.lost:
            self._out.append(Answer(report.session, self._orders_for(report)))

    def _pulsed(self, pulse: Pulse, now: float) -> None:
        if pulse.death is None:
            self._registry.feel(pulse, now)
        elif not (self._over or self.resigned or self.ledger.finished):
            self._note_death(pulse.death, now)

    def _take_in(self, report: Report, now: float) -> None:
        """Learn what a report says of hosts that died and of its instances."""
        for death in report.deaths:
            self._note_death(death, now)
        host = self.hosts.get(report.session)
        if host is None or report.since > host.taken:
            return  # it is lost, or something before has not come: the answer says so
        host.taken = max(host.taken, report.upto)
        for vertex_report in report.vertices:
            # Another instance of the host may have set it back just now.
            placement = self._placements.running(report.session, vertex_report)
            if placement is not None:
                self._learn(placement, vertex_report, now, whole=report.since == 0)
                if report.clock and vertex_report.figures is not None:
                    marks = vertex_report.figures.marks
                    self.delays.take(vertex_report.vertex, marks, now - report.clock)

    def _count(self, report: Report) -> None:
        """Learn how much instances have read in the end: sinks may be done before the host of a
        source has told of its last rows."""
        for latest in report.vertices:
            placement = self._placements.running(report.session, latest)
            if placement is None or latest.figures is None:
                continue
            if placement.report is None or latest.figures.events >= placement.figures.events:
                placement.learn(latest)

    def lose(self, session: str, now: float, why: str) -> None:
        """Count a host as lost, and place its instances again."""
        if not self._registry.lose(session):
            return
        self._trouble.forget(session)
        self._tell("", f"host {session} lost: {why}", now, "lost")
        fallen = self._placements.on(session)
        self._placements.lose(session)
        for placement in fallen:
            self._tell(placement.vertex, f"lost with host {session}", now, "lost")
        self._unplace(fallen, now)
        self._place(now)

    def _unplace(self, fallen: Sequence[Placement], now: float) -> None:
        """Take instances from their hosts, and those that this sets back."""
        for vertex, what in self._placements.unplace(fallen, now):
            self._tell(vertex, what, now, "lost")

    def _note_death(self, death: Death, now: float) -> None:
        """Take in that a host has died, and in which step if that is known; see rule 7."""
        self.lose(death.session, now, death.cause)
        if not self._failures.is_news(death):
            return
        step = death.step
        if step is None or step.vertex not in self.topology.vertices:
            self._end(self._failures.note_idle(death, now))
            return
        self._records.changed = True
        self._tell(step.vertex, f"its host died {step.rows}: {death.cause}", now, "lost")
        self._end(self._failures.blame(step.vertex, death))

    # --- placing -----------------------------------------------------------------------------

    def _place(self, now: float) -> None:
        """Give the instances that no host runs to the hosts that are there."""
        ends = self._ended is not None or self.ledger.finished
        if not self._records.established or not self.hosts or ends:
            return
        assert self._registry.first_came_at is not None
        waits = self.settings.host_limit if self.preparing else self.settings.patience
        waited = now - self._registry.first_came_at >= waits
        if len(self.hosts) < self.settings.hosts and not waited and self.ledger.incarnations == 0:
            return
        if not (missing := self._placements.missing):
            return
        restart_of = self._low_water.restarts
        for placement in missing:
            vertex, restart = placement.vertex, restart_of.checkpoint[placement.vertex]
            gap = gap_before(vertex, restart, self.topology, self.ledger)
            if gap:
                unread = f" ({', '.join(sorted(self._spoiled))} cannot be)" if self._spoiled else ""
                self._end(f"{gap}{unread}; start the job again with an empty store")
            elif self._placements.place(placement, restart, self.hosts):
                where = f"checkpoint {restart.number}" if restart is not None else "the beginning"
                host = f"placed on {placement.session}, from {where}"
                self._tell(vertex, f"incarnation {placement.incarnation} {host}", now, "placed")

    def _orders_for(self, report: Report) -> Orders:
        self._orders += 1
        host = self.hosts[report.session]
        orders = Orders(
            self.ledger.epoch,
            self._orders,
            report.session,
            checkpoint=0 if self._stop_asked is None else 1,
            record=self._records.number,
            held=self.held,
            taken=host.taken,
            heard=host.report.number,
            manager=self.ledger.manager,
        )
        # What it says to have taken is of the manager whose orders it has heard last.
        heard = host.report
        is_ours = (heard.epoch, heard.manager) == (self.ledger.epoch, self.ledger.manager)
        since = heard.taken if is_ours else 0
        return self._placements.orders(orders, self.hosts, self._records.collected, since)

    def _stop_order(self, session: str) -> Orders:
        self._orders += 1
        return Orders(self.ledger.epoch, self._orders, session, stop=True, over=self._over)

    # --- what vertices say -------------------------------------------------------------------

    def _learn(
        self, placement: Placement, report: VertexReport, now: float, *, whole: bool
    ) -> None:
        before = placement.report
        self._placements.learn(placement, report, whole=whole)
        if report.figures is not None:
            placement.rate_until(report.figures.events, now)
        vertex = placement.vertex
        if any(not is_ephemeral(key) for key in report.corrupt):
            # Committed rows cannot be made again: whoever reads them may be behind.
            self._end(f"vertex {vertex}: {report.error}: {LOST}")
        elif report.corrupt:
            self._go_back(placement, report, now)
        elif report.status == "failed":
            self._end(f"vertex {vertex}: {report.error}")
        elif report.status == "behind":
            self._begin_again(placement, report, now)
        else:
            if placement.fallen_at is not None and report.status in ("running", "done"):
                took = now - placement.fallen_at
                line = f"runs again, {took:.3f} s after its loss was found"
                self._tell(vertex, line, now, "recovered")
                placement.fallen_at = None
            self._learn_durable(placement, report, now)
            if placement.wait_until(report.waits, now):
                self._tell(vertex, f"waits: {report.waits}", now, "waits")
            if report.status == "done" and (before is None or before.status != "done"):
                self._sink_done |= self.topology.vertices[vertex].kind == "sink"
                self._tell(vertex, "done", now, "done")

    def _learn_durable(self, placement: Placement, report: VertexReport, now: float) -> None:
        vertex, records = report.vertex, self._records
        # Other instances of the vertex may still report what cannot be read.
        checkpoints = [c for c in report.checkpoints if c.key not in self._spoiled]
        last = self.ledger.checkpoints.get(vertex, ())[-1:]
        if learn_checkpoints(self.ledger, vertex, checkpoints):
            records.changed = True
            self._failures.clear(vertex, last[0].inputs if last else None)
            kind = "commit" if self.topology.vertices[vertex].kind == "sink" else "checkpoint"
            self._tell(vertex, f"checkpoint {checkpoints[-1].number}", now, kind)
        for stream in report.segments:
            self._learn_segments(placement, stream)
        records.changed |= learn_log(self.ledger, vertex, report.log_end)

    def _learn_segments(self, placement: Placement, stream: str) -> None:
        """Add the segments that an instance has reported to those of the stream; some may have
        waited for others, or for what is before them to be collected."""
        segments = placement.segments.get(stream, [])
        durable = self.ledger.segments.get(stream, ())
        if durable:
            segments = segments[bisect_right(segments, durable[-1].end, key=lambda s: s.end) :]
        if self._spoiled:
            segments = [s for s in segments if s.key not in self._spoiled]
        if learn_segments(self.ledger, stream, segments):
            self._records.changed = True
            self._placements.grown(placement.vertex, stream)

    def _retry(self, stream: str) -> None:
        """Add segments that had waited for what is before them to be collected."""
        if stream in self.topology.streams:
            for placement in self._placements.copies(self.topology.streams[stream].writer):
                if placement.segments.get(stream):
                    self._learn_segments(placement, stream)

    def _begin_again(self, placement: Placement, report: VertexReport, now: float) -> None:
        """Place an instance again that needs rows or records that are gone: another instance of its
        vertex is ahead of it. If the store has lost them, the job ends."""
        if report.error and not log_is_ahead(placement, self.ledger):
            self._end(f"vertex {report.vertex}: {report.error}: {LOST_RECORD}")
            return
        self._tell(report.vertex, "fell behind its other copy, starts again", now, "lost")
        self._unplace([placement], now)

    def _go_back(self, placement: Placement, report: VertexReport, now: float) -> None:
        """Let a vertex do without objects that cannot be read, if it can restart without them. If
        not, the job ends, and its record still refers to them: whoever puts them back can resume
        the job."""
        vertex = placement.vertex
        left = without(self.ledger, report.corrupt)
        again = restarts(self.topology, self._strategies, left)
        # Others that restart do without them too.
        others = (p.vertex for p in self._placements.missing)
        restarting = (vertex, *others, *self._placements.set_back_by([vertex]))
        if gap := first_gap(restarting, again, self.topology, left):
            self._end(f"{report.error}, and without it {gap}: {PUT_BACK}")
            return
        forget(self.ledger, report.corrupt)
        self._spoiled.update(report.corrupt)
        self._records.changed = True
        for key in report.corrupt:
            self._tell(vertex, f"{key} cannot be read; going back", now, "trouble")
        self._unplace([placement], now)

    # --- checks ------------------------------------------------------------------------------

    def _check_finished(self, now: float) -> None:
        if self._sink_done and not self.ledger.finished:
            self._sink_done = False
            copies = (self._placements.copies(sink.id) for sink in self.topology.sinks)
            if all(any(p.report and p.report.status == "done" for p in c) for c in copies):
                self.ledger.finished = True
                self._records.changed = True
                self._tell("", "finished", now, "end")

    def _check_stop(self, now: float) -> None:
        if self._stop_asked is None or self._ended is not None:
            return
        waited = now - self._stop_asked
        settled = len(self._placements.kept) == len(self.topology.order)
        if settled or waited > self.settings.stop_limit:
            self._ended = EndJob(stopped=True)
            self._records.changed = True

    def _check_hosts(self, now: float) -> None:
        self._end(self._trouble.why_job_ends(self.settings.trouble_limit))
        if self.settings.step_limit is not None:
            self._end(self._failures.overdue(self.hosts.values(), self.settings.step_limit))
        self._end(self._registry.absence(now, self.settings.host_limit))

    # --- the store ---------------------------------------------------------------------------

    def _recorded(self, commands: Sequence[ManagerCommand], now: float) -> None:
        """Pass on what the record writer asks for; end the job once its last record is durable."""
        self._out += commands
        if risen := self._records.taken_risen():
            restart_of = self._low_water.restarts.checkpoint
            for stream, mark in risen.items():
                self._placements.collected(stream, mark, restart_of)
                self._retry(stream)
        if self._over:
            return
        if self._records.stops:
            self._resign(self._records.stops)
        elif self._records.settled and self.ledger.finished:
            self._finish(EndJob())
        elif self._records.settled and self._ended is not None:
            self._finish(self._ended)
        self._place(now)

    def _listed(self, keys: tuple[str, ...]) -> None:
        records = self._records
        if not self._over and records.established:
            self._out += self._sweeper.listed(
                keys=keys,
                ledger=self.ledger,
                named=records.named,
                collected=records.collected,
                alive=self._placements.alive,
                unneeded=records.unneeded,
            )

    # --- the end -----------------------------------------------------------------------------

    def _end(self, error: str | None) -> None:
        """End the job with this error, if it is one; what is durable stays. The job is over
        once a last record is written: a manager that cannot write one may have been replaced, and
        must not say how the job ended."""
        if error and (self._ended is None or not self._ended.error):
            self._ended = EndJob(error)
            self._records.changed = True
            self._tell("", f"ends: {error}", self._now, "end")

    def _resign(self, error: str) -> None:
        """Stop at once, without a last record; see rule 1."""
        self.resigned = True
        self._tell("", f"stops: {error}", self._now, "end")
        self._finish(EndJob(error))

    def _finish(self, ended: EndJob) -> None:
        if not self._over:
            if ended.stopped:
                self._tell("", "stopped", self._now, "end")
            self._over, self._ended = True, ended
            self._out.append(ended)

    def trouble(self, now: float) -> str | None:
        """Describe what keeps the manager or hosts from using the store; None: nothing does."""
        return self._trouble.text(now)

    def only_busy(self, now: float, seconds: float) -> bool:
        """Say whether all hosts that are still heard of have been at one step for so many seconds:
        they hear of nothing before it ends."""
        return self._registry.only_busy(now, self.settings.silence, seconds)

    @property
    def established(self) -> bool:
        """Whether the manager's first record is durable."""
        return self._records.established
