"""Finds where the methods of a user's class set attributes that are not declared as state.

A restart makes a new instance and restores the declared state. Anything else that a call left in
the instance is lost, and the answer differs from then on. What `__init__` sets is set again, so it
is safe.

The source shows plain assignments (`self.last = …`) in the methods that Weir calls, and in other
methods of the class that these call. Other changes (`setattr`, a list that is changed in place) are
detected when the operator runs (`kernels/operators/instance_changes.py`).
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from types import FunctionType, MemberDescriptorType

LOST = "a restart would lose it"


def declare_hint(attribute: str) -> str:
    """Return a hint how to declare an attribute of an operator as state."""
    return (
        f"annotate it in the class with its type, as in `{attribute}: int`; what one call alone "
        "needs is a local variable"
    )


@dataclass(frozen=True, slots=True)
class UndeclaredAssignment:
    """A line that sets an attribute that is not declared."""

    attribute: str
    method: str
    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.method} sets `{self.attribute}` ({self.file}, line {self.line})"


def undeclared_assignment(
    cls: type, entries: Collection[str], declared: Collection[str]
) -> UndeclaredAssignment | None:
    """Return the first assignment to an undeclared attribute that calls of these methods reach."""
    reached = [function for name in entries for function in _functions(cls, name)]
    seen = set(reached)
    for function in reached:  # the list grows
        tree = _tree(function)
        own = _own_name(tree)
        if tree is None or own is None:
            continue
        for attribute, line in _assigned(tree, own):
            name = _mangled(attribute, function)
            if name not in declared and not _is_managed(cls, name):
                code = function.__code__
                line += code.co_firstlineno - 1
                return UndeclaredAssignment(attribute, function.__name__, code.co_filename, line)
        used = [f for name in _used(tree, own) for f in _functions(cls, _mangled(name, function))]
        reached += [f for f in dict.fromkeys(used) if f not in seen]
        seen.update(used)
    return None


def _functions(cls: type, name: str) -> Iterator[FunctionType]:
    """Yield the functions of this name, of the class and of its base classes.

    `super()` may call the latter."""
    for owner in cls.__mro__:
        member = owner.__dict__.get(name)
        parts = (
            [member.fget, member.fset, member.fdel] if isinstance(member, property) else [member]
        )
        unwrapped = (inspect.unwrap(part) for part in parts if callable(part))
        yield from (part for part in unwrapped if isinstance(part, FunctionType))


def _tree(function: FunctionType) -> ast.FunctionDef | None:
    """Parse a method; return None if there is no source."""
    try:
        module = ast.parse(textwrap.dedent(inspect.getsource(function)))
    except (OSError, TypeError, SyntaxError):
        return None
    first = module.body[0] if module.body else None
    return first if isinstance(first, ast.FunctionDef) else None


def _own_name(tree: ast.FunctionDef | None) -> str | None:
    """Return the name that a method uses for its instance."""
    arguments = [] if tree is None else [*tree.args.posonlyargs, *tree.args.args]
    return arguments[0].arg if arguments else None


def _assigned(tree: ast.FunctionDef, own: str) -> Iterator[tuple[str, int]]:
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(ast.Name(id), attribute, ast.Store() | ast.Del()) if id == own:
                yield attribute, node.lineno


def _used(tree: ast.FunctionDef, own: str) -> Iterator[str]:
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(ast.Name(id), attribute) if id == own:
                yield attribute
            case ast.Attribute(ast.Call(ast.Name("super")), attribute):
                yield attribute


def _mangled(attribute: str, function: FunctionType) -> str:
    """Return the name under which Python stores an attribute; a class has its own `__x`."""
    owner = function.__qualname__.rpartition(".")[0].rpartition(".")[2].lstrip("_")
    private = attribute.startswith("__") and not attribute.endswith("__") and owner
    return f"_{owner}{attribute}" if private else attribute


def _is_managed(cls: type, attribute: str) -> bool:
    """Tell whether setting the attribute runs code of the class, such as a property's."""
    member = inspect.getattr_static(cls, attribute, None)
    return hasattr(type(member), "__set__") and not isinstance(member, MemberDescriptorType)
