"""Jobs that are submitted to a cluster in a box: their code travels, several run at a time, drivers
are started again by the master.

    python -m cluster.jobs [WORD …]

Each case is a cluster of its own. The files must be those of the local runner byte for byte. Exit
code 1 when one differs, or a job hangs or fails; its folder is then kept.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from chaos.job import JobFailed
from cluster.cluster import cluster, with_own
from cluster.machines import Machine, why_not
from cluster.packing import do, make_environment
from cluster.recipes import the_recipe_for_kubernetes, the_recipe_for_yarn
from cluster.submitting import (
    FILES,
    SMALL,
    Work,
    drivers,
    kill,
    wait_for_driver,
)
from cluster.waiting import LIMIT, POLL

COLD = 3 * LIMIT
"""Seconds in which a driver begins on a machine that has no compiled loops, and is under load."""
DYNAMIC = {
    "spark.dynamicAllocation.enabled": "true",
    "spark.dynamicAllocation.shuffleTracking.enabled": "true",
    "spark.dynamicAllocation.minExecutors": "0",
    "spark.dynamicAllocation.executorIdleTimeout": "10s",
    "spark.executor.cores": "1",
    "spark.executor.memory": "512m",
}


def code_travels(folder: Path) -> None:
    """a program's modules reach machines that have no such folder, live and offline"""
    with cluster(folder, 2, with_own(_hidden(folder, "work"))) as machines:
        work = Work(machines, "work", rows=20_000)
        work.end(work.weir("live", "--hosts", "2"))
        work.check()
        (work.folder / "out" / "sums.csv").unlink()
        work.end(work.weir("offline"))
        work.check()


def what_is_missing_is_named(folder: Path) -> None:
    """a module that does not travel is missed by machine and by name, before anything runs"""
    elsewhere = folder / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "only_here.py").write_text("more = 1\n", encoding="utf-8")
    with cluster(folder, 2, with_own({elsewhere: "1m"})) as machines:
        work = Work(machines, "work", files={**FILES, "later.py": "from only_here import more\n"})
        path = os.pathsep.join([str(elsewhere), work.env.get("PYTHONPATH", "")])
        work.env = {**work.env, "PYTHONPATH": path}
        assert work.weir("live").wait(LIMIT) == 1
        said = work.last_words()
        for machine in machines.workers:
            assert f"{machine.name} (" in said, said
        assert "the module 'only_here' is not installed, which later imports" in said, said
        assert "Traceback" not in said, said
        work.write("weights/odd.py", "import only_here\nshare = (1, 3)\n")
        assert work.weir("offline").wait(LIMIT) == 1
        said = work.last_words().rpartition("weir: error: ")[2]
        assert "IMPORT 'rules.py' cannot be run in a worker: ModuleNotFoundError" in said, said
        assert "(on w" in said and "Traceback" not in said, said
        work.write("weights/odd.py", "share = (1, 3)\n")
        work.end(
            work.submit("live", "--resume", options=("--py-files", str(elsewhere / "only_here.py")))
        )
        work.check(elsewhere)


def a_submitted_driver_is_killed(folder: Path) -> None:
    """spark-submit in client mode: the driver is killed, the same command goes on"""
    with cluster(folder, 3) as machines:
        work = Work(machines, "work")
        first = work.submit("live", "--resume=auto", "--hosts", "3")
        work.wait_for(lambda s: s.events > 8000, "events")
        os.killpg(first.pid, signal.SIGKILL)
        first.wait()
        work.end(work.submit("live", "--resume=auto", "--hosts", "3"))
        work.check()
        (work.folder / "out" / "sums.csv").unlink()
        began = time.monotonic()
        work.end(work.submit("live", "--resume=auto", "--hosts", "3"))
        work.check()
        print(f"  a job that had finished: {time.monotonic() - began:.1f} s", flush=True)
        work.write("p.weir", work.program.replace("TUMBLING(1s)", "TUMBLING(2s)"))
        assert work.submit("live", "--resume=auto").wait(LIMIT) == 2, work.last_words()
        assert "holds the job of another program" in work.last_words()


def a_supervised_driver_comes_back(folder: Path) -> None:
    """spark-submit in cluster mode with --supervise: the driver is killed, then its machine"""
    with cluster(folder, 3) as machines:
        work = Work(machines, "work", rows=80_000)
        work.submit_supervised("--resume=auto", "--hosts", "2")
        worker, pid = wait_for_driver(machines)
        work.wait_for(lambda s: s.events > 8000, "events", COLD)
        worker, pid = _come_back(work, pid, lambda: kill(pid))
        _come_back(work, pid, worker.kill)
        until = time.monotonic() + COLD
        while drivers(machines) != ["FINISHED"]:
            assert time.monotonic() < until, drivers(machines)
            time.sleep(POLL)
        work.check()


def _come_back(work: Work, pid: int, end: Callable[[], None]) -> tuple[Machine, int]:
    """End a driver; see another one read on."""
    before = work.wait_for(lambda _: True, "status")
    at = time.monotonic()
    end()
    found = wait_for_driver(work.cluster, other_than=pid)
    work.wait_for(
        lambda s: s.epoch > before.epoch and s.events > before.events + 1000, "more events", COLD
    )
    print(f"  another driver reads on after {time.monotonic() - at:.1f} s", flush=True)
    return found


