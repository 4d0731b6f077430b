"""Sources: which files a declared input has, and how each is read.

A path may be a glob; every matched file is one partition, in the order of names (by UTF-8
bytes of the whole path, so that no locale changes it). The ending says the format.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

from weir.errors import InputError
from weir.io.chunks import Partition
from weir.io.columnar import ArrowFile, ParquetFile
from weir.io.csv import CsvFile
from weir.io.jsonl import JsonLines
from weir.io.texts import Columns
from weir.plan.nodes import Source


class _Format(Protocol):
    def __call__(self, name: str, columns: Columns) -> Partition: ...


FORMATS: Mapping[str, _Format] = {
    ".jsonl": JsonLines,
    ".csv": CsvFile,
    ".parquet": ParquetFile,
    ".arrow": ArrowFile,
}


def open_source(source: Source, directory: str | Path = ".") -> list[Partition]:
    """The partitions of a source in order; relative paths start at `directory`."""
    return [_partition(source, name) for name in source_files(source.path, directory)]


def source_files(path: str, directory: str | Path = ".") -> Sequence[str]:
    """The files that a path names, in order; InputError when there are none."""
    full = os.path.join(directory, path)
    matched = [full] if os.path.isfile(full) else glob.glob(full, recursive=True)
    files = sorted((f for f in matched if os.path.isfile(f)), key=os.fsencode)
    if not files:
        raise InputError("no file matches", file=full)
    return files


def _partition(source: Source, name: str) -> Partition:
    ending = os.path.splitext(name)[1].lower()
    if ending not in FORMATS:
        known = ", ".join(FORMATS)
        raise InputError(f"unknown format `{ending}`; known are {known}", file=name)
    return FORMATS[ending](name, source.declared)
