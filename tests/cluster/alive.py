"""Who is alive: hosts whose user code holds Python's lock, that are stopped or killed, or that a
loaded machine runs.

The job has a function of the user's that holds the lock when a file asks for it, in one host, once.
A busy host must not be lost; one that died or was stopped must be, within the limits below.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from chaos.job import PROGRAM, Job
from cluster.cluster import Cluster
from cluster.faults import Faulty, Felt, job_on
from weir.job.status import HostStatus, JobStatus, VertexStatus

BUSY_SECONDS = 60
CAUGHT_UP_WITHIN = 30.0
"""Seconds in which a host that was busy for so long has caught up, also on a machine under load."""
LOAD, LOAD_SECONDS = 20, 40.0
DEATH_WITHIN, STOP_WITHIN = 0.2, 2.0
"""Seconds after which a dead and a stopped host are to be found."""
STOP_LIMIT = 25.0
"""Seconds in which a job with a busy host ends when it is asked to: its grace is 10 s."""

KEPT = """
IMPORT 'busy.py';
Kept = SELECT k, kept(s) AS s FROM Sums;
OUTPUT Kept TO '{folder}/kept.jsonl';
"""
BUSY = '''
import ctypes, math, os, re, sys, time
import weir

ASKED = {asked!r}
SPARE = 2  # what takes so long now may take half as long when the machine has less to do

def took(work):
    began = time.monotonic()
    work()
    return time.monotonic() - began

def sleep(seconds):
    ctypes.PyDLL(None).sleep(seconds)

def search(seconds):
    """A regular expression that tries every way to divide a text."""
    size = 18
    while (spent := took(lambda: re.match("(a+)+$", "a" * size + "b"))) < 0.1:
        size += 1
    size += math.ceil(math.log2(SPARE * seconds / spent))
    re.match("(a+)+$", "a" * size + "b")

def convert(seconds):
    """A large number becomes a text."""
    sys.set_int_max_str_digits(0)
    bits = 400_000
    bits *= math.sqrt(SPARE * seconds / took(lambda: str(1 << bits)))
    str(1 << int(bits))

def wait(seconds):
    """The process is in state D, as one that swaps is: until the child can open the pipe."""
    pipe = ASKED + ".pipe"
    os.mkfifo(pipe)
    os.spawnl(os.P_NOWAIT, "/bin/sh", "sh", "-c", f"sleep {{seconds}}; : > {{pipe}}; rm {{pipe}}")
    opened = [(os.POSIX_SPAWN_OPEN, 0, pipe, os.O_RDONLY, 0)]
    os.waitpid(os.posix_spawn("/bin/true", ["true"], {{}}, file_actions=opened), 0)

@weir.udf
def kept(s: int) -> int:
    try:
        os.rename(ASKED, ASKED + ".taken")
    except FileNotFoundError:
        return s
    how, seconds = open(ASKED + ".taken").read().split()
    {{"sleep": sleep, "search": search, "convert": convert, "wait": wait}}[how](int(seconds))
    os.rename(ASKED + ".taken", ASKED + ".done")
    return s
'''


def busy_job(cluster: Cluster, hosts: int) -> Job:
    """Make the job of `job_on`, with the user's code."""
    job = job_on(cluster, hosts, PROGRAM + KEPT)
    (job.folder / "busy.py").write_text(BUSY.format(asked=str(_asked(job))), encoding="utf-8")
    return job


def _asked(job: Job) -> Path:
    return job.folder / "asked"


# --- faults ----------------------------------------------------------------------------------


def hosts_are_busy(faulty: Faulty) -> None:
    """user code holds Python's lock for a minute, in four ways"""
    for how in ("sleep", "search", "convert", "wait"):
        with _nobody_lost(faulty, f"busy for {BUSY_SECONDS} s ({how})"):
            _hold_lock(faulty, how, BUSY_SECONDS)
            longest = _longest_step(faulty)
        assert longest > 0.9 * BUSY_SECONDS, longest
        faulty.must_progress(CAUGHT_UP_WITHIN)


def the_load_is_20(faulty: Faulty) -> None:
    """a load of 20 for 40 s"""
    with _nobody_lost(faulty, f"a load of {LOAD} for {LOAD_SECONDS:.0f} s"):
        command = (sys.executable, "-c", "while True: pass")
        load = [subprocess.Popen(command) for _ in range(LOAD)]
        try:
            time.sleep(LOAD_SECONDS)
        finally:
            for process in load:
                process.kill()
            for process in load:
                process.wait()
    faulty.must_progress(3.0)


def hosts_are_stopped_and_killed(faulty: Faulty) -> None:
    """hosts, their companions and their tasks are stopped and killed"""
    _stop_and_wake(faulty)
    _kill(faulty, "kill -9 of a host", lambda host: host.pid)
    _kill(faulty, "kill -9 of a task's process", lambda host: _parent(host.pid))
    with _nobody_lost(faulty, "kill -9 of a companion"):
        _signal(faulty, _companion(_victim(faulty)), signal.SIGKILL)
        time.sleep(3.0)
    with _nobody_lost(faulty, "kill -9 of a busy host's companion"):
        busy = _hold_lock(faulty, "sleep", 15)
        for _ in range(3):
            _signal(faulty, _companion(busy), signal.SIGKILL)
            time.sleep(2.0)
        _longest_step(faulty)


