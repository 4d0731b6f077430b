"""Walks and rebuilds plans.

A plan is a graph: equal nodes are one node, however many readers it has. Every function here visits
each node once, and none recurses as deep as the plan.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from weir.plan.operators import Node
from weir.plan.program import Output, Program, row_outputs


def ordered_nodes(roots: Iterable[Node]) -> list[Node]:
    """Return every distinct node below these, inputs before the nodes that read them."""
    order: dict[Node, None] = {}
    seen: set[Node] = set()
    stack = [(root, False) for root in roots][::-1]
    while stack:
        node, expanded = stack.pop()
        if expanded:
            order[node] = None
        elif node not in seen:
            seen.add(node)
            stack.append((node, True))
            stack.extend((i, False) for i in reversed(node.inputs))
    return list(order)


def reader_counts(program: Program, nodes: Iterable[Node]) -> Counter[Node]:
    """Return how many inputs and outputs read each node."""
    readers = Counter(i for node in nodes for i in node.inputs)
    readers.update(dict.fromkeys(row_outputs(program), 1))
    return readers


def with_inputs(node: Node, inputs: Sequence[Node]) -> Node:
    """Return the same operator over other inputs, or the node itself if they are its own."""
    if all(new is old for new, old in zip(inputs, node.inputs, strict=True)):
        return node
    return node.over(inputs)


def rebuilt(program: Program, rebuild: Callable[[Node, tuple[Node, ...]], Node]) -> Program:
    """Rebuild the program: replace each node by `rebuild(node, its rebuilt inputs)`."""
    new_nodes: dict[Node, Node] = {}
    # Equal nodes become one object: comparing two graphs that are equal but share nothing takes
    # time exponential in their depth.
    one: dict[Node, Node] = {}
    for node in ordered_nodes(row_outputs(program)):
        new = rebuild(node, tuple(new_nodes[i] for i in node.inputs))
        new_nodes[node] = one.setdefault(new, new)

    def again(output: Output) -> Output:
        return replace(output, node=new_nodes[output.node]) if output.kind == "rows" else output

    return replace(
        program,
        streams=tuple((name, new_nodes.get(node, node)) for name, node in program.streams),
        outputs=tuple(again(o) for o in program.outputs),
    )
