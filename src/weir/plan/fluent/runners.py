"""Registers the runners, which live in packages above the plan, for the methods of `Stream`.

The plan does not know those packages. A module that knows both provides a function here, and
`Stream` asks for it by its name. `weir/__init__.py` does so, which Python imports before any other
module of Weir.
"""

from __future__ import annotations

from collections.abc import Callable

Runner = Callable[..., object]

_provided: dict[str, Runner] = {}


def provide(name: str, runner: Runner) -> None:
    """Let `Stream` find a runner under this name."""
    _provided[name] = runner


def provided(name: str) -> Runner:
    """Return the runner of this name; its first argument is the stream."""
    return _provided[name]
