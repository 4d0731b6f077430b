"""A merge of a handler becomes a merge of a scan: its kind, and what its arguments must be."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from weir.errors import PlanError
from weir.handlers.accesses import MergeAccess
from weir.handlers.columns import type_of
from weir.handlers.merges import recognised
from weir.handlers.scope import Scope, at
from weir.handlers.tree_text import tree_text
from weir.handlers.values import Const, Tree
from weir.plan.states import MERGE_TRAITS, Cell, MergeFunction, MergeKind


@dataclass(frozen=True, slots=True)
class MergeForm:
    """A `MergeForm` has the kind of a merge and its arguments, each with the column's type."""

    kind: MergeKind
    args: tuple[tuple[Tree, pa.DataType], ...]
    k: int = 0
    function: MergeFunction | None = None


def merge_form(merge: MergeAccess, cell: Cell, scope: Scope) -> MergeForm:
    """Return the form in which a scan takes a merge; PlanError for what a state cannot take."""
    where = at(scope, merge.line)
    if merge.kind == "call":
        assert merge.new is not None
        kind, args, function = recognised(merge.new, cell.type, scope)
        types = [_own_type(tree, scope, where) if kind == "call" else cell.type for tree in args]
        return MergeForm(kind, tuple(zip(args, types, strict=True)), function=function)
    if MERGE_TRAITS[merge.kind].of_elements:
        element = ((merge.args[0], cell.type.value_type),)
        return MergeForm(merge.kind, element, _largest(merge, where))
    return MergeForm(merge.kind, ((merge.args[0], cell.type),))


def _own_type(tree: Tree, scope: Scope, where: str) -> pa.DataType:
    dtype = type_of(tree, scope)
    if dtype is None:
        raise PlanError(
            f"{where}: the type of {tree_text(tree)}, which a merge's function uses, is not known",
            hint="annotate the result of the function that gives it",
        )
    return dtype


def _largest(merge: MergeAccess, where: str) -> int:
    if not MERGE_TRAITS[merge.kind].has_k:
        return 0
    k = constant_k(merge)
    if k < 1:
        raise PlanError(f"{where}: the k of `top_k` is a positive integer that is written there")
    return k


def constant_k(merge: MergeAccess) -> int:
    """Return the k of a `top_k` that is written there; 0 if it is not."""
    k = merge.args[1].value if isinstance(merge.args[1], Const) else None
    return k if type(k) is int else 0
