"""Binds names to symbols, as assignments and loops do, and unpacks values that are written out."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from weir.handlers.reading.execution import Execution, NotListed, shown
from weir.handlers.reading.frames import Frame
from weir.handlers.reading.symbols import Symbol, WrittenOut, known, op
from weir.handlers.trees.values import Const, Method, Op, Python, Tree


def bind(run: Execution, frame: Frame, target: ast.expr, symbol: Symbol, node: ast.AST) -> None:
    """Bind the names of a target: a name, or a tuple of targets."""
    match target:
        case ast.Name(id=name):
            frame.variables[name] = symbol
        case ast.Tuple(elts=elts) | ast.List(elts=elts):
            if any(isinstance(e, ast.Starred) for e in elts):
                raise NotListed("`*` among the targets of an assignment", target)
            for inner, part in zip(elts, _parts(run, frame, symbol, len(elts), node), strict=True):
                bind(run, frame, inner, part, node)
        case _:
            raise NotListed(f"`{shown(target)}` is changed in place", target)


def _parts(run: Execution, frame: Frame, symbol: Symbol, count: int, node: ast.AST) -> list[Symbol]:
    line = getattr(node, "lineno", 0)
    parts = spread_out(run, symbol, line)
    if parts is not None and len(parts) == count:
        return parts
    if parts is not None:
        raise frame.file.error(f"{len(parts)} values are unpacked to {count} names", node)
    tree = Python(unpacked, (run.data(frame, symbol, node), Const(count)), line=line)
    return [op("item", tree, Const(number), line=line) for number in range(count)]


def unpacked(values: Iterable[object], count: int) -> tuple[object, ...]:
    """Return the values that are unpacked to `count` names; fail like Python if the numbers differ.

    >>> unpacked("ab", 2)
    ('a', 'b')
    """
    items = tuple(values)
    if len(items) > count:
        raise ValueError(f"too many values to unpack (expected {count})")
    if len(items) < count:
        raise ValueError(f"not enough values to unpack (expected {count}, got {len(items)})")
    return items


def spread_out(run: Execution, symbol: Symbol, line: int) -> list[Symbol] | None:
    """Return the elements of a symbol that can be iterated over without an event, or None."""
    match symbol:
        case WrittenOut(parts=parts):
            return list(parts)
        case Op(name="tuple" | "list", args=args):
            return list(args)
        case Const(value=tuple() | list() | range() | str() | dict() as value):
            return [known(v, line, run.params) for v in value]
        case Method(of=of, name="items" | "keys" | "values" as view, args=()):
            pairs = _pairs(run, of, line)
            if pairs is not None and view == "items":
                return [WrittenOut("tuple", pair) for pair in pairs]
            return None if pairs is None else [p[view == "values"] for p in pairs]
    return None


def _pairs(run: Execution, of: Tree, line: int) -> list[tuple[Symbol, Symbol]] | None:
    """Return the keys and values of a dict whose keys are written out, or None."""
    match of:
        case Const(value=dict() as value):
            held = [*value.items()]
            return [(known(k, line, run.params), known(v, line, run.params)) for k, v in held]
        case Op(name="dict", args=args) if all(isinstance(k, Const) for k in args[::2]):
            keys = [k.value for k in args[::2] if isinstance(k, Const)]
            if all(isinstance(k, str) for k in keys) and len(set(keys)) == len(keys):
                return list(zip(args[::2], args[1::2], strict=True))
    return None
