"""What a run takes: seconds, processor time and memory of this process and all below it."""

from __future__ import annotations

import hashlib
import os
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow.parquet as pq

TICKS = os.sysconf("SC_CLK_TCK")
PAGE = os.sysconf("SC_PAGE_SIZE")
EVERY = 0.2
"""Seconds between two looks at the processes."""


@dataclass
class Usage:
    """What was seen of the processes: processor time of each, the most memory of all together.

    Memory is resident pages; those that two processes share are counted twice.
    """

    seconds: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)
    peak: int = 0
    jvm: int = 0

    def look(self) -> dict[int, float]:
        """The processor time of each process, in seconds; memory is noted on the way."""
        found: dict[int, float] = {}
        memory = jvm = 0
        for pid, name, cpu, size in _tree(os.getpid()):
            found[pid] = cpu
            memory += size
            jvm += size if name == "java" else 0
        if memory > self.peak:
            self.peak, self.jvm = memory, jvm
        return found


def measured(run: Callable[[], object], rounds: int) -> Usage:
    """Run it so many times."""
    usage = Usage()
    for _ in range(rounds):
        before = usage.look()
        times = dict(before)
        over = threading.Event()

        def sample(times: dict[int, float] = times, over: threading.Event = over) -> None:
            while not over.wait(EVERY):
                times.update(usage.look())

        thread = threading.Thread(target=sample)
        start = time.perf_counter()
        thread.start()
        try:
            run()
            usage.seconds.append(time.perf_counter() - start)
        finally:
            over.set()
            thread.join()
        times.update(usage.look())
        usage.cpu.append(sum(times.values()) - sum(before.values()))
    return usage


def _tree(root: int) -> Iterator[tuple[int, str, float, int]]:
    """This process and all that came from it: pid, name, processor time, resident bytes."""
    stats: dict[int, tuple[int, str, float, int]] = {}
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            text = Path("/proc", entry, "stat").read_text()
        except (FileNotFoundError, ProcessLookupError):  # it has ended meanwhile
            continue
        name, rest = text[text.index("(") + 1 : text.rindex(")")], text[text.rindex(")") + 2 :]
        fields = rest.split()
        cpu = (int(fields[11]) + int(fields[12])) / TICKS
        stats[int(entry)] = int(fields[1]), name, cpu, int(fields[21]) * PAGE
    below = {root}
    grown = True
    while grown:
        more = {pid for pid, (parent, *_) in stats.items() if parent in below} - below
        below |= more
        grown = bool(more)
    for pid in below & stats.keys():
        _, name, cpu, size = stats[pid]
        yield pid, name, cpu, size


def fingerprint(out: Path) -> tuple[int, str]:
    """How many rows a result has, and a hash of them in order of message."""
    table = pq.read_table(out, columns=["vs", "ve", "message", "sender"]).sort_by("message")
    digest = hashlib.sha256()
    for name in table.column_names:
        digest.update(table.column(name).cast("int64").to_numpy().tobytes())
    return len(table), digest.hexdigest()[:12]
