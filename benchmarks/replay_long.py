"""Memory over a long log: the most that a replay in batches holds, batch by batch.

    python benchmarks/replay_long.py [--events 20_000_000] [--batch 2_000_000] [--data DIR]
        [--variant light|heavy|expiring] [--out FILE.csv]

Replays the spam log in this process. Printed for each batch: seconds, the most resident memory
while it ran, and how large the state behind it is on disk. Memory must not grow with the number of
batches; state grows as long as there are new users, pairs and addresses. `expiring` keeps, for each
message, a cell that ends after a hundredth of the log, and a window of as long by sender: there
neither memory nor state may grow. Batch −1 is the search for where to cut.
"""

from __future__ import annotations

import argparse
import csv
import tempfile
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow.parquet as pq
from replay import FILES, generated
from replay_measure import PAGE
from replay_weir import APPS, replay

import weir
from weir.handlers.api.app_file import load_app

EVERY = 0.05


@dataclass
class Watched:
    """Looks at this process and at the folder of the replay, again and again."""

    folder: Path
    peak: dict[int, int] = field(default_factory=dict)
    ended: dict[int, float] = field(default_factory=dict)
    state: dict[int, int] = field(default_factory=dict)
    over: threading.Event = field(default_factory=threading.Event)

    def look(self) -> None:
        while not self.over.wait(EVERY):
            finished = {int(p.name): p for p in self.folder.glob("[0-9]*") if p.name.isdigit()}
            begun = any(self.folder.glob("*.part"))
            # In the end the folders go one by one: that still is the time behind the last batch.
            now = max(len(finished) if finished or begun else -1, *self.peak, -1)
            pages = int(Path("/proc/self/statm").read_text().split()[1])
            self.peak[now] = max(self.peak.get(now, 0), pages * PAGE)
            for number, path in finished.items():
                if number not in self.ended:
                    self.ended[number] = time.perf_counter()
                    self.state[number] = _size(path / "state")


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def expiring_app(span: int) -> weir.App:
    """An app whose cells end after `span` ticks, with a key for each message."""
    app = weir.App("expiring")
    app.events("friendship", "a BIGINT, b BIGINT, ts BIGINT", vs="ts")
    message = app.events(
        "message",
        "id BIGINT, sender BIGINT, recipient BIGINT, ip STRING, content STRING, ts BIGINT",
        vs="ts",
    )
    seen = app.state("seen", default=0, expires=span)
    recent = app.state("recent", default=0, last=span)

    @app.on(message)
    def count(e):  # type: ignore[no-untyped-def]
        seen.add(e.id, 1)
        recent.add(e.sender, 1)

    @app.on(message)
    def judge(e):  # type: ignore[no-untyped-def]
        if seen.get(e.id) > 1 or recent.get(e.sender) % 1000 == 0:
            app.emit("spam", message=e.id, sender=e.sender)

    return app


def last_time(data: Path) -> int:
    """The time of the last message, in ticks."""
    last = max((data / "message").glob("*.parquet"))
    return int(pq.read_table(last, columns=["ts"]).column("ts").to_numpy().max())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--events", type=int, default=20_000_000)
    parser.add_argument("--batch", type=int, default=2_000_000)
    parser.add_argument("--data", type=Path, default=None)
    parser.add_argument("--variant", default="light", choices=[*APPS, "expiring"])
    parser.add_argument("--out", type=Path, default=None)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = args.data or Path(temporary, "data")
        folder.mkdir(parents=True, exist_ok=True)
        data = generated(folder / str(args.events), args.events, "--files", str(2 * FILES))
        expiring = args.variant == "expiring"
        app = expiring_app(last_time(data) // 100) if expiring else load_app(APPS[args.variant])
        out = Path(temporary, "out")
        watched = Watched(out / ".replay")
        thread = threading.Thread(target=watched.look)
        start = time.perf_counter()
        thread.start()
        try:
            replay(app, data, out, "local", args.batch)
        finally:
            watched.over.set()
            thread.join()
        show(args, watched, start)


def show(args: argparse.Namespace, watched: Watched, start: float) -> None:
    print(f"{args.variant}: {args.events:,} events in batches of {args.batch:,}")
    print(f"{'batch':>6} {'seconds':>8} {'peak MiB':>9} {'state MiB':>10}")
    rows, before = [], start
    for number in sorted(watched.peak):
        end = watched.ended.get(number, before)
        state = watched.state.get(number, 0) / 2**20
        row = (number, f"{end - before:.1f}", f"{watched.peak[number] / 2**20:.0f}", f"{state:.2f}")
        print("{:6} {:>8} {:>9} {:>10}".format(*row))
        rows.append(row)
        before = end
    if args.out is not None:
        with open(args.out, "w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([("batch", "seconds", "peak_mib", "state_mib"), *rows])


if __name__ == "__main__":
    main()
