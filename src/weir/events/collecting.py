"""Python looks for garbage in cycles whenever many objects were made.

Code that makes an object for each of thousands of rows, and no cycles, waits with that until it is
through: else half its time goes into looking.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


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
