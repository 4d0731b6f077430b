"""Translates `match` on constants to a chain of conditions."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from weir.handlers.reading.execution import Execution
from weir.handlers.reading.frames import Frame
from weir.handlers.reading.symbols import Symbol, WrittenOut, as_tree, op, truth
from weir.handlers.trees.values import Const, Op, Tree


@dataclass(frozen=True, slots=True)
class MatchCase:
    """One case: its condition (None: always), the names that it binds, and its guard."""

    condition: Tree | None
    captures: tuple[str, ...]
    guard: ast.expr | None
    body: list[ast.stmt]


def as_conditions(
    run: Execution, frame: Frame, subject: Symbol, node: ast.Match
) -> list[MatchCase] | None:
    """Return the cases of a match on constants; None if it has other patterns."""
    cases: list[MatchCase] = []
    for case in node.cases:
        captures: list[str] = []
        condition = _pattern(run, frame, subject, case.pattern, captures)
        if condition is None:
            return None
        whole = None if truth(condition) else condition
        cases.append(MatchCase(whole, tuple(captures), case.guard, case.body))
    return cases


def _pattern(
    run: Execution, frame: Frame, subject: Symbol, pattern: ast.pattern, captures: list[str]
) -> Tree | None:
    line = pattern.lineno
    tree = as_tree(subject, line)
    match pattern:
        case ast.MatchAs(pattern=None, name=name):
            captures += [] if name is None else [name]
            return Const(True)
        case ast.MatchAs(pattern=ast.pattern() as inner, name=str(name)):
            condition = _pattern(run, frame, subject, inner, captures)
            captures.append(name)
            return condition
        case ast.MatchValue(value=value) if tree is not None:
            return op("eq", tree, run.tree(frame, value), line=line)
        case ast.MatchSingleton(value=value) if tree is not None:
            return op("is", tree, Const(value), line=line)
        case ast.MatchOr(patterns=patterns):
            parts = [_pattern(run, frame, subject, p, captures) for p in patterns]
            conditions = [p for p in parts if p is not None]
            if len(conditions) < len(parts) or captures:
                return None
            return Op("or", tuple(conditions), line=line)
        case ast.MatchSequence(patterns=patterns) if isinstance(subject, WrittenOut):
            return _sequence(run, frame, subject, patterns, line)
    return None


def _sequence(
    run: Execution, frame: Frame, subject: WrittenOut, patterns: list[ast.pattern], line: int
) -> Tree | None:
    """Return the condition of a tuple of patterns without names, on a tuple that is written out."""
    if any(isinstance(p, ast.MatchStar) for p in patterns):
        return None
    if len(patterns) != len(subject.parts):
        return Const(False)
    names: list[str] = []
    parts = [
        _pattern(run, frame, part, pattern, names)
        for part, pattern in zip(subject.parts, patterns, strict=True)
    ]
    if names or any(p is None for p in parts):
        return None
    needed = tuple(p for p in parts if p is not None and truth(p) is None)
    if any(p is not None and truth(p) is False for p in parts):
        return Const(False)
    if not needed:
        return Const(True)
    return needed[0] if len(needed) == 1 else Op("and", needed, line=line)
