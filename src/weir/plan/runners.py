"""What makes something else of a stream: packages above the plan, which the plan does not know.

Whoever knows both provides a function here, and the methods of `Stream` ask for it by its name.
`weir/__init__.py` does so, which Python imports before any module of Weir.
"""

from __future__ import annotations

from collections.abc import Callable

Runner = Callable[..., object]

_provided: dict[str, Runner] = {}


def provide(name: str, runner: Runner) -> None:
    """Let `Stream` find a runner under this name."""
    _provided[name] = runner


def provided(name: str) -> Runner:
    """The runner of this name; it takes the stream first."""
    return _provided[name]
