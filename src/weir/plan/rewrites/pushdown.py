"""Pushdown moves filters as far down as they may go.

A predicate sinks below an operator if it holds for the operator's rows exactly where it holds for
the rows that they are made of. These predicates never sink:

1. a predicate that can fail, and any predicate below an operator that can fail: a run fails with
   this rewrite exactly if it fails without it (`failures.py`);
2. any predicate below an operator whose rows depend on other rows that the filter would drop:
   LIMIT, the user's operators, the side of a join whose missing rows affect the result;
3. a predicate that reads the lifetime, below an operator that changes it;
4. any predicate into a node with other readers: the node would have to run twice.

Conditions of ON on one side of a join sink into that side if rows that fail them are not needed any
more.
"""

from __future__ import annotations

from collections.abc import Sequence

from weir.plan.expressions import Expr, all_of, conjuncts
from weir.plan.holds import longest_lifetimes
from weir.plan.operators import Filter, Node
from weir.plan.operators.facts import Predicates, Pushed
from weir.plan.program import Program, row_outputs
from weir.plan.traversal import ordered_nodes, reader_counts, rebuilt, with_inputs


def push_filters(program: Program) -> Program:
    """Return the program with every filter as low as possible."""
    nodes = ordered_nodes(row_outputs(program))
    readers = reader_counts(program, nodes)
    lives = longest_lifetimes(row_outputs(program))
    arriving: dict[Node, Predicates] = {}
    steps: dict[Node, Pushed] = {}
    for node in reversed(nodes):
        below = [lives[i] for i in node.inputs]
        step = steps[node] = node.pushed(arriving.get(node, ()), below)
        for reached, predicates in zip(node.inputs, step.below, strict=True):
            if readers[reached] == 1:
                arriving[reached] = predicates

    def rebuild(node: Node, inputs: tuple[Node, ...]) -> Node:
        step = steps[node]
        # Predicates that a shared input could not take stay between it and this node.
        new = [
            filtered(i, predicates) if readers[old] > 1 else i
            for i, old, predicates in zip(inputs, node.inputs, step.below, strict=True)
        ]
        return filtered(new[0] if step.node is None else with_inputs(step.node, new), step.above)

    return rebuilt(program, rebuild)


def filtered(node: Node, predicates: Sequence[Expr]) -> Node:
    """Keep the rows for which all predicates hold; none of them can fail."""
    if not predicates:
        return node
    if isinstance(node, Filter):
        return Filter(node.input, all_of((*conjuncts(node.predicate), *predicates)))
    return Filter(node, all_of(predicates))
