"""Frames of functions that are run symbolically: variables on each path, and joins of paths.

Contract
1. A path consists of the conditions under which it is taken, from the handler's first statement on,
   and of the current variables. A condition may only be evaluated where the conditions before it
   hold.
2. Two paths that join came from one branch. A variable that differs becomes an `if` on the
   condition of that branch. If one path does not set the variable, using it there fails as in
   Python.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from weir.handlers.reach.code_reach import Resolve
from weir.handlers.reach.static_attributes import DYNAMIC
from weir.handlers.reading.bindings import Scoped, bound_names, last_settings, names_set_inside
from weir.handlers.reading.sources import SourceFile
from weir.handlers.reading.symbols import Known, Symbol, Unusable, WrittenOut, as_tree, op
from weir.handlers.trees.values import Const, Op, Tree

Conditions: TypeAlias = tuple[Tree, ...]
Variables: TypeAlias = dict[str, Symbol]
RETURNED = "return"
"""The variable with a function's result; its name is one that no variable can have."""
TRUE = Const(True)


@dataclass(slots=True, eq=False)
class Frame:
    """One call of a function."""

    name: str
    file: SourceFile
    local_names: frozenset[str]
    resolve: Resolve
    """Resolves names that neither this function nor a function around it binds."""
    globals: dict[str, object]
    parent: Frame | None = None
    """The function around this one."""
    variables: Variables = field(default_factory=dict)
    """The variables of the path that is being run."""
    definition: Scoped | None = None
    """The function; None for a comprehension."""

    @classmethod
    def of(
        cls,
        definition: Scoped,
        name: str,
        file: SourceFile,
        resolve: Resolve,
        globals: dict[str, object],
        parent: Frame | None = None,
    ) -> Frame:
        """Return the frame of a call of a function."""
        names = bound_names(definition)
        return cls(name, file, names, resolve, globals, parent, definition=definition)

    def binds(self, name: str) -> Frame | None:
        """Return the frame that has a name as its variable."""
        if name in self.local_names:
            return self
        return self.parent.binds(name) if self.parent is not None else None

    def is_volatile(self, name: str) -> bool:
        """Tell whether functions inside this one may set a variable at any time (`nonlocal`)."""
        return self.definition is not None and name in names_set_inside(self.definition)

    def is_set_after(self, name: str, node: ast.expr) -> bool:
        """Tell whether the function sets a variable further down than a node."""
        lines = {} if self.definition is None else last_settings(self.definition)
        return lines.get(name, (0, 0)) > (node.lineno, node.col_offset)

    def all_names(self) -> frozenset[str]:
        """Return the variables of this function and of the functions around it."""
        outer = frozenset() if self.parent is None else self.parent.all_names()
        return self.local_names | outer

    def is_inside(self, other: Frame) -> bool:
        """Tell whether this is the same frame as another, or inside it."""
        return self is other or (self.parent is not None and self.parent.is_inside(other))

    def thing(self, name: str) -> object:
        """Return the object that a name stands for, if that is known; else DYNAMIC."""
        frame = self.binds(name)
        if frame is None:
            return self.resolve(name)
        symbol = frame.variables.get(name)
        return symbol.thing if isinstance(symbol, Known) else DYNAMIC


@dataclass(frozen=True, slots=True)
class Path:
    """One way through a handler, up to the current point."""

    conditions: Conditions
    variables: Variables

    def when(self, condition: Tree) -> Path:
        return Path((*self.conditions, condition), dict(self.variables))

    def having(self, name: str, symbol: Symbol) -> Path:
        return Path(self.conditions, {**self.variables, name: symbol})


@dataclass(slots=True)
class Exits:
    """The paths that leave some statements: at their end, or by a jump."""

    falls: Path | None = None
    returns: tuple[Path, ...] = ()
    continues: tuple[Path, ...] = ()
    breaks: tuple[Path, ...] = ()

    def jumped(self, other: Exits) -> None:
        """Add the jumps of other statements."""
        self.returns += other.returns
        self.continues += other.continues
        self.breaks += other.breaks


