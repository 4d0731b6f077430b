"""Trees of values are walked and rebuilt by these functions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from weir.handlers.accesses import Access, EmitAccess, GetAccess, MergeAccess
from weir.handlers.values import (
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
    """Yield the tree and all that it is made of, parents first.

    >>> from weir.handlers.values import Const, Field
    >>> [type(t).__name__ for t in walk_tree(Op("add", (Field("a"), Const(1))))]
    ['Op', 'Field', 'Const']
    """
    stack = [tree]
    while stack:
        top = stack.pop()
        yield top
        stack.extend(reversed(children(top)))


def changed_tree(tree: Tree, change: Callable[[Tree], Tree]) -> Tree:
    """Return the tree with its leaves changed.

    >>> from weir.handlers.values import Field
    >>> changed_tree(Op("neg", (Field("a"),)), lambda leaf: Field("b"))
    Op(name='neg', args=(Field(name='b'),))
    """

    def again(part: Tree) -> Tree:
        return changed_tree(part, change)

    match tree:
        case Op():
            return replace(tree, args=tuple(map(again, tree.args)))
        case Attribute():
            return replace(tree, of=again(tree.of))
        case Method():
            keywords = tuple((n, again(v)) for n, v in tree.keywords)
            args = tuple(map(again, tree.args))
            return replace(tree, of=again(tree.of), args=args, keywords=keywords)
        case Python():
            keywords = tuple((n, again(v)) for n, v in tree.keywords)
            return replace(tree, args=tuple(map(again, tree.args)), keywords=keywords)
    return change(tree)


def trees_of(access: Access) -> tuple[Tree, ...]:
    """Return all values that an access is made of, its guard and its loop's list included."""
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


def reads_in(trees: Iterable[Tree]) -> frozenset[int]:
    """Return the orders of the reads whose answers these values use."""
    return frozenset(
        part.order for tree in trees for part in walk_tree(tree) if isinstance(part, ReadValue)
    )


def moved(
    access: GetAccess | MergeAccess | EmitAccess, by: int, blocks: dict[int, int]
) -> GetAccess | MergeAccess | EmitAccess:
    """Return the access with all orders in it raised, and loops called as `blocks` says."""

    def leaf(tree: Tree) -> Tree:
        match tree:
            case ReadValue():
                return replace(tree, order=tree.order + by)
            case Element():
                return replace(tree, block=blocks[tree.block])
        return tree

    def again(tree: Tree) -> Tree:
        return changed_tree(tree, leaf)

    around = {
        "order": access.order + by,
        "guard": None if access.guard is None else again(access.guard),
        "over": None if access.over is None else again(access.over),
        "block": None if access.block is None else blocks[access.block],
    }
    # mypy cannot follow fields that are given by name.
    match access:
        case GetAccess():
            return replace(access, key=tuple(map(again, access.key)), **around)  # type: ignore[arg-type]
        case MergeAccess():
            return replace(
                access,
                key=tuple(map(again, access.key)),
                args=tuple(map(again, access.args)),
                new=None if access.new is None else again(access.new),
                **around,  # type: ignore[arg-type]
            )
    fields = tuple((name, again(value)) for name, value in access.fields)
    return replace(access, fields=fields, **around)  # type: ignore[arg-type]