def three_jobs_at_once(folder: Path) -> None:
    """two live jobs and an offline one at a time, each with its share of the cores"""
    _three_jobs(folder, {"spark.executor.memory": "512m", "spark.cores.max": "2"})


def three_jobs_with_dynamic_allocation(folder: Path) -> None:
    """two live jobs and an offline one at a time, with dynamic allocation"""
    _three_jobs(folder, DYNAMIC)


def _three_jobs(folder: Path, conf: dict[str, str]) -> None:
    with cluster(folder, 3) as machines:
        # The live ones last until Spark has started for the third, also on a machine under load.
        live = [Work(machines, f"work-{n}", share=n + 3, rows=600_000) for n in range(2)]
        offline = Work(machines, "work-2", share=5, rows=140_000)
        running = [work.weir("live", "--hosts", "2", conf=conf) for work in live]
        for work in live:
            work.wait_for(lambda s: s.events > 4000 and len(s.hosts) == 2, "hosts that read", COLD)
        third, together = offline.weir("offline", conf=conf), 0
        while third.poll() is None:
            states = [app["state"] for app in machines.told("activeapps")]
            together = max(together, states.count("RUNNING"))
            time.sleep(POLL)
        offline.end(third)
        assert together == 3, f"{together} ran at a time"
        for work, process in zip(live, running, strict=True):
            work.end(process, within=COLD)
            last = work.status()
            assert last is not None and not last.recoveries, "a host was taken away"
        for work in (*live, offline):
            work.check()


def a_packed_environment(folder: Path) -> None:
    """a packed environment brings Weir and its libraries to machines that have none"""
    environment, archive = folder / "environment", folder / "environment.tar.gz"
    make_environment(environment)
    packing = ("-p", str(environment), "-o", str(archive), "--compress-level", "1")
    do(str(environment / "bin" / "python"), "-m", "venv_pack", *packing)
    here = folder / "here"
    here.mkdir()
    (here / "packed_only.py").write_text("more = 1\n", encoding="utf-8")
    path = os.environ.pop("PYTHONPATH", "")  # else workers would have this Weir
    try:
        with cluster(
            folder, 2, with_own({environment: "1m", **_hidden(folder, "work")})
        ) as machines:
            needs = "from packed_only import more\n"
            work = Work(machines, "work", rows=20_000, files={**FILES, "later.py": needs})
            work.env = {**work.env, "PYTHONPATH": os.pathsep.join((str(here), path))}
            packed = {"spark.archives": f"{archive}#environment", **SMALL}
            chosen = {"spark.pyspark.python": "./environment/bin/python"}
            # Archives of 200 MB are unpacked, and loops compiled, on every machine.
            work.end(work.weir("offline", conf={**packed, **chosen}), within=COLD)
            (work.folder / "out" / "sums.csv").unlink()
            work.env = {
                **work.env,
                "PYTHONPATH": "",
                "PYSPARK_DRIVER_PYTHON": str(environment / "bin" / "python"),
                "PYSPARK_PYTHON": "./environment/bin/python",
            }
            work.end(work.submit("live", "--hosts", "2", conf=packed), within=COLD)
    finally:
        os.environ["PYTHONPATH"] = path
    work.check(here)


def _hidden(folder: Path, name: str) -> dict[Path, str]:
    """The program's folder, as what no worker sees."""
    hidden = folder / name / "program"
    hidden.mkdir(parents=True)
    return {hidden: "1m"}


CASES: tuple[Callable[[Path], None], ...] = (
    code_travels,
    what_is_missing_is_named,
    a_submitted_driver_is_killed,
    a_supervised_driver_comes_back,
    three_jobs_at_once,
    three_jobs_with_dynamic_allocation,
    a_packed_environment,
    the_recipe_for_kubernetes,
    the_recipe_for_yarn,
)


def main() -> int:
    parser = argparse.ArgumentParser(prog="cluster.jobs", description=(__doc__ or "").split(".")[0])
    parser.add_argument("word", nargs="*", help="words of the cases' names; all without any")
    asked = parser.parse_args().word
    if missing := why_not():
        print(f"no machines in a box: {missing}")
        return 1
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # machines are removed then, too
    chosen = [c for c in CASES if not asked or any(w in (c.__doc__ or "") for w in asked)]
    failed = [case for case in chosen if not _holds(case)]
    print(f"{len(chosen) - len(failed)} held, {len(failed)} failed")
    return 1 if failed else 0


def _holds(case: Callable[[Path], None]) -> bool:
    folder = Path(tempfile.mkdtemp(prefix="weir-jobs-"))
    began = time.monotonic()
    try:
        case(folder)
    except (JobFailed, AssertionError, TimeoutError, subprocess.TimeoutExpired) as error:
        print(f"FAILED  {case.__doc__}: {error!r}; see {folder}", flush=True)
        return False
    print(f"held    {case.__doc__}  ({time.monotonic() - began:.0f} s)", flush=True)
    shutil.rmtree(folder, ignore_errors=True)
    return True


if __name__ == "__main__":
    sys.exit(main())
