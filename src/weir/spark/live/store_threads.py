"""Threads that carry out the machines' requests to the store; the answers are signals.

An error of the store is an answer too. Any other error is a bug: it is handed to the machine's own
thread, so that nothing waits for an answer that never comes.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from weir.errors import WeirError
from weir.job.signals import (
    Delete,
    Get,
    List,
    Listed,
    Loaded,
    Put,
    Refused,
    Stored,
    StoreSignal,
    Unloaded,
    Unstored,
)
from weir.reliable.objects import ObjectRef
from weir.reliable.store import ObjectExists, Store, StoreRefuses

Answered = Callable[[StoreSignal | BaseException], None]


class StoreThreads:
    """Carries out requests to the store in a few threads."""

    def __init__(self, store: Store, answer: Answered) -> None:
        self._store, self._answer = store, answer
        self._pool = ThreadPoolExecutor(4, thread_name_prefix="store")

    def do(self, command: Put | Get | Delete | List) -> None:
        """Carry out a request as soon as a thread is free."""
        self._pool.submit(self._guarded, command)

    def close(self, *, wait: bool) -> None:
        self._pool.shutdown(wait=wait, cancel_futures=not wait)

    def _guarded(self, command: Put | Get | Delete | List) -> None:
        try:
            self._run(command)
        except BaseException as error:  # see the module's docstring
            self._answer(error)

    def _run(self, command: Put | Get | Delete | List) -> None:
        match command:
            case Put(key, encode, new):
                body = encode()
                try:
                    self._store.put(key, body, new=new)
                    self._answer(Stored(ObjectRef.of(key, body)))
                except ObjectExists:
                    self._answer(Refused(key))
                except WeirError as error:
                    self._answer(Unstored(key, str(error), isinstance(error, StoreRefuses)))
            case Get(key):
                try:
                    self._answer(Loaded(key, self._store.get(key)))
                except WeirError as error:
                    self._answer(Unloaded(key, str(error), isinstance(error, StoreRefuses)))
            case Delete() | List():
                self._tidy(command)

    def _tidy(self, command: Delete | List) -> None:
        try:
            if isinstance(command, Delete):
                self._store.delete(command.keys)
            else:
                self._answer(Listed(tuple(self._store.list(command.prefix))))
        except WeirError:
            return  # the next sweep finds what was not deleted or listed
