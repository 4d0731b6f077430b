"""Represents a handler's values as trees: what an expression of its source computes from what.

Analysis (`analysis.py`) makes them by running a handler's source symbolically. Local variables,
helpers and branches are gone; the event, the answers of reads, constants and Python's own
operations are left. `column_values.py` turns a tree into a column expression, or into a function
that is called row by row; both have the meaning that CPython gives to the source.

Contract
1. Trees are immutable, hashable values; equality ignores `line`. Constants are equal only if they
   cannot be distinguished: 1, 1.0 and True are three constants, 0.0 and -0.0 are two. (A value that
   is not hashable is compared by identity.) Parts are shared, so a tree that is written out may be
   very much larger than in memory; a walk visits a shared part once. Hashes are kept, and trees
   that were found equal are remembered as one for the next comparison.
2. A tree has no effects. Evaluating it may raise; it is evaluated only where its guard holds.
3. `Op.name` is one of the names below; the arguments are evaluated from left to right, those of
   `and`, `or`, `if` only as far as Python does.

    add sub mul truediv floordiv mod pow            a, b     Python's binary operators
    bitand bitor bitxor lshift rshift
    neg pos invert not                              a
    eq ne lt le gt ge is isnot in notin             a, b     one comparison (`and` for chains)
    and or                                          a, b …   Python's: the value of an operand
    if                                              condition, then, otherwise
    tuple list set                                  a …
    dict                                            k, v, k, v …
    item                                            a, index
    slice                                           a, start, stop, step (Const(None) if missing)
    format                                          a, Const(conversion), Const(spec): a part of one
    join                                            a …      an f-string: str parts put together
    checked                                         a        True; a is computed for its failure
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

import pyarrow as pa


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Tree:
    """A node of a tree; `line` is its line in the source."""

    line: int = field(default=0, compare=False, repr=False)
    _hash: int | None = field(default=None, init=False, compare=False, repr=False)
    _twin: Tree | None = field(default=None, init=False, compare=False, repr=False)
    """An equal tree that stands for this one in comparisons."""

    def parts(self) -> tuple[object, ...]:
        """Return what two trees of one class are compared by."""
        return tuple(getattr(self, f.name) for f in fields(self) if f.compare)

    def own(self) -> tuple[object, ...]:
        """Return a node's contents apart from its children."""
        return self.parts()

    def __hash__(self) -> int:
        if self._hash is None:
            for part in bottom_up(self):  # each hash is then one step, however deep the tree is
                if part._hash is None:
                    value = hash((type(part).__name__, *part.parts()))
                    object.__setattr__(part, "_hash", value)
        assert self._hash is not None
        return self._hash

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return _are_equal(self, other) if isinstance(other, Tree) else NotImplemented

    def __reduce__(self) -> tuple[object, ...]:
        # A list of its parts, because pickle's stack is limited. Hashes are left out, as they
        # differ from process to process.
        numbers: dict[int, int] = {}
        listed = []
        for part in bottom_up(self):
            numbers[id(part)] = len(numbers)
            below = [numbers[id(child)] for child in children(part)]
            listed.append((type(part), part.line, part.named(), below))
        return _remade, (listed,)

    def named(self) -> dict[str, Any]:
        """Return the fields that are not trees."""
        return {f.name: getattr(self, f.name) for f in fields(self) if f.compare}

    @classmethod
    def build(cls, below: Sequence[Tree], **named: Any) -> Tree:
        """Return a node with these children and these other fields."""
        return cls(**named)


def _standing_for(tree: Tree) -> Tree:
    while tree._twin is not None:
        tree = tree._twin
    return tree


def _are_equal(one: Tree, other: Tree) -> bool:
    stack, pairs = [(one, other)], set()
    equal_pairs: list[tuple[Tree, Tree]] = []
    while stack:
        a, b = map(_standing_for, stack.pop())
        if a is b or (id(a), id(b)) in pairs:
            continue
        if type(a) is not type(b) or hash(a) != hash(b) or a.own() != b.own():
            return False
        pairs.add((id(a), id(b)))
        equal_pairs.append((a, b))
        stack.extend(zip(children(a), children(b), strict=True))
    for a, b in equal_pairs:
        a, b = _standing_for(a), _standing_for(b)
        if a is not b:
            object.__setattr__(a, "_twin", b)
    return True


def _remade(listed: list[tuple[type[Tree], int, dict[str, Any], list[int]]]) -> Tree:
    trees: list[Tree] = []
    for kind, line, named, numbers in listed:
        trees.append(kind.build([trees[n] for n in numbers], line=line, **named))
    return trees[-1]


@dataclass(frozen=True, slots=True, eq=False)
class Field(Tree):
    """A column of the event: `e.name`."""

    name: str


@dataclass(frozen=True, slots=True, eq=False)
class Instant(Tree):
    """`e.vs` or `e.ve`, in ticks; `e.ve` of an open event is None."""

    name: str


@dataclass(frozen=True, slots=True, eq=False)
class ReadValue(Tree):
    """The answer of a read; `order` is the number of its `GetAccess`."""

    order: int


@dataclass(frozen=True, slots=True, eq=False)
class Element(Tree):
    """The variable of a loop `for x in …`; `block` is the number of the loop."""

    block: int


@dataclass(frozen=True, slots=True, eq=False)
class Opaque(Tree):
    """A value that only CPython can compute, by running the handler.

    Each has its own number, counted through the handler; values that are made in a loop have
    numbers from the loop's first on. `type` is the type of a column that can hold the value, if it
    is known. `is_exact` tells whether the value has that type wherever it is computed (except where
    it is None). `elements` is the type of the elements of a list that the handler has filled, or of
    the keys of such a dict.
    """

    number: int
    type: pa.DataType | None = field(default=None, compare=False)
    is_exact: bool = field(default=True, compare=False)
    elements: pa.DataType | None = field(default=None, compare=False)

    def named(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in ("number", "type", "is_exact", "elements")}


