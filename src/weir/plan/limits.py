"""Rejects plans that are too large when they are made, and says what to do instead.

Recursive functions walk, compare and pickle plans and expressions, with a few nested calls for each
operator in a row, and Python allows only a thousand. Without these limits, a large plan would later
exhaust Python's stack or the machine's memory, without a helpful message.
"""

from __future__ import annotations

from weir.errors import PlanError, Position
from weir.plan.operators import Node, computed
from weir.plan.operators.facts import Meet

MOST_OPERATORS = 500
"""The most operators in a row, from an input to an output."""
MOST_BRANCHES = 10_000
"""The most branches of unions for one reader; each becomes a separate part of the plan."""
MOST_VERTICES = 1000
"""The most vertices of one stage.

A stage that is split by keys needs at least one bucket per vertex (`events/hashing.py`)."""
MOST_ROWS = 2**62
"""The most rows of a chunk that a runner can be told to cut."""
MOST_PARTS = 200
"""The deepest nesting of an expression."""
MOST_WINDOWS = 1_000_000
"""The most hopping windows that a short event can be in; each of them is a row."""


def sized(node: Node, position: Position | None = None) -> Node:
    """Return the node if the plan below it is not too large; else raise PlanError."""
    operators, branches = _size(node)
    if operators > MOST_OPERATORS:
        raise PlanError(
            f"more than {MOST_OPERATORS} operators in a row",
            position=position,
            hint="compute more in each of them, or write a stream in between to a file",
        )
    if branches > MOST_BRANCHES:
        raise PlanError(
            f"more than {MOST_BRANCHES} branches in all UNION ALLs below",
            position=position,
            hint="a stream in two branches counts twice, with all branches of its own",
        )
    return node


def check_vertices(count: object, what: str, position: Position | None = None) -> None:
    if not _is_number(count, MOST_VERTICES):
        raise PlanError(
            f"{what} must be a number from 1 to {MOST_VERTICES}, not {count!r}", position=position
        )


def check_numbers(*, cut: object, parallelism: object, hosts: object = None) -> None:
    """Check the numbers that Python passes to a runner; None means unset."""
    if cut is not None and not _is_number(cut, MOST_ROWS):
        raise PlanError(f"cut must be None or a number from 1 to 2**62, not {cut!r}")
    for what, count in (("parallelism", parallelism), ("hosts", hosts)):
        if count is not None:
            check_vertices(count, what)


def _is_number(value: object, most: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= most


def _size(node: Node) -> tuple[int, int]:
    """Return how many operators in a row end with this one, and how many branches it reads."""
    return computed(node, "_size", _size_above_inputs)


def _size_above_inputs(node: Node) -> tuple[int, int]:
    below = [_size(i) for i in node.inputs]
    operators = 1 + max((operators for operators, _ in below), default=0)
    if below and node.meeting() is Meet.NEVER:  # it runs in each branch below
        return operators, sum(branches for _, branches in below)
    return operators, 1
