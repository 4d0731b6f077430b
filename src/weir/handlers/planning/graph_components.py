"""Graph algorithms: strong components, the shortest cycle through an item, reachable items."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from typing import TypeVar

GraphItem = TypeVar("GraphItem", bound=Hashable)


def strong_components(
    items: Sequence[GraphItem], edges: Mapping[GraphItem, Collection[GraphItem]]
) -> list[list[GraphItem]]:
    """Return the strong components of a graph, each in the order of `items`.

    The components come in the order of their first items.

    >>> strong_components([1, 2, 3], {1: [3], 3: [1, 2]})
    [[1, 3], [2]]
    """
    place = {item: n for n, item in enumerate(items)}
    number: dict[GraphItem, int] = {}
    low: dict[GraphItem, int] = {}
    stack: list[GraphItem] = []
    on_stack: set[GraphItem] = set()
    components: list[list[GraphItem]] = []
    for root in items:
        if root in number:
            continue
        path = [(root, iter(_sorted(edges.get(root, ()), place)))]
        number[root] = low[root] = len(number)
        stack.append(root)
        on_stack.add(root)
        while path:
            item, following = path[-1]
            step = next(following, None)
            if step is None:
                path.pop()
                if path:
                    low[path[-1][0]] = min(low[path[-1][0]], low[item])
                if low[item] == number[item]:
                    cut = stack.index(item)
                    components.append(sorted(stack[cut:], key=place.__getitem__))
                    on_stack.difference_update(stack[cut:])
                    del stack[cut:]
            elif step not in number:
                number[step] = low[step] = len(number)
                stack.append(step)
                on_stack.add(step)
                path.append((step, iter(_sorted(edges.get(step, ()), place))))
            elif step in on_stack:
                low[item] = min(low[item], number[step])
    return sorted(components, key=lambda component: place[component[0]])


def way_around(
    start: GraphItem, edges: Mapping[GraphItem, Collection[GraphItem]]
) -> list[GraphItem]:
    """Return a shortest cycle through an item, starting with it; empty if there is none.

    >>> way_around(1, {1: [2], 2: [3, 1], 3: [1]})
    [1, 2]
    """
    previous: dict[GraphItem, GraphItem] = {}
    queue = deque([start])
    while queue:
        item = queue.popleft()
        for step in edges.get(item, ()):
            if step == start:
                way = [item]
                while way[-1] != start:
                    way.append(previous[way[-1]])
                return way[::-1]
            if step not in previous:
                previous[step] = item
                queue.append(step)
    return []


def reachable(
    items: Iterable[GraphItem], edges: Mapping[GraphItem, Iterable[GraphItem]]
) -> set[GraphItem]:
    """Return these items and all items that can be reached from them.

    >>> sorted(reachable([1], {1: [2], 2: [3, 1], 4: [1]}))
    [1, 2, 3]
    """
    reached = set(items)
    waiting = list(reached)
    while waiting:
        new = set(edges.get(waiting.pop(), ())) - reached
        reached |= new
        waiting += new
    return reached


def _sorted(items: Iterable[GraphItem], place: Mapping[GraphItem, int]) -> list[GraphItem]:
    return sorted((i for i in items if i in place), key=place.__getitem__)
