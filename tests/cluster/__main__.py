"""`make cluster`: jobs on a Spark cluster of machines in a box, whose parts fail.

    python -m cluster [FAULT …]

Each fault comes in the middle of a live job under load, fed by growing files; then the input ends.
The files must be those of the local runner byte for byte. A table says for every fault after how
many seconds it was found, after how many all vertices ran again, and how long rows took that began
meanwhile (p99, from the writing of the later of two joined events to the commit of their row). Exit
code 1 when an answer differs, or a job hangs or fails; its folder is then kept. Offline jobs follow
(`offline.py`).
"""

from __future__ import annotations

import argparse
import shutil
import signal
import sys
import tempfile
import time
from pathlib import Path

from chaos.job import JobFailed
from chaos.kills import JobHangs
from cluster import machine_faults, network_faults
from cluster.alive import ALIVE, busy_job
from cluster.cluster import Cluster, cluster, nothing
from cluster.faults import HOSTS, WORKERS, Fault, Faulty, Felt, job_on
from cluster.machines import why_not
from cluster.offline import CHECKS, passes, title

START_WITHIN, FINISH_WITHIN = 300.0, 180.0
FAULTS: tuple[Fault, ...] = (*machine_faults.FAULTS, *network_faults.FAULTS, *ALIVE)
PREPARE = {**machine_faults.PREPARE, **network_faults.PREPARE}
WHY_NOT = machine_faults.WHY_NOT


def main() -> int:
    parser = argparse.ArgumentParser(prog="cluster", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("fault", nargs="*", help="words of the faults' names; all without any")
    asked = parser.parse_args().fault
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that nothing is left behind
    if missing := why_not():
        print(f"no machines in a box: {missing}")
        return 1
    chosen = [f for f in FAULTS if not asked or any(w in _title(f) for w in asked)]
    chosen = [fault for fault in chosen if _can_be_made(fault)]
    felt: list[Felt] = []
    failed = [_title(fault) for fault in chosen if not _passes(fault, felt)]
    checks = [c for c in CHECKS if not asked or any(w in title(c) for w in asked)]
    failed += [title(check) for check in checks if not passes(check)]
    print(f"{'':52} {'found':>7} {'running':>8} {'p99':>8}  (seconds)")
    for one in felt:
        print(one)
    held = len(chosen) + len(checks) - len(failed)
    print(f"{held} held, {len(failed)} failed{': ' if failed else ''}", *failed)
    return 1 if failed else 0


def _title(fault: Fault) -> str:
    return (fault.__doc__ or "").strip()


def _can_be_made(fault: Fault) -> bool:
    why = WHY_NOT[fault]() if fault in WHY_NOT else ""
    if why:
        print(f"skipped {_title(fault)}: {why}")
    return not why


def _passes(fault: Fault, felt: list[Felt]) -> bool:
    folder = Path(tempfile.mkdtemp(prefix="weir-cluster-"))
    began = time.monotonic()
    try:
        with cluster(folder, WORKERS, PREPARE.get(fault, nothing)) as machines:
            _suffer(fault, machines, felt)
    except (JobHangs, JobFailed, AssertionError, TimeoutError) as error:
        print(f"FAILED  {_title(fault)}: {error!r}; see {folder}", flush=True)
        return False
    print(f"held    {_title(fault)}  ({time.monotonic() - began:.0f} s)")
    print(felt[-1], flush=True)
    shutil.rmtree(folder, ignore_errors=True)
    return True


def _suffer(fault: Fault, machines: Cluster, felt: list[Felt]) -> None:
    job = (busy_job if fault in ALIVE else job_on)(machines, HOSTS)
    faulty = Faulty(machines, job)
    try:
        job.start()
        job.start_feeding()
        faulty.wait_until_whole(HOSTS, START_WITHIN)
        faulty.must_progress(10.0)
        fault(faulty)
        ended = time.time()
        found = job.finish(FINISH_WITHIN)
        faulty.measure(until=ended)
        felt += faulty.felt
        assert found == job.run_locally(), "the answer is not that of the local runner"
    finally:
        job.close()


if __name__ == "__main__":
    sys.exit(main())
