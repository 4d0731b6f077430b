"""Finds the source of the user's functions, and makes errors that point into it.

Rules
1. The text is the one that was run. For a loaded file it is the text that was read then
   (`plan/usercode/imported_files.py`), otherwise the text in `linecache` (files, notebooks, texts
   that were put there).
2. The first line of a function's code locates its definition. The positions of their instructions
   locate lambdas, so one line may hold several.
"""

from __future__ import annotations

import ast
import linecache
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from types import CodeType, FunctionType
from typing import TypeAlias

from weir.errors import PlanError, ScriptError
from weir.plan.usercode.imported_files import ImportedFrom

FunctionNode: TypeAlias = "ast.FunctionDef | ast.Lambda"
_Span: TypeAlias = tuple[int, int, int, int]


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A text of the user's, with its name in messages."""

    name: str
    text: str

    def error(self, message: str, node: ast.AST, hint: str = "") -> ScriptError:
        """Make an error that points at a node."""
        line = getattr(node, "lineno", 1)
        before = self.line(line).encode()[: getattr(node, "col_offset", 0)]
        column = len(before.decode(errors="replace")) + 1
        return ScriptError(
            message, line=line, column=column, source=self.text, hint=hint, file=self.name
        )

    def line(self, number: int) -> str:
        lines = self.text.split("\n")
        return lines[number - 1] if 0 < number <= len(lines) else ""


@dataclass(frozen=True, slots=True)
class FunctionSource:
    """A function, and the part of a text that defines it."""

    function: FunctionType
    node: FunctionNode
    file: SourceFile

    @property
    def name(self) -> str:
        return self.function.__name__


def source_of(function: FunctionType, imported: ImportedFrom | None = None) -> FunctionSource:
    """Find the source of a function; PlanError where there is none."""
    code = function.__code__
    text = _text(code.co_filename, function, imported)
    name = Path(code.co_filename).name
    if not text:
        raise PlanError(
            f"the source of `{function.__name__}` ({name}, line {code.co_firstlineno}) cannot be "
            "found, and handlers are read from their source",
            hint="write the app to a .py file or a notebook, not to a prompt or into exec()",
        )
    definition = _definition_of(code, text)
    if definition is None:
        raise PlanError(
            f"`{function.__name__}` does not stand at line {code.co_firstlineno} of {name}: the "
            "file was changed after it was loaded",
            hint="load it again",
        )
    return FunctionSource(function, definition, SourceFile(name, text))


def _text(path: str, function: FunctionType, imported: ImportedFrom | None) -> str:
    read = imported.files.text(path) if imported is not None else None
    if read is not None:
        return _decoded(read)
    return "".join(linecache.getlines(path, function.__globals__))


def _decoded(text: bytes) -> str:
    # The file ran, so its encoding was right; errors here are only visible in messages.
    return text.decode("utf-8-sig", errors="replace").replace("\r\n", "\n").replace("\r", "\n")


@lru_cache(maxsize=64)
def _parsed(text: str) -> tuple[FunctionNode, ...]:
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return ()
    return tuple(n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef | ast.Lambda))


def _definition_of(code: CodeType, text: str) -> FunctionNode | None:
    """Return the definition that a code object was compiled from."""
    nodes = [n for n in _parsed(text) if _argument_names(n) == _code_arguments(code)]
    if code.co_name != "<lambda>":
        named = (n for n in nodes if isinstance(n, ast.FunctionDef) and n.name == code.co_name)
        return next((n for n in named if _first_line(n) == code.co_firstlineno), None)
    lambdas = [n for n in nodes if isinstance(n, ast.Lambda) and n.lineno == code.co_firstlineno]
    if len(lambdas) < 2:
        return next(iter(lambdas), None)
    spans = list(_spans(code))
    if not spans:  # Python was started without positions
        return None
    start, end = min(s[:2] for s in spans), max(s[2:] for s in spans)
    exact = (n for n in lambdas if _start(n.body) == start and _end(n.body) == end)
    around = (n for n in lambdas if _start(n.body) <= start and end <= _end(n.body))
    return next(exact, None) or max(around, key=lambda n: _start(n.body), default=None)


def _start(node: ast.expr) -> tuple[int, int]:
    return node.lineno, node.col_offset


def _end(node: ast.expr) -> tuple[int, int]:
    return node.end_lineno or 0, node.end_col_offset or 0


def _spans(code: CodeType) -> Iterator[_Span]:
    """Yield where a lambda's instructions are, from line and column to line and column."""
    for line, end_line, column, end_column in code.co_positions():
        if line and end_line and column is not None and end_column:
            yield line, column, end_line, end_column


def _first_line(node: ast.FunctionDef) -> int:
    return min([node.lineno, *(d.lineno for d in node.decorator_list)])


def _argument_names(node: FunctionNode) -> tuple[str, ...]:
    a = node.args
    stars = [s.arg for s in (a.vararg, a.kwarg) if s is not None]
    return (*(x.arg for x in (*a.posonlyargs, *a.args, *a.kwonlyargs)), *stars)


def _code_arguments(code: CodeType) -> tuple[str, ...]:
    stars = bool(code.co_flags & 4) + bool(code.co_flags & 8)
    return code.co_varnames[: code.co_argcount + code.co_kwonlyargcount + stars]