def hosts_are_busy_after_the_way_was_lost(faulty: Faulty) -> None:
    """the way to the manager is lost for 4 s, then a host is busy; then the job is stopped"""
    head = faulty.cluster.head
    status = faulty.status()
    felt = Felt("the way to the manager is lost for 4 s", time.time(), _sessions(status.hosts))
    faulty.felt.append(felt)
    head.cut()
    time.sleep(4.0)
    head.mend()
    with _nobody_lost(faulty, "busy for 20 s, as soon as the way is back"):
        _ask(faulty, "sleep", 20)
        _longest_step(faulty)  # may be of a host that does not know yet that it was lost
        faulty.wait_until_lost(felt)
        faulty.wait_until_whole(len(status.hosts))
    assert _pids(faulty.status()) == _pids(status), "a host gave its manager up"
    _hold_lock(faulty, "sleep", 120)
    began = time.time()
    faulty.job.stop(within=STOP_LIMIT)
    ended = Felt("SIGTERM while a host is busy: ended", began, frozenset())
    ended.found = time.time() - began
    faulty.felt.append(ended)
    faulty.job.start(resume=True)
    faulty.wait_until_whole(len(status.hosts))


ALIVE: tuple[Callable[[Faulty], None], ...] = (
    hosts_are_busy,
    the_load_is_20,
    hosts_are_stopped_and_killed,
    hosts_are_busy_after_the_way_was_lost,
)


def _stop_and_wake(faulty: Faulty) -> None:
    host = _victim(faulty)
    felt = Felt("a host is stopped (SIGSTOP)", time.time(), frozenset({host.id}))
    faulty.felt.append(felt)
    _signal(faulty, host.pid, signal.SIGSTOP)
    faulty.wait_until_lost(felt)
    felt.measure(faulty.job.story())
    assert felt.found is not None and felt.found < STOP_WITHIN, felt.found
    with _nobody_lost(faulty, "it goes on (SIGCONT)"):
        _signal(faulty, host.pid, signal.SIGCONT)
        faulty.wait_until_whole(len(faulty.status().hosts) + 1)
        faulty.must_progress(3.0)


def _kill(faulty: Faulty, name: str, whom: Callable[[HostStatus], int]) -> None:
    hosts = len(faulty.status().hosts)
    host = _victim(faulty)
    victim = whom(host)
    felt = Felt(name, time.time(), frozenset({host.id}))
    faulty.felt.append(felt)
    _signal(faulty, victim, signal.SIGKILL)
    faulty.wait_until_lost(felt)
    felt.measure(faulty.job.story())
    assert felt.found is not None and felt.found < DEATH_WITHIN, felt.found
    faulty.wait_until_whole(hosts)


# --- busy hosts ------------------------------------------------------------------------------


def _ask(faulty: Faulty, how: str, seconds: int) -> None:
    asked = _asked(faulty.job)
    written = asked.with_suffix(".new")
    written.write_text(f"{how} {seconds}", encoding="utf-8")
    written.rename(asked)


def _hold_lock(faulty: Faulty, how: str, seconds: int) -> HostStatus:
    """Let one host hold Python's lock; return it as soon as its status says that it is busy."""
    _ask(faulty, how, seconds)
    status = faulty.wait_for(lambda s: any(map(_is_long, s.vertices)), "busy host")
    vertex = next(filter(_is_long, status.vertices))
    return next(h for h in faulty.status().hosts if h.id == vertex.host)


def _is_long(vertex: VertexStatus) -> bool:
    return (vertex.step_seconds or 0.0) > 2.0


def _longest_step(faulty: Faulty) -> float:
    """Wait until the host that was asked to be busy is so no more; return how long the longest step
    was meanwhile."""
    longest = [0.0]
    done = _asked(faulty.job).with_suffix(".done")

    def is_over(status: JobStatus) -> bool:
        longest.append(max(v.step_seconds or 0.0 for v in status.vertices))
        return done.exists()

    faulty.wait_for(is_over, "end of a long step", within=5 * BUSY_SECONDS)
    done.unlink()
    return max(longest)


@contextmanager
def _nobody_lost(faulty: Faulty, name: str) -> Iterator[None]:
    """See that no host is lost meanwhile."""
    began = time.time()
    yield
    lost = [x.what for x in faulty.job.story() if x.time >= began and " lost: " in x.what]
    assert not lost, f"{name}: {lost}"
    faulty.felt.append(Felt(f"{name}: nobody lost", began, frozenset()))


# --- processes -------------------------------------------------------------------------------


def _victim(faulty: Faulty) -> HostStatus:
    """Find the host with most vertices."""
    return max(faulty.status().hosts, key=lambda host: len(host.vertices))


def _sessions(hosts: tuple[HostStatus, ...]) -> frozenset[str]:
    return frozenset(host.id for host in hosts)


def _pids(status: JobStatus) -> set[int]:
    return {host.pid for host in status.hosts}


def _signal(faulty: Faulty, pid: int, number: signal.Signals) -> None:
    """Send a signal to a process of the cluster, and to no other."""
    assert any(pid in worker.pids() for worker in faulty.cluster.workers), pid
    os.kill(pid, number)


def _parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text("utf-8").rpartition(")")[2].split()[1])


def _companion(host: HostStatus) -> int:
    """Find the companion of a host: the other child of its task's process."""
    task = _parent(host.pid)
    children = Path(f"/proc/{task}/task/{task}/children").read_text("utf-8").split()
    (companion,) = (pid for pid in map(int, children) if pid != host.pid)
    return companion
