"""Rewrites turn a plan into a cheaper plan with the same answer.

Contract
1. Rewrites are pure and fixed: the result depends only on the program, not on parallelism,
   statistics or the runner. The exception is grouped aggregates in two phases: they change no
   value, and a caller who knows the data may request them (`pays`).
2. The rewritten plan has the same rows with the same lifetimes, the same order where the order can
   be seen, and the same failures. An output keeps its columns, their types and their order.
3. A named stream that is not an output only has what its readers need: it may have lost columns,
   and rows that its only reader would drop.
4. Rewriting takes time linear in the size of the graph: a shared node is rewritten once and stays
   shared.

First, filters move down (`pushdown.py`). Then columns that nothing reads are removed
(`pruning.py`), and adjacent projections are merged. Last, aggregates without keys are split into
two phases (`two_phase.py`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from weir.plan.binding.projection import project
from weir.plan.expressions import Column, Expr, Literal, depth_of, substituted, walk
from weir.plan.functions.failures import can_fail
from weir.plan.limits import MOST_PARTS
from weir.plan.operators import Node, Project, schema
from weir.plan.program import Program, row_outputs
from weir.plan.rewrites.pruning import needed_columns, prune_columns
from weir.plan.rewrites.pushdown import push_filters
from weir.plan.rewrites.two_phase import Pays, in_two_phases
from weir.plan.traversal import ordered_nodes, reader_counts, rebuilt, with_inputs

__all__ = ["merge_projects", "needed_columns", "rewrite"]


def rewrite(program: Program, pays: Pays | None = None) -> Program:
    """Return the program to run instead of the one that was written."""
    result = in_two_phases(merge_projects(prune_columns(push_filters(program))), pays)
    for before, after in zip(program.outputs, result.outputs, strict=True):
        assert schema(before.node) == schema(after.node), f"{before.name} has other columns"
    return result


def merge_projects(program: Program) -> Program:
    """Merge adjacent projections, and drop projections that change nothing.

    Those of named streams stay, so that `explain` can show them: selecting columns costs nothing.
    """
    readers = reader_counts(program, ordered_nodes(row_outputs(program)))
    named = {node for _, node in program.streams}

    def rebuild(node: Node, inputs: tuple[Node, ...]) -> Node:
        if not isinstance(node, Project):
            return with_inputs(node, inputs)
        below = inputs[0]
        stays = readers[node.input] > 1 or node.input in named
        if not isinstance(below, Project) or stays or not _fit_in_one(node, below):
            return project(below, node.columns)
        inner = dict(below.columns)
        columns = tuple((name, substituted(e, inner)) for name, e in node.columns)
        return project(below.input, columns)

    return rebuilt(program, rebuild)


def _fit_in_one(outer: Project, inner: Project) -> bool:
    """Tell whether one projection can compute what both do.

    It must neither compute anything twice nor skip it."""
    exprs = [e for _, e in outer.columns]
    if _deepest(exprs) + _deepest([e for _, e in inner.columns]) > MOST_PARTS:
        return False
    uses = Counter(p.name for e in exprs for p in walk(e) if isinstance(p, Column))
    passed_on = {e.name for e in exprs if isinstance(e, Column)}
    return all(_fits(name, e, uses[name], passed_on) for name, e in inner.columns)


def _deepest(exprs: Sequence[Expr]) -> int:
    return max(map(depth_of, exprs), default=0)


def _fits(name: str, expr: Expr, uses: int, passed_on: set[str]) -> bool:
    if isinstance(expr, Column | Literal):
        return True
    if can_fail(expr):
        # Inside a CASE, for example, it would no longer be computed for every row.
        return uses == 1 and name in passed_on
    return uses <= 1
