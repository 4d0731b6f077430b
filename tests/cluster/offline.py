"""Offline jobs on a Spark cluster of machines in a box: their answers are the local runner's.

A check gets a cluster that runs, and says in a line what it found beyond that: how long a lost
machine cost, for instance. An answer is the digests that a run reported and the bytes of its files.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pyarrow.parquet as pq
from benchmarks.offline_data import write_all
from benchmarks.offline_queries import QUERIES

import weir
from cluster.cluster import SPARK, Cluster, cluster, environment
from cluster.machines import Machine
from cluster.offline_driver import click_counts

WORKERS = 3
WORKLOADS = ("grep", "wordcount", "join", "distinct")
WITHIN = 600.0
"""Seconds in which a driver must be through."""
MIDDLE = 0.1
"""The share of a job's work after which a machine is lost: sources are read, none to the end."""
CONNECT_PORT = 15002
CASES = Path(__file__).parents[1] / "conformance"
DRIVER = Path(__file__).with_name("offline_driver.py")
SOON = (
    "spark.network.timeout=10s",
    "spark.network.timeoutInterval=2s",
    "spark.executor.heartbeatInterval=2s",
)
"""Settings of Spark with which it finds a lost machine in seconds."""
Check = Callable[[Cluster], str]


# --- the checks ------------------------------------------------------------------------------


