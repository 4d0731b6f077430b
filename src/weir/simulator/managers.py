"""The job managers of a simulated world: several may run at a time."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from weir.errors import RunError, SnapshotCorrupt
from weir.job.ledger import Ledger
from weir.job.manager import Manager
from weir.job.record_reader import known_record
from weir.job.record_writer import TAKEN_OVER
from weir.job.signals import (
    Answer,
    Delete,
    EndJob,
    Get,
    List,
    ManagerCommand,
    ManagerSignal,
    OrdersArrived,
    Put,
)
from weir.simulator.processes import SimulatedManager

if TYPE_CHECKING:
    from weir.simulator.world import World


class Managers:
    """Runs all job managers of a simulated world."""

    def __init__(self, world: World) -> None:
        self._world, self._time = world, world.time
        self.alive: list[SimulatedManager] = []
        self._names = 0

    def start(self) -> None:
        world = self._world
        if world.ended is not None:
            return
        disk, job = world.disk, world.job
        try:
            ledger = known_record(disk, len(job.topology.sinks)) or Ledger()
        except SnapshotCorrupt as error:
            self._time.note(f"the store cannot be read: {error}")
            world.find_finished(str(error))
            return
        lost = sorted(key for key in ledger.names if not disk.has(key))
        if lost and not disk.harmed:
            raise RunError(f"the last record names {', '.join(lost)}, which was deleted")
        if ledger.finished:
            world.find_finished()
            return
        self._names += 1
        machine = Manager(
            topology=job.topology,
            strategies=job.strategies,
            ledger=ledger,
            settings=job.manager_settings,
            now=self._time.now,
            name=f"m{self._names}",
            held=self._time.now < world.held_until,
        )
        manager = SimulatedManager(machine)
        self.alive.append(manager)
        self._time.note(f"manager m{self._names} of epoch {ledger.epoch} begins")
        self._tick(manager)

    def kill(self, manager: SimulatedManager) -> None:
        self._time.note(f"the manager of epoch {manager.machine.ledger.epoch} killed")
        manager.dead = True
        if manager in self.alive:
            self.alive.remove(manager)
        self._world.store.die_writing(manager)

    def release(self) -> None:
        """Let the sinks go on; RunError if one of them has committed before."""
        if self._world.disk.list("commits/"):
            raise RunError("rows were committed while the sinks were held")
        for manager in self.alive:
            manager.machine.release("released", self._time.now + manager.ahead)

    def ask_to_stop(self) -> None:
        for manager in self.alive:
            manager.machine.stop(self._time.now + manager.ahead)

    def _tick(self, manager: SimulatedManager) -> None:
        if manager.dead or self._world.over:
            return
        now = self._time.now
        if manager.frozen_until <= now:
            self._do(manager, manager.machine.tick(now + manager.ahead))
        self._time.after(0.02, lambda: self._tick(manager))

    def tell_all(self, signal: ManagerSignal) -> None:
        for manager in list(self.alive):
            self.tell(manager, signal)

    def tell(self, manager: SimulatedManager, signal: ManagerSignal) -> None:
        if manager.dead:
            return
        now = self._time.now
        if manager.frozen_until > now:
            later = manager.frozen_until - now + 0.001
            self._time.after(later, partial(self.tell, manager, signal))
            return
        self._do(manager, manager.machine.handle(signal, now + manager.ahead))

    def _do(self, manager: SimulatedManager, commands: Sequence[ManagerCommand]) -> None:
        epoch = manager.machine.ledger.epoch
        for line in manager.machine.story[manager.lines_noted :]:
            self._time.note(f"  epoch {epoch}: {line.vertex} {line.what}")
        manager.lines_noted = len(manager.machine.story)
        store, hosts, tell = self._world.store, self._world.hosts, partial(self.tell, manager)
        for command in commands:
            if manager.dead:
                return
            match command:
                case Put():
                    store.write(manager, command, tell)
                case Get(key):
                    store.read(manager, key, tell)
                case Delete(keys):
                    store.delete(manager, keys)
                case List(prefix):
                    store.list(prefix, tell)
                case Answer(session, orders):
                    host = hosts.of_session(session)
                    if host is not None:
                        signal = OrdersArrived(orders)
                        self._world.network.send(host, partial(hosts.tell, host, signal))
                case EndJob() as ended:
                    self._end(manager, ended)

    def _end(self, manager: SimulatedManager, ended: EndJob) -> None:
        world = self._world
        self._time.note(f"the manager of epoch {manager.machine.ledger.epoch} ends: {ended}")
        if ended.error == TAKEN_OVER:
            manager.dead = True
            self.alive.remove(manager)
            if not self.alive:
                self.start()  # the one that took over has died
        elif ended.stopped:
            world.stops += 1
            self._time.after(float(self._time.rng.random() * 2), world.resume)
        elif world.ended is None:
            # It stays to tell the hosts; all other managers end.
            world.end(ended)
            for other in self.alive:
                other.dead = other is not manager
            self.alive = [manager]
            if manager.machine.resigned:  # it tells hosts nothing any more: its driver ends them
                world.end_processes()
