"""A program with modules of its own, submitted to a cluster in a box in whatever way.

work/program/   p.weir, rules.py, and what rules.py imports; workers may not see it
work/out/       what the submitted run writes
work/local/     what the local runner writes
work/store/     the store of a live job
work/log        what all drivers said
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from chaos.job import JobFailed
from cluster.cluster import SPARK, Cluster, environment
from cluster.machines import Machine
from cluster.waiting import LIMIT, POLL
from weir.files.object_store import ObjectStore
from weir.job.status import JobStatus, read_status

SUBMIT = Path(__file__).parents[2] / "examples" / "cluster" / "submit.py"
PROGRAM = """
IMPORT 'rules.py';
STREAM R (t BIGINT, value BIGINT, k BIGINT) FROM 'rate://{rate}?rows={rows}&keys=20' WITH (vs = t);
Sums = SELECT k, SUM(weighted(value)) AS s, COUNT(*) AS n FROM R GROUP BY k WITH TUMBLING(1s);
OUTPUT Sums TO 'sums.csv';
"""
FILES = {
    "rules.py": """
import weir
import weights.table as table

@weir.udf
def weighted(v: int) -> int:
    from later import more
    return v * table.factor(v) + more
""",
    "weights/__init__.py": "",
    "weights/table.py": "from . import odd\n\ndef factor(v):\n    return odd.share[v % 2]\n",
    "weights/odd.py": "share = (1, {share})\n",
    "later.py": "more = 1\n",
}
SMALL = {"spark.executor.memory": "512m", "spark.cores.max": "3"}


class Work:
    """A program in a folder, and the drivers that run it."""

    def __init__(
        self,
        cluster: Cluster,
        name: str,
        *,
        rows: int = 40_000,
        rate: int = 2000,
        share: int = 3,
        files: Mapping[str, str] = FILES,
    ) -> None:
        """`share` makes its answer another one than that of others."""
        self.cluster, self.folder = cluster, cluster.folder / name
        for sub in ("program", "out", "local"):
            (self.folder / sub).mkdir(parents=True, exist_ok=True)
        self.program = PROGRAM.format(rate=rate, rows=rows)
        self.write("p.weir", self.program)
        for path, text in files.items():
            self.write(path, text.replace("{share}", str(share)))
        self.env = environment(cluster.head, cluster.folder)
        self._store = self.folder / "store"

    def write(self, path: str, text: str) -> None:
        (self.folder / "program" / path).parent.mkdir(exist_ok=True)
        (self.folder / "program" / path).write_text(text, encoding="utf-8")

    # --- the ways to run it ------------------------------------------------------------------

    def command(self, runner: str, *more: str) -> tuple[str, ...]:
        """The arguments of `weir`, with paths that are the same everywhere."""
        live = ("--store", str(self._store), "--parallelism", "2") if runner == "live" else ()
        program, out = str(self.folder / "program" / "p.weir"), str(self.folder / "out")
        return ("run", program, "--runner", runner, "--directory", out, "--json", *live, *more)

    def weir(
        self, runner: str, *more: str, conf: Mapping[str, str] = SMALL
    ) -> subprocess.Popen[bytes]:
        """Start the command on the head."""
        arguments = self.command(runner, *more, "--master", self.cluster.master, *_pairs(conf))
        return self._start(sys.executable, "-m", "weir.cli", *arguments)

    def submit(
        self, runner: str, *more: str, conf: Mapping[str, str] = SMALL, options: Sequence[str] = ()
    ) -> subprocess.Popen[bytes]:
        """Start spark-submit on the head, in client mode."""
        return self._start(
            str(SPARK / "bin" / "spark-submit"),
            "--master",
            self.cluster.master,
            *_pairs(conf),
            *options,
            str(SUBMIT),
            *self.command(runner, *more),
        )

    def submit_supervised(self, *more: str, conf: Mapping[str, str] = SMALL) -> None:
        """Hand the driver over to the cluster, whose master starts it again when it dies. Spark
        takes only Java for that, so its main class is the one that runs Python applications."""
        jar = next((SPARK / "jars").glob("spark-launcher_*.jar"))
        given = {**conf, "spark.driver.memory": "512m", "spark.pyspark.python": sys.executable}
        done = self.cluster.head.run(
            str(SPARK / "bin" / "spark-submit"),
            "--master",
            self.cluster.master,
            "--deploy-mode",
            "cluster",
            "--supervise",
            *_pairs(given),
            "--class",
            "org.apache.spark.deploy.PythonRunner",
            str(jar),
            str(SUBMIT),
            "",
            *self.command("live", *more),
            env=self.env,
        )
        if done.returncode:
            raise JobFailed(done.stderr[-2000:])

    def _start(self, *command: str) -> subprocess.Popen[bytes]:
        with (self.folder / "log").open("ab") as log:
            return self.cluster.head.start(*command, log=log, env=self.env, cwd=self.folder)

    # --- what comes of it --------------------------------------------------------------------

    def status(self) -> JobStatus | None:
        if not (self._store / "status").exists():
            return None
        return read_status(ObjectStore(str(self._store)))

    def wait_for(
        self, found: Callable[[JobStatus], bool], what: str, within: float = LIMIT
    ) -> JobStatus:
        until = time.monotonic() + within
        while time.monotonic() < until:
            status = self.status()
            if status is not None and found(status):
                return status
            time.sleep(POLL)
        raise TimeoutError(f"no {what} within {within:.0f} s: {self.last_words()}")

    def end(self, process: subprocess.Popen[bytes], within: float = LIMIT) -> None:
        """Wait until a driver has ended well."""
        if code := process.wait(within):
            raise JobFailed(f"exit code {code}: {self.last_words()}")

    def last_words(self) -> str:
        log = self.folder / "log"
        return (
            "\n".join(log.read_text("utf-8", "replace").splitlines()[-15:]) if log.exists() else ""
        )

    def check(self, *folders: Path) -> None:
        """The answer must be that of the local runner, which finds modules in these folders too."""
        program, local = self.folder / "program" / "p.weir", self.folder / "local"
        path = (*map(str, folders), os.environ.get("PYTHONPATH"))
        done = subprocess.run(
            (sys.executable, "-m", "weir.cli", "run", str(program), "--directory", str(local)),
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, path))},
        )
        assert not done.returncode, done.stderr
        found, wanted = (self.folder / f / "sums.csv" for f in ("out", "local"))
        assert found.read_bytes() == wanted.read_bytes(), "not the local runner's answer"


def _pairs(conf: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(word for name, value in conf.items() for word in ("--conf", f"{name}={value}"))


def driver_of(cluster: Cluster) -> tuple[Machine, int] | None:
    """Find the worker on which a supervised driver runs, and the process of its Python."""
    for worker in cluster.workers:
        for pid in worker.pids():
            try:
                words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if b"python" in words[0] and str(SUBMIT).encode() in words[1:3]:
                return worker, pid
    return None


def wait_for_driver(cluster: Cluster, other_than: int = 0) -> tuple[Machine, int]:
    until = time.monotonic() + LIMIT
    while time.monotonic() < until:
        found = driver_of(cluster)
        if found is not None and found[1] != other_than:
            return found
        time.sleep(POLL)
    raise TimeoutError("no driver runs on any worker")


def kill(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)


def drivers(cluster: Cluster) -> list[str]:
    """The states of the drivers that the master was given, as it tells them; but of those in whose
    place it has started others."""
    told = (*cluster.told("activedrivers"), *cluster.told("completeddrivers"))
    return [driver["state"] for driver in told if driver["state"] != "RELAUNCHING"]
