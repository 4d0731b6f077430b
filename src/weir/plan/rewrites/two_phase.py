"""Rewrites aggregates into two phases where that pays.

All rows of an ungrouped window meet in one vertex. If they come from several vertices, each of
these can first add up its own share: with a `PartialAggregate` in every vertex, and an `Aggregate`
over their panes in the one vertex. This is done only for aggregates that are exact in any order of
addition: counts, sums and what is computed from them, MIN and MAX. Grouped aggregates are already
spread by their keys. Whether two phases pay for them depends on how many rows share a key, which
only the caller can know.

    Aggregate SUM(v) AS s, COUNT(*) AS n
      A

becomes

    Aggregate SUM($p0) AS s, SUM($p1) AS n
      PartialAggregate MOMENTS(v) AS $p0, COUNT(*) AS $p1
        A
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pyarrow as pa

from weir.events.types import BINARY
from weir.plan.aggregations import Aggregation
from weir.plan.operators import Aggregate, Node, PartialAggregate, schema
from weir.plan.operators.facts import Meet
from weir.plan.program import Program, row_outputs
from weir.plan.traversal import ordered_nodes, rebuilt, with_inputs
from weir.plan.windows import Hopping

_COUNTS = frozenset(("count_star", "count"))
_SQUARES = frozenset(("stddev", "variance"))
_SUMS = frozenset(("sum", "avg")) | _SQUARES
_BEST = frozenset(("min", "max"))


Pays = Callable[[Aggregate], bool]
"""Whether enough rows of a grouped aggregate share keys to add them up before they travel."""


def in_two_phases(program: Program, pays: Pays | None = None) -> Program:
    """Split every ungrouped aggregate into two phases if that spreads the work.

    Split a grouped aggregate if it `pays`."""
    spread: dict[Node, bool] = {}
    for node in ordered_nodes(row_outputs(program)):
        spread[node] = _is_spread(node, [spread[i] for i in node.inputs])

    def rebuild(node: Node, inputs: tuple[Node, ...]) -> Node:
        same = with_inputs(node, inputs)
        if isinstance(node, Aggregate) and _can_be_cut(node) and spread[node.input]:
            assert isinstance(same, Aggregate)
            if not node.keys or (pays is not None and pays(same)):
                return _cut(same)
        return same

    return rebuilt(program, rebuild)


def _is_spread(node: Node, inputs: list[bool]) -> bool:
    """Tell whether the node's rows may be in several vertices."""
    # Rows of a source or a union may be, and so may rows of an operator with keys and two inputs.
    # An operator with keys whose only input is in one vertex stays there.
    return node.meeting() is not Meet.ALL and (len(inputs) != 1 or inputs[0])


def _can_be_cut(node: Aggregate) -> bool:
    exact = _COUNTS | _SUMS | _BEST
    return (
        isinstance(node.window, Hopping)
        and not isinstance(node.input, PartialAggregate)
        and all(a.function in exact for _, a in node.aggregates)
    )


def _cut(node: Aggregate) -> Node:
    assert isinstance(node.window, Hopping)
    below = schema(node.input)
    squared = {(a.args, a.filter) for _, a in node.aggregates if a.function in _SQUARES}
    names: dict[Aggregation, str] = {}
    final = []
    for name, aggregation in node.aggregates:
        first = _first_phase(aggregation, (aggregation.args, aggregation.filter) in squared)
        column = names.setdefault(first, f"$p{len(names)}")
        of = below.type_of(aggregation.args[0]) if aggregation.function in _SUMS else None
        final.append((name, _second_phase(aggregation, column, of)))
    partial = PartialAggregate(
        node.input, node.keys, tuple((n, a) for a, n in names.items()), node.window
    )
    return replace(node, input=partial, aggregates=tuple(final))


def _first_phase(aggregation: Aggregation, squares: bool) -> Aggregation:
    if aggregation.function in _SUMS:
        params = ("squares",) if squares else ()
        return replace(aggregation, function="moments", type=BINARY, params=params)
    return aggregation


def _second_phase(aggregation: Aggregation, column: str, of: pa.DataType | None) -> Aggregation:
    function = "sum" if aggregation.function in _COUNTS else aggregation.function
    return replace(aggregation, function=function, args=(column,), filter=None, of=of)
