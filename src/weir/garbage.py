"""Pauses Python's search for garbage in cycles while code makes many objects.

Python searches whenever many objects were made. Code that makes an object for each of thousands of
rows, and no cycles, would spend half its time on that.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

MANY = 300_000
"""Objects that imports make, and some more."""


def collect_first_after_many() -> None:
    """Delay the first search for garbage until there are `MANY` objects; later ones are as usual.
    A process that has just started makes only modules, which stay: searching them again and again
    takes a tenth of a small run."""
    usual = gc.get_threshold()

    def restore(phase: str, info: dict[str, int]) -> None:
        gc.set_threshold(*usual)
        gc.callbacks.remove(restore)

    gc.set_threshold(MANY, *usual[1:])
    gc.callbacks.append(restore)


@contextmanager
def collecting_later() -> Iterator[None]:
    """Turn the search for garbage off until this ends, if it was on.

    >>> import gc
    >>> with collecting_later():
    ...     gc.isenabled()
    False
    >>> gc.isenabled()
    True
    """
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()
