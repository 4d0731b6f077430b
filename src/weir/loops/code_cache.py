"""Machine code of loops on disk: where it is kept, when it is used, how it gets to other hosts.

Rules
1. Code of one *kind* lies in a folder of that name. The kind is a hash of all that code depends on:
   the text of the loops, the versions of Python, Numba, LLVM and NumPy, the name and the features
   of the processor. So machines of all kinds can share a folder, and never use each other's code.
2. Code is read from, and written to, the folder that WEIR_CACHE names; without it, the one beside
   the files of the package, then the user's cache folder. If none of them can be written to, it is
   a folder of this user below that for temporary files, and a note says so.
3. Code runs as whoever loads it. A file counts only if it belongs to this user, to root or to the
   owner of the package, and nobody else may write to it. A folder that everybody may write to is
   not used; one for temporary files must be this user's, and for nobody else.
4. A file has a hash of its name and content, and gets its name when it is whole. One that is torn
   or was changed counts as none: the loop is compiled again, and the file is replaced.
"""

from __future__ import annotations

import errno
import hashlib
import os
import pickle
import stat
import sys
import tempfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import llvmlite
import numba
import numpy as np
from numba.core import sigutils
from numba.core.compiler import CompileResult
from numba.core.compiler_lock import global_compiler_lock
from numba.core.registry import cpu_target
from numba.core.runtime.nrt import rtsys
from numba.core.serialize import dumps

FORMAT = 1
"""Is raised when files of the cache have another form."""
PACKAGE = Path(__file__).parents[1]
FROZEN = ("events/batch.py", "loops/compiled.py")
"""The other files whose text machine code depends on: constants of time, how loops are compiled."""
_HASH_BYTES = 32

OnReady = Callable[[int, int], None]
"""Called with the number of loops that are ready, and of all."""


@dataclass(frozen=True, slots=True)
class Need:
    """A loop that is needed for arguments of these types (Numba's)."""

    module: str
    name: str
    args: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Code:
    """Machine code on its way to another machine: of which kind, for what, files by names."""

    kind: str
    needs: tuple[Need, ...]
    files: Mapping[str, bytes]


# --- kinds ---------------------------------------------------------------------------------------


@cache
def stamp(package: Path, files_like: str = "*_loops.py") -> str:
    """Return a hash of the text of every file that machine code of this package depends on, or of
    more of its files."""
    files = sorted({*package.rglob(files_like), *(package / name for name in FROZEN)})
    texts = [(str(path.relative_to(package)), path.read_bytes()) for path in files]
    return hashlib.sha256(repr(texts).encode()).hexdigest()


@cache
def kind() -> str:
    """Name the kind of code that this process makes and uses."""
    return kind_of(
        stamp(PACKAGE),
        (sys.implementation.cache_tag, sys.abiflags, numba.__version__, llvmlite.__version__,
         np.__version__),
        cpu_target.target_context.codegen().magic_tuple(),
    )  # fmt: skip


def kind_of(text: str, versions: Sequence[str], processor: Sequence[str]) -> str:
    """Name a kind: the stamp of the loops' text, versions, and the processor as LLVM sees it."""
    everything = repr((FORMAT, text, tuple(versions), tuple(processor)))
    return hashlib.sha256(everything.encode()).hexdigest()[:24]


# --- folders -------------------------------------------------------------------------------------


def folders() -> Iterator[Path]:
    """List the folders that code may lie in, the best one first (rule 2)."""
    named = os.environ.get("WEIR_CACHE")
    if named:
        yield Path(named)
    else:
        yield PACKAGE / "__pycache__" / "loops"
        kept = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
        yield Path(kept, "weir", "loops")
    with suppress(FileNotFoundError):  # there is no folder for temporary files
        yield _temporary()


def _temporary() -> Path:
    user = "" if sys.platform == "win32" else f"-{os.getuid()}"
    return Path(tempfile.gettempdir(), f"weir-loops{user}")


def _is_safe(folder: Path) -> bool:
    """Say whether code in a folder can be trusted as far as its files can (rule 3)."""
    try:
        status = os.lstat(folder) if folder == _temporary() else os.stat(folder)
    except OSError:
        return False
    if sys.platform == "win32":  # where modes say nothing
        return True
    if folder == _temporary():
        alone = not status.st_mode & (stat.S_IRWXG | stat.S_IRWXO)
        return stat.S_ISDIR(status.st_mode) and status.st_uid == os.getuid() and alone
    return not status.st_mode & stat.S_IWOTH


