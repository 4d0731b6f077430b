"""Finds the columns of its event that a handler can reach; only those are read.

A handler that uses its event only as `e.name` reaches only the columns that it names. Any other use
(an argument, an element, a second name) may reach all of them. Frames and the cells of closures,
which lead to the event without its name, are refused (`forbidden_calls.py`).
"""

from __future__ import annotations

import ast
from collections.abc import Collection


def reached_columns(function: ast.FunctionDef, columns: Collection[str]) -> frozenset[str]:
    """Return which columns of the event a handler can reach.

    >>> def of(text):
    ...     function = ast.parse(text).body[0]
    ...     assert isinstance(function, ast.FunctionDef)
    ...     return sorted(reached_columns(function, ["a", "b", "c"]))
    >>> of("def h(e): return [e.b for _ in range(e.vs)]"), of("def h(e): f(e)")
    (['b'], ['a', 'b', 'c'])
    """
    everything = frozenset(columns)
    plain = [*function.args.posonlyargs, *function.args.args]
    if not plain:
        return everything
    event = plain[0].arg
    parts = [part for statement in function.body for part in ast.walk(statement)]
    uses = sum(isinstance(part, ast.Name) and part.id == event for part in parts)
    attributes = [
        part.attr
        for part in parts
        if isinstance(part, ast.Attribute)
        and isinstance(part.ctx, ast.Load)
        and isinstance(part.value, ast.Name)
        and part.value.id == event
    ]
    if len(attributes) < uses or not everything.union(("vs", "ve")).issuperset(attributes):
        return everything
    return everything.intersection(attributes)
