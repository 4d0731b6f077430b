"""How long rows of a live job take until they are there for good.

A row of the join begins when the later of its two events was written to its file, by the feeder's
clock, which stands in the events. It is there for good once its commit is in the store, by the time
of the commit's file.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from weir.files.object_store import existing_store
from weir.job.output_reader import OutputReader
from weir.plan.durations import UNITS

OUTPUT = "Pairs"
QUANTILE = 99.0


class Latencies:
    """The rows of the join that were committed so far: when each began, and how long it took."""

    def __init__(self, store: Path) -> None:
        self._store = store
        self._reader: OutputReader | None = None
        self._commits = 0
        self._began: list[np.ndarray] = [np.empty(0)]
        self._took: list[np.ndarray] = [np.empty(0)]

    def look(self) -> float:
        """Read what is new; return when the last row began, in seconds since 1970."""
        self._reader = self._reader or OutputReader(existing_store(str(self._store)), OUTPUT)
        found = self._reader.look(self._commits)
        self._commits = found.end
        for link in found.commits:
            at = (self._store / link.ref.key).stat().st_mtime
            for rows in self._reader.rows(link):
                began = np.asarray(rows.vs) / UNITS["s"]
                self._began.append(began)
                self._took.append(at - began)
        return max((float(began[-1]) for began in self._began if len(began)), default=0.0)

    def p99(self, since: float, until: float) -> float | None:
        """Return how long rows that began in this time took, but for the slowest 1 %."""
        self.look()
        began, took = np.concatenate(self._began), np.concatenate(self._took)
        during = took[(began >= since) & (began < until)]
        return float(np.percentile(during, QUANTILE)) if len(during) else None
