"""A Spark standalone cluster on machines in a box: a head (master and driver) and its workers."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

import pyspark

from cluster.machines import Machine, Network, network

SPARK = Path(pyspark.__file__).parent
PORT = 7077
# JVMs that live for seconds are to start soon: nothing in them is worth optimising.
_READ_URL = """
import sys, urllib.request
sys.stdout.write(urllib.request.urlopen(sys.argv[1]).read().decode())
"""
JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xshare:auto"


def environment(machine: Machine, folder: Path) -> dict[str, str]:
    """The environment of a process on a machine: as after a login there, with our Python."""
    kept = {n: v for n, v in os.environ.items() if not n.startswith(("SPARK_", "PYSPARK_"))}
    return kept | {
        "HOME": str(folder / machine.name),
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_HOME": str(SPARK),
        "JDK_JAVA_OPTIONS": JAVA,
        "SPARK_DAEMON_MEMORY": "256m",
        **machine.env,
    }


def loops_of(worker: Machine, folder: Path) -> Path:
    """Name the folder that a worker has for compiled loops, which is empty at first."""
    return folder / worker.name / "loops"


@dataclass
class Cluster:
    """A cluster that runs; every machine has a folder of its own below `folder`."""

    network: Network
    folder: Path
    head: Machine
    workers: list[Machine]
    driver: Machine
    """The machine on which a job's driver runs."""
    cores: int = 2
    """How many cores each worker offers."""
    options: tuple[str, ...] = ()
    """What `weir run` is told besides."""
    afterwards: ExitStack = field(default_factory=ExitStack)
    """What is to be done when nothing runs on the machines any more."""

    @property
    def master(self) -> str:
        return f"spark://{self.head.address}:{PORT}"

    def disk(self, worker: Machine) -> Path:
        """Name the folder in which a worker keeps what its executors need."""
        return self.folder / worker.name / "work"

    def start_master(self) -> None:
        self._master = self._daemon(
            self.head,
            "org.apache.spark.deploy.master.Master",
            "--host",
            self.head.address,
            "--port",
            str(PORT),
            "--webui-port",
            "8080",
        )

    def start_worker(self, worker: Machine) -> None:
        self._daemon(
            worker,
            "org.apache.spark.deploy.worker.Worker",
            "--host",
            worker.address,
            "--cores",
            str(self.cores),
            "--memory",
            "2g",
            "--webui-port",
            "8081",
            "--work-dir",
            str(self.disk(worker)),
            self.master,
        )

    def kill_master(self) -> None:
        os.killpg(self._master.pid, signal.SIGKILL)
        self._master.wait()

    def _daemon(self, machine: Machine, *command: str) -> subprocess.Popen[bytes]:
        log = self.folder / machine.name / f"{command[0].rsplit('.', 1)[1].lower()}.log"
        log.parent.mkdir(exist_ok=True)
        with log.open("ab") as said:
            return machine.start(
                str(SPARK / "bin" / "spark-class"),
                *command,
                log=said,
                env=environment(machine, self.folder),
                cwd=log.parent,
            )

    def wait_for(self, workers: int, within: float = 60.0) -> None:
        """Wait until so many workers are alive, as the master says."""
        until = time.monotonic() + within
        while (alive := self.alive()) != workers:
            if time.monotonic() > until:
                raise TimeoutError(f"{alive} of {workers} workers after {within:.0f} s")
            time.sleep(0.3)

    def alive(self) -> int:
        """Count the workers that the master has."""
        return sum(w["state"] == "ALIVE" for w in self.told("workers"))

    def told(self, what: str) -> list[dict[str, str]]:
        """What the master tells of its workers, applications or drivers; nothing if it is not
        there."""
        address = f"http://{self.head.address}:8080/json/"
        done = self.head.run(sys.executable, "-c", _READ_URL, address, timeout=20)
        if done.returncode or not done.stdout.startswith("{"):  # the page is not there yet
            return []
        found: list[dict[str, str]] = json.loads(done.stdout)[what]
        return found


Prepare: TypeAlias = Callable[[Cluster], None]
"""What is done to the machines before anything runs on them."""


def nothing(cluster: Cluster) -> None:
    """Leave the machines as they are."""


def with_own(folders: Mapping[Path, str]) -> Prepare:
    """Give every worker these folders for itself, of such sizes."""

    def prepare(cluster: Cluster) -> None:
        for worker in cluster.workers:
            worker.own |= folders

    return prepare


@contextmanager
def cluster(folder: Path, workers: int = 2, prepare: Prepare = nothing) -> Iterator[Cluster]:
    """Start a cluster, and end it with everything that runs on its machines; `prepare` is called
    when the machines are there, and nothing runs on them yet."""
    with ExitStack() as afterwards, network() as net:
        head = net.machine("head")
        machines = [net.machine(f"w{n + 1}") for n in range(workers)]
        for machine in machines:
            machine.env["WEIR_CACHE"] = str(loops_of(machine, folder))
        made = Cluster(net, folder, head, machines, head, afterwards=afterwards)
        prepare(made)
        made.start_master()
        for worker in made.workers:
            made.start_worker(worker)
        made.wait_for(workers)
        yield made
