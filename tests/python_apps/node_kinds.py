"""Which kinds of AST nodes drawn apps have: all that can stand in a function, among those that are
accepted and among those that are refused."""

from __future__ import annotations

import ast
from collections import Counter
from dataclasses import dataclass, field

_ROOTS = (
    ast.stmt,
    ast.expr,
    ast.pattern,
    ast.operator,
    ast.boolop,
    ast.unaryop,
    ast.cmpop,
    ast.excepthandler,
)
_ALONE = (
    ast.comprehension,
    ast.arguments,
    ast.arg,
    ast.keyword,
    ast.alias,
    ast.withitem,
    ast.match_case,
)
_OLD = frozenset(("Num", "Str", "Bytes", "NameConstant", "Ellipsis"))
"""Classes that no parser makes any more."""
NEVER_ACCEPTED = frozenset(("Global",))
"""`global` in a handler changes what is not its own, or says nothing: it is refused always."""
SELDOM = frozenset(
    ("TypeAlias", "TypeVar", "ParamSpec", "TypeVarTuple", "TemplateStr", "Interpolation")
)
"""Kinds that not every Python from 3.11 on has."""


def node_kinds() -> list[str]:
    """Return the names of all kinds of nodes that can stand in a function."""
    leaves = [kind for root in _ROOTS for kind in root.__subclasses__()]
    names = {kind.__name__ for kind in (*leaves, *_ALONE)}
    return sorted(names - _OLD - SELDOM)


@dataclass
class Coverage:
    """A `Coverage` counts apps by the kinds of nodes that they have."""

    accepted: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)

    def note(self, source: str, *, is_refused: bool) -> None:
        kinds = {type(node).__name__ for node in ast.walk(ast.parse(source))}
        (self.refused if is_refused else self.accepted).update(kinds)

    def missing(self) -> list[str]:
        """Return the kinds that no accepted, or no refused app has."""
        kinds = node_kinds()
        accepted = [k for k in kinds if not self.accepted[k] and k not in NEVER_ACCEPTED]
        refused = [k for k in kinds if not self.refused[k]]
        return [*(f"{k} (accepted)" for k in accepted), *(f"{k} (refused)" for k in refused)]

    def table(self) -> str:
        lines = ["kind of node       accepted  refused"]
        lines += [f"{k:18} {self.accepted[k]:8} {self.refused[k]:8}" for k in node_kinds()]
        return "\n".join(lines)
