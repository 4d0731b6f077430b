"""Conversations of a source's log with a store, without a driver."""

from typing import TypeVar

from weir.ingress.ingress_log import LogTalk
from weir.ingress.source_driver import store_answer
from weir.reliable.store import Store

_T = TypeVar("_T")


def talked(talk: LogTalk[_T], store: Store) -> _T:
    """Hold a log's conversation with a store to its end, and return what came of it."""
    try:
        command = next(talk)
        while True:
            command = talk.send(store_answer(command, store))
    except StopIteration as done:
        result: _T = done.value
        return result
