"""Compiles many loops at once, in several processes."""

from __future__ import annotations

import os
import signal
import sys
import warnings
from collections.abc import Sequence
from contextlib import suppress
from types import CodeType

from weir.loops.code_cache import kept_names
from weir.loops.loop import InnerLoop, Loop

MOST_PROCESSES = 4
_NUMBER = 2
"""The bytes of a loop's number in a pipe, which holds more of them than there are loops."""


def missing_loops(loops: Sequence[Loop]) -> list[Loop]:
    """Return those of the loops whose code is not on disk."""
    kept = kept_names()
    return [loop for loop in loops if loop.file_name not in kept and not loop.is_ready]


def compile_together(loops: Sequence[Loop]) -> None:
    """Compile loops in as many processes as there are cores. What another process compiled is on
    disk afterwards, unless no folder keeps it: then it is compiled here, when it is needed."""
    in_turn = sorted(loops, key=_size, reverse=True)
    helpers = _helpers(len(loops))
    if helpers < 1:
        for loop in in_turn:
            loop.make_ready()
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


def _helper(loops: Sequence[Loop], turns: int) -> int:
    parent = os.getpid()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # it is said of any fork with threads
        pid = os.fork()
    if pid:
        return pid
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # the parent says the same
        _work(loops, turns, parent)
    finally:
        os._exit(0)  # what failed fails again where it is needed, and is reported there


def _work(loops: Sequence[Loop], turns: int, parent: int | None = None) -> None:
    """Compile one loop after the other, of those that nobody else has begun with: a number in the
    pipe goes to one process. A helper ends with its parent, which may have been killed."""
    while number := os.read(turns, _NUMBER):
        if parent not in (None, os.getppid()):
            return
        loops[int.from_bytes(number)].make_ready()


def _size(loop: Loop) -> int:
    """Return how much code a loop is, with that of the loops that it calls: what takes longest is
    begun first."""
    seen: set[CodeType] = set()
    todo = [loop.py_func]
    while todo:
        function = todo.pop()
        if function.__code__ not in seen:
            seen.add(function.__code__)
            names = (function.__globals__.get(name) for name in function.__code__.co_names)
            todo += [inner.py_func for inner in names if isinstance(inner, InnerLoop)]
    return sum(len(code.co_code) for code in seen)
