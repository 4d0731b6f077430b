"""The job manager: places vertices, follows what is durable, recovers each vertex on its own.

Rules
1. Nothing is ordered before the manager's first record is durable. Records are numbered and made
   once: who finds the next number taken is no longer the manager, and stops (fencing). So does
   one that hears of a host that follows a later epoch.
2. Every vertex has as many instances as its strategy says, each on a host of its own; a copy for
   which there is no host waits. An instance whose host is lost is replaced by a new incarnation,
   at once, on the host with the least to do; no other instance is touched.
3. A host that was not heard of for `silence` seconds is lost for good: if it comes back it is told
   to begin anew, and what it says of its vertices counts no longer. A job that has had no host
   at all for `host_limit` seconds ends, and keeps everything.
4. What is deleted in the store or forgotten by hosts is what a durable record says is garbage.
5. A manager that cannot write its record for `trouble_limit` seconds stops, and tells nobody
   anything any more: it may not be the manager.
6. The job is finished when every sink has committed its last row; it fails when a vertex does,
   and then keeps everything.
7. Now and then the store is listed and what is nobody's deleted (`sweeping.py`).
8. A host that is known to have died is lost at once. A vertex that kills its hosts at the same
   rows ends the job (`poison.py`); so do many deaths in no step, in short succession, if nothing
   is stored in between.
9. A host at a long step gives signs of life, and is not lost. A step that takes longer than
   `step_limit`, if there is one, ends the job.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass, field

from weir.errors import SnapshotCorrupt
from weir.job.commits import LOST, PUT_BACK
from weir.job.ledger import (
    Ledger,
    Restarts,
    collect,
    decode_ledger,
    forget,
    learn_checkpoints,
    learn_log,
    learn_segments,
    restarts,
)
from weir.job.messages import Orders, Place, Report, VertexOrder, VertexReport
from weir.job.mourning import Mourning
from weir.job.placing import HostState, Placement, gap_before, host_for, log_is_ahead
from weir.job.poison import Death, pieces_for
from weir.job.records import encode_hint
from weir.job.signals import (
    Answer,
    Delete,
    Ended,
    Get,
    List,
    Listed,
    Loaded,
    ManagerCommand,
    ManagerSignal,
    Pulsed,
    Put,
    Refused,
    Reported,
    Stored,
    Unloaded,
    Unstored,
)
from weir.job.story import StoryLine
from weir.job.sweeping import (
    EPOCH_BITS,
    collected_logs,
    doubtful_commits,
    losing_parts,
    old_records,
    unnamed,
)
from weir.reliable.keys import (
    EPHEMERAL,
    LATEST_RECORD,
    is_ephemeral,
    is_known,
    number_of,
    record_key,
)
from weir.runtime.strategies import Strategy
from weir.runtime.topology import Topology

TAKEN_OVER = "another job manager has taken over this store; this one stops"


@dataclass(frozen=True, slots=True)
class ManagerSettings:
    """Times in seconds."""

    hosts: int = 1
    """So many are waited for before vertices are placed, for at most `patience` after the first:
    what is placed is not moved when more come."""
    patience: float = 10.0
    silence: float = 1.5
    host_limit: float = 120.0
    record_every: float = 0.2
    trouble_limit: float = 30.0
    stop_limit: float = 10.0
    sweep_every: float = 60.0
    deaths: int = 3
    """So many at the same rows are poison."""
    step_limit: float | None = None


@dataclass(slots=True)
class _Record:
    """A record on its way, and what is garbage once it is durable."""

    key: str
    garbage: tuple[str, ...]
    collected: Mapping[str, int]
    names: frozenset[str]
    put: Put = field(repr=False)
    again_at: float | None = None
    failing_since: float | None = None


class Manager:
    """See the module's rules."""

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
    ) -> None:
        """`ledger` is the last record (a new one for a new job); no two managers of a job may
        ever have the same `name`. `titles` say what vertices do, for messages."""
        self._mourning = Mourning(ledger, titles or {}, settings.deaths)
        self.topology, self.ledger, self.settings = topology, ledger, settings
        self._strategies = strategies
        ledger.epoch += 1
        ledger.manager = name
        ledger.incarnations = 0
        self.hosts: dict[str, HostState] = {}
        self._lost: set[str] = set()
        self.placements = [
            Placement(spec.id, copy)
            for spec in topology.order
            for copy in range(strategies[spec.id].copies)
        ]
        self._copies: dict[str, list[Placement]] = {}
        for placement in self.placements:
            self._copies.setdefault(placement.vertex, []).append(placement)
        self._orders = 0
        self._ticked_at = now
        self._first_came_at: float | None = None
        self._alone_since = now
        self._recorded_at = self._swept_at = now
        self._dirty = True
        self._established = False
        self._writing: _Record | None = None
        self._collected: Mapping[str, int] = dict(ledger.collected)
        self._durable_names = ledger.names
        self._durable_number = ledger.number
        self._spoiled: set[str] = set()
        self._parts: tuple[str, ...] = ()
        self._stop_asked: float | None = None
        self._ended: Ended | None = None
        self._over = self._is_nobody = False
        self.story: list[StoryLine] = []
        self._out: list[ManagerCommand] = []

    # --- signals -----------------------------------------------------------------------------

    def handle(self, signal: ManagerSignal, now: float) -> list[ManagerCommand]:
        match signal:
            case Reported(report):
                self._reported(report, now)
            case Pulsed(pulse):
                host = self.hosts.get(pulse.session)
                if host is not None:
                    host.heard, host.step = now, pulse.step
            case Stored(ref):
                self._stored(ref.key, now)
            case Refused(key):
                # Somebody's, or one of ours whose success was never heard of.
                self._out.append(Get(key))
            case Loaded(key, body):
                self._settle(key, body, now)
                if body is not None and key.startswith("commits/"):
                    self._delete(losing_parts(self._parts, key, body))
            case Listed(keys):
                self._listed(keys)
            case Unstored(key, why) | Unloaded(key, why):
                self._record_failed(key, why, now)
        return self._drained()

    def tick(self, now: float) -> list[ManagerCommand]:
        """Time has passed."""
        if not self._over:
            self._allow_for_sleep(now)
            self._find_lost(now)
            self._place(now)
            self._check_stop(now)
            self._check_trouble(now)
            self._check_steps()
            self._check_alone(now)
            self._record(now)
            self._sweep(now)
        return self._drained()

    def stop(self, now: float) -> None:
        """Take a last checkpoint of everything, then end."""
        if self._stop_asked is None:
            self._stop_asked = now
            self._tell("", "asked to stop", now)

    def _drained(self) -> list[ManagerCommand]:
        out, self._out = self._out, []
        return out

    def _tell(self, vertex: str, what: str, now: float) -> None:
        self.story.append(StoryLine(now, vertex, what))

    # --- hosts -------------------------------------------------------------------------------

    def _reported(self, report: Report, now: float) -> None:
        if self._over and self._is_nobody:
            return  # its hosts may be somebody else's now
        if self._over or report.session in self._lost:
            self._out.append(Answer(report.session, self._stop_order(report.session)))
            return
        if report.epoch > self.ledger.epoch:
            self._resign(TAKEN_OVER)
            return
        known = self.hosts.get(report.session)
        if known is not None and report.number < known.report.number:
            return
        is_new = known is None or report.number > known.report.number
        if known is None:
            known = self.hosts[report.session] = HostState(report.session, report, now)
            self._first_came_at = now if self._first_came_at is None else self._first_came_at
            self._tell("", f"host {report.session} came, slot {report.slot}, pid {report.pid}", now)
        known.report, known.heard, known.step = report, now, report.step
        for death in report.deaths if is_new and not self.ledger.finished else ():
            self._mourn(death, now)
        if not report.trouble:
            known.trouble_since = None
        elif known.trouble_since is None:
            known.trouble_since = now
        # The same report again is a sign of life of a host that is busy.
        # Of a job that has finished nothing more is to be known.
        new = is_new and not self.ledger.finished
        reports = {r.vertex: r for r in report.vertices} if new else {}
        for placement in self.placements:
            if placement.session != report.session:
                continue
            found = reports.get(placement.vertex)
            if found is not None and found.incarnation == placement.incarnation:
                self._learn(placement, found, now)
        self._check_finished(now)
        self._place(now)
        if self._established and report.session not in self._lost:
            self._out.append(Answer(report.session, self._orders_for(report.session)))

    def _stop_order(self, session: str) -> Orders:
        self._orders += 1
        return Orders(self.ledger.epoch, self._orders, session, stop=True, over=self._over)

    def _allow_for_sleep(self, now: float) -> None:
        """A manager that stood still itself has no reason to think that all hosts did."""
        slept = now - self._ticked_at
        self._ticked_at = now
        if slept > self.settings.silence / 2:
            self._alone_since += slept
            for host in self.hosts.values():
                host.heard = min(host.heard + slept, now)

    def _find_lost(self, now: float) -> None:
        for session, host in list(self.hosts.items()):
            if now - host.heard > self.settings.silence:
                self.lose(session, now, "not heard of")

    def lose(self, session: str, now: float, why: str) -> None:
        """A host is gone; its vertices are placed anew."""
        if self.hosts.pop(session, None) is None:
            return
        self._lost.add(session)
        self._tell("", f"host {session} lost: {why}", now)
        for placement in self.placements:
            if placement.session == session:
                self._tell(placement.vertex, f"lost with host {session}", now)
                self._unplace(placement, now)
        self._place(now)

    def _unplace(self, placement: Placement, now: float) -> None:
        placement.session, placement.report = None, None
        placement.fallen_at = now
        counts = self.ledger.recoveries
        counts[placement.vertex] = counts.get(placement.vertex, 0) + 1

    def _mourn(self, death: Death, now: float) -> None:
        """A host is known to have died, and maybe of what; see rule 8."""
        self.lose(death.session, now, death.cause)
        if not self._mourning.is_news(death):
            return
        step = death.step
        if step is None or step.vertex not in self.topology.vertices:
            self._end_if(self._mourning.note_idle(death, now))
            return
        self._dirty = True
        self._tell(step.vertex, f"its host died {step.rows}: {death.cause}", now)
        self._end_if(self._mourning.blame(step.vertex, death))

    # --- placing -----------------------------------------------------------------------------

    def _place(self, now: float) -> None:
        ends = self._ended is not None or self.ledger.finished
        if not self._established or not self.hosts or ends:
            return
        assert self._first_came_at is not None
        waited = now - self._first_came_at >= self.settings.patience
        if len(self.hosts) < self.settings.hosts and not waited and self.ledger.incarnations == 0:
            return
        missing = [p for p in self.placements if p.session is None]
        if not missing:
            return
        found = restarts(self.topology, self.ledger)
        load = Counter(p.session for p in self.placements)
        for placement in missing:
            self._place_one(placement, found, load, now)

    def _place_one(
        self, placement: Placement, found: Restarts, load: Counter[str | None], now: float
    ) -> None:
        restart = found.checkpoint[placement.vertex]
        gap = gap_before(placement.vertex, restart, self.topology, self.ledger)
        if gap:
            self._end(f"{gap}; start the job again with an empty store")
            return
        session = host_for(self._copies[placement.vertex], load, self.hosts)
        if session is None:
            return
        load[session] += 1
        placement.session = session
        self.ledger.incarnations += 1
        placement.incarnation = (self.ledger.epoch << EPOCH_BITS) | self.ledger.incarnations
        placement.restart = restart
        where = f"checkpoint {restart.number}" if restart is not None else "the beginning"
        self._tell(
            placement.vertex,
            f"incarnation {placement.incarnation} placed on {placement.session}, from {where}",
            now,
        )

    def _orders_for(self, session: str) -> Orders:
        self._orders += 1
        mine = [p for p in self.placements if p.session == session]
        return Orders(
            self.ledger.epoch,
            self._orders,
            session,
            tuple(self._order(p) for p in mine),
            checkpoint=0 if self._stop_asked is None else 1,
            record=self._durable_number,
        )

    def _order(self, placement: Placement) -> VertexOrder:
        spec = self.topology.vertices[placement.vertex]
        copies = [p for p in self._copies[placement.vertex] if p.session]
        return VertexOrder(
            placement.vertex,
            placement.incarnation,
            placement.restart,
            writes_log=placement is copies[0],
            takes_checkpoints=placement is copies[-1],
            segments={s: self.ledger.segments.get(s, ()) for s in spec.outputs},
            collect={s: self._collected.get(s, 0) for s in spec.outputs},
            inputs={s: self._places(s) for s in spec.inputs},
            floors={s: self._collected.get(s, 0) for s in spec.inputs},
            log_end=self.ledger.logs.get(placement.vertex),
            pieces=pieces_for(self.ledger.suspects.get(placement.vertex, ())),
        )

    def _places(self, stream: str) -> tuple[Place, ...]:
        return tuple(
            Place(p.session, self.hosts[p.session].report.address, p.incarnation)
            for p in self._copies[self.topology.streams[stream].writer]
            if p.session is not None and p.session in self.hosts
        )

    # --- what vertices say -------------------------------------------------------------------

    def _learn(self, placement: Placement, found: VertexReport, now: float) -> None:
        before, placement.report = placement.report, found
        placement.rate_until(found.events, now)
        vertex = placement.vertex
        if any(not is_ephemeral(key) for key in found.corrupt):
            # Committed rows cannot be made again: whoever reads them may be behind.
            self._end(f"vertex {vertex}: {found.error}: {LOST}")
            return
        if found.corrupt:
            self._go_back(placement, found, now)
            return
        if found.status == "failed":
            self._end(f"vertex {vertex}: {found.error}")
            return
        if found.status == "behind":
            if found.error and not log_is_ahead(placement, self.ledger):
                self._end(
                    f"vertex {vertex}: {found.error}; nothing else is lost, but what stood "
                    "there cannot be had again: start the job again with an empty store"
                )
                return
            self._tell(vertex, "fell behind its other copy, starts again", now)
            self._unplace(placement, now)
            return
        if placement.fallen_at is not None and found.status in ("running", "done"):
            took = now - placement.fallen_at
            self._tell(vertex, f"runs again, {took:.3f} s after its loss was found", now)
            placement.fallen_at = None
        # Other copies may still speak of what cannot be read.
        checkpoints = [c for c in found.checkpoints if c.key not in self._spoiled]
        last = self.ledger.checkpoints.get(vertex, ())[-1:]
        if learn_checkpoints(self.ledger, vertex, checkpoints):
            self._dirty = True
            self._mourning.clear(vertex, last[0].inputs if last else None)
            self._tell(vertex, f"checkpoint {checkpoints[-1].number}", now)
        for stream, segments in found.segments.items():
            readable = [s for s in segments if s.key not in self._spoiled]
            self._dirty |= learn_segments(self.ledger, stream, readable)
        self._dirty |= learn_log(self.ledger, vertex, found.log_end)
        if found.status == "done" and (before is None or before.status != "done"):
            self._tell(vertex, "done", now)

    def _go_back(self, placement: Placement, found: VertexReport, now: float) -> None:
        """Objects cannot be read: the vertex does without them if it can; if not, the record goes
        on referring to them, so that who puts them back can resume the job."""
        vertex = placement.vertex
        without = copy(self.ledger)
        without.checkpoints, without.segments = dict(without.checkpoints), dict(without.segments)
        forget(without, found.corrupt)
        restart = restarts(self.topology, without).checkpoint[vertex]
        gap = gap_before(vertex, restart, self.topology, without)
        if gap:
            self._end(f"{found.error}, and without it {gap}: {PUT_BACK}")
            return
        forget(self.ledger, found.corrupt)
        self._spoiled.update(found.corrupt)
        self._dirty = True
        for key in found.corrupt:
            self._tell(vertex, f"{key} cannot be read; going back", now)
        self._unplace(placement, now)

    def _check_finished(self, now: float) -> None:
        sinks = {spec.id for spec in self.topology.sinks}
        done = {
            p.vertex for p in self.placements if p.report is not None and p.report.status == "done"
        }
        if sinks <= done and not self.ledger.finished:
            self.ledger.finished = True
            self._dirty = True
            self._tell("", "finished", now)

    def _check_stop(self, now: float) -> None:
        if self._stop_asked is None or self._ended is not None:
            return
        waited = now - self._stop_asked
        kept = {p.vertex for p in self.placements if p.report is not None and p.report.kept}
        settled = len(kept) == len(self.topology.order)
        if settled or waited > self.settings.stop_limit:
            self._ended = Ended(stopped=True)
            self._dirty = True

    def _check_trouble(self, now: float) -> None:
        for host in self.hosts.values():
            since = host.trouble_since
            if since is not None and now - since > self.settings.trouble_limit:
                self._end(
                    f"host {host.session} cannot go on: {host.report.trouble}; everything is "
                    "kept, so mend it and run again with --resume"
                )

    def _check_steps(self) -> None:
        if self.settings.step_limit is not None:
            self._end_if(self._mourning.overdue(self.hosts.values(), self.settings.step_limit))

    def _check_alone(self, now: float) -> None:
        if self.hosts:
            self._alone_since = now
        elif now - self._alone_since > self.settings.host_limit:
            self._end(
                f"no host has come for {self.settings.host_limit:.0f} s. On Spark a host is a "
                "task, and needs a free slot for as long as the job lives: ask for fewer --hosts, "
                "or give it more cores; everything is kept, so mend it and run again with --resume"
            )

    # --- the record --------------------------------------------------------------------------

    def _record(self, now: float) -> None:
        writing = self._writing
        if writing is not None:
            if writing.again_at is not None and now >= writing.again_at:
                writing.again_at = None
                self._out.append(writing.put)
            return
        hurry = self._ended is not None or self.ledger.finished
        waited = now - self._recorded_at >= self.settings.record_every
        due = self._dirty and (waited or hurry)
        if self._established and not due:
            return
        self._dirty = False
        self._recorded_at = now
        self._write_record(collect(self.topology, self.ledger))

    def _write_record(self, garbage: tuple[str, ...]) -> None:
        self.ledger.number += 1
        key = record_key(self.ledger.number)
        body = self.ledger.encode()
        put = Put(key, lambda: body, new=True)
        collected, names = dict(self.ledger.collected), self.ledger.names
        self._writing = _Record(key, garbage, collected, names, put)
        self._out.append(put)

    def _stored(self, key: str, now: float) -> None:
        written = self._writing
        if written is None or key != written.key:
            return
        self._writing = None
        if not self._established:
            self._established = True
            self._tell("", f"manager of epoch {self.ledger.epoch}", now)
        self._collected, self._durable_names = written.collected, written.names
        number = self._durable_number = number_of(key)
        self._out.append(Put(LATEST_RECORD, lambda: encode_hint(number)))
        self._delete(written.garbage)
        if self.ledger.finished and not self._dirty:
            self._finish(Ended())
        elif self._ended is not None and not self._dirty:
            self._finish(self._ended)
        self._place(now)

    def _settle(self, key: str, body: bytes | None, now: float) -> None:
        """A record of this number was there already: is it this one?"""
        written = self._writing
        if written is None or key != written.key:
            return
        if body == written.put.encode():
            self._stored(key, now)
        elif body is None:
            self._out.append(written.put)  # it was lost since
        elif _is_record(key, body):
            self._resign(TAKEN_OVER)
        else:
            self._tell("", f"{key} is in the way and is no record", now)
            self._write_record(written.garbage)

    def _record_failed(self, key: str, why: str, now: float) -> None:
        """What is not heard of a record is written again, or read again, which comes to the same.
        Anything else that cannot be read is for the next sweep."""
        writing = self._writing
        if writing is None or key != writing.key:
            return
        writing.again_at = now + self.settings.record_every
        if writing.failing_since is None:
            writing.failing_since = now
            self._tell("", f"the record could not be written: {why}", now)
        elif self._ended is not None and self._ended.error:
            # It ends anyway, and waited with that for as long as it may.
            self._resign(self._ended.error)
        elif now - writing.failing_since > self.settings.trouble_limit:
            self._resign(
                f"the job manager cannot go on: {why}; everything that is durable is kept, so "
                "mend it and run again with --resume"
            )

    # --- sweeping ----------------------------------------------------------------------------

    def _sweep(self, now: float) -> None:
        if self._established and now - self._swept_at >= self.settings.sweep_every:
            self._swept_at = now
            self._out += [List(prefix) for prefix in (*EPHEMERAL, "parts/", "records/", "ingress/")]

    def _listed(self, keys: tuple[str, ...]) -> None:
        if self._over or not self._established:
            return
        self._delete(unnamed(keys, self._named, self._alive, self.ledger.epoch))
        self._delete(old_records(keys, self.ledger.number))
        self._delete(collected_logs(keys, self._collected))
        parts = tuple(key for key in keys if key.startswith("parts/") and is_known(key))
        if parts:
            last = {v: c[-1].number for v, c in self.ledger.checkpoints.items() if c}
            self._parts = parts
            self._out += [Get(key) for key in doubtful_commits(parts, last)]

    @property
    def _named(self) -> frozenset[str]:
        """What the last durable record relies on, and what the next one will."""
        coming = self._writing.names if self._writing is not None else frozenset[str]()
        return self._durable_names | coming | self.ledger.names

    @property
    def _alive(self) -> dict[int, VertexReport | None]:
        """See `unnamed`."""
        return {p.incarnation: p.report for p in self.placements if p.session is not None}

    def _delete(self, keys: tuple[str, ...]) -> None:
        if keys:
            self._out.append(Delete(keys))

    # --- the end -----------------------------------------------------------------------------

    def _end(self, error: str) -> None:
        """The job cannot go on; what is durable stays. It ends with a last record: who cannot
        write one was not the manager, and has nothing to say."""
        if self._ended is None or not self._ended.error:
            self._ended = Ended(error)
            self._dirty = True
            self._tell("", f"ends: {error}", self._ticked_at)

    def _end_if(self, error: str) -> None:
        if error:
            self._end(error)

    def _resign(self, error: str) -> None:
        """Stop without a record; see rules 1 and 5."""
        self._is_nobody = True
        self._tell("", f"stops: {error}", self._ticked_at)
        self._finish(Ended(error))

    def _finish(self, ended: Ended) -> None:
        if not self._over:
            self._over, self._ended = True, ended
            self._out.append(ended)

    @property
    def over(self) -> bool:
        return self._over

    @property
    def resigned(self) -> bool:
        """It has stopped, and tells nobody anything any more."""
        return self._is_nobody

    @property
    def established(self) -> bool:
        """Its first record is durable."""
        return self._established


def _is_record(key: str, body: bytes) -> bool:
    try:
        decode_ledger(key, body)
    except SnapshotCorrupt:
        return False
    return True
