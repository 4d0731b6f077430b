"""A live job whose store, and whose outputs, are in a bucket on a machine of its own, and what it
suffers.

The server of the bucket is that of `s3_server.py`. Every machine's user has a profile with its
address and keys; no log may hold them.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from chaos.job import Job
from chaos.kills import JobHangs, all_run, shown
from cluster.cluster import Cluster, cluster, environment
from cluster.machines import Machine
from cluster.s3_server import SECRET, Onlooker, S3Server
from cluster.waiting import LIMIT, POLL, busiest, wait_for
from weir.job.commit_log import decode_commit, decode_part
from weir.job.status import JobStatus
from weir.job.story import StoryLine

WORKERS, HOSTS = 3, 3
FINISH_WITHIN = 180.0
STORE, OUTPUTS = "s3://weir/job", "s3://weir/out/{name}"
PAIRS = "sink.2"
"""The sink of the joined rows, which begin with the later of two events."""
PROBE = """
Probe = SELECT k, v FROM Click WHERE v % 50 == 0;
OUTPUT Probe TO 'console:';
"""
HTTP = ("--conf", "spark.executorEnv.AWS_ALLOW_HTTP=true")


class BucketJob(Job):
    """A live job whose outputs are objects."""

    def __init__(self, machines: Cluster, server: S3Server) -> None:
        folder = machines.folder / "job"
        folder.mkdir()
        self._server, self._looking = server, server.onlooker(STORE)
        super().__init__(
            folder,
            machines.master,
            hosts=HOSTS,
            on=machines.head.command,
            env=driver_environment(machines),
            options=HTTP,
            store=STORE,
            onlooker=self._looking,
            outputs=OUTPUTS,
            more=PROBE,
        )

    def start(self, *, resume: bool = False) -> None:
        # The driver before this one may still write to its own.
        (self.folder / "report.json").unlink(missing_ok=True)
        super().start(resume=resume)

    def _files(self, folder: str) -> dict[str, bytes]:
        return objects(self._server.onlooker(OUTPUTS.format(name=folder)))

    def close(self) -> None:
        super().close()
        self._looking.close()


def objects(onlooker: Onlooker) -> dict[str, bytes]:
    """Read all objects of a part of the bucket."""
    found = {key: onlooker.get(key) or b"" for key in onlooker.list()}
    onlooker.close()
    return found


def driver_environment(machines: Cluster) -> dict[str, str]:
    """The environment of a driver: the keys are in the profile of its user."""
    return environment(machines.head, machines.folder) | {"AWS_ALLOW_HTTP": "true"}


@dataclass(slots=True)
class StoreFault:
    """A fault of the store: when it came and went (seconds since 1970), and what it did."""

    name: str
    at: float
    until: float = 0.0
    told: float | None = None
    well: float | None = None
    seen: float | None = None
    committed: float | None = None

    def read(self, story: Sequence[StoryLine]) -> None:
        """Read from the story after how many seconds it was told, and all was well again."""
        later = [line for line in story if line.time >= self.at]
        told = [x.time for x in later if "cannot use the store" in x.what]
        ends = ("can use the store again", "runs again")
        well = [x.time for x in later if any(end in x.what for end in ends)]
        self.told = told[0] - self.at if told else None
        self.well = max(well) - self.at if told and well else None

    def __str__(self) -> str:
        times = (self.told, self.well, self.seen, self.committed)
        shown = ("-" if t is None else f"{t:.2f}" for t in times)
        return f"{self.name:58}" + "".join(f"{t:>9}" for t in shown)


class Seen:
    """Notes when rows of the console came, and how old they were then."""

    def __init__(self, path: Path) -> None:
        self._path, self._closed = path, False
        self.ages: list[tuple[float, float]] = []
        """When each row was made, and its age when it came, in seconds."""
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        rest, position, inode = b"", 0, 0
        while not self._closed:
            time.sleep(0.02)
            if not self._path.exists():
                continue
            with self._path.open("rb") as file:
                if os.fstat(file.fileno()).st_ino != inode:  # another driver's
                    rest, position, inode = b"", 0, os.fstat(file.fileno()).st_ino
                file.seek(position)
                come, now = file.read(), time.time()
            position += len(come)
            *lines, rest = (rest + come).split(b"\n")
            for line in lines:
                if line.startswith(b'{"output":'):
                    made = datetime.fromisoformat(json.loads(line)["vs"]).timestamp()
                    self.ages.append((made, now - made))

    def close(self) -> None:
        self._closed = True
        self._thread.join()


class Suffering:
    """A live job over a bucket, and the faults that it suffers."""

    def __init__(self, machines: Cluster, server: S3Server, job: BucketJob) -> None:
        self.machines, self.server, self.job = machines, server, job
        self.felt: list[StoreFault] = []
        self.seen = Seen(job.folder / "report.json")

    def begin(self) -> None:
        """Start the job, and wait until it runs."""
        self.job.start()
        self.job.start_feeding()
        self.wait_for(lambda s: all_run(s) and len(s.hosts) >= HOSTS, f"{HOSTS} hosts")
        self.must_commit(2.0)

    def wait_for(self, found: Callable[[JobStatus], bool], what: str) -> JobStatus:
        return wait_for(self.job, found, what)

    def must_commit(self, seconds: float) -> None:
        """See that rows which come from now on are committed, within the limit and this time."""
        since = time.time()
        while time.time() < since + seconds + LIMIT:
            self.job.check()
            if any(r.time > since + seconds for r in self.commits()):
                return
            time.sleep(POLL)
        raise JobHangs(f"nothing is committed: {shown(self.job.status())}")

    def commits(self, sink: str = "") -> list[StoredCommit]:
        """List the commits that the server has stored."""
        begin = f"/{self.server.bucket}/job/commits/{sink}"
        return [
            StoredCommit(r.time, r.path.removeprefix(f"/{self.server.bucket}/job/"))
            for r in self.server.requests()
            if r.method == "PUT" and r.status == 200 and r.path.startswith(begin)
        ]

    @contextmanager
    def suffer(self, name: str) -> Iterator[StoreFault]:
        """Let a fault last for as long as the block; then the job must commit again."""
        fault = StoreFault(name, time.time())
        self.felt.append(fault)
        try:
            yield fault
        finally:
            fault.until = time.time()
        self.must_commit(1.0)
        self.wait_for(all_run, "vertices that run")

    def worker(self) -> Machine:
        """Find the worker with most vertices."""
        return busiest(self.job, self.machines.workers)

    def finish(self) -> None:
        """End the input, measure, and compare the answer."""
        found = self.job.finish(FINISH_WITHIN)
        self.seen.close()
        story, waits = self.job.story(), self._commit_ages()
        for fault in self.felt:
            fault.read(story)
            fault.seen = p99([a for at, a in self.seen.ages if fault.at <= at <= fault.until])
            fault.committed = p99([a for at, a in waits if fault.at <= at <= fault.until])
        wanted = self.job.run_locally()
        probe = {name: d for name, d in found.digests.items() if name in wanted.digests}
        assert (probe, found.files) == (wanted.digests, wanted.files), "the answer differs"
        assert len(found.files) == 10, sorted(found.files)
        assert_no_secret(self.machines.folder)

    def _commit_ages(self) -> list[tuple[float, float]]:
        """List when joined rows were made, and how old they were when they were committed."""
        looking, ages = self.server.onlooker(STORE), []
        for stored in self.commits(PAIRS):
            body = looking.get(stored.key)
            assert body is not None
            part = decode_commit(stored.key, body).part
            if part is None:
                continue
            for _, rows in decode_part(part.key, looking.get(part.key) or b""):
                ages += [(vs / 1e6, stored.time - vs / 1e6) for vs in rows.vs.tolist()]
        looking.close()
        return ages

    def close(self) -> None:
        self.seen.close()
        self.job.close()


@dataclass(frozen=True, slots=True)
class StoredCommit:
    """A commit, and when the server stored it."""

    time: float
    key: str


def p99(ages: Sequence[float]) -> float | None:
    """The 99th percentile; None of nothing."""
    return sorted(ages)[int(len(ages) * 0.99)] if ages else None


def assert_no_secret(folder: Path) -> None:
    """See that nothing that was written below a folder holds the credentials."""
    for path in folder.rglob("*"):
        if path.is_file() and path.parent.name != ".aws":
            assert SECRET.encode() not in path.read_bytes(), f"{path} holds credentials"


@contextmanager
def bucket_cluster(folder: Path) -> Iterator[tuple[Cluster, S3Server]]:
    """Start a cluster with a server of buckets; every machine's user has a profile for it."""
    with cluster(folder, WORKERS) as machines:
        server = S3Server(machines.network.machine("store"), folder / "s3")
        server.start()
        for machine in (machines.head, *machines.workers):
            server.write_profile(folder / machine.name)
        yield machines, server


def run(fault: Callable[[Suffering], None], folder: Path) -> list[StoreFault]:
    """Let a job suffer a fault, and compare its answer."""
    with bucket_cluster(folder) as (machines, server):
        suffering = Suffering(machines, server, BucketJob(machines, server))
        try:
            suffering.begin()
            fault(suffering)
            suffering.finish()
            return suffering.felt
        finally:
            suffering.close()
