"""Resolves imports inside the user's functions, if the imported things are known before the run."""

from __future__ import annotations

import ast
import importlib
import sys
from collections.abc import Iterable, Iterator

from weir.handlers.reading.sources import SourceFile


def imported_things(
    node: ast.Import | ast.ImportFrom, file: SourceFile
) -> Iterator[tuple[str, object]]:
    """Yield the names that an import binds, with what they stand for.

    ScriptError unless it imports from Python's library; anything else belongs at the top of the
    file.
    """
    for alias in node.names:
        module = node.module if isinstance(node, ast.ImportFrom) else alias.name
        top = (module or "").partition(".")[0]
        if top not in sys.stdlib_module_names or (isinstance(node, ast.ImportFrom) and node.level):
            message = f"`{ast.unparse(node)}` inside of a handler"
            raise file.error(message, node, "import it at the top of the file")
        assert module is not None
        try:
            thing: object = importlib.import_module(module)
            if isinstance(node, ast.ImportFrom):
                thing = getattr(thing, alias.name)
        except (ImportError, AttributeError) as error:
            raise file.error(f"`{ast.unparse(node)}`: {error}", node) from error
        if isinstance(node, ast.Import) and alias.asname is None:
            thing = sys.modules[top]
        yield alias.asname or alias.name.partition(".")[0], thing


def imports_in(nodes: Iterable[ast.AST], file: SourceFile) -> dict[str, object]:
    """Return all names that imports in some code bind, including functions inside it."""
    inner = (n for node in nodes for n in ast.walk(node))
    imports = (n for n in inner if isinstance(n, ast.Import | ast.ImportFrom))
    return {name: thing for node in imports for name, thing in imported_things(node, file)}
