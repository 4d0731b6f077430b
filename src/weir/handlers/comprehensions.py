"""Comprehensions: over constants they are written out, over values of the event they are called as
they are."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TypeAlias

from weir.handlers import outlining
from weir.handlers.bindings import assigned_names
from weir.handlers.execution import Execution, NotAccesses
from weir.handlers.frames import Frame
from weir.handlers.reads_before import reads_before
from weir.handlers.symbols import Symbol, WrittenOut, truth
from weir.handlers.targets import bind, spread_out
from weir.handlers.values import Op, Tree

Comprehension: TypeAlias = "ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp"
MOST = 100
"""Elements that are written out; code over more is called as it is."""


def evaluate(run: Execution, frame: Frame, node: Comprehension) -> Symbol:
    """Return the list, set or dict that a comprehension makes."""
    written = unrolled(run, frame, node)
    if written is not None:
        return written
    node = reads_before(run, frame, node)
    if run.touches(frame, [node]).accesses:
        why = "states are accessed in a comprehension over values of the event"
        raise NotAccesses(why, node, frame, "write it as `for x in …:` with the accesses in it")
    if isinstance(node, ast.GeneratorExp):
        raise NotAccesses("a generator is used as a value", node, frame, "write a list: [… for …]")
    return outlining.expression(run, frame, node)


def unrolled(run: Execution, frame: Frame, node: Comprehension) -> Symbol | None:
    """Return a comprehension over constants, each round written out; None for another."""
    names = assigned_names(generator.target for generator in node.generators)
    home = Frame(frame.name, frame.file, names, frame.resolve, frame.globals, frame)
    before = len(run.accesses)
    rounds = list(_rounds(run, home, frame, node))
    if any(made is None for made in rounds):
        del run.accesses[before:]
        return None
    made = [part for part in rounds if part is not None]
    if isinstance(node, ast.DictComp | ast.SetComp):
        name = "dict" if isinstance(node, ast.DictComp) else "set"
        parts = tuple(run.data(frame, part, node) for pair in made for part in pair)
        return Op(name, parts, line=node.lineno)
    return WrittenOut("list", tuple(part for (part,) in made))


def _rounds(
    run: Execution, home: Frame, frame: Frame, node: Comprehension, depth: int = 0
) -> Iterator[tuple[Symbol, ...] | None]:
    """Return what each round gives; None if the rounds depend on the event."""
    if depth == len(node.generators):
        yield _result(run, home, node)
        return
    generator = node.generators[depth]
    where = frame if depth == 0 else home
    try:
        with run.attempt(where):
            elements = spread_out(run, run.value(where, generator.iter), node.lineno)
    except NotAccesses:  # as an iterator is, which a function may go through
        elements = None
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
    """Return `any` or `all` of values that are written out, as far as Python evaluates them."""
    inner = parts[0] if len(parts) == 1 else Op("and" if is_all else "or", parts, line=line)
    return Op("not", (Op("not", (inner,), line=line),), line=line)
