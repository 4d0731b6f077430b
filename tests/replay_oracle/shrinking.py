"""Makes a failing case small: fewer rows, handlers, statements, simpler expressions.

`shrink` tries one change after the other and keeps those after which the case still fails.
"""

from __future__ import annotations

import ast
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace

from replay_oracle.logs import Rows
from replay_oracle.programs import Case

Fails = Callable[[Case], bool]

_CONSTANTS: tuple[object, ...] = (0, 1, "", None, True)


def shrink(case: Case, fails: Fails, most: int = 3000) -> Case:
    """Return the smallest case found that still fails, after at most so many tries."""
    tries = 0

    def still(other: Case) -> bool:
        nonlocal tries
        tries += 1
        return tries <= most and fails(other)

    while tries < most:
        before = case
        for changes in (_rows, _sources, _values):
            case = _greedy(case, changes, still)
        if case == before:
            break
    return case


def _greedy(case: Case, changes: Callable[[Case], Iterator[Case]], still: Fails) -> Case:
    """Take every change that keeps the failure, and go on behind it."""
    at = 0
    while True:
        for number, other in enumerate(changes(case)):
            if number < at:
                continue
            at = number
            if other != case and still(other):
                case = other
                break
            at = number + 1
        else:
            return case


# --- rows --------------------------------------------------------------------------------------


def _rows(case: Case) -> Iterator[Case]:
    for name, partitions in case.logs.items():
        for p, rows in enumerate(partitions):
            size = len(rows)
            while size:
                for start in range(0, len(rows), size):
                    yield _with_rows(case, name, p, rows[:start] + rows[start + size :])
                size //= 2
        if len(partitions) > 1:
            every = sorted((r for rows in partitions for r in rows), key=lambda r: r["ts"])  # type: ignore[arg-type,return-value]
            yield replace(case, logs={**case.logs, name: [every]})
    if case.params:
        yield replace(case, params={})


def _with_rows(case: Case, name: str, p: int, rows: Rows) -> Case:
    partitions = [rows if i == p else old for i, old in enumerate(case.logs[name])]
    return replace(case, logs={**case.logs, name: partitions})


def _values(case: Case) -> Iterator[Case]:
    simple = {
        "k": "a",
        "u": 0,
        "n": 1,
        "v": 1,
        "m": None,
        "x": 1.0,
        "y": 1.0,
        "s": "a",
        "t": None,
        "f": False,
        "tags": [],
        "nums": [],
    }
    for name, partitions in case.logs.items():
        for p, rows in enumerate(partitions):
            for i, row in enumerate(rows):
                for column, value in row.items():
                    if column in simple and value != simple[column]:
                        changed = {**row, column: simple[column]}
                        yield _with_rows(case, name, p, [*rows[:i], changed, *rows[i + 1 :]])


# --- source ------------------------------------------------------------------------------------


def _sources(case: Case) -> Iterator[Case]:
    tree = ast.parse(case.source)
    # Paths, not nodes: each change begins from a fresh copy.
    for path in list(_paths(tree)):
        if path[-1][0] in ("func", "decorator_list", "args") and path[-1][1] is None:
            continue
        if len(path) > 1 and not isinstance(
            tree.body[path[0][1] or 0], ast.FunctionDef | ast.ClassDef
        ):
            continue
        for change in (_drop, _inner, _body, _otherwise, _constant):
            for text in change(case.source, path):
                yield replace(case, source=text)


Path = tuple[tuple[str, int | None], ...]


def _paths(node: ast.AST, path: Path = ()) -> Iterator[Path]:
    for name, value in ast.iter_fields(node):
        if isinstance(value, ast.AST) and not isinstance(value, ast.expr_context):
            yield (*path, (name, None))
            yield from _paths(value, (*path, (name, None)))
        elif isinstance(value, list):
            for i in range(len(value)):
                if isinstance(value[i], ast.AST):
                    yield (*path, (name, i))
                    yield from _paths(value[i], (*path, (name, i)))


def _found(tree: ast.AST, path: Path) -> ast.AST:
    for name, i in path:
        value = getattr(tree, name)
        tree = value if i is None else value[i]
    return tree


def _replaced(source: str, path: Path, by: list[ast.AST]) -> Iterator[str]:
    tree = ast.parse(source)
    parent, (name, i) = _found(tree, path[:-1]), path[-1]
    if i is None:
        if len(by) != 1:
            return
        setattr(parent, name, by[0])
    else:
        values = getattr(parent, name)
        values[i : i + 1] = by
        if not values and name in ("body",):
            values.append(ast.Pass())
    try:
        text = ast.unparse(ast.fix_missing_locations(tree))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SyntaxWarning)
            compile(text, "app.py", "exec")
    except (SyntaxError, ValueError):
        return
    yield text


def _node(source: str, path: Path) -> ast.AST:
    return _found(ast.parse(source), path)


def _drop(source: str, path: Path) -> Iterator[str]:
    node = _node(source, path)
    if isinstance(node, ast.stmt | ast.keyword) and not isinstance(node, ast.Pass | ast.Import):
        yield from _replaced(source, path, [])


def _body(source: str, path: Path) -> Iterator[str]:
    node = _node(source, path)
    if isinstance(node, ast.If | ast.For | ast.While | ast.With | ast.Try):
        yield from _replaced(source, path, list(node.body))


def _otherwise(source: str, path: Path) -> Iterator[str]:
    node = _node(source, path)
    if isinstance(node, ast.If) and node.orelse:
        yield from _replaced(source, path, list(node.orelse))


def _inner(source: str, path: Path) -> Iterator[str]:
    """Replace an expression by one of its parts."""
    node = _node(source, path)
    if not isinstance(node, ast.expr) or isinstance(node, ast.Lambda):
        return
    for child in ast.walk(node):
        if child is not node and isinstance(child, ast.expr) and not isinstance(child, ast.Name):
            yield from _replaced(source, path, [child])


def _constant(source: str, path: Path) -> Iterator[str]:
    node = _node(source, path)
    if not isinstance(node, ast.expr) or isinstance(node, ast.Constant | ast.Name | ast.Lambda):
        return
    for value in _CONSTANTS:
        yield from _replaced(source, path, [ast.Constant(value)])
