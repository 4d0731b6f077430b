"""Which states a function reads and writes: a walk over its source, on all branches.

It follows calls of functions of the same module, binds states that are handed over as arguments,
and looks into lambdas. It knows names only: a state that hides in a container is not found.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass, field

WRITES = frozenset({"merge", "add", "set", "max", "min", "append", "add_to_set", "top_k"})


@dataclass
class Touched:
    """A `Touched` holds the names of the states that a function reads and writes."""

    reads: set[str] = field(default_factory=set)
    writes: set[str] = field(default_factory=set)


def functions_of(tree: ast.Module) -> dict[str, ast.FunctionDef | ast.Lambda]:
    found: dict[str, ast.FunctionDef | ast.Lambda] = {}
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            found[node.name] = node
        elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Lambda):
            found |= {t.id: node.value for t in node.targets if isinstance(t, ast.Name)}
    return found


def touched(
    name: str, functions: Mapping[str, ast.FunctionDef | ast.Lambda], states: Mapping[str, str]
) -> Touched:
    """Return what a function touches; `states` has the name of a state for each variable."""
    found = Touched()
    _walk(functions[name], functions, dict(states), found, ())
    return found


def _walk(
    function: ast.AST,
    functions: Mapping[str, ast.FunctionDef | ast.Lambda],
    states: Mapping[str, str],
    found: Touched,
    within: tuple[ast.AST, ...],
) -> None:
    aliases = dict(states)
    for node in ast.walk(function):
        match node:
            case ast.Assign(targets=[ast.Name(id=alias)], value=ast.Name(id=of)) if of in aliases:
                aliases[alias] = aliases[of]
    for node in ast.walk(function):
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Name(id=of), attr=method)) if of in aliases:
                if method == "get":
                    found.reads.add(aliases[of])
                elif method in WRITES:
                    found.writes.add(aliases[of])
        # A function may be called, or handed over to be called (a merge's function).
        match node:
            case ast.Call(func=ast.Name(id=callee), args=args) if callee in functions:
                inner = functions[callee]
                if inner not in within:
                    names = [a.arg for a in inner.args.args]
                    bound = {
                        n: aliases[a.id]
                        for n, a in zip(names, args, strict=False)
                        if isinstance(a, ast.Name) and a.id in aliases
                    }
                    _walk(inner, functions, {**states, **bound}, found, (*within, inner))
            case ast.Name(id=name) if name in functions and functions[name] is not function:
                if functions[name] not in within:
                    _walk(functions[name], functions, states, found, (*within, functions[name]))
