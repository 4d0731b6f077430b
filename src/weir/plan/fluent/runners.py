"""Registers the runners for the methods of `Stream`; they live in packages above the plan.

The plan does not know those packages. `weir/__init__.py`, which knows both, provides a function
here, and `Stream` looks it up by name. Python imports `weir/__init__.py` before any other module of
Weir.
"""

from __future__ import annotations

from collections.abc import Callable

Runner = Callable[..., object]

_provided: dict[str, Runner] = {}


def provide(name: str, runner: Runner) -> None:
    """Register a runner under this name, for `Stream`."""
    _provided[name] = runner


def provided(name: str) -> Runner:
    """Return the runner of this name; its first argument is the stream."""
    return _provided[name]
