"""Handles Ctrl-C and SIGTERM while Spark is at work.

Rules
1. While Spark starts or stops, signals are deferred: a half-started Spark would keep running.
2. While a live job runs, the first signal requests a last checkpoint; the second ends the job at
   once.
3. SIGTERM is deferred only if it has a handler, as in the command line. Without one it ends the
   process, and its Spark with it. A live job always handles both signals.
4. Python delivers signals to the main thread only. In other threads this module does nothing.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM)
SignalHandler = Callable[[int, FrameType | None], object]
_asking: tuple[list[int], SignalHandler] | None = None
"""Inside `signals_ask`: the signals that came, and the handler that notes them."""


@contextmanager
def signals_wait() -> Iterator[None]:
    """Defer signals to the end of the block; a second signal takes effect at once (rule 1)."""
    before = {s: h for s in SIGNALS if callable(h := signal.getsignal(s))}
    if not _in_main_thread() or not before:
        yield
        return
    numbers: list[int] = []

    def note(number: int, frame: FrameType | None) -> None:
        numbers.append(number)
        if len(numbers) > 1:
            _end(number, before.get(signal.Signals(number)))

    for number in before:
        signal.signal(number, note)
    try:
        yield
    finally:
        for number, handler in before.items():
            if signal.getsignal(number) is note:  # Spark may have installed its own handler
                signal.signal(number, handler)
    if numbers:
        _end(numbers[0], before.get(signal.Signals(numbers[0])))


@contextmanager
def handlers_kept() -> Iterator[None]:
    """Restore the handlers of signals at the end of the block, if a library has replaced them."""
    before = {number: signal.getsignal(number) for number in SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            if _in_main_thread() and handler is not None:  # None: not set by Python
                signal.signal(number, handler)


@contextmanager
def signals_ask() -> Iterator[Callable[[], int]]:
    """Yield a function that returns the signal that has requested an end, or 0 (rule 2). Inside
    another such block it is the function of the outer block."""
    global _asking
    if not _in_main_thread():
        yield lambda: 0
        return
    if _asking is not None:
        noted, note = _asking
        _handle(note)  # libraries may have installed their own handlers
        yield lambda: noted[0] if noted else 0
        return
    numbers: list[int] = []
    before = {number: signal.getsignal(number) for number in SIGNALS}

    def ask(number: int, frame: FrameType | None) -> None:
        numbers.append(number)
        if len(numbers) > 1:
            handler = before[signal.Signals(number)]
            _end(number, handler if callable(handler) else None)

    _handle(ask)
    _asking = numbers, ask
    try:
        yield lambda: numbers[0] if numbers else 0
    finally:
        _asking = None
        for number, handler in before.items():
            signal.signal(number, handler)


def _handle(handler: SignalHandler) -> None:
    for number in SIGNALS:
        signal.signal(number, handler)


def _end(number: int, before: SignalHandler | None) -> None:
    """End the program as this signal would."""
    if number == signal.SIGINT:
        raise KeyboardInterrupt
    if before is not None:
        before(number, None)
    raise SystemExit(128 + number)


def _in_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()
