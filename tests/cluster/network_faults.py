"""Faults of the network in the middle of a live job: links that are down, deaf, lossy, narrow or
long."""

from __future__ import annotations

import time
from collections.abc import Callable

from cluster.cluster import Cluster, Prepare
from cluster.faults import HOSTS, Fault, Faulty, no_core_to_spare
from cluster.machines import Machine

ALL_THE_RUN = 20.0
"""For so many seconds a job is watched on a network that is bad from its start to its end."""


def a_link_is_down_for_5_s(faulty: Faulty) -> None:
    """a link is down for 5 s, and comes back"""
    _link_is_down(faulty, 5.0)


def a_link_is_down_for_60_s(faulty: Faulty) -> None:
    """a link is down for 60 s, and comes back"""
    _link_is_down(faulty, 60.0)


def _link_is_down(faulty: Faulty, seconds: float) -> None:
    victim = faulty.busiest()
    felt = faulty.suffer(f"a link is down for {seconds:.0f} s", victim, victim.cut)
    time.sleep(seconds)
    victim.mend()
    faulty.wait_until_lost(felt)
    faulty.wait_until_whole(HOSTS)


def answers_to_a_worker_are_lost(faulty: Faulty) -> None:
    """requests of a worker arrive at the driver, answers do not"""
    victim, head = faulty.busiest(), faulty.cluster.head
    _hears_nothing(faulty, "a worker hears nothing from the driver", victim, victim, head)


def requests_of_a_worker_are_lost(faulty: Faulty) -> None:
    """what a worker says does not arrive at the driver"""
    victim, head = faulty.busiest(), faulty.cluster.head
    _hears_nothing(faulty, "the driver hears nothing from a worker", victim, head, victim)


def _hears_nothing(
    faulty: Faulty, name: str, victim: Machine, deaf: Machine, speaker: Machine
) -> None:
    felt = faulty.suffer(name, victim, lambda: deaf.drop(f"ip saddr {speaker.address}"))
    faulty.wait_until_lost(felt)
    deaf.mend()
    faulty.wait_until_whole(HOSTS)


def a_worker_is_deaf_to_the_others(faulty: Faulty) -> None:
    """a worker hears nothing from the others for 5 s, the driver reaches all"""
    one = faulty.busiest()
    others = [w for w in faulty.cluster.workers if w is not one]
    faulty.suffer("a worker hears nothing from the others for 5 s", one, lambda: _part(one, others))
    time.sleep(5.0)
    one.mend()
    faulty.must_progress(15.0)


def a_worker_is_deaf_to_another(faulty: Faulty) -> None:
    """a worker hears nothing from one other from here to the end, the driver reaches all"""
    one = faulty.busiest()
    other = next(w for w in faulty.cluster.workers if w is not one and faulty.on(w))
    name = "a worker hears nothing from another, to the end"
    felt = faulty.suffer(name, one, lambda: _part(one, [other]))
    felt.sessions |= faulty.on(other)
    faulty.must_progress(40.0)
    faulty.keep_progressing(10.0)


def _part(deaf: Machine, others: list[Machine]) -> None:
    deaf.drop(*(f"ip saddr {other.address}" for other in others))


# --- a network that is bad for all the run -------------------------------------------------------


def packets_are_lost(faulty: Faulty) -> None:
    """2 % of all packets are lost, for all the run"""
    _watch(faulty, "2 % of all packets are lost")


def links_are_narrow(faulty: Faulty) -> None:
    """10 Mbit/s on all links, for all the run"""
    _watch(faulty, "10 Mbit/s on all links")


def links_are_long(faulty: Faulty) -> None:
    """50 ms ± 20 ms from machine to machine, for all the run"""
    _watch(faulty, "50 ms ± 20 ms from machine to machine")


def links_are_bad(faulty: Faulty) -> None:
    """50 ms ± 20 ms, 2 % loss and 10 Mbit/s at once, for all the run"""
    _watch(faulty, "50 ms ± 20 ms, 2 % loss and 10 Mbit/s")


def _watch(faulty: Faulty, name: str) -> None:
    faulty.suffer(name, faulty.busiest(), lambda: None)
    faulty.keep_progressing(ALL_THE_RUN)


def _lose(machine: Machine) -> None:
    machine.drop("iifname eth0 numgen random mod 100 < 2")


def _narrow(machine: Machine) -> None:
    machine.limit("10mbit")


def _lengthen(machine: Machine) -> None:
    machine.delay(0.05, 0.02)


def _spoil(machine: Machine) -> None:
    _lengthen(machine)  # first, for it replaces the link
    _lose(machine)
    _narrow(machine)


def _each(spoil: Callable[[Machine], None]) -> Prepare:
    def prepare(cluster: Cluster) -> None:
        for machine in cluster.network.machines.values():
            spoil(machine)

    return prepare


FAULTS: tuple[Fault, ...] = (
    a_link_is_down_for_5_s,
    a_link_is_down_for_60_s,
    answers_to_a_worker_are_lost,
    requests_of_a_worker_are_lost,
    a_worker_is_deaf_to_the_others,
    a_worker_is_deaf_to_another,
    packets_are_lost,
    links_are_narrow,
    links_are_long,
    links_are_bad,
)
PREPARE: dict[Fault, Prepare] = {
    a_link_is_down_for_5_s: no_core_to_spare,
    a_link_is_down_for_60_s: no_core_to_spare,
    packets_are_lost: _each(_lose),
    links_are_narrow: _each(_narrow),
    links_are_long: _each(_lengthen),
    links_are_bad: _each(_spoil),
}
