"""Functions that walk and rebuild trees of values."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

from weir.handlers.trees.accesses import Access, EmitAccess, GetAccess, MergeAccess
from weir.handlers.trees.values import (
    Attribute,
    Element,
    Method,
    Op,
    Python,
    ReadValue,
    Tree,
    children,
)


def walk_tree(tree: Tree) -> Iterator[Tree]:
    """Yield the tree and all its parts, parents first; a shared part comes once.

    >>> from weir.handlers.trees.values import Const, Field
    >>> [type(t).__name__ for t in walk_tree(Op("add", (Field("a"), Const(1))))]
    ['Op', 'Field', 'Const']
    """
    stack, seen = [tree], {id(tree)}
    while stack:
        top = stack.pop()
        yield top
        below = [part for part in children(top) if id(part) not in seen]
        seen.update(map(id, below))
        stack.extend(reversed(below))


def changed_tree(
    tree: Tree, change: Callable[[Tree], Tree], shared: dict[int, Tree] | None = None
) -> Tree:
    """Return the tree with its leaves changed; shared parts stay shared.

    >>> from weir.handlers.trees.values import Field
    >>> changed_tree(Op("neg", (Field("a"),)), lambda leaf: Field("b"))
    Op(name='neg', args=(Field(name='b'),))
    """
    memo: dict[int, Tree] = {} if shared is None else shared

    def again(part: Tree) -> Tree:
        if id(part) not in memo:
            memo[id(part)] = fresh(part)
        return memo[id(part)]

    def fresh(part: Tree) -> Tree:
        match part:
            case Op():
                return replace(part, args=tuple(map(again, part.args)))
            case Attribute():
                return replace(part, of=again(part.of))
            case Method():
                keywords = tuple((n, again(v)) for n, v in part.keywords)
                args = tuple(map(again, part.args))
                return replace(part, of=again(part.of), args=args, keywords=keywords)
            case Python():
                keywords = tuple((n, again(v)) for n, v in part.keywords)
                return replace(part, args=tuple(map(again, part.args)), keywords=keywords)
        return change(part)

    return again(tree)


def trees_of(access: Access) -> tuple[Tree, ...]:
    """Return all values of an access, including its guard and its loop's list."""
    own: tuple[Tree, ...] = ()
    match access:
        case GetAccess():
            own = access.key
        case MergeAccess():
            own = (*access.key, *access.args, *(() if access.new is None else (access.new,)))
        case EmitAccess():
            own = tuple(value for _, value in access.fields)
    around = (tree for tree in (access.guard, access.over) if tree is not None)
    return (*own, *around)


def conjuncts_of(guard: Tree) -> tuple[Tree, ...]:
    """Return the parts of a condition, which are tried one after the other.

    >>> from weir.handlers.trees.values import Field
    >>> conjuncts_of(Op("and", (Op("and", (Field("a"), Field("b"))), Field("c"))))
    (Field(name='a'), Field(name='b'), Field(name='c'))
    """
    if not isinstance(guard, Op) or guard.name != "and":
        return (guard,)
    return tuple(part for arg in guard.args for part in conjuncts_of(arg))


def conjunction(parts: Sequence[Tree]) -> Tree | None:
    """Return the condition that all of these hold, tried in order; None if there are none."""
    if not parts:
        return None
    return parts[0] if len(parts) == 1 else Op("and", tuple(parts))


def reads_in(trees: Iterable[Tree]) -> frozenset[int]:
    """Return the orders of the reads whose answers these values use."""
    return frozenset(
        part.order for tree in trees for part in walk_tree(tree) if isinstance(part, ReadValue)
    )


def moved(
    access: GetAccess | MergeAccess | EmitAccess,
    by: int,
    blocks: dict[int, int],
    shared: dict[int, Tree],
) -> GetAccess | MergeAccess | EmitAccess:
    """Return the access with all orders in it raised by `by`, and loops renumbered by `blocks`.

    `shared` has the handler's trees that were already changed; they stay shared.
    """

    def leaf(tree: Tree) -> Tree:
        match tree:
            case ReadValue():
                return replace(tree, order=tree.order + by)
            case Element() if tree.block in blocks:
                return replace(tree, block=blocks[tree.block])
        return tree

    changed = changed_access(access, access.order + by, leaf, shared)
    return changed if access.block is None else replace(changed, block=blocks[access.block])


def changed_access(
    access: GetAccess | MergeAccess | EmitAccess,
    order: int,
    leaf: Callable[[Tree], Tree],
    shared: dict[int, Tree],
) -> GetAccess | MergeAccess | EmitAccess:
    """Return the access with another order, and with the leaves of its trees changed."""

    def again(tree: Tree) -> Tree:
        return changed_tree(tree, leaf, shared)

    def each(trees: Iterable[Tree]) -> tuple[Tree, ...]:
        return tuple(map(again, trees))

    guard = None if access.guard is None else again(access.guard)
    over = None if access.over is None else again(access.over)
    match access:
        case GetAccess():
            return replace(access, order=order, guard=guard, over=over, key=each(access.key))
        case MergeAccess():
            return replace(
                access,
                order=order,
                guard=guard,
                over=over,
                key=each(access.key),
                args=each(access.args),
                new=None if access.new is None else again(access.new),
            )
    fields = tuple((name, again(value)) for name, value in access.fields)
    return replace(access, order=order, guard=guard, over=over, fields=fields)
