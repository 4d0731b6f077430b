"""Reads objects of a store ahead of their use.

A bucket takes a while to answer, and a job has thousands of commits."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager

from weir.reliable.store import Body, Store

AT_ONCE = 16


class ReadAhead:
    """A store that reads objects ahead in the given order. Other objects, and second reads of the
    same object, are read on request."""

    def __init__(self, store: Store, keys: Iterable[str], pool: ThreadPoolExecutor) -> None:
        self._store, self._keys, self._pool = store, iter(keys), pool
        self._coming: deque[tuple[str, Future[bytes | None]]] = deque()

    def get(self, key: str) -> bytes | None:
        self._ask()
        if not any(key == coming for coming, _ in self._coming):
            return self._store.get(key)
        while True:  # skip the keys before it
            next_key, answer = self._coming.popleft()
            if next_key == key:
                self._ask()
                return answer.result()

    def _ask(self) -> None:
        while len(self._coming) < AT_ONCE and (key := next(self._keys, None)) is not None:
            self._coming.append((key, self._pool.submit(self._store.get, key)))

    def put(self, key: str, body: Body, *, new: bool = False) -> None:
        self._store.put(key, body, new=new)

    def delete(self, keys: Iterable[str]) -> None:
        self._store.delete(keys)

    def list(self, prefix: str = "") -> list[str]:
        return self._store.list(prefix)


@contextmanager
def reading_ahead(store: Store, keys: Iterable[str]) -> Iterator[Store]:
    """Read these objects ahead while the block runs."""
    with ThreadPoolExecutor(AT_ONCE, thread_name_prefix="ahead") as pool:
        try:
            yield ReadAhead(store, keys, pool)
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
