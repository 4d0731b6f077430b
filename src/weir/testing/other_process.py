"""A process with another hash seed, time zone and locale, which runs trials on request.

It is started once for a check, while other ways are tried. The program travels as it does to Spark:
the files that it IMPORTs run again there. Each trial runs in a fork of that process, so that no
trial sees what another one has left in globals. Trials in the user's own process cannot exclude
this.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import traceback
from collections.abc import Iterator
from typing import BinaryIO

from weir.errors import RunError
from weir.local.second_run import other_environment
from weir.testing.trials import GivenProgram, LocalWay, Ran, run_locally

_COMMAND = "from weir.testing.other_process import main; main()"


class CannotTravel(Exception):
    """Raised if a program cannot be sent to another process; says why."""


class OtherProcess:
    """Runs trials in another process, until `close`."""

    def __init__(self) -> None:
        self._changed = other_environment(os.environ)
        environment = os.environ | self._changed
        environment["PYTHONPATH"] = os.pathsep.join(os.path.abspath(p) for p in sys.path)
        self._process = subprocess.Popen(
            [sys.executable, "-c", _COMMAND],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment,
        )

    @property
    def environment(self) -> str:
        """The differences of its environment, for messages."""
        return ", ".join(f"{name}={self._changed[name]}" for name in ("PYTHONHASHSEED", "TZ"))

    def run(self, trial: GivenProgram, way: LocalWay) -> Ran:
        """Run a trial there; raise CannotTravel if the program cannot be sent."""
        try:
            body = pickle.dumps((trial, way))
        except Exception as error:  # a user's object may raise anything
            raise CannotTravel(str(error)) from error
        requests, answers = self._process.stdin, self._process.stdout
        assert requests is not None and answers is not None
        try:
            pickle.dump(body, requests)
            requests.flush()
            answer = pickle.load(answers)
        except (EOFError, BrokenPipeError) as error:
            how = self._process.wait()
            raise RunError(f"the other process died with exit code {how}") from error
        if isinstance(answer, str):
            raise CannotTravel(answer)
        assert isinstance(answer, Ran)
        return answer

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.communicate()


def main() -> None:
    """Run the trials that arrive, until the input ends."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # keep the user's prints out of the answers
    for body in _asked(sys.stdin.buffer):
        child = os.fork()
        if child == 0:
            try:
                pickle.dump(_answer(body), answers)
                answers.flush()
            except BaseException:
                traceback.print_exc()
                os._exit(1)
            os._exit(0)
        _, how = os.waitpid(child, 0)
        if how:
            sys.exit(os.waitstatus_to_exitcode(how))


def _asked(stream: BinaryIO) -> Iterator[bytes]:
    while True:
        try:
            yield pickle.load(stream)
        except EOFError:
            return


def _answer(body: bytes) -> Ran | str:
    try:
        trial, way = pickle.loads(body)
    except Exception as error:  # importing its module may raise anything
        return f"{type(error).__name__}: {error}"
    return run_locally(trial, way)
