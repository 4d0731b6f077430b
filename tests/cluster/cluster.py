"""A Spark standalone cluster on machines in a box: a head (master and driver) and its workers."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyspark

from cluster.machines import Machine, Network, network

SPARK = Path(pyspark.__file__).parent
CORES = 2
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
    }


@dataclass
class Cluster:
    """A cluster that runs; every machine has a folder of its own below `folder`."""

    network: Network
    folder: Path
    head: Machine
    workers: list[Machine]

    @property
    def master(self) -> str:
        return f"spark://{self.head.address}:{PORT}"

    def start_master(self) -> None:
        self._daemon(
            self.head, "org.apache.spark.deploy.master.Master",
            "--host", self.head.address, "--port", str(PORT), "--webui-port", "8080",
        )  # fmt: skip

    def start_worker(self, worker: Machine) -> None:
        self._daemon(
            worker, "org.apache.spark.deploy.worker.Worker", "--host", worker.address,
            "--cores", str(CORES), "--memory", "2g", "--webui-port", "8081",
            "--work-dir", str(self.folder / worker.name / "work"), self.master,
        )  # fmt: skip

    def kill_master(self) -> None:
        master, *_ = self.head.processes
        os.killpg(master.pid, signal.SIGKILL)
        master.wait()

    def _daemon(self, machine: Machine, *command: str) -> None:
        log = self.folder / machine.name / f"{command[0].rsplit('.', 1)[1].lower()}.log"
        log.parent.mkdir(exist_ok=True)
        with log.open("ab") as said:
            machine.start(
                str(SPARK / "bin" / "spark-class"), *command,
                log=said, env=environment(machine, self.folder), cwd=log.parent,
            )  # fmt: skip

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
        if done.returncode or not done.stdout:  # the page is not there yet
            return []
        found: list[dict[str, str]] = json.loads(done.stdout)[what]
        return found


@contextmanager
def cluster(folder: Path, workers: int = 2, own: Mapping[Path, str] = {}) -> Iterator[Cluster]:
    """Start a cluster, and end it with everything that runs on its machines; `own` are folders
    that every worker has for itself."""
    with network() as net:
        made = Cluster(
            net, folder, net.machine("head"), [net.machine(f"w{n + 1}") for n in range(workers)]
        )
        made.start_master()
        for worker in made.workers:
            worker.own = dict(own)
            made.start_worker(worker)
        made.wait_for(workers)
        yield made
