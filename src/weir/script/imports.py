"""Runs the user's Python files for IMPORT, and collects what their decorators made.

Each file runs once. Any error that it raises becomes a `ScriptError` at the IMPORT. The file, and
the modules that it imports from the program's folder, are removed from `sys.modules` afterwards.
Other processes run the same texts (`plan/usercode/imported_files.py`).
"""

from __future__ import annotations

import ast
import traceback
from pathlib import Path

from sqlglot import exp

from weir.errors import PlanError, ScriptError
from weir.plan.functions import FUNCTIONS
from weir.plan.functions.aggregates import AGGREGATES
from weir.plan.usercode.code_fingerprint import file_code
from weir.plan.usercode.functions import UserFunctions, describe
from weir.plan.usercode.imported_files import ImportedFiles
from weir.plan.usercode.module_search import ReachedModules, reached_from
from weir.script.constants import StatementScope, string

_TAKEN = frozenset((*FUNCTIONS, *AGGREGATES, "explode", "cast", "try_cast"))


def imported(
    node: exp.Expr, directory: Path, scope: StatementScope, files: ImportedFiles
) -> tuple[UserFunctions, dict[str, str], dict[str, str]]:
    """Run the file that IMPORT names, relative to `directory`. Return its functions, the
    fingerprints of all code that ran, and what it needs on every machine because it does not travel
    with the program."""
    written = string(node.this, scope, "the file of IMPORT")
    path = directory / written
    if path.suffix != ".py" or not _is_file(path):
        hint = "IMPORT takes a .py file, relative to the program's folder"
        raise scope.error(f"no Python file '{written}' in {directory}", node.this, hint)
    source = path.read_bytes()
    imports = reached_from(source, written, directory)
    _run(path, source, imports, written, node, scope, files)
    functions = files.functions()
    for name in (*functions.scalars, *functions.aggregates):
        if name.lower() in _TAKEN:
            raise scope.error(f"'{written}' defines `{name}`, which is built in", node.this)
    return functions, file_code(written, source, imports), imports.needed


def undecorated(source: bytes) -> dict[str, int]:
    """Return the functions and classes at the top level of a file that have no decorator of Weir's,
    each with its line."""
    tree = ast.parse(source)
    definitions = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    return {
        n.name: n.lineno for n in tree.body if isinstance(n, definitions) and not n.decorator_list
    }


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):  # too long, or not a path at all
        return False


def _run(
    path: Path,
    source: bytes,
    imports: ReachedModules,
    written: str,
    node: exp.Expr,
    scope: StatementScope,
    files: ImportedFiles,
) -> None:
    try:
        files.run(path, source, imports.travelling)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # SystemExit is an error here too
        raise _failed(error, path, written, node, scope) from error


def _failed(
    error: BaseException, path: Path, written: str, node: exp.Expr, scope: StatementScope
) -> ScriptError:
    lines = [f.lineno for f in traceback.extract_tb(error.__traceback__) if f.filename == str(path)]
    if isinstance(error, SyntaxError) and error.filename == str(path):
        lines.append(error.lineno)
    line = lines[-1] if lines else None
    where = "" if line is None else f", line {line}"
    if isinstance(error, PlanError):
        return scope.error(f"'{written}'{where}: {error.message}", node.this, error.hint)
    message = f"'{written}'{where}: {describe(error)}"
    return scope.error(message, node.this)
