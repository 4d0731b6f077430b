"""Finds the names that a function binds, and the outer names that code mentions.

Scopes are Python's: a lambda, a nested function and a comprehension have their own.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

Scoped: TypeAlias = "ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda"
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
NONE: frozenset[str] = frozenset()


def argument_names(arguments: ast.arguments) -> list[str]:
    """Return the names of all parameters."""
    plain = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    stars = [a for a in (arguments.vararg, arguments.kwarg) if a is not None]
    return [a.arg for a in (*plain, *stars)]


def body_of(node: Scoped) -> list[ast.stmt] | list[ast.expr]:
    return [node.body] if isinstance(node, ast.Lambda) else node.body


@lru_cache(maxsize=1000)
def bound_names(node: Scoped) -> frozenset[str]:
    """Return the names that are local to a function."""
    return frozenset(argument_names(node.args)) | assigned_names(body_of(node))


def assigned_names(nodes: Iterable[ast.AST]) -> frozenset[str]:
    """Return the names that statements bind in the function around them."""
    assigned: set[str] = set()
    outer: set[str] = set()
    for node in nodes:
        for inner in _same_scope(node):
            match inner:
                case ast.Name(id=name, ctx=ast.Store() | ast.Del()):
                    assigned.add(name)
                case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                    assigned.add(name)
                case ast.ClassDef(name=name) | ast.ExceptHandler(name=str(name)):
                    assigned.add(name)
                case ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                    assigned.add(name)
                case ast.MatchMapping(rest=str(name)):
                    assigned.add(name)
                case ast.alias(name=full, asname=None):
                    assigned.add(full.partition(".")[0])
                case ast.alias(asname=str(name)):
                    assigned.add(name)
                case ast.Global(names=names) | ast.Nonlocal(names=names):
                    outer.update(names)
    return frozenset(assigned - outer)


@lru_cache(maxsize=1000)
def names_set_inside(node: Scoped) -> frozenset[str]:
    """Return the names that functions inside of a function set in the functions around them."""
    setting = (inner.names for inner in ast.walk(node) if isinstance(inner, ast.Nonlocal))
    return frozenset(name for names in setting for name in names)


@lru_cache(maxsize=1000)
def last_settings(node: Scoped) -> dict[str, tuple[int, int]]:
    """Return where a function last sets each variable: line and column, by name."""
    last: dict[str, tuple[int, int]] = {}
    for part in body_of(node):
        for inner in _same_scope(part):
            if isinstance(inner, ast.Name) and not isinstance(inner.ctx, ast.Load):
                place = inner.lineno, inner.col_offset
                last[inner.id] = max(place, last.get(inner.id, place))
    return last


def _same_scope(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes that bind names in one scope.

    Of a comprehension these are the targets of `:=`; of a function or class, the parts that are
    evaluated at its definition.
    """
    yield node
    children: Iterable[ast.AST] = ast.iter_child_nodes(node)
    if isinstance(node, ast.ClassDef):
        children = (*node.decorator_list, *node.bases, *node.keywords)
    elif isinstance(node, _FUNCTIONS):
        children = (*node.args.defaults, *filter(None, node.args.kw_defaults))
        if not isinstance(node, ast.Lambda):
            children = (*node.decorator_list, *children)
    for child in children:
        if isinstance(node, _COMPREHENSIONS):
            walruses = (n for n in ast.walk(child) if isinstance(n, ast.NamedExpr))
            yield from (n.target for n in walruses)
        else:
            yield from _same_scope(child)


# --- mentions -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Mention:
    """A mention of `name.attribute. …` in code that does not bind the name."""

    name: str
    attributes: tuple[str, ...]
    node: ast.expr
    stored: bool = False
    """Whether something is assigned to it, or to an item of it."""
    call: ast.Call | None = None
    """The call, if the mention is called."""


def mentions(nodes: Iterable[ast.AST], bound: frozenset[str] = NONE) -> Iterator[Mention]:
    """Yield the mentions of names in some code, except of names in `bound`."""
    for node in nodes:
        yield from _mentions(node, bound)


def _mentions(node: ast.AST, bound: frozenset[str]) -> Iterator[Mention]:
    match node:
        case ast.Name() | ast.Attribute():
            yield from _chain(node, bound, None)
        case ast.Call(func=ast.Name(id="getattr"), args=[of, ast.Constant(value=str(name))]) if (
            name.isidentifier()
        ):
            yield from _chain(
                ast.copy_location(ast.Attribute(of, name, ast.Load()), node), bound, None
            )
            yield from _mentions(node.func, bound)
        case ast.Call(
            func=ast.Call(
                func=ast.Name(id="getattr") as getter, args=[of, ast.Constant(value=str(name))]
            ) as got
        ) if name.isidentifier():
            yield from _chain(
                ast.copy_location(ast.Attribute(of, name, ast.Load()), got), bound, node
            )
            yield from mentions((getter, *node.args, *node.keywords), bound)
        case ast.Call(func=ast.Name() | ast.Attribute() as called):
            yield from _chain(called, bound, node)
            yield from mentions((*node.args, *node.keywords), bound)
        case ast.Subscript(value=ast.Name() | ast.Attribute() as of, ctx=ast.Store() | ast.Del()):
            for mention in _chain(of, bound, None):
                yield Mention(mention.name, mention.attributes, node, stored=True)
            yield from _mentions(node.slice, bound)
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.Lambda():
            yield from mentions((*node.args.defaults, *filter(None, node.args.kw_defaults)), bound)
            if not isinstance(node, ast.Lambda):
                yield from mentions(node.decorator_list, bound)
            yield from mentions(body_of(node), bound | bound_names(node))
        case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
            yield from _comprehension(node, bound)
        case ast.arg() | ast.AnnAssign(value=None):
            return
        case ast.AnnAssign(value=ast.expr() as value, target=target):
            yield from mentions((value, target), bound)
        case _:
            yield from mentions(ast.iter_child_nodes(node), bound)


def _chain(
    node: ast.Name | ast.Attribute, bound: frozenset[str], call: ast.Call | None
) -> Iterator[Mention]:
    attributes: list[str] = []
    inner: ast.expr = node
    while isinstance(inner, ast.Attribute):
        attributes.append(inner.attr)
        inner = inner.value
    if not isinstance(inner, ast.Name):
        yield from _mentions(inner, bound)
    elif inner.id not in bound:
        stored = not isinstance(node.ctx, ast.Load)
        yield Mention(inner.id, tuple(reversed(attributes)), node, stored, call)


def _comprehension(
    node: ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp, bound: frozenset[str]
) -> Iterator[Mention]:
    inner = bound
    for number, generator in enumerate(node.generators):
        yield from _mentions(generator.iter, bound if number == 0 else inner)
        inner = inner | assigned_names([generator.target])
        yield from mentions(generator.ifs, inner)
    results = (node.key, node.value) if isinstance(node, ast.DictComp) else (node.elt,)
    yield from mentions(results, inner)


def written_defaults(arguments: ast.arguments) -> dict[str, ast.expr]:
    """Return the defaults of a function's parameters as they are written, by name."""
    plain = [*arguments.posonlyargs, *arguments.args]
    with_defaults = plain[len(plain) - len(arguments.defaults) :]
    named = zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
    pairs = [*zip(with_defaults, arguments.defaults, strict=True), *named]
    return {argument.arg: default for argument, default in pairs if default is not None}
