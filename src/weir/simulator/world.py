"""The live runtime in one process under a seed: the same machines, a simulated world.

The world has a clock, a network, a store, hosts with their sources, and a job manager. Everything
that happens is an event in one queue, in an order that the seed decides alone, so a failing seed
fails again. What goes wrong is in `faults.py`.
"""

from __future__ import annotations

import numpy as np

from weir.job.commit_log import decode_commit
from weir.job.record_reader import last_record, sweep
from weir.job.signals import EndJob
from weir.reliable.object_names import is_ephemeral
from weir.simulator.faults import LONGEST_BUSY, Faults
from weir.simulator.hosts import SimulatedHosts
from weir.simulator.managers import Managers
from weir.simulator.network import Network
from weir.simulator.processes import Process, SimulatedHost, SimulatedJob
from weir.simulator.simulated_disk import SimulatedDisk
from weir.simulator.sources import Sources
from weir.simulator.store_answers import StoreAnswers
from weir.simulator.timeline import Timeline

CLOSING = 90.0 + LONGEST_BUSY
"""Seconds within which all hosts must have heard that the job is over."""


class World:
    """Has all parts of a simulated world, and lets things go wrong with them."""

    def __init__(self, job: SimulatedJob, rng: np.random.Generator, faults: Faults) -> None:
        self.job, self.faults = job, faults
        self.time = Timeline(rng, faults)
        self.disk = SimulatedDisk(rng)
        self.disk.flips = faults.flips
        self.store = StoreAnswers(self, self.disk)
        self.network = Network(self)
        self.hosts = SimulatedHosts(self)
        self.managers = Managers(self)
        self.sources = Sources(self)
        self.ended: EndJob | None = None
        """How the job has ended, once it has."""
        self.over = False
        """Whether all hosts have heard that the job has ended: nothing new begins any more."""
        self.stop_at: float | None = None
        """The simulated second at which the job is asked to stop."""
        self.held_until = 0.0
        """The simulated second at which sinks are released; 0: they are not held."""
        self.resumed_as: SimulatedJob | None = None
        """The job that is run after a stop, if it is not the same."""
        self.stops = 0
        """How often the job was stopped."""

    # --- running -----------------------------------------------------------------------------

    def run(self, limit: float = 120.0) -> EndJob:
        """Run until the job has ended and all hosts know; RunError if it has not ended within
        `limit` simulated seconds, and more if hosts may be busy."""
        time = self.time
        if self.faults.busy:
            limit += 5 * LONGEST_BUSY
        self.sources.begin_logs()
        for begin in self.job.feeds:
            begin(time)
        self.managers.start()
        self.hosts.start_all()
        time.after(0.1, self._misfortune)
        if self.stop_at is not None:
            time.after(self.stop_at, self.managers.ask_to_stop)
        if self.held_until:
            time.after(self.held_until, self.managers.release)
        time.pass_time(limit, lambda: self.ended is not None)
        assert self.ended is not None
        # Hosts that were cut off or stood still hear of it later; writes under way arrive.
        time.pass_time(time.now + CLOSING, lambda: not self.hosts.alive)
        self.over = True
        # Nothing starts from here on; a chunk that some source takes long for may be left.
        time.pass_time(time.now + 100 * CLOSING, lambda: time.is_empty)
        return self.ended

    def end(self, ended: EndJob) -> None:
        """Note how the job has ended; nothing goes wrong any more."""
        self.ended, self.time.job_ended = ended, True

    def find_finished(self, error: str | None = None) -> None:
        """End the job without a manager: the last one died after its last record, or the store
        cannot be read."""
        self.end(EndJob(error))
        self.end_processes()

    def end_processes(self) -> None:
        """Kill all managers and hosts."""
        for manager in list(self.managers.alive):
            self.managers.kill(manager)
        for host in list(self.hosts.alive):
            self.hosts.kill(host)

    def resume(self) -> None:
        """End all processes, and begin the job again with its store."""
        if self.ended is not None:
            return
        self.time.note("the job is resumed")
        if self.faults.harm and self.time.happens(0.5):
            self.harm()
        self.end_processes()
        self.job = self.resumed_as or self.job
        self.managers.start()
        self.hosts.start_all()

    def crash(self, owner: Process) -> None:
        """Kill a process at a durable step; a manager is started again."""
        if isinstance(owner, SimulatedHost):
            self.hosts.kill(owner)
        elif self.ended is None:
            self.managers.kill(owner)
            self.time.after(0.1, self.managers.start)
        else:
            self.end_processes()

    # --- misfortune --------------------------------------------------------------------------

    def _misfortune(self) -> None:
        """Draw what goes wrong now; this is called ten times a second."""
        if self.ended is not None:
            return
        for host in list(self.hosts.alive):
            self._befall(host)
        self._befall_managers()
        f, time = self.faults, self.time
        if time.happens(f.stop / 10):
            self.managers.ask_to_stop()
        if f.harm and time.happens(f.harm / 10):
            self.harm()
        if time.happens(f.full / 10) and not self.disk.full:
            self.disk.full = True
            time.note("the store is full")
            time.after(float(time.rng.random() * 3), self._empty_disk)
        if time.calm:
            self.disk.flips = 0.0
        time.after(0.1, self._misfortune)

    def _befall(self, host: SimulatedHost) -> None:
        f, time, session = self.faults, self.time, host.machine.session
        if time.happens(f.crash / 10):
            self.hosts.kill(host)
        elif time.happens(f.freeze / 10):
            host.frozen_until = time.now + float(time.rng.random() * 4)
            host.is_busy = False
            time.note(f"{session} stands still until {host.frozen_until:.3f}")
        elif time.happens(f.cut / 10):
            host.cut_until = time.now + float(time.rng.random() * 4)
            time.note(f"{session} cut off until {host.cut_until:.3f}")
            self.network.cut_off(host)
        elif f.apart and time.happens(f.apart / 10):
            host.apart_until = time.now + float(time.rng.random() * 3)
            time.note(f"{session} cannot use the store until {host.apart_until:.3f}")
        elif time.happens(f.jump / 10):
            jump = float(time.rng.random() * 30)
            host.ahead, host.jumped = host.ahead + jump, host.jumped + jump
        self.hosts.befall_companion(host)

    def _befall_managers(self) -> None:
        f, time, alive = self.faults, self.time, self.managers.alive
        if time.happens(f.manager_crash / 10) and alive:
            self.managers.kill(alive[-1])
            time.after(float(time.rng.random()), self.managers.start)
        elif time.happens(f.second_manager / 10):
            time.note("another manager begins")
            self.managers.start()
            if time.rng.random() < 0.5:
                self.managers.start()
        elif time.happens(f.manager_freeze / 10) and alive:
            alive[-1].frozen_until = time.now + float(time.rng.random() * 4)
        elif time.happens(f.jump / 10) and alive:
            alive[-1].ahead += float(time.rng.random() * 30)

    def harm(self) -> None:
        """Let the adversary harm the store."""
        self.time.note(f"harm: {self.disk.harm(self.time.rng)}")

    def _empty_disk(self) -> None:
        self.disk.full = False

    # --- what is left ------------------------------------------------------------------------

    def sweep(self) -> list[str]:
        """Sweep the store, as a driver does when all is over; list what is left then that only a
        running job needs, and parts that no commit names."""
        ledger = last_record(self.disk)
        assert ledger is not None
        self.disk.settle()
        self.disk.delete(sweep(self.disk, ledger))
        self.disk.settle()
        if self.disk.harmed:
            return []  # what was harmed may have kept others from being collected
        left = [key for key in self.disk.list() if is_ephemeral(key) and key not in ledger.names]
        parts = set(self.disk.list("parts/"))
        commits = [decode_commit(k, self.disk.body(k)) for k in self.disk.list("commits/")]
        if ledger.finished:
            left += sorted(key for key in self.disk.list() if is_ephemeral(key))
            left += sorted(parts - {c.part.key for c in commits if c.part is not None})
            left += self.disk.list("ingress/")
        return left
