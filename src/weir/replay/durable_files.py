"""Writes small files and folders atomically: after a crash they are complete or missing.

Before a file is used again, `rows_differ` checks that it still holds the rows written to it.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from weir.errors import InputError
from weir.files.output_diff import total_digest
from weir.files.saved_outputs import open_outputs


def write_durably(path: Path, data: bytes) -> None:
    """Replace a file atomically."""
    part = path.with_name(f"{path.name}.part")
    with open(part, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    os.replace(part, path)
    sync_folder(path.parent)


def rename_durably(source: Path, path: Path) -> None:
    """Rename a complete folder after everything in it has been written to disk."""
    for folder, _, names in os.walk(source):
        for name in names:
            _sync(Path(folder, name), os.O_RDONLY)
        sync_folder(Path(folder))
    os.replace(source, path)
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Flush the names in a folder to disk."""
    _sync(folder, os.O_RDONLY | getattr(os, "O_DIRECTORY", 0))


def remove_folder(folder: Path) -> None:
    """Remove a folder with its contents, or a file or link in its place, if it exists."""
    if folder.is_symlink() or folder.is_file():
        folder.unlink()
    elif folder.exists():
        shutil.rmtree(folder)


def _sync(path: Path, flags: int) -> None:
    handle = os.open(path, flags)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def rows_differ(path: str, digest: str) -> str | None:
    """Describe how the rows of a file differ from a digest; None if they do not."""
    try:
        (saved,) = open_outputs([path])
        actual = str(total_digest(saved, lambda rows: None))
    except InputError as error:
        return str(error)
    return None if actual == digest else f"{path}: its rows have the digest {actual}, not {digest}"
