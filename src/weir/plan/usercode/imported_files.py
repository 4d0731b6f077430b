"""Sends imported files, and the modules of their folder, wherever a program's functions go.

Rules
1. A function of an imported file travels as the text of the program's files and its name there.
   Every process that gets one first runs all the program's files once, in their order. So their
   side effects (a table that was filled in another module, a setting of `decimal`) exist in the
   process that parsed the program, in Spark's workers and in hosts.
2. The files import modules of the program's folder by their plain names. These modules travel as
   texts and belong only to this program: two programs in one process may each have a `helper.py`.
   They are loaded under names of the program's own, so `sys.modules` does not have them under their
   plain names.
3. The text that runs, here and elsewhere, is the one that was read when the program was parsed. It
   never comes from Python's cache, which may be older than a change within the same second.
"""

from __future__ import annotations

import builtins
import marshal
import socket
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.abc import MetaPathFinder, SourceLoader
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import module_from_spec, spec_from_file_location, spec_from_loader
from itertools import count
from pathlib import Path
from types import CellType, FunctionType, ModuleType
from typing import TypeVar

from weir.errors import RunError
from weir.plan.usercode.functions import UserFunctions, describe
from weir.plan.usercode.module_search import ModuleText

Thing = TypeVar("Thing")

IMPORTED = "weir_import_"
"""The prefix of the module names of imported files."""


@dataclass(frozen=True, slots=True)
class ImportedFile:
    """A file that IMPORT named, with the modules of the folder that it may import.

    Modules that came with an earlier file are left out."""

    path: str
    source: bytes
    modules: tuple[ModuleText, ...] = ()


class ImportedFiles:
    """The imported files of one program, in order; the list grows while the program is parsed."""

    def __init__(self) -> None:
        self._files: list[ImportedFile] = []
        self._ran: list[ModuleType] = []
        self._space = _Space(f"{IMPORTED}/{next(_numbers)}")  # no file has such a name

    def run(self, path: Path, source: bytes, modules: Mapping[str, ModuleText]) -> ModuleType:
        """Run a file that IMPORT names; it imports these modules of the folder."""
        new = [text for name, text in sorted(modules.items()) if name not in self._space.texts]
        file = ImportedFile(str(path), source, tuple(new))
        ran = self._run(file)
        self._files.append(file)
        return ran

    def _run(self, file: ImportedFile) -> ModuleType:
        self._space.add(file.modules)
        name = f"{IMPORTED}{Path(file.path).stem}"
        loader = SourceFileLoader(name, file.path)
        spec = spec_from_file_location(name, file.path, loader=loader)
        assert spec is not None
        module = module_from_spec(spec)
        module.__dict__["__builtins__"] = self._space.builtins
        sys.modules[name] = module
        try:
            exec(loader.source_to_code(file.source, file.path), vars(module))
        finally:
            sys.modules.pop(name, None)
        self._ran.append(module)
        return module

    def functions(self, at: int = -1) -> UserFunctions:
        """Return the functions of a file by its number, by default the file that ran last."""
        number = at % len(self._ran)
        functions = UserFunctions.of(vars(self._ran[number]).values())
        return functions.travelling_with(ImportedFrom(self, number))

    def module(self, at: int) -> ModuleType:
        """Return the module of a file, by the file's number."""
        return self._ran[at]

    def home_of(self, function: FunctionType) -> int | str | None:
        """Return where a function comes from: the number of its file or the name of its module."""
        names = function.__globals__
        for number, module in enumerate(self._ran):
            if vars(module) is names:
                return number
        name = str(names.get("__name__")).removeprefix(f"{self._space.prefix}.")
        return name if self._space.holds(name) and vars(self.named(name)) is names else None

    def named(self, home: int | str) -> ModuleType:
        """Return a file's module by its number, or one of the folder's modules by its name."""
        if isinstance(home, int):
            return self._ran[home]
        return self._space.load(home)

    def text(self, path: str) -> bytes | None:
        """Return the text that ran from a path, if it belongs to the program."""
        for file in self._files:
            texts = {file.path: file.source, **{m.path: m.source for m in file.modules}}
            if path in texts:
                return texts[path]
        return None

    def __reduce__(self) -> tuple[object, ...]:
        files = tuple(self._files)
        _arrived_here.setdefault(files, self)
        return _arrived, (files,)


@dataclass(frozen=True, slots=True)
class ImportedFrom:
    """The file of a program that a function comes from."""

    files: ImportedFiles
    number: int

    def functions(self) -> UserFunctions:
        """Return the file's functions, as they are in this process."""
        return self.files.functions(self.number)

    @property
    def path(self) -> str:
        return str(self.files.module(self.number).__file__)

    def things(self) -> tuple[object, ...]:
        """Return all named objects of the file, as they are in this process."""
        return tuple(vars(self.files.module(self.number)).values())


