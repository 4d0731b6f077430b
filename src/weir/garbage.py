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
    """Let Python look for garbage for the first time when there are `MANY` objects, and as ever
    from then on. A process that has just begun has none: all that it makes are modules, which stay,
    and to look at them again and again takes a tenth of a small run."""
    usual = gc.get_threshold()

    def as_ever(phase: str, info: dict[str, int]) -> None:
        gc.set_threshold(*usual)
        gc.callbacks.remove(as_ever)

    gc.set_threshold(MANY, *usual[1:])
    gc.callbacks.append(as_ever)


@contextmanager
def collecting_later() -> Iterator[None]:
    """Let Python look for garbage when this is over, if it did so before.

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