@dataclass(frozen=True, slots=True, eq=False)
class Old(Tree):
    """The argument of a merge's function: the cell's value before the merge."""


@dataclass(frozen=True, slots=True, eq=False)
class Const(Tree):
    """A constant of the source, a parameter's value, or an immutable global."""

    value: object

    def parts(self) -> tuple[object, ...]:
        return _comparable(self.value)


def _comparable(value: object) -> tuple[object, ...]:
    """Return what two constants are compared by, since in Python True == 1 == 1.0."""
    match value:
        case float():
            return float, value.hex()
        case complex():
            return complex, repr(value)
        case tuple():
            return tuple, *map(_comparable, value)
        case frozenset():
            return frozenset, frozenset(map(_comparable, value))
    try:
        hash(value)
    except TypeError:
        return type(value), "at", id(value)
    return type(value), value


@dataclass(frozen=True, slots=True, eq=False)
class Op(Tree):
    """One of Python's own operations (the names are at the head of this module)."""

    name: str
    args: tuple[Tree, ...]

    def own(self) -> tuple[object, ...]:
        return self.name, len(self.args)

    def named(self) -> dict[str, Any]:
        return {"name": self.name}

    @classmethod
    def build(cls, below: Sequence[Tree], **named: Any) -> Tree:
        return cls(args=tuple(below), **named)


@dataclass(frozen=True, slots=True, eq=False)
class Attribute(Tree):
    """`a.name` of a value that is not the event: a struct's field, `x.real` …"""

    of: Tree
    name: str

    def own(self) -> tuple[object, ...]:
        return (self.name,)

    def named(self) -> dict[str, Any]:
        return {"name": self.name}

    @classmethod
    def build(cls, below: Sequence[Tree], **named: Any) -> Tree:
        return cls(of=below[0], **named)


@dataclass(frozen=True, slots=True, eq=False)
class Method(Tree):
    """A call `a.name(…)` of a method of a str, list, dict, tuple, int … value."""

    of: Tree
    name: str
    args: tuple[Tree, ...]
    keywords: tuple[tuple[str, Tree], ...] = ()

    def own(self) -> tuple[object, ...]:
        return self.name, len(self.args), tuple(name for name, _ in self.keywords)

    def named(self) -> dict[str, Any]:
        return {"name": self.name, "keywords": tuple(name for name, _ in self.keywords)}

    @classmethod
    def build(cls, below: Sequence[Tree], **named: Any) -> Tree:
        args, keywords = _called_with(below[1:], named.pop("keywords"))
        return cls(of=below[0], args=args, keywords=keywords, **named)


@dataclass(frozen=True, slots=True, eq=False)
class Python(Tree):
    """A call of a function that is pure as far as analysis can tell.

    The function is a built-in (`len`), one of the library (`re.search`, `math.log`), a `@weir.udf`,
    or a user's function that analysis did not read. `result` is its declared type, if it has one.
    `like` is a value of the same type, with the fields "0", "1" … in the place of its arguments.
    """

    function: Callable[..., object]
    args: tuple[Tree, ...]
    keywords: tuple[tuple[str, Tree], ...] = ()
    result: pa.DataType | None = None
    like: Tree | None = field(default=None, compare=False, repr=False)

    def parts(self) -> tuple[object, ...]:
        return *_comparable(self.function), self.args, self.keywords, self.result

    def own(self) -> tuple[object, ...]:
        names = tuple(name for name, _ in self.keywords)
        return *_comparable(self.function), len(self.args), names, self.result

    def named(self) -> dict[str, Any]:
        names = tuple(name for name, _ in self.keywords)
        named = {"function": self.function, "keywords": names, "result": self.result}
        return named if self.like is None else named | {"like": self.like}

    @classmethod
    def build(cls, below: Sequence[Tree], **named: Any) -> Tree:
        args, keywords = _called_with(below, named.pop("keywords"))
        return cls(args=args, keywords=keywords, **named)


def _called_with(
    below: Sequence[Tree], names: tuple[str, ...]
) -> tuple[tuple[Tree, ...], tuple[tuple[str, Tree], ...]]:
    count = len(below) - len(names)
    return tuple(below[:count]), tuple(zip(names, below[count:], strict=True))


def children(value: Tree) -> tuple[Tree, ...]:
    """Return the parts of a value, in the order in which Python evaluates them."""
    match value:
        case Op(args=args):
            return args
        case Attribute(of=of):
            return (of,)
        case Method(of=of, args=args, keywords=keywords):
            return (of, *args, *(v for _, v in keywords))
        case Python(args=args, keywords=keywords):
            return (*args, *(v for _, v in keywords))
    return ()


def bottom_up(*roots: Tree, bound: Container[Tree] = ()) -> Iterator[Tree]:
    """Yield all nodes of values, children before parents, each once.

    The children of a node in `bound` are left out.

    >>> [type(t).__name__ for t in bottom_up(Op("neg", (Field("a"),)))]
    ['Field', 'Op']
    """
    seen: set[int] = set()
    stack = [(root, False) for root in reversed(roots)]
    while stack:
        tree, is_done = stack.pop()
        if is_done:
            yield tree
        elif id(tree) not in seen:
            seen.add(id(tree))
            stack.append((tree, True))
            if not bound or tree not in bound:
                stack.extend((child, False) for child in reversed(children(tree)))
