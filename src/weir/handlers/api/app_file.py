"""Loads an app from the user's file; other processes load it from the same text.

Rules
1. The file runs like a file that IMPORT names (`plan/usercode/imported_files.py`): under a private
   name, with the modules that it imports from its folder. Its text and theirs travel with the app,
   and have fingerprints.
2. An app from a file is pickled as the file's text and the app's name; its states, event types and
   parameters are pickled as names in it.
"""

from __future__ import annotations

import traceback
from pathlib import Path

from weir.errors import PlanError, WeirError
from weir.handlers.api.app import App
from weir.plan.binding.binder import unknown
from weir.plan.usercode.code_fingerprint import file_code
from weir.plan.usercode.functions import describe
from weir.plan.usercode.imported_files import ImportedFiles, ImportedFrom
from weir.plan.usercode.module_search import reached_from


def load_app(path: str | Path, name: str | None = None) -> App:
    """Run a file and return its only app, or the app with this name."""
    file = Path(path)
    if file.suffix != ".py" or not file.is_file():
        raise PlanError(f"no Python file '{path}'", hint="an app is a .py file with weir.App(…)")
    source = file.read_bytes()
    imports = reached_from(source, file.name, file.parent)
    files = ImportedFiles()
    try:
        files.run(file, source, imports.travelling)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # SystemExit, too, is just an error here
        raise _failed(error, file) from error
    imported = ImportedFrom(files, 0)
    for app in _apps(imported).values():
        app.code = tuple(file_code(file.name, source, imports).items())
        app.needed = tuple(imports.needed.items())
    return _chosen(_apps(imported), name, file)


def arrived_app(imported: ImportedFrom, name: str) -> App:
    """Return the app of a file's text in a process that unpickles it."""
    return _apps(imported)[name]


def _apps(imported: ImportedFrom) -> dict[str, App]:
    """Return a file's apps by name; from now on they travel with the file."""
    apps: dict[str, App] = {}
    for thing in imported.things():
        if issubclass(type(thing), App):
            assert isinstance(thing, App)
            if apps.setdefault(thing.name, thing) is not thing:
                raise PlanError(f"'{imported.path}' has two apps called `{thing.name}`")
            thing.imported = imported
    return apps


def _chosen(apps: dict[str, App], name: str | None, file: Path) -> App:
    if not apps:
        hint = 'define app = weir.App("name") at its top level; run other programs with python'
        raise PlanError(f"no app in '{file.name}'", hint=hint)
    if name is not None and name not in apps:
        raise unknown("app", name, apps)
    if name is None and len(apps) > 1:
        names = ", ".join(apps)
        raise PlanError(f"'{file.name}' has {len(apps)} apps: {names}", hint="choose one by name")
    return apps[name] if name is not None else next(iter(apps.values()))


def _failed(error: BaseException, file: Path) -> PlanError:
    lines = [f.lineno for f in traceback.extract_tb(error.__traceback__) if f.filename == str(file)]
    if isinstance(error, SyntaxError) and error.filename == str(file):
        lines.append(error.lineno)
    where = f", line {lines[-1]}" if lines else ""
    # Weir's own errors explain themselves; for others the message needs the kind.
    reason = str(error) if isinstance(error, WeirError) else describe(error)
    return PlanError(f"{file.name}{where}: {reason}")
