"""A live pipeline, a host killed in its middle, and the same log run offline: one answer.

    python examples/ads/demo.py [--seconds 20]

Another process makes impressions and clicks. The program of `ads.weir` joins and counts them live
on Spark; half-way one of its hosts is killed with `kill -9`. When the log ends, the same program
runs offline over the same log. Printed: figures while it runs, both digests, how late results came
after their window's close, events a second, and how long the recovery took. The job's page is kept
in `demo/report.html`.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

import weir

HERE = Path(__file__).parent
RATES = {"impressions": 5000, "clicks": 1000}
HOSTS = 2
REPORT = Path("demo/report.html")
WARM = 4.0
"""Seconds until the first windows are full."""


def make_log(folder: str, seconds: float) -> None:
    """Impressions and clicks as time goes, then the end of both."""
    rng = random.Random(1)
    files = {name: open(f"{folder}/{name}.jsonl", "ab", buffering=0) for name in RATES}  # noqa: SIM115
    made = dict.fromkeys(RATES, 0)
    began = time.time()
    while (passed := time.time() - began) < seconds:
        for name, rate in RATES.items():
            due = int(passed * rate)
            rows = [
                {
                    "t": int(time.time() * 1e6),
                    "ad": rng.randrange(200),
                    "visitor": rng.randrange(200),
                }
                for _ in range(due - made[name])
            ]
            files[name].write("".join(json.dumps(row) + "\n" for row in rows).encode())
            made[name] = due
        time.sleep(0.002)
    for name, file in files.items():
        file.close()
        Path(f"{folder}/{name}.jsonl.end").touch()


def note_arrivals(path: str):  # type: ignore[no-untyped-def]
    """A callback: when each result came, and how many milliseconds after its window's close."""

    def note(partition: int, seq: int, rows: pa.RecordBatch) -> None:
        now = time.time()
        late = (now * 1e6 - rows.column("ve").to_numpy()) / 1e3
        with open(path, "ab") as file:
            file.write(np.column_stack([np.full(len(late), now), late]).tobytes())

    return note


class Director:
    """Starts the maker when the job runs, and kills a host half-way."""

    def __init__(self, folder: str, seconds: float) -> None:
        # Not a fork of this process, whose threads (of Spark, of Arrow) would be missing in it.
        spawn = multiprocessing.get_context("spawn")
        self._maker = spawn.Process(target=make_log, args=(folder, seconds))
        self._seconds = seconds
        self.began: float | None = None
        self._told_at = 0.0
        self.killed_at: float | None = None
        self._said: set[str] = set()

    def __call__(self, progress: weir.Progress) -> None:
        assert isinstance(progress, weir.LiveProgress)
        status = progress.status
        for what in {*status.preparing} - self._said:
            self._said.add(what)
            print(f"{what}, before anything runs")
        if status.state == "running" and self.began is None:
            self.began = time.time()
            self._maker.start()
        if self.began is not None and time.time() - self._told_at >= 2.0:
            self._told_at = time.time()
            rate = sum(v.events_per_second for v in status.vertices if v.kind == "source")
            state = sum(v.state_rows for v in status.vertices)
            print(
                f"{self._told_at - self.began:5.1f} s: {status.events:,} events, {rate:,.0f} a "
                f"second, {state:,} rows in state, {len(status.hosts)} hosts"
            )
        if self.began is not None and self.killed_at is None:
            busy = [host for host in status.hosts if host.vertices]
            if time.time() - self.began > self._seconds / 2 and busy:
                print(f"kill -9 {busy[0].pid}, which hosts {', '.join(busy[0].vertices)}")
                os.kill(busy[0].pid, signal.SIGKILL)
                self.killed_at = time.time()


def percentiles(late: npt.NDArray[np.float64]) -> str:
    if not len(late):
        return "none came"
    return ", ".join(f"p{p:g} {np.percentile(late, p):,.1f} ms" for p in (50, 90, 99))


def command(*words: str) -> str:
    """What the `weir` command prints."""
    asked = [sys.executable, "-m", "weir.cli", *words]
    return subprocess.run(asked, check=True, stdout=subprocess.PIPE, text=True).stdout


def write_page(store: str) -> None:
    """Write the job's page, as anybody can."""
    REPORT.parent.mkdir(exist_ok=True)
    command("report", store, "--to", str(REPORT))
    print(f"the job's page: {REPORT}")


def finite() -> str:
    """The same program over the log as files, without the callback."""
    text = (HERE / "ads.weir").read_text(encoding="utf-8").replace("tail://", "")
    return text.replace("OUTPUT Rates TO 'callback:';", "").replace("'out/", "'offline/")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=20)
    seconds = parser.parse_args().seconds
    with tempfile.TemporaryDirectory(prefix="weir-demo-") as folder:
        for name in RATES:
            Path(f"{folder}/{name}.jsonl").touch()
        director = Director(folder, seconds)
        print(f"live on Spark, {seconds:.0f} s of impressions and clicks, {HOSTS} hosts")
        report = weir.run_live(
            HERE / "ads.weir",
            f"{folder}/store",
            directory=folder,
            parallelism=2,
            hosts=HOSTS,
            callbacks={"Rates": note_arrivals(f"{folder}/arrivals")},
            progress=director,
        )
        if report is None:
            sys.exit(130)
        print("the same log offline on Spark")
        again = weir.run_offline(finite(), directory=folder)
        same = True
        for ours, theirs in zip(report.outputs, again.outputs, strict=True):
            same &= ours.digest == theirs.digest
            print(f"{ours.name}: live {ours.digest}, offline {theirs.digest}")
        told = json.loads(command("story", f"{folder}/store", "--json"))
        print(f"{report.events:,} events, {report.events / seconds:,.0f} a second")
        assert director.killed_at is not None and director.began is not None
        lost = next(line["time"] for line in told if "lost" in line["what"])
        again_at = max(line["time"] for line in told if "runs again" in line["what"])
        print(
            f"recovery: found {lost - director.killed_at:.2f} s after the kill, all vertices "
            f"running {again_at - lost:.2f} s later"
        )
        arrivals = np.frombuffer(Path(f"{folder}/arrivals").read_bytes()).reshape(-1, 2)
        came, late = arrivals[:, 0], arrivals[:, 1]
        warm = (came > director.began + WARM) & (came < director.killed_at)
        print("results after their window's close:")
        print(f"  the warm engine, before the kill: {percentiles(late[warm])}")
        print(f"  all, the start and the recovery included: {percentiles(late)}")
        write_page(f"{folder}/store")
        print("one answer" if same else "DIFFERENT ANSWERS")
        sys.exit(0 if same else 1)


if __name__ == "__main__":
    main()
