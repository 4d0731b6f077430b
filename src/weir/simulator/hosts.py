"""The hosts of a simulated world: how they start, step, report, and die."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from weir.job.host import Host
from weir.job.messages import Pulse
from weir.job.poison import Death, Step
from weir.job.signals import (
    Connect,
    Deliver,
    Disconnect,
    EndSession,
    EndSubscription,
    Get,
    HostCommand,
    HostSignal,
    HungUp,
    MakeRoom,
    Pull,
    Pulsed,
    Put,
    Reported,
)
from weir.reliable.vertex import RowSpan
from weir.simulator.faults import LONGEST_BUSY
from weir.simulator.processes import FallingNotes, Falls, SimulatedHost

if TYPE_CHECKING:
    from weir.simulator.world import World

STEP, IDLE = 0.002, 0.02
"""Seconds between two steps of a host, if it has something to do and if it has not."""
REPORT_EVERY, PULSE_EVERY = 0.05, 0.2
"""Seconds between two reports of a host, and between two signs of life of its companion."""


class SimulatedHosts:
    """Runs all hosts of a simulated world."""

    def __init__(self, world: World) -> None:
        self._world, self._time = world, world.time
        self.alive: list[SimulatedHost] = []
        self._sessions = 0
        """How many hosts were started so far."""
        self._deaths: dict[int, Death] = {}
        """By slot, the death of the last host there, if somebody can report it."""
        self._fell: Counter[tuple[str, int, int]] = Counter()
        """How often hosts fell by chance at a row: vertex, input, number."""
        self.poisoned = 0
        """How often the poison has killed."""

    def of_session(self, session: str) -> SimulatedHost | None:
        return next((h for h in self.alive if h.machine.session == session), None)

    def start_all(self) -> None:
        for slot in range(self._world.job.hosts):
            self._time.after(float(self._time.rng.random() * 0.1), partial(self.start, slot))

    def start(self, slot: int) -> None:
        if self._world.ended is not None or any(h.slot == slot for h in self.alive):
            return
        job = self._world.job
        self._sessions += 1
        session = f"h{slot}-{self._sessions}"
        notes = FallingNotes(self._falls)
        deaths = [self._deaths[slot]] if slot in self._deaths else []
        machine = Host(
            session=session,
            topology=job.topology,
            strategies=job.strategies,
            make=job.make,
            settings=job.host_settings,
            notes=notes,
            deaths=deaths,
            clock=lambda: self._time.now,
        )
        host = SimulatedHost(slot, machine, notes, ahead=float(self._time.rng.random() * 100))
        self.alive.append(host)
        self._loop(host)
        self._report(host)
        self._pulse(host)

    def kill(self, host: SimulatedHost) -> None:
        self._time.note(f"{host.machine.session} killed, hosting {', '.join(host.machine.running)}")
        # Now and then nobody can report the death: the whole machine was lost.
        self._deaths.pop(host.slot, None)
        if host.notes.step is not None or self._time.apart.random() < 0.5:
            death = Death(host.machine.session, host.notes.step, "killed by the simulator")
            self._deaths[host.slot] = death
        self._leave(host)
        slot = host.slot
        if host.cut_until > self._time.now:
            pass  # nothing of it reaches the manager
        elif slot in self._deaths:
            self._tell_death(self._deaths[slot])
        elif self._time.beside.random() < 0.5:  # else its machine is lost, which closes nothing
            self._hang_up(host)
        if self._world.ended is None:
            self._time.after(float(self._time.rng.random() * 2), lambda: self.start(slot))

    def _begin_anew(self, host: SimulatedHost, over: bool) -> None:
        self._time.note(f"{host.machine.session} {'ends' if over else 'starts again'}")
        self._leave(host)
        if not over:
            slot = host.slot
            self._time.after(float(self._time.rng.random() * 0.2), lambda: self.start(slot))

    def _leave(self, host: SimulatedHost) -> None:
        host.dead = True
        self.alive.remove(host)
        self._world.store.die_writing(host)
        self._world.network.cut_off(host)
        self._world.sources.leave(host)

    def _falls(self, step: Step, span: RowSpan) -> bool:
        """Say whether the host dies at this piece of a step, of poison or by chance."""
        poison = self._world.job.poison
        if poison is not None and self.poisoned < poison.times and poison.kills(step.vertex, span):
            self.poisoned += 1
            return True
        if self._time.calm or self._time.apart.random() >= self._time.faults.fall:
            return False
        if span.claims and step.pieces == 1:
            return False
        row = (step.vertex, span.input, span.first)
        if self._fell[row] >= 2 or sum(n for r, n in self._fell.items() if r[0] == row[0]) >= 10:
            return False
        self._fell[row] += 1
        return True

    def _loop(self, host: SimulatedHost, turn: int = 0) -> None:
        if host.dead or turn != host.turn:
            return
        rng, progressed = self._time.rng, False
        if host.frozen_until <= self._time.now:
            running = list(host.machine.running)
            vertex = None
            if running and rng.random() < 0.5:
                vertex = running[int(rng.integers(len(running)))]
            try:
                progressed, commands = host.machine.work(self._time.now + host.ahead, vertex=vertex)
            except Falls:
                self.kill(host)
                return
            progressed = progressed or bool(commands) or vertex is not None
            self._do(host, commands)
        host.is_idle = not progressed
        pause = IDLE if not progressed else STEP
        slow = self._time.happens(self._time.faults.slow)
        self._next_turn(host, 0.05 if slow else pause)

    def _next_turn(self, host: SimulatedHost, pause: float) -> None:
        host.turn += 1
        self._time.after(pause, partial(self._loop, host, host.turn))

    def _report(self, host: SimulatedHost) -> None:
        if host.dead:
            return
        now = self._time.now
        if host.frozen_until <= now and host.machine.is_report_due(now + host.ahead):
            report = host.machine.report(
                now + host.ahead, address=host.machine.session, slot=host.slot
            )
            report = msgspec.structs.replace(report, clock=self._time.now)
            managers = self._world.managers
            self._world.network.send(host, lambda: managers.tell_all(Reported(report)))
        self._time.after(REPORT_EVERY, lambda: self._report(host))

    # --- companions --------------------------------------------------------------------------

    def _pulse(self, host: SimulatedHost) -> None:
        """Let its companion give signs of life, unless the host is stopped or cut off."""
        if host.dead:
            return
        self._give_sign(host)
        self._time.after(PULSE_EVERY, lambda: self._pulse(host))

    def _give_sign(self, host: SimulatedHost) -> None:
        stopped = host.frozen_until > self._time.now and not host.is_busy
        if not stopped and not host.dead and host.cut_until <= self._time.now:
            managers, pulse = self._world.managers, Pulse(host.machine.session, host.notes.step)
            delay = float(self._time.beside.exponential(self._time.faults.delay))
            self._time.after(delay, lambda: managers.tell_all(Pulsed(pulse)))

    def _tell_death(self, death: Death) -> None:
        managers, pulse = self._world.managers, Pulse(death.session, death.step, death)
        delay = float(self._time.beside.exponential(0.01))
        self._time.after(delay, lambda: managers.tell_all(Pulsed(pulse)))

    def _hang_up(self, host: SimulatedHost) -> None:
        """Close the connections of a host and its companion; one that lives makes another."""
        managers, session = self._world.managers, host.machine.session

        def hang_up() -> None:
            managers.tell_all(HungUp(session))
            self._give_sign(host)

        self._time.after(float(self._time.beside.exponential(0.01)), hang_up)

    def befall_companion(self, host: SimulatedHost) -> None:
        """Make a host busy, or let its connections break, if that is what happens to it now."""
        time, faults = self._time, self._time.faults
        if host.dead or time.calm:
            return
        if time.beside.random() < faults.busy / 10 and host.frozen_until <= time.now:
            seconds = min(float(time.beside.exponential(30.0)), LONGEST_BUSY)
            host.frozen_until, host.is_busy = time.now + seconds, True
            time.note(f"{host.machine.session} is busy until {host.frozen_until:.3f}")
        if time.beside.random() < faults.hang_up / 10:
            self._hang_up(host)

    def tell(self, host: SimulatedHost, signal: HostSignal) -> None:
        if host.dead:
            return
        now = self._time.now
        if host.frozen_until > now:
            self._time.after(host.frozen_until - now + 0.001, lambda: self.tell(host, signal))
            return
        self._do(host, host.machine.handle(signal, now + host.ahead))
        if host.is_idle:
            host.is_idle = False
            self._next_turn(host, STEP)

    def _do(self, host: SimulatedHost, commands: Sequence[HostCommand]) -> None:
        world, time, tell = self._world, self._time, partial(self.tell, host)
        for command in commands:
            if host.dead:
                return
            match command:
                case Put():
                    world.store.write(host, command, tell)
                case Get(key):
                    world.store.read(host, key, tell)
                case Connect():
                    time.after(time.delay(), partial(world.network.connect, host, command))
                case Disconnect(connection=connection):
                    world.network.disconnect(host, connection)
                case MakeRoom():
                    world.network.make_room(host, command)
                case Deliver():
                    world.network.deliver(command)
                case EndSubscription(subscription):
                    world.network.cut(subscription)
                case Pull():
                    pause = float(time.rng.exponential(world.job.pace)) if world.job.pace else 0.0
                    pull = partial(world.sources.pull, host, command)
                    time.after(time.delay() + pause, pull)
                case EndSession(over):
                    self._begin_anew(host, over)
