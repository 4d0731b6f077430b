"""Faults of machines in the middle of a live job: one that is lost, the driver's too, a full disk,
a wrong clock, a slow processor."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable

from cluster.cluster import Cluster, Prepare, environment
from cluster.faults import HOSTS, Fault, Faulty, no_core_to_spare
from cluster.hardware import (
    fill_disk,
    forget_speed,
    free_disk,
    give_clock,
    give_disk,
    set_clock,
    slow_down,
    why_no_clock,
    why_no_quota,
)
from cluster.machines import Machine

MINUTES, HOURS = 60.0, 3600.0
SLOW = 0.2
"""Of one core: a tenth of what a machine with two cores has."""


def a_machine_is_lost(faulty: Faulty) -> None:
    """a machine is lost with all its processes"""
    victim = faulty.busiest()
    felt = faulty.suffer("a machine is lost", victim, victim.lose)
    faulty.wait_until_lost(felt)
    faulty.must_progress(10.0)


def a_machine_comes_back(faulty: Faulty) -> None:
    """a machine is lost, and comes back with a host"""
    victim = faulty.busiest()
    felt = faulty.suffer("a machine is lost and comes back", victim, victim.lose)
    faulty.wait_until_lost(felt)
    victim.mend()
    faulty.cluster.start_worker(victim)
    faulty.wait_until_whole(HOSTS)
    assert faulty.on(victim), "the machine has no host again"


def the_master_is_gone(faulty: Faulty) -> None:
    """Spark's master is killed"""
    head = faulty.cluster.head
    felt = faulty.suffer("Spark's master is gone", faulty.busiest(), faulty.cluster.kill_master)
    faulty.keep_progressing(10.0)
    assert head.pids()
    felt.measure(faulty.job.story())
    assert felt.found is None, "no host is lost with the master"


# --- the driver's machine ------------------------------------------------------------------------


def the_drivers_machine_is_lost(faulty: Faulty) -> None:
    """the driver's machine is lost, and --resume goes on from another"""
    cluster, job = faulty.cluster, faulty.job
    lost, other = cluster.driver, cluster.network.machines["other"]
    before = job.status()
    assert before is not None
    felt = faulty.suffer("the driver's machine is lost, --resume elsewhere", lost, lost.lose)
    job.move(other.command, environment(other, cluster.folder))
    job.start(resume=True)
    faulty.wait_for(lambda s: s.epoch > before.epoch, "new epoch")
    faulty.wait_until_whole(HOSTS)
    felt.running = time.time() - felt.at
    faulty.must_progress(10.0)


def _give_drivers_machines(cluster: Cluster) -> None:
    # Spark goes on to reserve the cores of a driver that is gone: others must be free.
    cluster.options = ("--conf", f"spark.cores.max={HOSTS}")
    cluster.driver = cluster.network.machine("driver")
    cluster.network.machine("other")


# --- the disk ------------------------------------------------------------------------------------


def a_disk_is_full(faulty: Faulty) -> None:
    """the disk of a worker is full for 20 s, and its executor dies meanwhile"""
    victim = faulty.busiest()
    felt = faulty.suffer("a worker's disk is full", victim, lambda: fill_disk(victim))
    faulty.keep_progressing(5.0)
    felt.at = time.time()
    for executor in faulty.executors(victim):
        os.kill(executor, signal.SIGKILL)
    faulty.wait_until_lost(felt)
    faulty.keep_progressing(15.0)
    free_disk(victim)
    faulty.wait_until_whole(HOSTS)
    faulty.must_progress(10.0)


def _give_disks(cluster: Cluster) -> None:
    for worker in cluster.workers:
        give_disk(worker, cluster.disk(worker), "32m")


# --- the clock -----------------------------------------------------------------------------------


def a_clock_is_off(faulty: Faulty) -> None:
    """the clock of a worker is 10 minutes ahead, for all the run"""
    worker = faulty.cluster.workers[0]
    faulty.suffer("a worker's clock is 10 minutes ahead", worker, lambda: None)
    faulty.keep_progressing(15.0)


def _set_a_clock(cluster: Cluster) -> None:
    _give_a_clock(cluster)
    set_clock(cluster.workers[0], cluster.folder, 10 * MINUTES)


def a_clock_jumps_back(faulty: Faulty) -> None:
    """the clock of a worker jumps back an hour"""
    _jump_back(faulty, "a worker's clock jumps back an hour", faulty.cluster.workers[0])


def _give_a_clock(cluster: Cluster) -> None:
    give_clock(cluster.workers[0], cluster.folder)


def the_drivers_clock_jumps_back(faulty: Faulty) -> None:
    """the clock of the driver and of Spark's master jumps back an hour"""
    _jump_back(faulty, "the driver's clock jumps back an hour", faulty.cluster.head)


def _give_the_head_a_clock(cluster: Cluster) -> None:
    give_clock(cluster.head, cluster.folder)


def _jump_back(faulty: Faulty, name: str, machine: Machine) -> None:
    faulty.suffer(name, machine, lambda: set_clock(machine, faulty.cluster.folder, -HOURS))
    faulty.keep_progressing(15.0)


# --- the processor -------------------------------------------------------------------------------


def a_machine_is_slow(faulty: Faulty) -> None:
    """a machine is ten times slower, from here to the end"""
    victim = faulty.busiest()
    faulty.cluster.afterwards.callback(forget_speed, victim)
    faulty.suffer("a machine is ten times slower", victim, lambda: slow_down(victim, SLOW))
    faulty.keep_progressing(20.0)


FAULTS: tuple[Fault, ...] = (
    a_machine_is_lost,
    a_machine_comes_back,
    the_master_is_gone,
    the_drivers_machine_is_lost,
    a_disk_is_full,
    a_clock_is_off,
    a_clock_jumps_back,
    the_drivers_clock_jumps_back,
    a_machine_is_slow,
)
PREPARE: dict[Fault, Prepare] = {
    a_machine_comes_back: no_core_to_spare,
    the_drivers_machine_is_lost: _give_drivers_machines,
    a_disk_is_full: _give_disks,
    a_clock_is_off: _set_a_clock,
    a_clock_jumps_back: _give_a_clock,
    the_drivers_clock_jumps_back: _give_the_head_a_clock,
}
WHY_NOT: dict[Fault, Callable[[], str]] = {
    a_clock_is_off: why_no_clock,
    a_clock_jumps_back: why_no_clock,
    the_drivers_clock_jumps_back: why_no_clock,
    a_machine_is_slow: why_no_quota,
}
"""What says why a fault cannot be made here."""
