"""Drives a source's machine in a thread, with a store, a connector and a real clock."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

from weir.errors import WeirError
from weir.files.chunks import Chunk, SourcePartition
from weir.ingress.connectors.connector import Reading
from weir.ingress.connectors.registry import open_reading
from weir.ingress.source_machine import SourceMachine
from weir.ingress.source_signals import (
    Accept,
    Appended,
    AppendRecord,
    Give,
    ListRecords,
    LogAnswer,
    LogCommand,
    Open,
    Opened,
    Poll,
    ReadRecord,
    RecordRead,
    RecordsListed,
    SourceSignal,
    StoreFailed,
    Wait,
)
from weir.reliable.store import ObjectExists, Store, StoreRefuses


def driven_chunks(
    machine: SourceMachine,
    partition: SourcePartition,
    store: Store,
    stopped: Callable[[], bool],
    waits: Callable[[str | None], None],
) -> Iterator[Chunk]:
    """Yield the chunks of a source until its partition ends or `stopped()` is true. `waits` is
    called repeatedly with what keeps rows from coming, or with None."""
    reading: Reading | None = None
    signal: SourceSignal | None = None
    try:
        while not stopped():
            now = time.monotonic()
            command = machine.next(signal, now, int(time.time() * 1e6))
            signal = None
            match command:
                case Poll(most, until):
                    assert reading is not None
                    signal = reading.poll(most, until, now)
                case Wait(seconds, why):
                    waits(why)
                    time.sleep(seconds)
                case Give(chunk):
                    waits(None)
                    if chunk is None:
                        return
                    yield chunk
                case Accept():
                    assert reading is not None
                    signal = reading.accept(command)
                case Open(state, start):
                    reading = open_reading(partition, state, start)
                    signal = Opened(reading.offset)
                case _:
                    signal = _tried(command, store)
    finally:
        if reading is not None:
            reading.close()


def _tried(command: LogCommand, store: Store) -> LogAnswer | StoreFailed:
    try:
        return store_answer(command, store)
    except WeirError as error:
        return StoreFailed(str(error), isinstance(error, StoreRefuses))


def store_answer(command: LogCommand, store: Store) -> LogAnswer:
    """Carry out a command of a log with the store."""
    match command:
        case ReadRecord(key):
            return RecordRead(store.get(key))
        case ListRecords(prefix):
            return RecordsListed(tuple(store.list(prefix)))
        case AppendRecord(key, body):
            try:
                store.put(key, body, new=True)
            except ObjectExists:
                return Appended(False)
            return Appended(True)
