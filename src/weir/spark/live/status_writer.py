"""Writes a job's status, its story and its figures over time to the store.

Rules
1. A thread of its own writes, so that a store that is slow or away holds nobody up.
2. Of several states of the job, and of several histories, the last one is written. Lines of the
   story that could not be written are written with the next ones.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from weir.errors import WeirError
from weir.job.history import History
from weir.job.status import STATUS, JobStatus
from weir.job.story import StoryLine, story_key
from weir.reliable.codec import encode_record
from weir.reliable.object_names import HISTORY
from weir.reliable.store import Store


class Onlookers:
    """Writes a job's status, story and history to its store, by the module's rules."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="onlookers")
        self._lock = threading.Lock()
        self._status: JobStatus | None = None
        """The status that is to be written."""
        self._history: History | None = None
        """The history that is to be written."""
        self._lines: list[StoryLine] = []
        """The lines that are to be written."""
        self._epoch = 0
        """The epoch of the manager whose story it is."""
        self._story_number = 0
        """How many objects of the story were written so far."""
        self._is_writing = False

    def tell(
        self,
        status: JobStatus | None,
        lines: Sequence[StoryLine],
        epoch: int,
        history: History | None = None,
    ) -> None:
        """Have a status written (None: another manager's is left as it is), these lines, and the
        history if there is one."""
        with self._lock:
            self._status, self._epoch = status, epoch
            self._history = history or self._history
            self._lines += lines
            if self._is_writing:
                return
            self._is_writing = True
        self._pool.submit(self._write)

    def close(self) -> None:
        """Write what is left, if the store takes it."""
        self._pool.shutdown(wait=True)
        self._write()

    def _write(self) -> None:
        """Write until there is nothing new; what fails waits for what is told next."""
        while True:
            with self._lock:
                status, self._status = self._status, None
                history, self._history = self._history, None
                lines = tuple(self._lines)
                if status is None and history is None and not lines:
                    self._is_writing = False
                    return
            try:
                if status is not None:
                    self._store.put(STATUS, encode_record(STATUS, status))
                if history is not None:
                    self._store.put(HISTORY, encode_record(HISTORY, history))
                if lines:
                    key = story_key(self._epoch, self._story_number)
                    self._store.put(key, encode_record(key, lines))
                    self._story_number += 1
            except WeirError:  # it is only for onlookers; the job depends on the record alone
                with self._lock:
                    self._status = self._status or status
                    self._history = self._history or history
                    self._is_writing = False
                return
            with self._lock:
                del self._lines[: len(lines)]