@dataclass(frozen=True, slots=True)
class CarriedFunction:
    """A function of a program's file that pickle cannot find there by name.

    It travels as its code, and runs with the globals of that file."""

    function: FunctionType
    imported: ImportedFrom

    def __call__(self, *args: object, **keywords: object) -> object:
        return self.function(*args, **keywords)

    @property
    def __name__(self) -> str:
        return self.function.__name__

    def __reduce__(self) -> tuple[object, ...]:
        f = self.function
        home = self.imported.files.home_of(f)
        closure = tuple(
            carried(c.cell_contents, self.imported) if f.__closure__ else None
            for c in f.__closure__ or ()
        )
        held = (f.__name__, f.__defaults__, f.__kwdefaults__, closure)
        return _carried_here, (self.imported, home, marshal.dumps(f.__code__), *held)


def carried(thing: Thing, imported: ImportedFrom | None) -> Thing | CarriedFunction:
    """Return a function of a program's file in a form that travels; return others unchanged."""
    if imported is None or not isinstance(thing, FunctionType):
        return thing
    return CarriedFunction(thing, imported) if imported.files.home_of(thing) is not None else thing


def _carried_here(
    imported: ImportedFrom,
    home: int | str,
    code: bytes,
    name: str,
    defaults: tuple[object, ...] | None,
    keyword_defaults: dict[str, object] | None,
    closure: tuple[object, ...],
) -> CarriedFunction:
    module = imported.files.named(home)
    cells = tuple(CellType(held) for held in closure)
    function = FunctionType(marshal.loads(code), vars(module), name, defaults, cells)
    function.__kwdefaults__ = keyword_defaults
    return CarriedFunction(function, imported)


_numbers = count()
_arrived_here: dict[tuple[ImportedFile, ...], ImportedFiles] = {}
"""The programs whose files this process has run, because it sent or received them."""


def _arrived(files: tuple[ImportedFile, ...]) -> ImportedFiles:
    """Run the files in a process that has unpickled them, unless they already ran here."""
    if files in _arrived_here:
        return _arrived_here[files]
    imported = ImportedFiles()
    for file in files:
        try:
            imported._run(file)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # here, SystemExit is an ordinary error too
            raise RunError(
                f"IMPORT '{Path(file.path).name}' cannot be run in a worker: {describe(error)} "
                f"(on {socket.gethostname()})"
            ) from error
        imported._files.append(file)
    _arrived_here[files] = imported
    return imported


# --- the modules of a program's folder -----------------------------------------------------------


class _Space:
    """The modules of one program's folder: `helper` is loaded as `PREFIX.helper`.

    The program's files and modules have an `__import__` of their own, which Python's import
    statements call: it looks here first.
    """

    def __init__(self, prefix: str) -> None:
        self.prefix = prefix
        self.texts: dict[str, ModuleText] = {}
        self._plain_import: Callable[..., ModuleType] = vars(builtins)["__import__"]
        self.builtins = {**vars(builtins), "__import__": self._import}

    def add(self, texts: Sequence[ModuleText]) -> None:
        if texts and self.prefix not in _finder.spaces:
            package = ModuleType(self.prefix)
            package.__path__ = []
            sys.modules[self.prefix] = package
            _finder.spaces[self.prefix] = self
            if _finder not in sys.meta_path:
                sys.meta_path.append(_finder)
        self.texts |= {text.name: text for text in texts}

    def _import(
        self,
        name: str,
        globals: Mapping[str, object] | None = None,
        locals: Mapping[str, object] | None = None,
        fromlist: Sequence[str] | None = (),
        level: int = 0,
    ) -> ModuleType:
        """Import a module for an import statement of the program's code."""
        top = name.partition(".")[0]
        if level or not self.holds(top):
            return self._plain_import(name, globals, locals, fromlist or (), level)
        module = self._plain_import(f"{self.prefix}.{name}", globals, locals, fromlist or (), 0)
        return module if fromlist else sys.modules[f"{self.prefix}.{top}"]

    def load(self, name: str) -> ModuleType:
        return self._import(name, fromlist=("",))

    def holds(self, name: str) -> bool:
        """Tell whether a module is here, or a package without a text of its own."""
        return name in self.texts or any(other.startswith(f"{name}.") for other in self.texts)


class _SpaceFinder(MetaPathFinder):
    """Finds the modules of all programs whose files this process has run."""

    def __init__(self) -> None:
        self.spaces: dict[str, _Space] = {}

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        prefix, _, name = fullname.partition(".")
        space = self.spaces.get(prefix)
        if space is None or not space.holds(name):
            return None
        text = space.texts.get(name, ModuleText(name, "__init__.py", b""))
        loader = _TextLoader(space, text)
        spec = spec_from_loader(fullname, loader, origin=text.path, is_package=text.is_package)
        assert spec is not None
        spec.has_location = True
        return spec


_finder = _SpaceFinder()


class _TextLoader(SourceLoader):
    """Runs a module from its text, with the imports of its space."""

    def __init__(self, space: _Space, text: ModuleText) -> None:
        self._space, self._text = space, text

    def get_data(self, path: str | bytes) -> bytes:
        return self._text.source

    def get_filename(self, fullname: str) -> str:
        return self._text.path

    def exec_module(self, module: ModuleType) -> None:
        module.__dict__["__builtins__"] = self._space.builtins
        super().exec_module(module)
