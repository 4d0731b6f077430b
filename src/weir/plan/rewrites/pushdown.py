"""Filters as far down as they go.

A predicate sinks below an operator when it holds for the operator's rows exactly where it holds
for the rows they are made of. Never:

1. a predicate that can fail, nor any predicate below what can fail: a run fails with this
   rewrite exactly if it fails without it (`failures.py`);
2. below an operator whose rows depend on other rows that the filter would drop: LIMIT, the
   user's operators, the side of a join whose absence shows;
3. one that reads the lifetime below an operator that changes it;
4. into a node that others read too: it would have to run twice.

ON's conditions on one side of a join sink into that side where rows that fail them are of no
further use to it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from weir.plan.expressions import Column, Expr, columns_of
from weir.plan.failures import can_fail, sees_equals_alike, window_can_fail
from weir.plan.holds import Span, longest_lifetimes
from weir.plan.nodes import (
    Aggregate,
    AlterLifetime,
    Chop,
    Distinct,
    Explode,
    Filter,
    Join,
    Node,
    Partition,
    Program,
    Project,
    SetLifetime,
    Stitch,
    Union,
    inputs_of,
    schema,
)
from weir.plan.rewrites.traversal import (
    LIFETIME,
    all_of,
    conjuncts,
    ordered_nodes,
    reader_counts,
    rebuilt,
    row_outputs,
    size_of,
    substituted,
    with_inputs,
)

Predicates = tuple[Expr, ...]

_MOST_PARTS = 32
"""A predicate that computes what a SELECT computes too may grow to this size, not further."""

# Where a predicate on one side's columns, above the join, may be asked of that side instead.
_LEFT_ROWS = ("inner", "left", "semi", "anti", "clip", "asof", "left_asof")
_RIGHT_ROWS = ("inner", "right")
# Where a row of one side that fails its part of ON is of no further use.
_LEFT_ON = ("inner", "right", "semi", "asof")
_RIGHT_ON = ("inner", "left", "semi", "anti", "clip", "asof", "left_asof")


@dataclass(frozen=True, slots=True)
class _Pushed:
    """What becomes of predicates that arrive at an operator: those that stay `above` it, those
    that go `below` to each input, and the operator (None when it was only a filter)."""

    node: Node | None
    above: Predicates
    below: tuple[Predicates, ...]


def push_filters(program: Program) -> Program:
    """The program with every filter as low as it may be."""
    nodes = ordered_nodes(row_outputs(program))
    readers = reader_counts(program, nodes)
    lives = longest_lifetimes(row_outputs(program))
    arriving: dict[Node, Predicates] = {}
    steps: dict[Node, _Pushed] = {}
    for node in reversed(nodes):
        step = steps[node] = _step(node, arriving.get(node, ()), lives)
        for below, predicates in zip(inputs_of(node), step.below, strict=True):
            if readers[below] == 1:
                arriving[below] = predicates

    def rebuild(node: Node, inputs: tuple[Node, ...]) -> Node:
        step = steps[node]
        # What a shared input could not take in stays at the edge to it.
        new = [
            filtered(i, predicates) if readers[old] > 1 else i
            for i, old, predicates in zip(inputs, inputs_of(node), step.below, strict=True)
        ]
        return filtered(new[0] if step.node is None else with_inputs(step.node, new), step.above)

    return rebuilt(program, rebuild)


def filtered(node: Node, predicates: Sequence[Expr]) -> Node:
    """The rows for which all hold; none of the predicates can fail."""
    if not predicates:
        return node
    if isinstance(node, Filter):
        return Filter(node.input, all_of((*conjuncts(node.predicate), *predicates)))
    return Filter(node, all_of(predicates))


# --- one operator --------------------------------------------------------------------------


def _step(node: Node, arriving: Predicates, lives: Mapping[Node, Span]) -> _Pushed:
    match node:
        case Filter() if not can_fail(node.predicate):
            return _Pushed(None, (), ((*conjuncts(node.predicate), *arriving),))
        case Project():
            return _through_project(node, arriving)
        case Union():
            return _through_union(node, arriving)
        case Join():
            return _through_join(node, arriving)
        case _:
            sinking = tuple(p for p in arriving if _sinks(p, node, lives))
            above = tuple(p for p in arriving if p not in sinking)
            below = [()] * len(inputs_of(node))
            return _Pushed(node, above, (sinking, *below[1:]) if below else ())


def _sinks(predicate: Expr, node: Node, lives: Mapping[Node, Span]) -> bool:
    """Whether a predicate may go below an operator that keeps columns under their names."""
    reads = columns_of(predicate)
    match node:
        case Partition():
            return True
        case Explode():
            return node.column not in reads
        case AlterLifetime():
            fails = isinstance(node.change, SetLifetime) and can_fail(node.change.end)
            return not fails and not reads & LIFETIME
        case Chop():  # an open event is an error there
            return lives[node.input].known and not reads & LIFETIME
        case Distinct() | Stitch():
            return not reads & LIFETIME and sees_equals_alike(predicate)
        case Aggregate():
            fails = window_can_fail(node, open_events=not lives[node.input].known)
            return not fails and reads <= frozenset(node.keys) and sees_equals_alike(predicate)
        case _:
            return False


def _through_project(node: Project, arriving: Predicates) -> _Pushed:
    if not arriving or any(can_fail(e) for _, e in node.columns):
        return _Pushed(node, arriving, ((),))
    columns = dict(node.columns)
    above: list[Expr] = []
    below: list[Expr] = []
    for predicate in arriving:
        spelled_out = substituted(predicate, columns)
        renames = all(isinstance(columns.get(c), Column | None) for c in columns_of(predicate))
        if renames or size_of(spelled_out) <= _MOST_PARTS:
            below.append(spelled_out)
        else:
            above.append(predicate)
    return _Pushed(node, tuple(above), (tuple(below),))


def _through_union(node: Union, arriving: Predicates) -> _Pushed:
    own = schema(node)
    # Ticks in one branch may be timestamps in another, and plain numbers above both.
    same_time = all(schema(i).time == own.time for i in node.inputs)
    sinking = tuple(p for p in arriving if same_time or not columns_of(p) & LIFETIME)
    above = tuple(p for p in arriving if p not in sinking)
    below = []
    for branch in node.inputs:
        names = {
            name: Column(other, type=dtype)
            for name, (other, dtype) in zip(own.names, schema(branch).columns, strict=True)
        }
        below.append(tuple(substituted(p, names) for p in sinking))
    return _Pushed(node, above, tuple(below))


# --- joins ---------------------------------------------------------------------------------


def _through_join(node: Join, arriving: Predicates) -> _Pushed:
    on = () if node.condition is None else conjuncts(node.condition)
    if any(can_fail(p) for p in on):
        return _Pushed(node, arriving, ((), ()))
    left, right = frozenset(schema(node.left).names), frozenset(schema(node.right).names)
    above, left_rows, right_rows = _by_side(
        arriving,
        left if node.kind in _LEFT_ROWS else None,
        right if node.kind in _RIGHT_ROWS else None,
    )
    rest, left_on, right_on = _by_side(
        on,
        left if node.kind in _LEFT_ON else None,
        right if node.kind in _RIGHT_ON else None,
    )
    kept = node if rest == on else replace(node, condition=all_of(rest) if rest else None)
    return _Pushed(kept, above, (left_on + left_rows, right_on + right_rows))


def _by_side(
    predicates: Predicates, left: frozenset[str] | None, right: frozenset[str] | None
) -> tuple[Predicates, Predicates, Predicates]:
    """Those that stay, those of the left side and those of the right (None: it takes none)."""
    sides: tuple[list[Expr], list[Expr], list[Expr]] = ([], [], [])
    for predicate in predicates:
        reads = columns_of(predicate)
        place = 0
        if reads and left is not None and reads <= left:
            place = 1
        elif reads and right is not None and reads <= right:
            place = 2
        sides[place].append(predicate)
    return tuple(sides[0]), tuple(sides[1]), tuple(sides[2])
