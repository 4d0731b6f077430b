"""Latency and throughput of the live runner between two machines, with TLS and without.

    PYTHONPATH=tests python benchmarks/live_machines.py [--rounds 5] [--scale 1]
                                                        [--latency [--seconds 20]]

The machines are network namespaces, each with an address of its own, of a Spark cluster in a box
(tests/cluster), which needs root, iproute2 and nftables. They share this machine's cores and clock.
A job of two stages, whose source sends each row to sums by key, runs on one host, on two hosts of
one machine, and with a machine for each; counted as in `live_throughput.py`. With `--latency`
instead Grep at 10 000 events a second, as in `live_latency.py`: the source is on one machine, the
callback on the other. Medians of the rounds.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from live_latency import medians
from offline_data import events_of, write_all

from certificates import certificate
from cluster.cluster import Cluster, cluster, environment
from cluster.machines import why_not

DRIVER = Path(__file__).with_name("live_machines_driver.py")
DATA = "uniform"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--latency", action="store_true", help="instead of throughput")
    given = parser.parse_args()
    if missing := why_not():
        print(f"not measured: no machines in a box: {missing}")
        return
    with tempfile.TemporaryDirectory() as folder, cluster(Path(folder), workers=2) as machines:
        every = [machines.head, *machines.workers]
        names = ",".join(f"IP:{machine.address}" for machine in every)
        tls = ["--tls", *map(str, certificate(Path(folder), "job", names))]
        measure = latency if given.latency else throughput
        measure(machines, given, tls)


def latency(machines: Cluster, given: argparse.Namespace, tls: Sequence[str]) -> None:
    asked = ["--rounds", str(given.rounds), "--seconds", str(given.seconds)]
    for name, options in (("", []), (" with TLS", tls)):
        rounds = drive(machines, "latency", "machines", *asked, *options)
        print(f"grep between two machines{name}: {medians(rounds)}", flush=True)


def throughput(machines: Cluster, given: argparse.Namespace, tls: Sequence[str]) -> None:
    write_all(machines.folder, given.scale, [DATA], files=1)
    events = str(events_of(DATA, given.scale))
    data = str(machines.folder / DATA)
    asked = ["--rounds", str(given.rounds), "--events", events, "--data", data]
    alone = None
    for name, places, options in (
        ("one host", "host", []),
        ("two hosts of one machine", "machine", []),
        ("two machines", "machines", []),
        ("two machines with TLS", "machines", tls),
    ):
        rate = statistics.median(drive(machines, "throughput", places, *asked, *options))
        alone = alone or rate
        print(f"two stages, {name}: {rate:.2f} M events/s ({rate / alone:.2f} x)", flush=True)


def drive(machines: Cluster, what: str, places: str, *options: str) -> Any:
    """Run a driver on the head; return the rounds that it measured."""
    head = machines.head
    (machines.folder / head.name).mkdir(exist_ok=True)
    done = subprocess.run(
        head.command(sys.executable, str(DRIVER), what, machines.master, places, *options),
        env=environment(head, machines.folder),
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return json.loads(done.stdout.splitlines()[-1])


if __name__ == "__main__":
    main()
