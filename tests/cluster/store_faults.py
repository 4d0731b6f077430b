"""Live jobs whose store and outputs are in a bucket: its server, and the ways to it, fail.

    python -m cluster.store_faults [FAULT …]     (`make cluster` runs it too)

Each fault comes in the middle of a live job under load, and passes; then the input ends. The
objects must have the bytes of the local runner's. A table says for every fault after how many
seconds the story told of it, after how many the last process could use the store again (or ran
elsewhere), and how long rows that came meanwhile took: until they were seen on the console, and
until they were committed (99th percentiles). Exit code 1 when an answer differs, or a job hangs or
ends.
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
from chaos.kills import JobHangs
from cluster.bucket_job import (
    HTTP,
    OUTPUTS,
    STORE,
    StoreFault,
    Suffering,
    assert_no_secret,
    bucket_cluster,
    driver_environment,
    objects,
    run,
)
from cluster.machines import Machine, why_not
from cluster.s3_server import Request, S3Server
from cluster.waiting import LIMIT

SECONDS = 20.0
Case = Callable[[Path], list[StoreFault]]
End = Callable[[], None]
Begin = Callable[[Suffering], End]
"""Lets a fault begin; returns what ends it."""
Which = Callable[[Suffering], Machine]


def title(case: Case) -> str:
    return (case.__doc__ or "").strip()


def passing(title: str, begin: Begin, seconds: float = SECONDS) -> Case:
    """Make a case whose fault passes after so many seconds."""

    def fault(job: Suffering) -> None:
        with job.suffer(f"{title}, {seconds:.0f} s"):
            end = begin(job)
            time.sleep(seconds)
            end()

    def case(folder: Path) -> list[StoreFault]:
        return run(fault, folder)

    case.__doc__ = title
    return case


def nothing(job: Suffering) -> End:
    return lambda: None


def answers(**how: float) -> Begin:
    """Let the server answer so to everything (`S3Server.fail`)."""

    def begin(job: Suffering) -> End:
        job.server.fail(**how)
        return job.server.mend

    return begin


def gone(job: Suffering) -> End:
    job.server.kill_front()
    return job.server.start_front


def out_of_reach(job: Suffering) -> End:
    job.server.machine.cut()
    return job.server.machine.mend


def deaf(one: Which, to: Which) -> Begin:
    """Let a machine hear nothing from another."""

    def begin(job: Suffering) -> End:
        hears, speaks = one(job), to(job)
        hears.drop(f"ip saddr {speaks.address}")
        return hears.mend

    return begin


def the_store(job: Suffering) -> Machine:
    return job.server.machine


def the_driver(job: Suffering) -> Machine:
    return job.machines.head


def late_listing(folder: Path) -> list[StoreFault]:
    """listings are a minute late, and the driver is killed meanwhile"""

    def fault(job: Suffering) -> None:
        with job.suffer("listings are 60 s late, and the driver is killed"):
            job.server.fail(late=60.0)
            time.sleep(5.0)
            known = job.job.status()
            assert known is not None
            job.job.kill_driver()
            job.job.start(resume=True)
            job.wait_for(lambda status: status.epoch > known.epoch, "another driver")
            time.sleep(10.0)

    return run(fault, folder)


def denied(folder: Path) -> list[StoreFault]:
    """access is denied: the job ends at once, and goes on when it is allowed again"""

    def fault(job: Suffering) -> None:
        job.server.fail(status=403)
        began = time.monotonic()
        said = _last_words(job)
        seconds = time.monotonic() - began
        job.server.mend()
        assert f"'{STORE}': access is denied (403 AccessDenied)" in said, said
        assert "--resume" in said and seconds < 20, (seconds, said)
        job.job.start(resume=True)
        job.must_commit(1.0)

    return run(fault, folder)


def _last_words(job: Suffering) -> str:
    """Wait until the driver ends, and return what it said."""
    try:
        while True:
            job.job.check()
            time.sleep(0.1)
    except JobFailed as ended:
        return str(ended)


def two_drivers(folder: Path) -> list[StoreFault]:
    """two drivers with one store: the later one takes the job over, by a conditional request"""

    def fault(job: Suffering) -> None:
        path = f"/{job.server.bucket}/job/job"
        made = [r for r in job.server.requests() if r.path == path and r.method == "PUT"]
        assert all(r.condition == "*" for r in made), made
        assert sorted(r.status for r in made) == [200, 412], made
        other = [
            "run",
            "live.weir",
            "--runner",
            "live",
            "--store",
            STORE,
            "--parallelism",
            "2",
            "--hosts",
            "1",
            "--master",
            job.machines.master,
            *HTTP,
        ]
        begun = weir(job, *other)
        assert begun.returncode and "holds a job already" in begun.stderr, begun.stderr
        before = len(job.server.requests())
        with (job.job.folder / "second.log").open("wb") as log:
            second = job.machines.head.start(
                sys.executable,
                "-m",
                "weir.cli",
                *other,
                "--resume",
                log=log,
                env=driver_environment(job.machines),
                cwd=job.job.folder,
            )
        assert _first_to_end(job, second) == "driver.log", "the later one has ended"
        said = (job.job.folder / "driver.log").read_text("utf-8")
        assert "another job manager has taken over this store" in said, said
        fenced = [
            r.path
            for r in job.server.requests()[before:]
            if (r.method, r.condition, r.status) == ("PUT", "*", 412) and "/records/0" in r.path
        ]
        assert fenced, "no record of a driver was refused"
        os.killpg(second.pid, signal.SIGKILL)
        job.job.start(resume=True)
        job.must_commit(2.0)

    return run(fault, folder)


def _first_to_end(job: Suffering, second: subprocess.Popen[bytes]) -> str:
    """Wait until one of two drivers ends, and name its log."""
    until = time.monotonic() + 2 * LIMIT  # Spark starts beside a job under load
    while time.monotonic() < until:
        if second.poll() is not None:
            return "second.log"
        try:
            job.job.check()
        except JobFailed:
            return "driver.log"
        time.sleep(0.1)
    raise JobHangs("two drivers run one job")


def weir(job: Suffering, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a command of weir on the head."""
    command = job.machines.head.command(sys.executable, "-m", "weir.cli", *arguments)
    return subprocess.run(
        command,
        cwd=job.job.folder,
        env=driver_environment(job.machines),
        capture_output=True,
        text=True,
        timeout=120,
    )


