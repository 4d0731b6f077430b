"""How a simulated store answers: late, with failures, and never to a process that has died since.

Every write and delete is a durable step with a number and the name of its kind (`steps`); a writer
can be made to die at any of them (`crashes`).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from weir.job.signals import (
    Listed,
    Loaded,
    Put,
    Refused,
    Stored,
    StoreSignal,
    Unloaded,
    Unstored,
)
from weir.reliable.object_names import step_of
from weir.reliable.objects import ObjectRef
from weir.reliable.store import ObjectExists
from weir.simulator.processes import Process, SimulatedHost, SimulatedManager, When
from weir.simulator.simulated_disk import SimulatedDisk

if TYPE_CHECKING:
    from weir.simulator.world import World

TellSignal = Callable[[StoreSignal], None]


class StoreAnswers:
    """Carries out the requests of processes to a simulated disk, and answers them."""

    def __init__(self, world: World, disk: SimulatedDisk) -> None:
        self._world, self._time, self.disk = world, world.time, disk
        self.crashes: dict[int, When] = {}
        """The durable steps, by number, at which their writers die."""
        self.steps: list[str] = []
        """The kinds of the durable steps so far."""
        self.largest = 0
        """The most bytes that the objects ever had that only a running job needs."""

    def write(self, owner: Process, put: Put, tell: TellSignal) -> None:
        owner.writing[put.key] = put
        self._time.after(self._time.delay(), partial(self._written, owner, put, tell))

    def _written(self, owner: Process, put: Put, tell: TellSignal) -> None:
        if owner.dead:
            return
        crash = self._step(step_of(put.key))
        if crash in ("before", "torn") or self._relapses(owner):
            self._time.note(f"crash {crash or 'before'} {put.key}")
            owner.writing.pop(put.key, None)
            if crash == "torn" and not put.new:
                self.disk.put_torn(put.key, put.encode())
            self._world.crash(owner)
            return
        owner.writing.pop(put.key, None)
        done = self._put(owner, put)
        if crash == "after" or self._relapses(owner):
            self._time.note(f"crash after {put.key}")
            self._world.crash(owner)
            return
        tell(done)

    def _put(self, owner: Process, put: Put) -> Stored | Refused | Unstored:
        fails = self.disk.full or self._is_apart(owner)
        fails = fails or self._time.happens(self._time.faults.write_fails)
        if fails and (self.disk.full or self._time.rng.random() < 0.5):
            return Unstored(put.key, "no space left" if self.disk.full else "it failed")
        done: Stored | Refused
        try:
            body = put.encode()
            self.disk.put(put.key, body, new=put.new)
            self.largest = max(self.largest, self.disk.ephemeral_bytes)
            done = Stored(ObjectRef.of(put.key, body))
        except ObjectExists:
            done = Refused(put.key)
        return Unstored(put.key, "nobody knows whether it succeeded") if fails else done

    def _is_apart(self, owner: Process) -> bool:
        """Say whether a process cannot use the store."""
        return isinstance(owner, SimulatedHost) and self._time.now < owner.apart_until

    def _step(self, name: str) -> When | None:
        """Count a durable step; say whether, and when, its writer dies at it."""
        self.steps.append(name)
        return self.crashes.get(len(self.steps) - 1)

    def _relapses(self, owner: Process) -> bool:
        return self._time.happens(self._time.faults.relapse) and is_recovering(owner)

    def read(self, owner: Process, key: str, tell: TellSignal) -> None:
        self._time.after(self._time.delay(), partial(self._read, owner, key, tell))

    def _read(self, owner: Process, key: str, tell: TellSignal) -> None:
        if owner.dead:
            return
        if self._relapses(owner):
            self._time.note(f"crash at reading {key}")
            self._world.crash(owner)
        elif self._is_apart(owner) or self._time.happens(self._time.faults.read_fails):
            tell(Unloaded(key, "it failed"))
        else:
            tell(Loaded(key, self.disk.get(key)))

    def delete(self, manager: SimulatedManager, keys: tuple[str, ...]) -> None:
        self._time.after(self._time.delay(), partial(self._deleted, manager, keys))

    def _deleted(self, manager: SimulatedManager, keys: tuple[str, ...]) -> None:
        if manager.dead and self._time.rng.random() < 0.5:
            return
        crash = self._step("delete") if not manager.dead else None
        if crash != "before" and not self._time.happens(self._time.faults.delete_fails):
            # If the manager dies half-way, the first half of them, in the order given.
            self.disk.delete(keys if crash != "torn" else keys[: len(keys) // 2])
        if crash is not None:
            self._time.note(f"crash {crash} deleting {', '.join(keys)}")
            self._world.crash(manager)

    def list(self, prefix: str, tell: TellSignal) -> None:
        def listed() -> None:
            tell(Listed(tuple(self.disk.list(prefix))))

        self._time.after(self._time.delay(), listed)

    def die_writing(self, owner: Process) -> None:
        """Decide what becomes of the writes of a process that died: each is whole, torn, or not
        there, or comes late."""
        for put in owner.writing.values():
            body = put.encode()
            if self._time.happens(self._time.faults.late_writes):
                arrive = partial(self.disk.put_late, put.key, body, new=put.new)
                self._time.after(float(self._time.rng.random() * 5), arrive)
            else:
                self.disk.put_at_death(put.key, body, new=put.new)
        owner.writing.clear()


def is_recovering(owner: Process) -> bool:
    """Say whether a manager has no durable record yet, or a host is loading an instance."""
    if isinstance(owner, SimulatedManager):
        return not owner.machine.established
    return any(running.status == "loading" for running in owner.machine.running.values())
