"""The processes of one job, and signals to them alone (Linux: it reads /proc).

Contract
1. A process is a number and the time it began, so one that got the number of a dead one is not
   taken for it.
2. `Family` knows the descendants of one process that was started here, also those that outlive it.
   A signal goes to one of the family or to nobody: asking for another is an error.
3. `Family.end` leaves none of them behind, stopped ones included.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

EXECUTOR = "CoarseGrainedExecutorBackend"


@dataclass(frozen=True, slots=True)
class Process:
    """See the module's first rule."""

    pid: int
    began: int

    @property
    def is_alive(self) -> bool:
        found = _stat(self.pid)
        return found is not None and found[0] == self


def _stat(pid: int) -> tuple[Process, int] | None:
    """A process and its parent; None when it is gone, or dead and not yet buried."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text("utf-8")
    except (FileNotFoundError, ProcessLookupError):
        return None
    fields = text.rpartition(")")[2].split()
    if fields[0] in "ZX":
        return None
    return Process(pid, int(fields[19])), int(fields[1])


def _command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text("utf-8")
    except (FileNotFoundError, ProcessLookupError):
        return ""


class Family:
    """A process that was started here and all that came of it."""

    def __init__(self, root: int) -> None:
        found = _stat(root)
        if found is None or found[1] != os.getpid():
            raise ValueError(f"process {root} was not started here")
        self._root = found[0]
        self._seen = {self._root}

    def look(self) -> set[Process]:
        """Those alive; to be called before anything dies, for orphans have no known parent."""
        parents: dict[int, Process] = {}
        children: dict[int, list[Process]] = {}
        for entry in Path("/proc").iterdir():
            found = _stat(int(entry.name)) if entry.name.isdecimal() else None
            if found is not None:
                parents[found[0].pid] = found[0]
                children.setdefault(found[1], []).append(found[0])
        self._seen = {p for p in self._seen if parents.get(p.pid) == p}
        waiting = list(self._seen)
        while waiting:
            for child in children.get(waiting.pop().pid, ()):
                if child not in self._seen:
                    self._seen.add(child)
                    waiting.append(child)
        return set(self._seen)

    def executors(self) -> list[int]:
        """The JVMs of Spark's executors, apart from the scripts that start them."""
        alive = sorted(p.pid for p in self.look())
        return [p for p in alive if EXECUTOR in (said := _command(p)) and "java" in said[:200]]

    def above(self, pid: int) -> Iterator[int]:
        """A process, its parent, and so on up to the root."""
        while (found := _stat(pid)) is not None:
            yield pid
            if found[0] == self._root:
                return
            pid = found[1]

    def signal(self, pid: int, number: signal.Signals) -> None:
        """See the module's second rule."""
        if not any(p.pid == pid for p in self.look()) or pid == os.getpid():
            raise ValueError(f"process {pid} is none of the job's")
        os.kill(pid, number)

    def end(self, within: float = 10.0) -> None:
        """Kill whoever is left, and see that they are gone."""
        until = time.monotonic() + within
        while left := self.look():
            if time.monotonic() > until:
                raise TimeoutError(f"processes that cannot be killed: {left}")
            for process in left:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(process.pid, signal.SIGKILL)
            time.sleep(0.05)
