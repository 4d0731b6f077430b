"""Reads comprehensions: those over constants are unrolled, those over values become calls.

A comprehension over values of the event is on the list if everything that it does for an element
is. It becomes a call of a function (`EachElement`) that CPython runs row by row. The function is
built from the trees for one element; all other values are arguments.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal, TypeAlias

import pyarrow as pa

from weir.events.types import BOOLEAN, STRING
from weir.handlers.columns.python_code import TreeFunction, lines_of
from weir.handlers.reading.bindings import assigned_names
from weir.handlers.reading.execution import Execution, NotListed
from weir.handlers.reading.frames import Frame
from weir.handlers.reading.symbols import Symbol, WrittenOut, truth
from weir.handlers.reading.targets import bind, spread_out
from weir.handlers.trees.scope import leaves
from weir.handlers.trees.tree_walks import changed_tree
from weir.handlers.trees.values import Element, Op, Python, Tree, bottom_up
from weir.plan.usercode.made_functions import MadeFunction, RowLoop

Comprehension: TypeAlias = "ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp"
Collected: TypeAlias = Literal["list", "set", "dict", "generator"]
MOST = 100
"""The most elements that are written out; code over more is not unrolled."""
_KINDS: dict[type[ast.expr], Collected] = {
    ast.ListComp: "list",
    ast.SetComp: "set",
    ast.DictComp: "dict",
    ast.GeneratorExp: "generator",
}


@dataclass(frozen=True, slots=True)
class EachElement(MadeFunction):
    """Computes a comprehension of its first argument.

    The other arguments are what its body uses in addition to the element. `fold` is the function
    that gets the generator: `any` or `all`.
    """

    name: str
    file: str
    kind: Collected
    parameters: tuple[Tree, ...]
    """The element, then the trees that the other arguments stand for."""
    tests: tuple[Tree, ...]
    results: tuple[Tree, ...]
    fold: Callable[[Iterable[Any]], object] | None = None

    def make(self) -> Callable[..., object]:
        return _compiled(self, self.lines())

    def make_loop(self) -> RowLoop:
        function = self.make()

        def loop(take: Callable[[object], None], rows: Iterable[tuple[object, ...]]) -> None:
            for row in rows:
                take(function(*row))

        return loop

    def lines(self) -> tuple[int, ...]:
        return lines_of((*self.tests, *self.results))

    def identity(self) -> tuple[object, ...]:
        whole = TreeFunction(self.name, self.file, self.parameters, (*self.tests, *self.results))
        return whole.identity(), self.kind, len(self.tests), self.fold


def written_with(
    each: EachElement, args: Sequence[Tree]
) -> tuple[tuple[Tree, ...], tuple[Tree, ...]]:
    """Return a comprehension's tests and results, with these arguments, as a handler's values."""
    arguments = dict(zip(each.parameters[1:], args[1:], strict=True))

    def all_with(trees: Iterable[Tree]) -> tuple[Tree, ...]:
        return tuple(changed_tree(t, lambda leaf: arguments.get(leaf, leaf)) for t in trees)

    return all_with(each.tests), all_with(each.results)


def comprehension_text(each: EachElement, inner: str) -> str:
    """Write a comprehension, with this text between its brackets."""
    if each.kind == "generator":
        return f"{getattr(each.fold, '__name__', '')}({inner})"
    return f"[{inner}]" if each.kind == "list" else f"{{{inner}}}"


@lru_cache(maxsize=1024)
def _compiled(each: EachElement, lines: tuple[int, ...]) -> Callable[..., object]:
    tests = [
        TreeFunction(each.name, each.file, each.parameters, (test,)).make() for test in each.tests
    ]
    results = [
        TreeFunction(each.name, each.file, each.parameters, (tree,)).make() for tree in each.results
    ]

    def elements(over: Iterable[object], more: tuple[object, ...]) -> Iterator[object]:
        return (x for x in over if all(test(x, *more) for test in tests))

    def run(over: Iterable[object], *more: object) -> object:
        if each.kind == "dict":
            key, value = results
            return {key(x, *more): value(x, *more) for x in elements(over, more)}
        (result,) = results
        rounds = (result(x, *more) for x in elements(over, more))
        if each.kind == "generator":
            assert each.fold is not None
            return each.fold(rounds)
        return list(rounds) if each.kind == "list" else set(rounds)

    return run


def evaluate(run: Execution, frame: Frame, node: Comprehension) -> Symbol:
    """Return the list, set or dict of a comprehension."""
    if isinstance(node, ast.GeneratorExp):
        raise NotListed("a generator is used as a value", node)
    written = unrolled(run, frame, node)
    return over_values(run, frame, node) if written is None else written


def over_values(
    run: Execution,
    frame: Frame,
    node: Comprehension,
    fold: Callable[[Iterable[Any]], object] | None = None,
) -> Tree:
    """Return a comprehension over a list of the event as a call; NotListed if it is not one."""
    if len(node.generators) != 1 or node.generators[0].is_async:
        raise NotListed("a comprehension over several lists", node)
    (generator,) = node.generators
    over = run.tree(frame, generator.iter)
    dtype = run.static_type(over)
    if not isinstance(generator.target, ast.Name) or dtype is None:
        raise NotListed("a comprehension over such values", node)
    if not (pa.types.is_list(dtype) or dtype == STRING):
        raise NotListed("a comprehension over such values", node)
    home = Frame(
        frame.name,
        frame.file,
        frozenset((generator.target.id,)),
        frame.resolve,
        frame.globals,
        frame,
    )
    run.elements += 1
    element = Element(-run.elements, line=node.lineno)
    assert isinstance(run.scope.elements, dict)
    run.scope.elements[element.block] = (
        "",
        dtype.value_type if pa.types.is_list(dtype) else STRING,
    )
    home.variables[generator.target.id] = element
    tests, results = _body(run, home, node)
    others = tuple(leaf for leaf in leaves((*tests, *results)) if leaf != element)
    kind = _KINDS[type(node)]
    each = EachElement(run.handler, frame.file.name, kind, (element, *others), tests, results, fold)
    inner = run.static_type(results[0])
    result = pa.list_(inner) if kind in ("list", "set") and inner is not None else None
    if fold is any or fold is all:
        result = BOOLEAN
    return Python(each, (over, *others), result=result, line=node.lineno)


def _body(
    run: Execution, home: Frame, node: Comprehension
) -> tuple[tuple[Tree, ...], tuple[Tree, ...]]:
    """Return the tests and results for an element.

    NotListed if one of them is not on the list, or touches states.
    """
    accesses, evaluated, checks = len(run.accesses), len(run.evaluated), len(run.checks)
    before = run.why_rows
    tests = tuple(run.tree(home, test) for test in node.generators[0].ifs)
    parts = (node.key, node.value) if isinstance(node, ast.DictComp) else (node.elt,)
    results = tuple(run.tree(home, part) for part in parts)
    inside = {part for tree in (*tests, *results) for part in bottom_up(tree)}
    dropped = any(one.tree not in inside for one in run.evaluated[evaluated:])
    del run.evaluated[evaluated:]
    if len(run.accesses) > accesses or len(run.checks) > checks or dropped:
        raise NotListed("a comprehension with such code in it", node)
    if run.why_rows != before:
        raise NotListed(run.why_rows.partition(": ")[2] or run.why_rows, node)
    return tests, results


def unrolled(run: Execution, frame: Frame, node: Comprehension) -> Symbol | None:
    """Return a comprehension over constants with each round written out, or None for any other."""
    names = assigned_names(generator.target for generator in node.generators)
    home = Frame(frame.name, frame.file, names, frame.resolve, frame.globals, frame)
    before = run.point(frame)
    rounds = list(_rounds(run, home, frame, node))
    if any(one is None for one in rounds):
        run.take_back(frame, before)
        return None
    written = [parts for parts in rounds if parts is not None]
    if isinstance(node, ast.DictComp | ast.SetComp):
        name = "dict" if isinstance(node, ast.DictComp) else "set"
        parts = tuple(run.data(frame, part, node) for pair in written for part in pair)
        return Op(name, parts, line=node.lineno)
    return WrittenOut("list", tuple(part for (part,) in written))


def _rounds(
    run: Execution, home: Frame, frame: Frame, node: Comprehension, depth: int = 0
) -> Iterator[tuple[Symbol, ...] | None]:
    """Yield the results of each round; None if the rounds depend on the event."""
    if depth == len(node.generators):
        yield _result(run, home, node)
        return
    generator = node.generators[depth]
    where = frame if depth == 0 else home
    elements = spread_out(run, run.value(where, generator.iter, consumed=True), node.lineno)
    if elements is None or len(elements) > MOST:
        yield None
        return
    for element in elements:
        bind(run, home, generator.target, element, node)
        kept = [truth(run.tree(home, test)) for test in generator.ifs]
        if None in kept:
            yield None
            return
        if all(kept):
            yield from _rounds(run, home, frame, node, depth + 1)


def _result(run: Execution, home: Frame, node: Comprehension) -> tuple[Symbol, ...]:
    if isinstance(node, ast.DictComp):
        return run.value(home, node.key), run.value(home, node.value)
    return (run.value(home, node.elt),)


def any_or_all(is_all: bool, parts: tuple[Tree, ...], line: int) -> Tree:
    """Return `any` or `all` of values that are written out, evaluated as far as in Python."""
    inner = parts[0] if len(parts) == 1 else Op("and" if is_all else "or", parts, line=line)
    return Op("not", (Op("not", (inner,), line=line),), line=line)
