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
"""How many bytes a loop's number takes in a pipe; the pipe's buffer has room for all loops."""


def missing_loops(loops: Sequence[Loop]) -> list[Loop]:
    """Return the loops whose code is not on disk."""
    kept = kept_names()
    return [loop for loop in loops if loop.file_name not in kept and not loop.is_ready]


def compile_together(loops: Sequence[Loop]) -> None:
    """Compile loops in as many processes as there are cores.

    The code from the other processes is then on disk. If no folder keeps it, this process compiles
    those loops itself when it needs them."""
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
    """Return how many helper processes to start.

    They are forks, which have every import already. Forks are safe only on Linux."""
    if not sys.platform.startswith("linux"):
        return 0
    return min(len(os.sched_getaffinity(0)), MOST_PROCESSES, count) - 1


def _helper(loops: Sequence[Loop], turns: int) -> int:
    parent = os.getpid()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # Python warns of any fork with threads
        pid = os.fork()
    if pid:
        return pid
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # the parent prints the same
        _work(loops, turns, parent)
    finally:
        os._exit(0)  # a loop that failed fails again where it is needed, and is reported there


def _work(loops: Sequence[Loop], turns: int, parent: int | None = None) -> None:
    """Compile loops that no other process has begun, one after the other.

    Each number in the pipe goes to one process. A helper ends when its parent does, which may have
    been killed."""
    while number := os.read(turns, _NUMBER):
        if parent not in (None, os.getppid()):
            return
        loops[int.from_bytes(number)].make_ready()


def _size(loop: Loop) -> int:
    """Return how much code a loop has, with the loops that it calls.

    The largest are compiled first, because they take longest."""
    seen: set[CodeType] = set()
    todo = [loop.py_func]
    while todo:
        function = todo.pop()
        if function.__code__ not in seen:
            seen.add(function.__code__)
            names = (function.__globals__.get(name) for name in function.__code__.co_names)
            todo += [inner.py_func for inner in names if isinstance(inner, InnerLoop)]
    return sum(len(code.co_code) for code in seen)
