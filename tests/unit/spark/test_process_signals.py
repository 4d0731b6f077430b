"""Ctrl-C and SIGTERM while Spark is at work: they wait, ask, or end."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator

import pytest

from weir.spark.process_signals import SIGNALS, handlers_kept, signals_ask, signals_wait


class Handled(BaseException):
    """What the handler of whoever runs this raises."""


@pytest.fixture(autouse=True)
def handlers() -> Iterator[None]:
    def handle(number: int, frame: object) -> None:
        raise Handled(number)

    before = {number: signal.getsignal(number) for number in SIGNALS}
    signal.signal(signal.SIGTERM, handle)
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


RAISED = [(signal.SIGINT, KeyboardInterrupt), (signal.SIGTERM, Handled)]


def send(*numbers: int) -> None:
    for number in numbers:
        os.kill(os.getpid(), number)
        signal.sigtimedwait((), 0.01)  # handlers run between two steps of Python


@pytest.mark.parametrize(("number", "raised"), RAISED)
def test_they_wait(number: int, raised: type[BaseException]) -> None:
    done = []

    def work(times: int) -> None:
        with signals_wait():
            send(*[number] * times)
            done.append(times)

    with pytest.raises(raised):
        work(1)
    with pytest.raises(raised):
        work(2)
    assert done == [1], "the second does not wait"


@pytest.mark.parametrize(("number", "raised"), RAISED)
def test_the_first_asks_and_the_second_ends(number: int, raised: type[BaseException]) -> None:
    with signals_ask() as asked:
        assert asked() == 0
        send(number)
        assert asked() == number
        with signals_ask() as again:
            assert again() == number
            with pytest.raises(raised):
                send(number)
    with pytest.raises(raised):
        send(number)


def test_handlers_that_a_library_puts_there_are_replaced() -> None:
    with signals_ask() as asked:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        with signals_ask():
            os.kill(os.getpid(), signal.SIGTERM)
        assert asked() == signal.SIGTERM


def test_handlers_that_a_library_puts_there_do_not_stay() -> None:
    with handlers_kept():
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    with pytest.raises(Handled):
        send(signal.SIGTERM)


def test_other_threads_hear_nothing() -> None:
    heard = []

    def run() -> None:
        with signals_wait(), signals_ask() as asked:
            heard.append(asked())

    with signals_ask():
        os.kill(os.getpid(), signal.SIGINT)
        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
    assert heard == [0]


def test_a_process_that_handles_no_sigterm_ends_by_the_second() -> None:
    code = (
        "import os, signal\nfrom weir.spark.process_signals import signals_ask\n"
        "with signals_ask() as asked:\n"
        "    os.kill(os.getpid(), 15)\n    assert asked() == 15\n    os.kill(os.getpid(), 15)\n"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 143