def all_of(conditions: Conditions) -> Tree | None:
    """Return the conjunction of conditions, evaluated in order; None if there are none."""
    if len(conditions) < 2:
        return conditions[0] if conditions else None
    return Op("and", conditions, line=conditions[0].line)


def join(a: Path | None, b: Path | None) -> Path | None:
    """Join two paths that exclude each other."""
    if a is None or b is None:
        return a if b is None else b
    shared = _shared((a, b))
    before, left, right = a.conditions[:shared], a.conditions[shared:], b.conditions[shared:]
    if left and right and _is_not(left[0], right[0]):
        return join(b, a)
    if left and right and _is_not(right[0], left[0]):
        chosen = left[0]
        after = _either(chosen, all_of(left[1:]), right[0], all_of(right[1:]))
    else:
        chosen = all_of(left) or TRUE
        after = (op("or", chosen, all_of(right) or TRUE, line=chosen.line),)
    return Path((*before, *after), chosen_variables(chosen, a.variables, b.variables))


def join_all(paths: Sequence[Path]) -> Path | None:
    """Join paths that exclude each other: split them at their first branch, and join each side."""
    if len(paths) < 2:
        return paths[0] if paths else None
    shared = _shared(paths)
    heads = [p.conditions[shared] if len(p.conditions) > shared else TRUE for p in paths]
    first = heads[0]
    same = [p for p, head in zip(paths, heads, strict=True) if head is first]
    other = [
        p
        for p, head in zip(paths, heads, strict=True)
        if _is_not(head, first) or _is_not(first, head)
    ]
    if other and len(same) + len(other) == len(paths):
        return join(join_all(same), join_all(other))
    return join(paths[0], join_all(paths[1:]))


def _shared(paths: Sequence[Path]) -> int:
    """Return how many conditions the paths share from the start."""
    count = 0
    for conditions in zip(*(p.conditions for p in paths), strict=False):
        if any(c is not conditions[0] for c in conditions):
            break
        count += 1
    return count


def _either(chosen: Tree, left: Tree | None, otherwise: Tree, right: Tree | None) -> Conditions:
    """Return the condition of two paths after they join; `chosen` is true on the left path."""
    if left is None and right is None:
        return ()
    if left is None or right is None:
        parts = (chosen, right) if left is None else (otherwise, left)
        assert parts[1] is not None
        return (op("or", parts[0], parts[1], line=chosen.line),)
    return (op("if", chosen, left, right, line=chosen.line),)


def _is_not(a: Tree, b: Tree) -> bool:
    """Tell whether `a` is `not b` from the same branch."""
    return isinstance(a, Op) and a.name == "not" and a.args[0] is b


def chosen_variables(
    condition: Tree, a: Mapping[str, Symbol], b: Mapping[str, Symbol]
) -> Variables:
    """Return the variables of `a` where the condition holds, else those of `b`."""
    names = [*a, *(name for name in b if name not in a)]
    return {
        name: choice(condition, a.get(name, _unbound(name)), b.get(name, _unbound(name)))
        for name in names
    }


def choice(condition: Tree, a: Symbol, b: Symbol) -> Symbol:
    """Return the symbol that is `a` where the condition holds, else `b`."""
    if a is b or (isinstance(a, Known) and isinstance(b, Known) and a.thing is b.thing):
        return a
    if isinstance(a, WrittenOut) and isinstance(b, WrittenOut) and _are_alike(a, b):
        pairs = zip(a.parts, b.parts, strict=True)
        return WrittenOut(a.kind, tuple(choice(condition, x, y) for x, y in pairs))
    first, second = as_tree(a, condition.line), as_tree(b, condition.line)
    if first is None or second is None:
        return Unusable("what it stands for depends on the event", (a, b))
    return op("if", condition, first, second, line=condition.line)


def _are_alike(a: WrittenOut, b: WrittenOut) -> bool:
    return a.kind == b.kind and len(a.parts) == len(b.parts)


def _unbound(name: str) -> Symbol:
    return Unusable(f"`{name}` may have no value")
