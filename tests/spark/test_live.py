"""Live jobs on real Spark, in real processes, with real kills: the answer of the local runner."""

import os
import signal
import socket
import subprocess
import time
import urllib.request
from dataclasses import dataclass
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from commands import finished, wait_for, weir_run
from weir.files.object_store import ObjectStore
from weir.job.status import JobStatus
from weir.job.story import read_story
from weir.page.view import ViewReader

pytestmark = pytest.mark.xdist_group("processes")

PROGRAM = """
STREAM R (t BIGINT, value BIGINT, k BIGINT) FROM 'rate://6000?rows=120000&keys=50' WITH (vs = t);
STREAM Q (t BIGINT, value BIGINT, k BIGINT) FROM 'rate://600?rows=12000&keys=50'
  WITH (vs = t, lifetime = 300ms);
Sums = SELECT k, SUM(value) AS s, COUNT(*) AS n FROM R GROUP BY k WITH HOPPING(2s, 1s);
Pairs = SELECT R.k AS k, R.value AS v, Q.value AS q FROM R INNER JOIN Q ON R.k == Q.k
  WHERE R.value % 7 == 0;
SET strategy = 'checkpoint(1s)';
OUTPUT Sums TO 'out/sums.parquet';
OUTPUT Pairs TO 'out/pairs.parquet';
"""


def live(folder: Path, *more: str) -> subprocess.Popen[str]:
    arguments = ("program.weir", "--runner", "live", "--store", "store")
    return weir_run(folder, *arguments, "--parallelism", "2", *more)


@dataclass(frozen=True)
class Answer:
    """What the local runner gives: digests, and files in a folder."""

    digests: dict[str, str]
    files: Path

    def is_in(self, folder: Path) -> bool:
        names = sorted(p.name for p in self.files.iterdir())
        return names == sorted(p.name for p in (folder / "out").iterdir()) and all(
            (self.files / n).read_bytes() == (folder / "out" / n).read_bytes() for n in names
        )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "program.weir").write_text(PROGRAM, encoding="utf-8")
    return tmp_path


@pytest.fixture(scope="module")
def wanted(tmp_path_factory: pytest.TempPathFactory) -> Answer:
    there = tmp_path_factory.mktemp("local")
    (there / "program.weir").write_text(PROGRAM, encoding="utf-8")
    return Answer(finished(weir_run(there, "program.weir")), there / "out")


def test_kills_of_hosts_and_drivers_and_an_interrupt_change_nothing(
    folder: Path, wanted: Answer
) -> None:
    port = free_port()
    process = live(folder, "--ui", "--metrics", str(port))
    status = wait_for(folder, lambda s: s.events > 10_000 and len(s.hosts) == 2)
    assert_metrics(port)
    refused = live(folder)  # the store is taken
    busy = next(h for h in status.hosts if h.vertices)
    os.kill(busy.pid, signal.SIGKILL)
    status = wait_for(
        folder, lambda s: s.events > 30_000 and s.recoveries > 0 and busy.pid not in pids(s)
    )
    still = next(h for h in status.hosts if h.vertices)
    os.kill(still.pid, signal.SIGSTOP)
    wait_for(folder, lambda s: s.events > 50_000 and still.id not in {h.id for h in s.hosts})
    os.kill(still.pid, signal.SIGCONT)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert "--resume" in err
    assert "weir: the job's page: http://127.0.0.1:" in err
    assert_shown(folder)
    assert "--resume" in refused.communicate(timeout=60)[1]
    assert refused.returncode == 2
    stopped_at = wait_for(folder, lambda s: True).events
    assert stopped_at < 120_000

    process = live(folder, "--resume")
    wait_for(folder, lambda s: s.events > stopped_at + 10_000)
    process.kill()
    process.wait()
    assert not (folder / "out").exists()

    assert finished(live(folder, "--resume")) == wanted.digests
    assert wanted.is_in(folder)
    told = [line.what for line in read_story(ObjectStore(str(folder / "store")))]
    assert any("lost" in what for what in told)
    assert any("runs again" in what for what in told)

    (folder / "out" / "sums.parquet").unlink()  # a job that has finished needs no Spark
    nowhere = ("--master", "spark://127.0.0.1:1")
    assert finished(live(folder, "--resume=auto", *nowhere)) == wanted.digests
    assert wanted.is_in(folder)


def test_a_job_goes_on_under_another_strategy(folder: Path, wanted: Answer) -> None:
    events = 0
    for strategy in ("checkpoint(1s)", "replay"):
        process = live(folder, "--set", f"strategy={strategy}", "--resume=auto")
        wait_for(folder, lambda s, least=events: s.events > least + 10_000)  # type: ignore[misc]
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
        assert process.returncode == 130, err
        events = wait_for(folder, lambda s: True).events
    assert finished(live(folder, "--resume", "--set", "strategy=replicate(2)")) == wanted.digests
    assert wanted.is_in(folder)
    told = [line.what for line in read_story(ObjectStore(str(folder / "store")))]
    noted = [what for what in told if what.startswith("goes on with another strategy")]
    assert any("recovers by replay, before by checkpoint(1s)" in what for what in noted)
    assert any("recovers by replicate(2), before by replay" in what for what in noted)


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port: int = taken.getsockname()[1]
        return port


def assert_metrics(port: int) -> None:
    """The metrics of a job that runs are served, and can be read. They may be a second older than
    the status in the store."""
    for _ in range(20):
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
            text = answer.read().decode()
        metrics = {family.name: family for family in text_string_to_metric_families(text)}
        if metrics["weir_events"].samples[0].value > 10_000:
            break
        time.sleep(0.25)
    assert metrics["weir_events"].samples[0].value > 10_000
    assert metrics["weir_hosts"].samples[0].value == 2
    assert any(s.value > 0 for s in metrics["weir_output_delay_seconds"].samples)


def assert_shown(folder: Path) -> None:
    """The page of a job that was stopped shows its plan, losses, figures and delays."""
    view = ViewReader(ObjectStore(str(folder / "store")), lambda: 0.0).read()
    assert view.problems == () and view.status is not None and view.status.state == "stopped"
    assert [s.source for s in view.stages if s.source] == ["R", "Q"]
    killed, still, *_ = view.story.episodes
    assert "lost" in killed.title and killed.ended is not None and still.began > killed.ended
    assert any(s.events > 1000 for s in view.history.samples)
    assert all(d.p50 is not None and 0 < d.p50 < 60 for d in view.delays)


def pids(status: JobStatus) -> set[int]:
    return {host.pid for host in status.hosts}


def test_a_spark_that_cannot_run_the_hosts_is_refused_before_the_store_is_taken(
    folder: Path,
) -> None:
    for more, said in (
        (("--master", "local[2,9]", "--hosts", "3"), "3 hosts need 3 task slots"),
        (("--conf", "spark.speculation=true"), "spark.speculation is on"),
    ):
        refused = live(folder, *more)
        assert refused.wait(timeout=60) == 2
        assert said in refused.communicate()[1]
    assert not (folder / "store").exists()