PROGRAM = """
STREAM A (vs BIGINT, k STRING, v BIGINT) FROM 's3://weir/in/*.jsonl';
Sums = SELECT k, SUM(v) AS total, COUNT(*) AS n FROM A GROUP BY k WITH TUMBLING(1000);
Few = SELECT k, v FROM A WHERE v % 10 == 0;
OUTPUT Sums TO '{folder}/sums.parquet';
OUTPUT Few TO '{folder}/few.csv';
OUTPUT Few TO '{folder}/few.jsonl';
"""
MAKE_INPUT = """
import sys
from weir.files.buckets import put_object
for part in range(3):
    rows = (f'{{"vs": {i}, "k": "{i * 7919 % 101}", "v": {i * 31 % 1009}}}\\n'
            for i in range(part, 600_000, 3))
    put_object(f"s3://weir/in/{part}.jsonl", "".join(rows).encode())
"""


def objects_everywhere(folder: Path) -> list[StoreFault]:
    """inputs, outputs and the store in a bucket that answers 503 for 10 s: live, offline, local"""
    with bucket_cluster(folder) as (machines, server):
        own = folder / "tmp"  # a folder of the driver's, which no worker sees
        own.mkdir()
        machines.head.own[own] = "500m"
        env = driver_environment(machines) | {"TMPDIR": str(own)}
        made = machines.head.run(sys.executable, "-c", MAKE_INPUT, env=env)
        assert made.returncode == 0, made.stderr
        answers = {}
        for name, options in {
            "local": [],
            "offline": ["--runner", "offline", "--master", machines.master, *HTTP],
            "live": [
                "--runner",
                "live",
                "--store",
                STORE,
                "--hosts",
                "3",
                "--master",
                machines.master,
                *HTTP,
            ],
        }.items():
            text = PROGRAM.format(folder=OUTPUTS.format(name=name))
            (folder / f"{name}.weir").write_text(text, encoding="utf-8")
            command = [sys.executable, "-m", "weir.cli", "run", f"{name}.weir", *options]
            before = len(server.requests())
            with (folder / f"{name}.log").open("wb") as log:
                running = machines.head.start(*command, log=log, env=env, cwd=folder)
            _wait_for_reads(server, before)
            server.fail(status=503)
            time.sleep(10.0)
            server.mend()
            code = running.wait(180)
            assert code == 0, (folder / f"{name}.log").read_text("utf-8")[-3000:]
            answers[name] = objects(server.onlooker(OUTPUTS.format(name=name)))
        assert len(answers["local"]) == 6 and all(answers["local"].values())
        assert answers["offline"] == answers["local"], "offline differs"
        assert answers["live"] == answers["local"], "live differs"
        assert_no_secret(folder)
    return []


