"""Walking and rebuilding plans: what all rewrites share.

A plan is a graph: equal nodes are one node, however many read it. Every function here visits
each node once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from weir.events.types import BOOLEAN
from weir.plan.expressions import Call, Expr, map_columns, walk
from weir.plan.nodes import Apply, Join, Node, Output, Program, Source, Union, inputs_of

LIFETIME = frozenset(("vs", "ve"))


def ordered_nodes(roots: Iterable[Node]) -> list[Node]:
    """Every distinct node below these, inputs before the nodes that read them."""
    found: dict[Node, None] = {}
    seen: set[Node] = set()
    stack = [(root, False) for root in roots][::-1]
    while stack:
        node, expanded = stack.pop()
        if expanded:
            found[node] = None
        elif node not in seen:
            seen.add(node)
            stack.append((node, True))
            stack.extend((i, False) for i in reversed(inputs_of(node)))
    return list(found)


def row_outputs(program: Program) -> list[Node]:
    """The streams whose rows are asked for (a source's late and bad rows are no stream)."""
    return [o.node for o in program.outputs if o.kind == "rows"]


def reader_counts(program: Program, nodes: Iterable[Node]) -> Counter[Node]:
    """How many inputs and outputs read each node."""
    readers = Counter(i for node in nodes for i in inputs_of(node))
    readers.update(dict.fromkeys(row_outputs(program), 1))
    return readers


def with_inputs(node: Node, inputs: Sequence[Node]) -> Node:
    """The same operator over other inputs."""
    if all(new is old for new, old in zip(inputs, inputs_of(node), strict=True)):
        return node
    match node:
        case Source():
            return node
        case Join():
            return replace(node, left=inputs[0], right=inputs[1])
        case Union() | Apply():
            return replace(node, inputs=tuple(inputs))
        case _:
            return replace(node, input=inputs[0])


def rebuilt(program: Program, rebuild: Callable[[Node, tuple[Node, ...]], Node]) -> Program:
    """The program with each node replaced by `rebuild(node, its inputs, replaced before)`."""
    known: dict[Node, Node] = {}
    # Equal nodes become one object: comparing two graphs that are equal but share nothing
    # takes time exponential in their depth.
    one: dict[Node, Node] = {}
    for node in ordered_nodes(row_outputs(program)):
        new = rebuild(node, tuple(known[i] for i in inputs_of(node)))
        known[node] = one.setdefault(new, new)

    def again(output: Output) -> Output:
        return replace(output, node=known[output.node]) if output.kind == "rows" else output

    return replace(
        program,
        streams=tuple((name, known.get(node, node)) for name, node in program.streams),
        outputs=tuple(again(o) for o in program.outputs),
    )


# --- expressions ---------------------------------------------------------------------------


def conjuncts(predicate: Expr) -> tuple[Expr, ...]:
    """The parts of an AND, or the predicate itself."""
    if isinstance(predicate, Call) and predicate.function == "and":
        return tuple(part for arg in predicate.args for part in conjuncts(arg))
    return (predicate,)


def all_of(parts: Sequence[Expr]) -> Expr:
    """One predicate that holds where all of them do; tried in order."""
    return parts[0] if len(parts) == 1 else Call("and", tuple(parts), type=BOOLEAN)


def size_of(expr: Expr) -> int:
    return sum(1 for _ in walk(expr))


def substituted(expr: Expr, columns: Mapping[str, Expr]) -> Expr:
    """The expression with these columns spelled out; others, and the lifetime, stay."""
    return map_columns(expr, lambda c: columns.get(c.name, c))
