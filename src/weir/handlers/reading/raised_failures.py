"""Functions that fail a run on purpose, for `raise`, `assert` and a loop over None."""

from __future__ import annotations

from collections.abc import Sequence

from weir.handlers.trees.tree_walks import conjunction, conjuncts_of
from weir.handlers.trees.values import Const, Op, Python, Tree


def raised(kind: type[BaseException], text: object) -> object:
    """Raise an exception of the handler."""
    raise kind(text) if text != "" else kind()


def is_listed(over: Tree, under: Sequence[Tree] = ()) -> Tree:
    """Return the condition of a loop over a list of the event.

    It raises an error where the list is None and the conditions in `under` hold.
    """
    fails = Python(raised, _NO_LIST, line=over.line)
    missing: Tree = Op("is", (over, Const(None)), line=over.line)
    if under:
        missing = Op("and", (*under, missing), line=over.line)
    return Op("if", (missing, fails, Const(True)), line=over.line)


def shown_guard(guard: Tree | None) -> Tree | None:
    """Return a guard without the conditions that every loop over a list has."""
    parts = () if guard is None else conjuncts_of(guard)
    return conjunction([part for part in parts if not _is_loops_own(part)])


def condition_of(guard: Tree | None) -> Tree | None:
    """Return a guard without the parts that are there only because they may fail."""
    parts = () if guard is None else conjuncts_of(guard)
    return conjunction([part for part in parts if not _only_fails(part)])


def _only_fails(part: Tree) -> bool:
    match part:
        case Op(name="checked"):
            return True
        case Op(name="if", args=(_, Op(name="checked"), Const(value=True))):
            return True
        case Op(name="if", args=(_, Python(function=function), Const(value=True))):
            return function is raised
    return False


def _is_loops_own(part: Tree) -> bool:
    match part:
        case Op(name="if", args=(_, Python(function=function, args=args), _)):
            return function is raised and args == _NO_LIST
    return False


_NO_LIST = (Const(TypeError), Const("'NoneType' object is not iterable"))
