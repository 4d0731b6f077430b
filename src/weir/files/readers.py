"""Finds the files of a declared input, and the reader of each.

A path may be a glob. Each matching file is one partition; their order is by the UTF-8 bytes of the
whole path, whatever the locale. Matching folders are left out; anything else that is not a file,
such as a pipe or a dangling link, is an error. The ending gives the format. The same holds for the
URLs of objects in buckets.
"""

from __future__ import annotations

import difflib
import glob
import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from weir.errors import InputError
from weir.files.buckets import ObjectVersion, find_object, list_objects
from weir.files.chunks import SourcePartition
from weir.files.columnar import ArrowFile, ParquetFile
from weir.files.compressed_files import COMPRESSED
from weir.files.csv import CsvFile
from weir.files.jsonl import JsonLines
from weir.files.paths import check_name, check_scheme, matches
from weir.plan.operators import Source
from weir.plan.urls import is_object_url

FORMATS: Mapping[str, type[JsonLines | CsvFile | ParquetFile | ArrowFile]] = {
    ".jsonl": JsonLines,
    ".csv": CsvFile,
    ".parquet": ParquetFile,
    ".arrow": ArrowFile,
}
_TEXTS = (".jsonl", ".csv")


def open_source(
    source: Source,
    directory: str | Path = ".",
    *,
    needed: Collection[str] | None = None,
    expected: Iterable[str] = (),
) -> list[SourcePartition]:
    """Return the partitions of a source in order; relative paths start at `directory`. `expected`
    is passed to `source_objects`."""
    if is_object_url(source.path):
        objects = source_objects(source.path, expected)
        return [open_partition(source, url, needed=needed, version=f) for url, f in objects]
    files = source_files(source.path, directory)
    return [open_partition(source, file, needed=needed) for file in files]


def open_partition(
    source: Source,
    file: str,
    *,
    needed: Collection[str] | None = None,
    root: str = "",
    version: ObjectVersion | None = None,
) -> SourcePartition:
    """Open one file of a source. Its chunks go to an `Ingress`; one at a time is in memory.

    `needed` are the columns to read (`plan/rewrites/pruning.py`), None for all; the ingress fills
    the others with NULL. A relative path starts at `root`. `version` is the version of an object in
    a bucket.
    """
    ending = ending_of(file)
    if ending is None:
        formats, extension = ", ".join(FORMATS), os.path.splitext(file)[1].lower()
        more = f"texts also with {' or '.join(COMPRESSED)}"
        raise InputError(f"unknown format `{extension}`; expected {formats} ({more})", file=file)
    limit = source.options.max_record
    return FORMATS[ending](file, source.declared, needed, root, limit, version, source.options.unit)


def ending_of(file: str) -> str | None:
    """Return the ending that gives a file's format, without that of its compression; None for an
    unknown format.

    >>> ending_of("a.csv.GZ"), ending_of("a.parquet.gz"), ending_of("a.txt")
    ('.csv', None, None)
    """
    plain, ending = os.path.splitext(file.lower())
    if ending in COMPRESSED:
        ending = os.path.splitext(plain)[1]
        return ending if ending in _TEXTS else None
    return ending if ending in FORMATS else None


def source_files(path: str, directory: str | Path = ".") -> Sequence[str]:
    """Return the files that a path names, in order; raise InputError if there are none."""
    check_scheme(path)
    full = os.path.join(directory, path)
    matched = [full] if os.path.isfile(full) else glob.glob(full, recursive=True)
    if not glob.has_magic(path) and os.path.isdir(full):
        matched = _files_of(full)
    files = sorted((f for f in matched if not os.path.isdir(f)), key=os.fsencode)
    if not files:
        raise InputError(f"no file matches{nearest(full)}", file=full)
    for file in files:
        check_name(file)
        if not os.path.isfile(file):
            raise InputError("not a file", file=file)
    return files


def _files_of(folder: str) -> list[str]:
    """Return the files of a folder, without hidden files and sidecars."""
    names = [n for n in os.listdir(folder) if not n.startswith((".", "_"))]
    files = [os.path.join(folder, n) for n in names if not n.endswith((".digest", ".crc"))]
    files = [f for f in files if not os.path.isdir(f)]
    if not files:
        raise InputError("the folder has no files", file=folder)
    for file in files:
        if ending_of(file) is None:
            hint = f"name those that are meant, as in '{folder}/*{next(iter(FORMATS))}'"
            raise InputError(
                f"every file in a folder is read, and this is not a data file; {hint}", file=file
            )
    return files


def nearest(path: str) -> str:
    """Describe what exists in place of a missing file."""
    folder, name = os.path.split(path)
    if glob.has_magic(path):
        return ""
    if folder and not os.path.isdir(folder):
        return f": there is no folder {folder}"
    with suppress(OSError):
        close = difflib.get_close_matches(name, os.listdir(folder or "."), n=1)
        return f"; did you mean `{close[0]}`?" if close else ""
    return ""


def source_objects(url: str, expected: Iterable[str] = ()) -> Sequence[tuple[str, ObjectVersion]]:
    """Return the objects that a URL names, in order, with their current versions; raise InputError
    if there are none. A listing may lag behind, so the `expected` URLs are looked up one by one."""
    check_scheme(url)
    version = find_object(url)
    if version is not None:
        return [(url, version)]
    fixed, magic, _ = _split_at_magic(url)
    objects = list_objects(fixed) if magic else ()
    listed = {name: version for name, version in objects if matches(url, name)}
    for name in set(expected) - listed.keys() if magic else ():
        if (late := find_object(name)) is not None:
            listed[name] = late
    matched = sorted(listed.items(), key=lambda o: o[0].encode())
    if not matched:
        raise InputError("no object matches" if magic else "there is no such object", file=url)
    return matched


def _split_at_magic(url: str) -> tuple[str, str, str]:
    """Split a URL around its first part that is a pattern.

    >>> _split_at_magic("s3://b/in/2*/x.csv")
    ('s3://b/in/', '2*', '/x.csv')
    """
    parts = url.split("/")
    at = next((i for i, part in enumerate(parts) if i > 2 and glob.has_magic(part)), len(parts))
    before = "".join(f"{part}/" for part in parts[:at])
    return before, "".join(parts[at : at + 1]), "".join(f"/{part}" for part in parts[at + 1 :])
