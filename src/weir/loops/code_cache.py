"""Machine code of loops on disk: where it is kept, when it is used, how it gets to other hosts.

Rules
1. Code of one *kind* lies in a folder of that name. The kind is a hash of everything that the code
   depends on: the text of the loops, the versions of Python, Numba, LLVM and NumPy, the name and
   the features of the processor. So machines of different kinds can share a folder and never use
   each other's code.
2. Code is read from, and written to, the folder that WEIR_CACHE names. Without WEIR_CACHE, it is
   the folder beside the package's files, then the user's cache folder. If none of them is writable,
   it is a folder of this user in the one for temporary files, and a note reports that.
3. Code runs with the rights of whoever loads it. A file is trusted only if it belongs to this user,
   to root or to the owner of the package, and if nobody else may write to it. A folder that
   everybody may write to is not used; a folder in the one for temporary files must belong to this
   user and be closed to all others.
4. A file contains a hash of its name and content, and gets its name when it is complete. A torn or
   changed file is treated as missing: the loop is compiled again, and the file is replaced.
"""

from __future__ import annotations

import errno
import hashlib
import os
import stat
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import llvmlite
import numba
import numpy as np
from numba.core.registry import cpu_target

FORMAT = 2
"""The version of the files' format; increase it when the format changes."""
PACKAGE = Path(__file__).parents[1]
FROZEN = ("events/batch.py", "loops/argument_types.py", "loops/compiled.py", "loops/loop.py")
"""Other files that machine code depends on: constants of time, and how loops are compiled."""
_HASH_BYTES = 32


@dataclass(frozen=True, slots=True)
class Code:
    """Machine code on its way to another machine: its kind, its loops, and its files by name."""

    kind: str
    loops: tuple[str, ...]
    files: Mapping[str, bytes]


# --- kinds ---------------------------------------------------------------------------------------


@cache
def stamp(package: Path) -> str:
    """Return a hash of the text of every file that machine code of this package depends on."""
    files = sorted({*package.rglob("*_loops.py"), *(package / name for name in FROZEN)})
    texts = [(str(path.relative_to(package)), path.read_bytes()) for path in files]
    return hashlib.sha256(repr(texts).encode()).hexdigest()


@cache
def kind() -> str:
    """Return the kind of code that this process compiles and uses."""
    return kind_of(
        stamp(PACKAGE),
        (
            sys.implementation.cache_tag,
            sys.abiflags,
            numba.__version__,
            llvmlite.__version__,
            np.__version__,
        ),
        cpu_target.target_context.codegen().magic_tuple(),
    )


def kind_of(text: str, versions: Sequence[str], processor: Sequence[str]) -> str:
    """Return a kind: a hash of the loops' stamp, the versions and LLVM's name of the processor."""
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
    """Tell whether a folder can be trusted, so that only its files need checks (rule 3)."""
    try:
        status = os.lstat(folder) if folder == _temporary() else os.stat(folder)
    except OSError:
        return False
    if sys.platform == "win32":  # modes mean nothing there
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
    """List the safe folders that exist for this kind of code."""
    for folder in folders():
        if _is_safe(folder) and _is_safe(folder / kind()):
            yield folder / kind()


def code_folder() -> Path | None:
    """Return the folder that has code of this kind, or None."""
    return next(_safe_folders(), None)


# --- files ---------------------------------------------------------------------------------------


def keep_content(name: str, content: bytes) -> None:
    """Store code of this kind under a name, for `read_content`."""
    keep(name, _sealed(name, content))


def read_content(name: str) -> bytes | None:
    """Return the code that was stored under this name, or None."""
    body = find(name)
    return None if body is None else body[_HASH_BYTES:]


def kept_names() -> set[str]:
    """List the names of the files of this kind, without checking whether each can be used."""
    return {path.name for folder in _safe_folders() for path in folder.iterdir()}


def _sealed(name: str, content: bytes) -> bytes:
    return hashlib.sha256(name.encode() + b"\0" + content).digest() + content


def find(name: str) -> bytes | None:
    """Return a complete and trusted file of this kind, or None."""
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
    """Write a file of this kind to the first writable folder; return that folder, or None."""
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
    """Print a note to stderr, once per process."""
    if sys.stderr is not None:
        sys.stderr.write(f"weir: note: {text}; WEIR_CACHE can name a folder\n")


# --- travelling ----------------------------------------------------------------------------------


def unpack(code: Code) -> None:
    """Store code that another machine sent, if it is complete and of this machine's kind.

    Files that are already here stay."""
    if code.kind != kind():
        return
    for name, body in code.files.items():
        if "/" not in name and _is_whole(name, body) and find(name) is None:
            keep(name, body)
