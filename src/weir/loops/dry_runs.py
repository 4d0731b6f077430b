"""Finds the loops that a piece of work needs without compiling any, and compiles many at once.

In a dry run loops run as the plain Python that they are. Their integers then are NumPy's and
Python's, so a value may differ or be missing: the result is a good guess. A dry run that would not
end is stopped.
"""

from __future__ import annotations

import os
import signal
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from types import CodeType, FrameType
from typing import Any

import numpy as np

from weir.loops.code_cache import Need, every_loop, is_inner, make_ready

LINES = 2_000_000
"""So many lines of loops a dry run may take: some seconds."""
MOST_PROCESSES = 4
_NUMBER = 2
"""The bytes of a loop's number in a pipe, which holds more of them than there are loops."""


class TooLong(Exception):
    """Says that a dry run took too many lines."""


@contextmanager
def dry_run() -> Iterator[dict[Need, None]]:
    """Let loops that have no code yet run as Python in the block; give those that were called."""
    needs: dict[Need, None] = {}
    tracer = _Tracer()
    overloads = {
        loop: list(loop.overloads.values()) for loop in every_loop if is_inner(loop.py_func)
    }
    for loop in overloads:
        loop._reset_overloads()  # its code has no entry for Python: a call of it is one of nothing
    for loop in every_loop:
        # Numba asks for code so when it has none for these arguments; and then calls it.
        loop._compile_for_args = _stand_in(loop, needs, tracer)
    try:
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield needs
    finally:
        for loop in every_loop:
            del loop._compile_for_args
        for loop, codes in overloads.items():
            for code in codes:
                loop.add_overload(code)


class _Tracer:
    """Counts lines, and how deep loops call each other."""

    def __init__(self) -> None:
        self.depth, self._lines = 0, 0

    def __call__(self, frame: FrameType, event: str, value: Any) -> _Tracer:
        self._lines += 1
        if self._lines > LINES:
            raise TooLong
        return self


def _stand_in(loop: Any, needs: dict[Need, None], tracer: _Tracer) -> Callable[..., Any]:
    function = loop.py_func

    def call(*args: Any) -> Any:
        if tracer.depth == 0:
            types = tuple(loop.typeof_pyval(value) for value in args)
            needs[Need(function.__module__, function.__qualname__, types)] = None
        before = sys.gettrace()
        tracer.depth += 1
        sys.settrace(tracer)
        try:
            return function(*args)
        finally:
            sys.settrace(before)
            tracer.depth -= 1

    return lambda *args, **options: call


# --- compiling -----------------------------------------------------------------------------------


def compile_together(needs: Sequence[Need]) -> None:
    """Compile loops in as many processes as there are cores. What another process compiled is on
    disk afterwards, unless no folder keeps it: then it is compiled here, when it is needed."""
    in_turn = sorted(needs, key=_size, reverse=True)
    helpers = _helpers(len(needs))
    if helpers < 1:
        make_ready(in_turn)
        return
    turns, numbers = os.pipe()
    os.write(numbers, b"".join(n.to_bytes(_NUMBER) for n in range(len(in_turn))))
    os.close(numbers)
    others = [_helper(in_turn, turns) for _ in range(helpers)]
    try:
        _work(in_turn, turns)
    except BaseException:
        for pid in others:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        raise
    finally:
        os.close(turns)
        for pid in others:
            os.waitpid(pid, 0)


def _helpers(count: int) -> int:
    """Return how many processes may help. They are forks, which have all that is imported: only on
    Linux are those safe."""
    if not sys.platform.startswith("linux"):
        return 0
    return min(len(os.sched_getaffinity(0)), MOST_PROCESSES, count) - 1


def _helper(needs: Sequence[Need], turns: int) -> int:
    parent = os.getpid()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # it is said of any fork with threads
        pid = os.fork()
    if pid:
        return pid
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # the parent says the same
        _work(needs, turns, parent)
    finally:
        os._exit(0)  # what failed fails again where it is needed, and is reported there


def _work(needs: Sequence[Need], turns: int, parent: int | None = None) -> None:
    """Compile one loop after the other, of those that nobody else has begun with: a number in the
    pipe goes to one process. A helper ends with its parent, which may have been killed."""
    while number := os.read(turns, _NUMBER):
        if parent not in (None, os.getppid()):
            return
        make_ready([needs[int.from_bytes(number)]])


def _size(need: Need) -> int:
    """Return how much code a loop is, with that of the loops that it calls: what takes longest is
    begun first."""
    functions = {(x.py_func.__module__, x.py_func.__qualname__): x.py_func for x in every_loop}
    seen: set[CodeType] = set()
    todo = [functions[need.module, need.name]]
    while todo:
        function = todo.pop()
        if function.__code__ not in seen:
            seen.add(function.__code__)
            names = (function.__globals__.get(name) for name in function.__code__.co_names)
            todo += [loop.py_func for loop in names if hasattr(loop, "py_func")]
    return sum(len(code.co_code) for code in seen)
