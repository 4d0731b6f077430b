"""`make cluster`: live jobs on a Spark cluster of machines in a box, whose parts fail.

    python -m cluster [FAULT …]

Each fault comes in the middle of a live job under load, fed by growing files; then the input ends.
The files must be those of the local runner byte for byte. A table says for every fault after how
many seconds it was found, and after how many all vertices ran again. Exit code 1 when an answer
differs, or a job hangs or fails; its folder is then kept.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from chaos.job import JobFailed
from chaos.kills import JobHangs
from cluster.cluster import Cluster, cluster
from cluster.faults import Faulty, Felt, job_on
from cluster.machines import Machine, why_not

WORKERS, HOSTS = 3, 3
FINISH_WITHIN = 180.0


def a_machine_is_lost(faulty: Faulty) -> None:
    """a machine is lost with all its processes"""
    victim = faulty.busiest()
    felt = faulty.suffer("a machine is lost", victim, victim.lose)
    faulty.wait_until_lost(felt)
    faulty.must_progress(3.0)


def a_machine_comes_back(faulty: Faulty) -> None:
    """a machine is lost, comes back, and is used again"""
    victim = faulty.busiest()
    felt = faulty.suffer("a machine is lost and comes back", victim, victim.lose)
    faulty.wait_until_lost(felt)
    victim.mend()
    faulty.cluster.start_worker(victim)
    faulty.wait_until_whole(HOSTS)


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


def two_workers_do_not_reach_each_other(faulty: Faulty) -> None:
    """two workers do not reach each other for 10 s, the driver reaches both"""
    one = faulty.busiest()
    others = [w for w in faulty.cluster.workers if w is not one]

    def part() -> None:
        one.drop(*(f"ip saddr {other.address}" for other in others))

    faulty.suffer("a worker hears nothing from the others", one, part)
    time.sleep(10.0)
    one.mend()
    faulty.must_progress(5.0)


def packets_are_lost(faulty: Faulty) -> None:
    """2 % of all packets are lost for 20 s"""
    machines = [faulty.cluster.head, *faulty.cluster.workers]

    def lose() -> None:
        for machine in machines:
            machine.drop("numgen random mod 100 < 2")

    faulty.suffer("2 % of all packets are lost for 20 s", faulty.busiest(), lose)
    time.sleep(20.0)
    faulty.must_progress(5.0)
    for machine in machines:
        machine.mend()


def links_are_slow(faulty: Faulty) -> None:
    """10 Mbit/s for all machines, from here to the end"""

    def limit() -> None:
        for machine in (faulty.cluster.head, *faulty.cluster.workers):
            machine.limit("10mbit")

    faulty.suffer("10 Mbit/s for all", faulty.busiest(), limit)
    time.sleep(15.0)
    faulty.must_progress(5.0)


def the_master_is_gone(faulty: Faulty) -> None:
    """Spark's master is killed"""
    head = faulty.cluster.head
    felt = faulty.suffer("Spark's master is gone", faulty.busiest(), faulty.cluster.kill_master)
    time.sleep(10.0)
    assert head.pids()
    faulty.must_progress(5.0)
    felt.measure(faulty.job.story())
    assert felt.found is None, "no host is lost with the master"


FAULTS: tuple[Callable[[Faulty], None], ...] = (
    a_machine_is_lost,
    a_machine_comes_back,
    a_link_is_down_for_5_s,
    a_link_is_down_for_60_s,
    answers_to_a_worker_are_lost,
    requests_of_a_worker_are_lost,
    two_workers_do_not_reach_each_other,
    packets_are_lost,
    links_are_slow,
    the_master_is_gone,
)


def main() -> int:
    parser = argparse.ArgumentParser(prog="cluster", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("fault", nargs="*", help="words of the faults' names; all without any")
    asked = parser.parse_args().fault
    if missing := why_not():
        print(f"no machines in a box: {missing}")
        return 1
    chosen = [f for f in FAULTS if not asked or any(w in _title(f) for w in asked)]
    felt: list[Felt] = []
    failed = [_title(fault) for fault in chosen if not _passes(fault, felt)]
    print(f"{'':48} {'found':>7} {'running':>8}  (seconds)")
    for one in felt:
        print(one)
    print(
        f"{len(chosen) - len(failed)} held, {len(failed)} failed{': ' if failed else ''}", *failed
    )
    return 1 if failed else 0


def _title(fault: Callable[[Faulty], None]) -> str:
    return (fault.__doc__ or "").strip()


def _passes(fault: Callable[[Faulty], None], felt: list[Felt]) -> bool:
    folder = Path(tempfile.mkdtemp(prefix="weir-cluster-"))
    began = time.monotonic()
    try:
        with cluster(folder, WORKERS) as machines:
            _suffer(fault, machines, felt)
    except (JobHangs, JobFailed, AssertionError, TimeoutError) as error:
        print(f"FAILED  {_title(fault)}: {error!r}; see {folder}", flush=True)
        return False
    print(f"held    {_title(fault)}  ({time.monotonic() - began:.0f} s)", flush=True)
    shutil.rmtree(folder, ignore_errors=True)
    return True


def _suffer(fault: Callable[[Faulty], None], machines: Cluster, felt: list[Felt]) -> None:
    job = job_on(machines, HOSTS)
    faulty = Faulty(machines, job)
    try:
        job.start()
        job.start_feeding()
        faulty.wait_until_whole(HOSTS)
        faulty.must_progress(2.0)
        fault(faulty)
        found = job.finish(FINISH_WITHIN)
        for one in faulty.felt:
            one.measure(job.story())
        felt += faulty.felt
        assert found == job.run_locally(), "the answer is not that of the local runner"
    finally:
        job.close()


if __name__ == "__main__":
    sys.exit(main())