def _is_trusted(file: os.stat_result) -> bool:
    if sys.platform == "win32":
        return True
    owners = (os.getuid(), 0, PACKAGE.stat().st_uid)
    return file.st_uid in owners and not file.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def _safe_folders() -> Iterator[Path]:
    """List the folders of this kind of code that are there and safe."""
    for folder in folders():
        if _is_safe(folder) and _is_safe(folder / kind()):
            yield folder / kind()


def code_folder() -> Path | None:
    """Return the folder that has code of this kind; None where none is kept."""
    return next(_safe_folders(), None)


# --- files ---------------------------------------------------------------------------------------


def remember(name: str, what: object) -> None:
    """Keep data about the code of this kind, under a name."""
    keep(name, _sealed(name, pickle.dumps(what)))


def remembered(name: str) -> Any:
    """Read what was kept under this name; None where nothing was."""
    body = find(name)
    return None if body is None else pickle.loads(body[_HASH_BYTES:])  # rule 3


def _sealed(name: str, content: bytes) -> bytes:
    return hashlib.sha256(name.encode() + b"\0" + content).digest() + content


def find(name: str) -> bytes | None:
    """Read a whole and trusted file of this kind; None where there is none."""
    for folder in _safe_folders():
        try:
            with (folder / name).open("rb") as file:
                body = file.read() if _is_trusted(os.fstat(file.fileno())) else b""
        except OSError:
            continue
        if _is_whole(name, body):
            return body
    return None


def _is_whole(name: str, body: bytes) -> bool:
    return len(body) > _HASH_BYTES and body == _sealed(name, body[_HASH_BYTES:])


def keep(name: str, body: bytes) -> Path | None:
    """Write a file of this kind to the first folder that takes it; return that folder."""
    reasons = []
    for folder in folders():
        try:
            _write(folder, name, body)
        except OSError as error:
            reasons.append(f"'{folder}': {error.strerror}")
            continue
        if folder == _temporary():
            _note(f"compiled loops are kept in '{folder}' ({'; '.join(reasons)})")
        return folder
    _note(f"compiled loops are not kept ({'; '.join(reasons)})")
    return None


def _write(folder: Path, name: str, body: bytes) -> None:
    mode = 0o700 if folder == _temporary() else 0o755
    folder.mkdir(mode=mode, parents=True, exist_ok=True)
    inner = folder / kind()
    inner.mkdir(mode=mode, exist_ok=True)
    if not (_is_safe(folder) and _is_safe(inner)):
        raise PermissionError(errno.EPERM, "others may write to it", str(inner))
    handle, path = tempfile.mkstemp(prefix=".", dir=inner)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(body)
        Path(path).chmod(0o644)
        os.replace(path, inner / name)
    except OSError:
        os.unlink(path)
        raise


@cache
def _note(text: str) -> None:
    """Say something on stderr, once in a process."""
    if sys.stderr is not None:
        sys.stderr.write(f"weir: note: {text}; WEIR_CACHE can name a folder\n")


# --- loops ---------------------------------------------------------------------------------------

_loops: dict[tuple[str, str], Any] = {}
"""The loops of all modules that were imported, by module and name."""


every_loop: list[Any] = []
"""All loops, also those that only others call."""
_on_miss: list[Callable[[], None]] = []
"""What is called, each once and the first of them first, when a loop is not there."""


