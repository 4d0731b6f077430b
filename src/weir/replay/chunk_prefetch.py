"""Prefetches the chunks of a partition in a thread, a bounded number at a time.

Reading a batch's partitions starts while the batch before it still runs. An error of the reader is
raised where the failed chunk would have come.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from copy import copy
from queue import Empty, Full, Queue

from weir.files.chunks import CHUNK_ROWS, Chunk, SourcePartition

AHEAD = 2
"""How many chunks of a partition wait."""
_PATIENCE = 0.1


class AheadPartition:
    """Is a partition that is read ahead, once and from its beginning; another reading of it reads
    it plainly. `close` ends the thread."""

    def __init__(self, partition: SourcePartition, size: int = CHUNK_ROWS) -> None:
        self._partition, self._size = partition, size
        self._queue: Queue[Chunk | BaseException | None] = Queue(AHEAD)
        self._closed = threading.Event()
        self._taken = False
        self._thread = threading.Thread(target=self._read, name="replay-ahead", daemon=True)
        self._thread.start()

    def __reduce__(self) -> tuple[object, ...]:
        """Travel as the plain partition."""
        return copy, (self._partition,)

    @property
    def name(self) -> str:
        return self._partition.name

    @property
    def size(self) -> int:
        return self._partition.size

    def chunks(self, size: int = CHUNK_ROWS, start: int = 0) -> Iterator[Chunk]:
        if self._taken or start or size != self._size:
            return self._partition.chunks(size, start)
        self._taken = True
        return self._arriving()

    def _arriving(self) -> Iterator[Chunk]:
        while True:
            item = self._queue.get()
            if item is None:
                return
            if isinstance(item, BaseException):
                raise item
            yield item

    def close(self) -> None:
        """Stop reading, and wait for the thread."""
        self._closed.set()
        while self._thread.is_alive():
            try:
                self._queue.get(timeout=_PATIENCE)
            except Empty:
                continue

    def _read(self) -> None:
        try:
            for chunk in self._partition.chunks(self._size):
                if not self._put(chunk):
                    return
        except BaseException as error:  # it is raised where the chunk is asked for
            self._put(error)
        else:
            self._put(None)

    def _put(self, item: Chunk | BaseException | None) -> bool:
        while not self._closed.is_set():
            try:
                self._queue.put(item, timeout=_PATIENCE)
            except Full:
                continue
            return True
        return False
