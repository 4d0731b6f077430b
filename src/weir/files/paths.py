"""Checks the paths of a program: no output may replace an input, and paths must be usable.

An output replaces what is at its path. So an output is rejected, before anything is written, if a
STREAM of the same program reads that path: by name, by a glob, or by following the file or its
folder.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from fnmatch import fnmatchcase
from pathlib import Path

from weir.errors import InputError, PlanError
from weir.files.buckets import address
from weir.plan.operators import Source
from weir.plan.program import Output, Program
from weir.plan.urls import is_object_url, refuse_secrets

DEEPEST = 200
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")


def check_scheme(path: str) -> None:
    """Raise PlanError for text that is not a path, and for a URL with an unknown scheme."""
    _check_path(path)
    if is_object_url(path):
        address(path.removesuffix("/"))
        return
    if scheme := _SCHEME.match(path):
        hint = "write the path of a file"
        raise PlanError(f"'{path}': nothing reads or writes {scheme[0]} URLs", hint=hint)


def check_name(file: str) -> None:
    """Raise InputError for a file whose name cannot be shown as text, for example in a LATE row."""
    try:
        file.encode()
    except UnicodeEncodeError:
        shown = os.fsencode(file).decode("utf-8", "backslashreplace")
        raise InputError("its name is not UTF-8; rename it", file=shown) from None


def check_not_read(
    program: Program, directory: str | Path, files_of: Callable[[Source], str | None]
) -> None:
    """Raise PlanError for an output whose path a STREAM reads, that is, if the glob of its source
    (`files_of`) matches it. Relative paths start at `directory`."""
    for output in program.outputs:
        folder = output.path.endswith("/")
        for source in program.sources:
            files = files_of(source)
            if files is None:
                continue
            if not is_object_url(files) and os.path.isdir(os.path.join(directory, files)):
                files = os.path.join(files, "*")
            if _reads(_parts(files, directory), _parts(output.path, directory), folder):
                raise PlanError(
                    f"OUTPUT {output.name} would write over '{output.path}', "
                    f"which STREAM {source.name} reads ('{source.path}')",
                    hint="write to another path",
                )


def check_apart(program: Program, directory: str | Path) -> None:
    """Raise PlanError for an output that another one would overwrite, or that lies in another one's
    folder."""
    seen: list[tuple[Output, tuple[str, ...]]] = []
    for output in program.outputs:
        here = _parts(output.path, directory)
        for other, there in seen:
            shorter = min(here, there, key=len)
            if here[: len(shorter)] == there[: len(shorter)]:
                raise PlanError(
                    f"OUTPUT {output.name} TO '{output.path}' and OUTPUT {other.name} TO "
                    f"'{other.path}' would write over each other",
                    hint="give each its own path",
                )
        seen.append((output, here))


def _check_path(path: str) -> None:
    refuse_secrets(path)
    if "\0" in path or not path:
        raise PlanError(f"invalid path '{path}'", hint="write the path of a file")


def _parts(path: str, directory: str | Path) -> tuple[str, ...]:
    _check_path(path)
    if is_object_url(path):
        return url_parts(path)
    parts = Path(os.path.realpath(os.path.join(directory, path))).parts
    if len(parts) > DEEPEST:
        hint = f"a path has {DEEPEST} parts at most"
        raise PlanError(f"'{path}' has {len(parts)} parts, with its directory", hint=hint)
    return parts


def url_parts(url: str) -> tuple[str, ...]:
    """Return the bucket of a URL, and the parts of its key between the slashes."""
    at = address(url.removesuffix("/"))
    return at.bucket, *at.key.split("/")


def matches(pattern: str, url: str) -> bool:
    """Tell whether a glob of URLs matches a URL, by the rules of file globs.

    >>> matches("s3://b/in/**/*.csv", "s3://b/in/a/b/x.csv"), matches("s3://b/*", "s3://b/a/x.csv")
    (True, False)
    """
    return _reads(url_parts(pattern), url_parts(url), False)


def at_directory(directory: str | Path, path: str) -> str:
    """Return the path with the directory before it, unless it is absolute."""
    return path if is_object_url(path) else str(Path(directory) / path)


def _reads(pattern: tuple[str, ...], path: tuple[str, ...], folder: bool) -> bool:
    """Tell whether a glob matches the path or, for a `folder`, could match something in it."""
    if not path:
        return folder or all(part == "**" for part in pattern)
    if not pattern:
        return False
    if pattern[0] == "**" and (
        _reads(pattern[1:], path, folder)
        or (path[0][0] != "." and _reads(pattern, path[1:], folder))
    ):
        return True
    return _names(pattern[0], path[0]) and _reads(pattern[1:], path[1:], folder)


def _names(pattern: str, name: str) -> bool:
    # As in `glob`: a hidden name needs its dot. A name also matches itself, brackets included.
    hidden = name[0] == "." and pattern[0] != "."
    return pattern == name or (not hidden and fnmatchcase(name, pattern))
