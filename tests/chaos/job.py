"""A live job of several stages, fed by another process, in a folder of its own.

    clicks.jsonl, views.jsonl   grow for as long as the feeder runs
    live/                       what `weir run --runner live` writes
    local/                      what the local runner writes over the same rows, afterwards
    store/                      the job's store
    driver.log                  what all its drivers said

Stages of all shapes: a source, a filter, hopping windows and a join (short memory: the planner
replays them), windows over windows and distinct rows (long memory: checkpoints), two phases.
"""

from __future__ import annotations

import gc
import json
import multiprocessing
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from chaos.processes import Family
from weir.files.object_store import ObjectStore
from weir.job.status import JobStatus, read_status
from weir.job.story import StoryLine, read_story
from weir.reliable.store import Store

PROGRAM = """
STREAM Click (t TIMESTAMP, k BIGINT, v BIGINT) FROM '{scheme}clicks.jsonl' WITH (vs = t);
STREAM View (t TIMESTAMP, k BIGINT, v BIGINT) FROM '{scheme}views.jsonl'
  WITH (vs = t, lifetime = 2s);
Sums = SELECT k, SUM(v) AS s, COUNT(*) AS n FROM Click GROUP BY k WITH HOPPING(4s, 1s);
Peaks = SELECT k, MAX(s) AS most FROM Sums GROUP BY k WITH TUMBLING(20s);
Pairs = SELECT Click.k AS k, Click.v AS c, View.v AS w FROM Click INNER JOIN View
  ON Click.k == View.k WHERE Click.v % 3 == 0;
PairCounts = SELECT COUNT(*) AS n, SUM(c) AS s FROM Pairs WITH TUMBLING(5s);
Seen = SELECT DISTINCT k FROM View;
SET allow_unbounded = TRUE;
{strategy}
OUTPUT Sums TO '{folder}/sums.parquet';
OUTPUT Peaks TO '{folder}/peaks.jsonl';
OUTPUT Pairs TO '{folder}/pairs.parquet';
OUTPUT PairCounts TO '{folder}/pair-counts.csv';
OUTPUT Seen TO '{folder}/seen.jsonl';
"""
RATES = {"clicks": 1000, "views": 300}
KEYS = 200
HOSTS = 3
# JVMs that start again and again are to start soon; none lives long enough to be optimised.
JAVA = {"JDK_JAVA_OPTIONS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}


def feed(folder: Path, seed: int) -> None:
    """Rows as time goes, until a file `enough` is there; then the end of both files."""
    gc.freeze()  # what it inherited, gRPC's objects too, is its parent's to collect
    rng = random.Random(seed)
    files = {name: open(folder / f"{name}.jsonl", "ab", buffering=0) for name in RATES}  # noqa: SIM115
    made = dict.fromkeys(RATES, 0)
    began = time.time()
    while not (folder / "enough").exists() and os.getppid() != 1:
        now = time.time()
        said = datetime.fromtimestamp(now, UTC).isoformat()
        for name, rate in RATES.items():
            due = int((now - began) * rate)
            rows = [
                {"t": said, "k": rng.randrange(KEYS), "v": rng.randrange(1000)}
                for _ in range(due - made[name])
            ]
            files[name].write("".join(json.dumps(row) + "\n" for row in rows).encode())
            made[name] = due
        time.sleep(0.01)
    for name, file in files.items():
        file.close()
        (folder / f"{name}.jsonl.end").touch()


@dataclass(frozen=True, slots=True)
class Answer:
    """The digests that a run reported, and the bytes of its files."""

    digests: dict[str, str]
    files: dict[str, bytes]


class JobFailed(Exception):
    """A run ended with an error."""


class Job:
    """The job, the driver that runs it now, and the processes of all its drivers."""

    def __init__(
        self,
        folder: Path,
        master: str,
        *,
        hosts: int = HOSTS,
        seed: int = 0,
        strategy: str = "",
        on: Callable[..., tuple[str, ...]] = lambda *command: command,
        env: Mapping[str, str] | None = None,
        options: Sequence[str] = (),
        program: str = PROGRAM,
        store: str = "store",
        onlooker: Store | None = None,
        outputs: str = "{name}",
        more: str = "",
    ) -> None:
        """`on` makes a command into one that runs on another machine, with `env`; `options` are
        more of `weir run`. `store` is where it keeps its state, which `onlooker` reads if it is no
        folder; `outputs` is where the files of a run of a name go. `more` is text for the live
        program alone."""
        self.folder, self.hosts = folder, hosts
        self.on, self._options = on, options
        self._env = os.environ | JAVA if env is None else env
        self._master, self._seed = master, seed
        said = f"SET strategy = '{strategy}';" if strategy else ""
        for name, scheme, beside in (("live", "tail://", more), ("local", "", "")):
            where = outputs.format(name=name)
            text = program.format(scheme=scheme, folder=where, strategy=said)
            (folder / f"{name}.weir").write_text(text + beside, encoding="utf-8")
        for name in RATES:
            (folder / f"{name}.jsonl").touch()
        self._feeder: multiprocessing.Process | None = None
        self._driver: subprocess.Popen[bytes] | None = None
        self.families: list[Family] = []
        self._location = store
        self._store: Store = onlooker or ObjectStore(str(folder / store))

    # --- the driver --------------------------------------------------------------------------

    def start(self, *, resume: bool = False) -> None:
        command = (
            *_weir("run", "live.weir", "--runner", "live", "--store", self._location, "--json"),
            *("--parallelism", "2", "--hosts", str(self.hosts), "--master", self._master),
            *self._options,
            *(("--resume",) if resume else ()),
        )
        log = open(self.folder / "driver.log", "ab")  # noqa: SIM115
        out = open(self.folder / "report.json", "wb")  # noqa: SIM115
        with log, out:
            self._driver = subprocess.Popen(
                self.on(*command),
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=log,
                start_new_session=True,
                env=self._env,
            )
        self.families.append(Family(self._driver.pid))

    def move(self, on: Callable[..., tuple[str, ...]], env: Mapping[str, str]) -> None:
        """Let the next driver run on another machine: that of the last one is lost."""
        assert self._driver is not None
        self._driver.wait()
        self.on, self._env = on, env

    @property
    def driver(self) -> int:
        assert self._driver is not None
        return self._driver.pid

    @property
    def family(self) -> Family:
        """The processes of the driver that runs now."""
        return self.families[-1]

    def kill_driver(self) -> None:
        assert self._driver is not None
        self.family.signal(self._driver.pid, signal.SIGKILL)
        self._driver.wait()

    def stop(self, within: float) -> None:
        """Ask the driver to end; it must within so many seconds."""
        assert self._driver is not None
        self.family.signal(self._driver.pid, signal.SIGTERM)
        try:
            self._driver.wait(within)
        except subprocess.TimeoutExpired:
            raise JobFailed(
                f"the driver goes on {within:.0f} s after it was asked to end"
            ) from None

    def check(self) -> None:
        """The driver has no reason to end as long as rows come."""
        assert self._driver is not None
        if self._driver.poll() is not None:
            code = self._driver.returncode
            raise JobFailed(f"the driver ended with {code}: {self._last_words()}")

    def _last_words(self) -> str:
        lines = (self.folder / "driver.log").read_text("utf-8", "replace").splitlines()
        return "\n".join(lines[-15:])

    # --- rows, and the end -------------------------------------------------------------------

    def start_feeding(self) -> None:
        self._feeder = multiprocessing.Process(target=feed, args=(self.folder, self._seed))
        self._feeder.start()

    def finish(self, within: float) -> Answer:
        """End the input; the answer when the job is through."""
        assert self._driver is not None and self._feeder is not None
        (self.folder / "enough").touch()
        self._feeder.join()
        if self._driver.wait(within):
            raise JobFailed(self._last_words())
        return self._answer("live", (self.folder / "report.json").read_bytes())

    def run_locally(self) -> Answer:
        """The answer of the local runner over the same rows."""
        command = _weir("run", "local.weir", "--json")
        done = subprocess.run(
            self.on(*command), cwd=self.folder, env=self._env, capture_output=True, check=False
        )
        if done.returncode:
            raise JobFailed(done.stderr.decode())
        return self._answer("local", done.stdout)

    def _answer(self, folder: str, report: bytes) -> Answer:
        last = report.splitlines()[-1]  # rows of a console stand before it
        digests = {o["name"]: o["digest"] for o in json.loads(last)["outputs"] if o["path"]}
        return Answer(digests, self._files(folder))

    def _files(self, folder: str) -> dict[str, bytes]:
        return {p.name: p.read_bytes() for p in sorted((self.folder / folder).iterdir())}

    def close(self) -> None:
        """Leave no process behind."""
        (self.folder / "enough").touch()
        if self._feeder is not None:
            self._feeder.join()
        for family in self.families:
            family.end()
        if self._driver is not None:
            self._driver.wait()

    # --- looking at it -----------------------------------------------------------------------

    def status(self) -> JobStatus | None:
        return read_status(self._store)

    def story(self) -> list[StoryLine]:
        return read_story(self._store)


def _weir(*arguments: str) -> tuple[str, ...]:
    return (sys.executable, "-m", "weir.cli", *arguments)
