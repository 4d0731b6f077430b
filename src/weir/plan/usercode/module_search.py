"""Finds the modules that the user's code imports, from its import statements; runs nothing.

Rules
1. Modules are looked up in the program's folder first, except for names that are Python's own or
   Weir's. Modules in that folder are text: they travel with the program (`imported_files.py`).
2. All others are looked up where Python would find them. Modules that are neither Python's own, nor
   Weir's, nor installed (site-packages) are the user's too.
3. A module that no import statement names (`importlib.import_module`) is not found.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib.machinery import PathFinder
from importlib.util import find_spec
from pathlib import Path

_INSTALLED = frozenset(("site-packages", "dist-packages"))
_NEVER_USERS = frozenset((*sys.stdlib_module_names, "weir"))
_ONLY_FOR_TYPES = frozenset(("TYPE_CHECKING", "typing.TYPE_CHECKING"))


@dataclass(frozen=True, slots=True)
class ModuleText:
    """A module of the user's own, with its text when it was read."""

    name: str
    path: str
    source: bytes

    @property
    def is_package(self) -> bool:
        return Path(self.path).name == "__init__.py"

    @property
    def is_text(self) -> bool:
        """Whether it is Python text, not a compiled module."""
        return self.path.endswith(".py")


@dataclass(frozen=True, slots=True)
class ReachedModules:
    """The modules that some code imports, directly or not."""

    travelling: dict[str, ModuleText] = field(default_factory=dict)
    """The modules in the program's folder."""
    others: dict[str, ModuleText] = field(default_factory=dict)
    """The user's modules elsewhere."""
    needed: dict[str, str] = field(default_factory=dict)
    """The packages and modules that do not travel, with the file or module that imports each.

    Only those that exist here are included."""


def reached_from(source: bytes, name: str, folder: Path) -> ReachedModules:
    """Find the modules that a file of this name imports, directly or not."""
    reached = ReachedModules()
    _reach(reached, _imports(source, "", name), folder)
    return reached


def reached_modules(names: list[str]) -> ReachedModules:
    """Find these modules, and what they import, directly or not."""
    reached = ReachedModules()
    _reach(reached, [_Import(name, "") for name in names], None)
    return reached


def is_users(module: str) -> bool:
    """Tell whether a module is the user's own and has a file."""
    return _user_file(module) is not None


@dataclass(frozen=True, slots=True)
class _Import:
    name: str
    by: str
    for_types: bool = False


def _reach(reached: ReachedModules, imports: list[_Import], folder: Path | None) -> None:
    waiting = list(imports)
    seen: set[str] = set()
    while waiting:
        one = waiting.pop()
        if one.name not in seen:
            seen.add(one.name)
            module = None if folder is None else _in_folder(one.name, folder)
            if module is not None:
                reached.travelling[one.name] = module
            elif module := _elsewhere(one.name):
                reached.others[one.name] = module
            if module is not None and module.is_text:
                package = one.name if module.is_package else one.name.rpartition(".")[0]
                waiting += _imports(module.source, package, one.name)
        top = one.name.partition(".")[0]
        ours = any(name.partition(".")[0] == top for name in reached.travelling)
        if not one.for_types and not ours and top not in reached.needed and _is_here(top):
            reached.needed[top] = one.by


def _imports(source: bytes, package: str, by: str) -> list[_Import]:
    """Return the full names of what a source may import; some may not be modules."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError):
        return []
    typing = set(_only_for_types(tree))
    imports: list[_Import] = []
    for node in ast.walk(tree):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: len(package.split(".")) - node.level + 1]
            base = ".".join([*(above if node.level else []), *filter(None, [node.module])])
            names = [base, *(f"{base}.{alias.name}" for alias in node.names)]
        prefixes = (prefix for name in names if name for prefix in _prefixes(name))
        imports += [_Import(prefix, by, node in typing) for prefix in prefixes]
    return imports


def _only_for_types(tree: ast.Module) -> Iterator[ast.AST]:
    """Yield the nodes of code that no process runs: the bodies of `if TYPE_CHECKING`."""
    for block in ast.walk(tree):
        if isinstance(block, ast.If) and ast.unparse(block.test) in _ONLY_FOR_TYPES:
            for statement in block.body:
                yield from ast.walk(statement)


def _prefixes(name: str) -> Iterator[str]:
    parts = name.split(".")
    return (".".join(parts[: n + 1]) for n in range(len(parts)))


# --- where they lie ------------------------------------------------------------------------------


def _in_folder(name: str, folder: Path) -> ModuleText | None:
    """Read a module from the program's folder; None if it is not there."""
    top = name.partition(".")[0]
    if top in _NEVER_USERS or not _holds(folder, top):
        return None
    base = folder.joinpath(*name.split("."))
    for path in (base / "__init__.py", base.parent / f"{base.name}.py"):
        if path.is_file():
            return ModuleText(name, str(path), path.read_bytes())
    return None


def _holds(folder: Path, top: str) -> bool:
    """Tell whether the folder contains this package or module.

    As in Python, a folder without `__init__.py` is a package only if nothing else has its name."""
    if (folder / top / "__init__.py").is_file() or (folder / f"{top}.py").is_file():
        return True
    spec = PathFinder.find_spec(top)
    return (folder / top).is_dir() and (spec is None or spec.origin is None)


def _elsewhere(name: str) -> ModuleText | None:
    file = _user_file(name)
    return None if file is None else ModuleText(name, str(file), file.read_bytes())


def _user_file(name: str) -> Path | None:
    """Return the file of a user's module that does not travel, or None."""
    if name.split(".")[0] in _NEVER_USERS:
        return None
    module = sys.modules.get(name)
    origin = getattr(module, "__file__", None) if module is not None else _origin(name)
    if not origin or _INSTALLED & set(Path(origin).parts):
        return None
    file = Path(origin)
    return file if file.is_file() else None


def _origin(name: str) -> str | None:
    """Return where Python would find a module that has not been imported yet."""
    path = None
    spec = None
    for prefix in _prefixes(name):
        spec = PathFinder.find_spec(prefix, path)
        if spec is None:
            return None
        path = spec.submodule_search_locations
    return spec.origin if spec is not None else None


def _is_here(top: str) -> bool:
    """Tell whether this package or module exists here and could be missing on other machines."""
    if top in _NEVER_USERS:
        return False
    try:
        return find_spec(top) is not None
    except ValueError:  # a module that was created by hand
        return False