class LoopCache:
    """Keeps the code of one loop, for all types of its arguments: what Numba asks for it."""

    def __init__(self, module: str, name: str) -> None:
        self._name = f"{module.removeprefix('weir.')}.{name}"
        self._held: dict[str, Any] = {}
        """What this process has loaded or compiled, by names of files."""

    @property
    def cache_path(self) -> str:
        """The folder that is tried first, for Numba's own statistics."""
        return str(next(folders()))

    def file_name(self, signature: Any) -> str:
        """Name the file of the code for arguments of these types."""
        args, _ = sigutils.normalize_signature(signature)  # type: ignore[no-untyped-call]
        types = hashlib.sha256(repr([str(a) for a in args]).encode()).hexdigest()[:16]
        return f"{self._name}-{types}"

    def load_overload(self, signature: Any, target: Any) -> Any:
        """Load the code for arguments of these types; None: there is none."""
        name = self.file_name(signature)
        while name not in self._held:
            body = find(name)
            if body is None and _on_miss:
                _missed()
                continue
            if body is None:
                return None
            # All that loading needs of what `target.refresh()` would do, which takes longer than a
            # small run: that imports whatever Numba can compile.
            rtsys.initialize(target)
            reduced = pickle.loads(zlib.decompress(body[_HASH_BYTES:]))  # rule 3
            self._held[name] = CompileResult._rebuild(target, *reduced)  # type: ignore[no-untyped-call]
        return self._held[name]

    def save_overload(self, signature: Any, compiled: Any) -> None:
        """Keep the code that was made for arguments of these types."""
        name = self.file_name(signature)
        self._held[name] = compiled._replace(metadata=None)  # else Numba would add to it once more
        if compiled.library.has_dynamic_globals:  # addresses of this process
            return
        reduced = dumps(compiled._reduce())  # type: ignore[no-untyped-call]
        keep(name, _sealed(name, zlib.compress(reduced, 1)))


def is_inner(function: Callable[..., Any]) -> bool:
    """Say whether other loops alone call this one, by its name: their code contains it."""
    return function.__name__.startswith("_")


def keep_code(loop: Any) -> None:
    """Let a loop, as Numba made it, have its code in the cache."""
    function = loop.py_func
    _loops[function.__module__, function.__qualname__] = loop
    # Private to Numba, which has no public way to say where code lies and what it depends on.
    loop._cache = LoopCache(function.__module__, function.__qualname__)


@contextmanager
def on_miss(*steps: Callable[[], None]) -> Iterator[None]:
    """Let these functions be called meanwhile, one each time a loop is needed that was never
    compiled on this machine: they may compile it along with others. Where they do not, Numba does
    when they return."""
    _on_miss[:] = steps
    try:
        yield
    finally:
        _on_miss.clear()


def _missed() -> None:
    """Call the next of the functions passed to `on_miss`; loops that it lacks itself call none."""
    step, *later = _on_miss
    _on_miss.clear()
    step()
    _on_miss.extend(later)


def forget_used() -> None:
    """Clear `used`. What was loaded or compiled stays."""
    with global_compiler_lock:  # who compiles looks at what was used
        for loop in _loops.values():
            loop._reset_overloads()  # private to Numba, which then asks `LoopCache` again


def used() -> tuple[Need, ...]:
    """List the loops that this process has used, with the types of their arguments. One that was
    compiled here for a loop that calls it is listed too, though the caller's code contains it."""
    return tuple(Need(*at, args) for at, loop in _loops.items() for args in loop.overloads)


def count_compiled() -> int:
    """Count the loops that this process had to compile so far."""
    return sum(sum(loop.stats.cache_misses.values()) for loop in _loops.values())


def is_kept(need: Need) -> bool:
    """Say whether the code of a loop is on disk."""
    return find(LoopCache(need.module, need.name).file_name(need.args)) is not None


def make_ready(needs: Sequence[Need], tell: OnReady = lambda done, of: None) -> None:
    """Load or compile these loops, as far as their modules were imported."""
    for number, need in enumerate(needs):
        tell(number, len(needs))
        loop = _loops.get((need.module, need.name))
        if loop is not None:
            loop.compile(need.args)
    tell(len(needs), len(needs))


# --- travelling ----------------------------------------------------------------------------------


def packed(needs: tuple[Need, ...]) -> Code:
    """Read the code of these loops. What is not on disk is compiled, and left out if no folder
    keeps it."""
    files = {}
    for need in needs:
        name = LoopCache(need.module, need.name).file_name(need.args)
        body = find(name)
        if body is None:
            make_ready([need])
            body = find(name)
        if body is not None:
            files[name] = body
    return Code(kind(), needs, files)


def unpack(code: Code) -> None:
    """Keep code that came from elsewhere, if it is whole and of this machine's kind; what is here
    stays."""
    if code.kind != kind():
        return
    for name, body in code.files.items():
        if "/" not in name and _is_whole(name, body) and find(name) is None:
            keep(name, body)