def conformance(machines: Cluster) -> str:
    """offline: the conformance cases"""
    cases = [str(path) for path in sorted(CASES.glob("*.jsonl"))]
    temporary = machines.folder / "tmp"
    temporary.mkdir()
    machines.head.own[temporary] = "64m"  # as on machines of metal, workers do not see it
    done = machines.head.run(
        sys.executable,
        "-m",
        "weir.cli",
        "conform",
        *cases,
        "--runner",
        "offline",
        "--cut",
        "1,3,none",
        "--parallelism",
        "1,3",
        "--master",
        machines.master,
        env=environment(machines.head, machines.folder) | {"TMPDIR": str(temporary)},
        timeout=WITHIN,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    said = done.stdout.splitlines()[-1]
    assert said.endswith(" passed, 0 failed") and not said.startswith("0 "), said
    return said


def workloads(machines: Cluster) -> str:
    """offline: the four workloads of the benchmarks"""
    jobs = Jobs(machines, 0.1)
    found = jobs.finished(jobs.start("cluster", machines.head, machines.master))
    return jobs.compare("cluster", found)


def a_worker_is_lost(machines: Cluster) -> str:
    """offline: a worker machine is lost in mid-job"""
    return _lose_a_worker(machines, ())


def a_worker_is_lost_and_found_out_soon(machines: Cluster) -> str:
    """offline: a worker machine is lost in mid-job, with shorter timeouts of Spark"""
    return _lose_a_worker(machines, SOON)


def _lose_a_worker(machines: Cluster, settings: Sequence[str]) -> str:
    jobs = Jobs(machines, 0.5, ("wordcount",))
    head, master = machines.head, machines.master
    events = machines.folder / "events"
    events.mkdir()
    log = ("spark.eventLog.enabled=true", f"spark.eventLog.dir=file://{events}")
    plain = ("spark.eventLog.compress=false", "spark.eventLog.rolling.enabled=false")
    settings = (*settings, *log, *plain)
    calm = jobs.finished(jobs.start("calm", head, master, settings))
    jobs.compare("calm", calm)
    of_calm = set(events.iterdir())
    running = jobs.start("lost", head, master, settings)
    jobs.wait_for_share(running, MIDDLE)
    machines.workers[0].lose()
    found = jobs.finished(running)
    jobs.compare("lost", found)
    logs = set(events.iterdir()) - of_calm
    said = "".join(path.read_text("utf-8", "replace") for path in logs)
    assert "ExecutorLostFailure" in said or "FetchFailed" in said, "no task was lost"
    before, after = (float(str(one["wordcount"]["seconds"])) for one in (calm, found))
    return f"{before:.0f} s, with the loss {after:.0f} s"


def spark_connect(machines: Cluster) -> str:
    """offline: workloads and DataFrames through Spark Connect, from a machine outside"""
    client = machines.network.machine("client")
    jobs = Jobs(machines, 0.1)
    _start_connect_server(machines)
    remote = f"sc://{machines.head.address}:{CONNECT_PORT}"
    found = jobs.finished(jobs.start("connect", client, remote, more=("--frames",)))
    came = pq.read_table(jobs.folder / "frames.parquet")
    clicks = weir.stream(
        "C", {"t": "BIGINT", "url": "BIGINT"}, str(jobs.folder / "clicks/*.parquet"), vs="t"
    )
    wanted = weir.collect(click_counts(clicks))
    order = [(name, "ascending") for name in ("vs", "url")]
    assert came.sort_by(order).to_pylist() == wanted.sort_by(order).to_pylist()
    return f"{jobs.compare('connect', found)}; {came.num_rows} rows of a DataFrame"


CHECKS: tuple[Check, ...] = (
    conformance,
    workloads,
    a_worker_is_lost,
    a_worker_is_lost_and_found_out_soon,
    spark_connect,
)


# --- jobs ------------------------------------------------------------------------------------

Said = dict[str, dict[str, object]]
"""What a driver said last of each program, by its name."""


class Running:
    """A driver that runs on a machine, and what it says."""

    def __init__(self, process: subprocess.Popen[bytes], log: Path) -> None:
        self.process, self._log = process, log

    def lines(self) -> Iterator[dict[str, object]]:
        for line in self.text().splitlines():
            if line.startswith("{") and line.endswith("}"):
                yield json.loads(line)

    def text(self) -> str:
        return self._log.read_text("utf-8", "replace")


class Jobs:
    """The benchmarks' workloads over one folder, in whatever way they are run."""

    def __init__(self, machines: Cluster, scale: float, names: Sequence[str] = WORKLOADS) -> None:
        self._machines, self._names = machines, names
        self.folder = machines.folder / "offline"
        write_all(self.folder, scale, [i for n in names for i in QUERIES[n].inputs])

    def start(
        self,
        into: str,
        on: Machine,
        master: str,
        settings: Sequence[str] = (),
        more: Sequence[str] = (),
    ) -> Running:
        """Start a driver on a machine, whose jobs write to the folder `into`."""
        programs = [str(self._program(name, into)) for name in self._names]
        options = [word for setting in settings for word in ("--conf", setting)]
        log = self.folder / f"{into}.log"
        (self._machines.folder / on.name).mkdir(exist_ok=True)
        with log.open("wb") as said:
            process = on.start(
                sys.executable,
                str(DRIVER),
                master,
                str(self.folder),
                *programs,
                *options,
                *more,
                log=said,
                env=environment(on, self._machines.folder),
                cwd=self.folder,
            )
        return Running(process, log)

    def _program(self, name: str, into: str) -> Path:
        path = self.folder / into / f"{name}.weir"
        path.parent.mkdir(exist_ok=True)
        text = f"{QUERIES[name].program}\nOUTPUT Out TO '{into}/{name}.parquet';"
        path.write_text(text, encoding="utf-8")
        return path

    def wait_for_share(self, running: Running, share: float) -> None:
        """Wait until a program has done so much of its work."""
        until = time.monotonic() + WITHIN
        while not any(float(str(line.get("share", 0))) >= share for line in running.lines()):
            assert running.process.poll() is None, running.text()
            assert time.monotonic() < until, running.text()
            time.sleep(0.1)

    def finished(self, running: Running) -> Said:
        """Wait for the end; return what was said of every program."""
        try:
            code = running.process.wait(WITHIN)
        except subprocess.TimeoutExpired:
            raise TimeoutError(running.text()) from None
        assert code == 0, running.text()
        found = {str(line["program"]): line for line in running.lines()}
        assert set(found) == set(self._names), running.text()
        return found

    def compare(self, into: str, found: Said) -> str:
        """Compare the answers with the local runner's; say what was compared."""
        for name in self._names:
            report = weir.run(self._program(name, "local"), directory=self.folder)
            digests = {output.name: output.digest for output in report.outputs}
            assert found[name]["digests"] == digests, f"{name}: {found[name]}, locally {digests}"
            came, wanted = (self.folder / place / f"{name}.parquet" for place in (into, "local"))
            assert came.read_bytes() == wanted.read_bytes(), f"{name}: other bytes"
        return ", ".join(f"{name} {found[name]['seconds']:.1f} s" for name in self._names)


def _start_connect_server(machines: Cluster) -> None:
    head, folder = machines.head, machines.folder / "connect"
    folder.mkdir()
    env = environment(head, machines.folder) | {
        "SPARK_NO_DAEMONIZE": "1",
        "SPARK_DAEMON_MEMORY": "1g",
        "SPARK_LOG_DIR": str(folder),
        "SPARK_PID_DIR": str(folder),
    }
    with (folder / "server.log").open("wb") as said:
        server = head.start(
            str(SPARK / "sbin" / "start-connect-server.sh"),
            "--master",
            machines.master,
            "--conf",
            f"spark.connect.grpc.binding.port={CONNECT_PORT}",
            log=said,
            env=env,
            cwd=folder,
        )
    dial = f"import socket; socket.create_connection(('{head.address}', {CONNECT_PORT}))"
    while head.run(sys.executable, "-c", dial).returncode:
        assert server.poll() is None, f"the server of Spark Connect ended: see {folder}"
        time.sleep(0.5)


def passes(check: Check) -> bool:
    """Run a check on a cluster of its own; say what came of it."""
    folder = Path(tempfile.mkdtemp(prefix="weir-cluster-"))
    began = time.monotonic()
    try:
        with cluster(folder, WORKERS) as machines:
            said = check(machines)
    except (AssertionError, TimeoutError, subprocess.TimeoutExpired) as error:
        print(f"FAILED  {title(check)}: {error!r}; see {folder}", flush=True)
        return False
    print(f"held    {title(check)}: {said}  ({time.monotonic() - began:.0f} s)", flush=True)
    shutil.rmtree(folder, ignore_errors=True)
    return True


def title(check: Check) -> str:
    return (check.__doc__ or "").strip()
