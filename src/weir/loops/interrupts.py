"""Raises KeyboardInterrupt for a Ctrl-C during the call of a compiled loop."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def plain_interrupts() -> Iterator[None]:
    """Raise the original KeyboardInterrupt instead of the SystemError that Python makes of it.

    The signal's handler runs when the loop's entry code, which Numba generates, next calls into
    Python. The entry code continues regardless. So Python gets results while an exception is set,
    and raises a SystemError. The interrupt is its cause, or the cause of its cause. This works as a
    decorator too.
    """
    try:
        yield
    except SystemError as error:
        cause: BaseException | None = error
        while isinstance(cause, SystemError):
            cause = cause.__cause__
        if isinstance(cause, KeyboardInterrupt):
            raise cause from None
        raise