def _wait_for_reads(server: S3Server, before: int) -> None:
    """Wait until an input is being read."""

    def reads(request: Request) -> bool:
        return request.method == "GET" and request.path == f"/{server.bucket}/in/0.jsonl"

    until = time.monotonic() + 90
    while not any(map(reads, server.requests()[before:])):
        if time.monotonic() > until:
            raise TimeoutError("nobody reads the inputs")
        time.sleep(0.1)


CASES: tuple[Case, ...] = (
    passing("nothing fails", nothing),
    passing("the store answers 503 SlowDown", answers(status=503)),
    passing("the store answers 429 TooManyRequests", answers(status=429)),
    passing("the store takes 2 s for each answer", answers(delay=2.0)),
    passing("the store does what it is asked, and every fifth answer is lost", answers(lose=5)),
    passing("the store's server is killed, and started again after 5 s", gone, 5.0),
    passing("nobody reaches the store", out_of_reach),
    passing("one way: a worker does not hear the store", deaf(Suffering.worker, the_store), 30.0),
    passing("one way: the store does not hear a worker", deaf(the_store, Suffering.worker), 30.0),
    passing("one way: the driver does not hear the store", deaf(the_driver, the_store)),
    late_listing,
    denied,
    two_drivers,
    objects_everywhere,
)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("fault", nargs="*", help="words of the faults' names; all without any")
    asked = parser.parse_args().fault
    if missing := why_not():
        print(f"no machines in a box: {missing}")
        return 1
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        del os.environ[name]
    chosen = [case for case in CASES if not asked or any(w in title(case) for w in asked)]
    felt: list[StoreFault] = []
    failed = [title(case) for case in chosen if not _passes(case, title(case), felt)]
    print(f"{'':58}{'told':>9}{'well':>9}{'seen':>9}{'commit':>9}  (seconds)")
    for one in felt:
        print(one)
    print(f"{len(chosen) - len(failed)} held, {len(failed)} failed", *failed, sep="\n  ")
    return 1 if failed else 0


def _passes(case: Case, title: str, felt: list[StoreFault]) -> bool:
    folder, began = Path(tempfile.mkdtemp(prefix="weir-buckets-")), time.monotonic()
    try:
        suffered = case(folder)
    except (JobHangs, JobFailed, AssertionError, TimeoutError) as error:
        print(f"FAILED  {title}: {error!r}; see {folder}", flush=True)
        return False
    felt += suffered
    print(f"held    {title}  ({time.monotonic() - began:.0f} s)", *suffered, sep="\n  ", flush=True)
    shutil.rmtree(folder, ignore_errors=True)
    return True


if __name__ == "__main__":
    sys.exit(main())
