"""The files that a program's IMPORTs ran go wherever its functions go.

A function of an imported file is pickled by value, since another process has no such module. The
effects of running its file (a table that it filled in another module, a setting of `decimal`) do
not travel with it. So every process that gets one of a program's functions runs all the program's
files first, in their order and once: the answer is the same in the process that parsed the program,
in Spark's workers and in hosts.
"""

from __future__ import annotations

import sys
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import TypeAlias

from weir.errors import RunError
from weir.plan.user_code import describe

IMPORTED = "weir_import_"
"""What the names of imported files' modules begin with."""
ImportedFile: TypeAlias = tuple[str, bytes]
"""Its path, and its text when it was run."""

_ran: set[ImportedFile] = set()
"""What this process has run."""


class ImportedFiles:
    """`ImportedFiles` are those of one program, in order; the list grows while the program is
    parsed."""

    def __init__(self) -> None:
        self._files: list[ImportedFile] = []

    def run(self, path: Path, source: bytes) -> ModuleType:
        """Run a file that IMPORT names."""
        self._files.append((str(path), source))
        return _run(str(path), source)

    def __reduce__(self) -> tuple[object, ...]:
        return _arrived, tuple(self._files)


def _arrived(*files: ImportedFile) -> ImportedFiles:
    """Run the files in a process that has unpickled them; files that ran here before are not run
    again."""
    made = ImportedFiles()
    for path, source in files:
        made._files.append((path, source))
        if (path, source) in _ran:
            continue
        try:
            _run(path, source)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # SystemExit, too, is no more than an error here
            raise RunError(
                f"IMPORT '{Path(path).name}' cannot be run in a worker: {describe(error)}"
            ) from error
    return made


def _run(path: str, source: bytes) -> ModuleType:
    name = f"{IMPORTED}{Path(path).stem}"
    loader = SourceFileLoader(name, path)
    spec = spec_from_file_location(name, path, loader=loader)
    assert spec is not None
    module = module_from_spec(spec)
    sys.modules[name] = module
    try:
        exec(loader.source_to_code(source, path), vars(module))
    finally:
        sys.modules.pop(name, None)
    _ran.add((path, source))
    return module
