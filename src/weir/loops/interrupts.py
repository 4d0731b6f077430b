"""Raises KeyboardInterrupt for a Ctrl-C that comes during the call of a compiled loop."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def plain_interrupts() -> Iterator[None]:
    """Raise the KeyboardInterrupt itself in place of the SystemError that Python makes of it.

    A signal's handler runs when the entry of a loop, which Numba makes, next asks Python something.
    The entry goes on regardless, and Python finds results beside an exception that is set: a
    SystemError, whose cause, or its cause's, is the interrupt. It works as a decorator too.
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
