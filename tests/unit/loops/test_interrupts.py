"""An interrupt that comes while a loop is called is a KeyboardInterrupt."""

from __future__ import annotations

import signal

import numpy as np
import pytest

from weir.events.order_loops import still_tied
from weir.loops.interrupts import plain_interrupts

ROUNDS = 20


def test_an_interrupt_is_one_whenever_it_comes() -> None:
    values = np.zeros(1_000_000, np.int64)  # it comes within a loop, most likely
    still_tied(values, values, values)  # it is loaded now: that hides interrupts

    @plain_interrupts()
    def call_loops() -> None:
        while True:
            still_tied(values, values, values)

    def interrupt(number: int, frame: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        for round in range(ROUNDS):
            signal.setitimer(signal.ITIMER_REAL, 0.02 + round * 1e-4, 0.5)
            with pytest.raises(KeyboardInterrupt):
                call_loops()
            signal.setitimer(signal.ITIMER_REAL, 0)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_any_other_system_error_stays() -> None:
    with pytest.raises(SystemError, match="other"), plain_interrupts():
        raise SystemError("other") from ValueError()
