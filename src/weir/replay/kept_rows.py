"""Checks that a file still holds the rows that were written to it, before it is used again."""

from __future__ import annotations

from weir.errors import InputError
from weir.files.output_diff import total_digest
from weir.files.saved_outputs import open_outputs


def rows_differ(path: str, digest: str) -> str:
    """Describe how the rows of a file differ from a digest; empty if they do not."""
    try:
        (saved,) = open_outputs([path])
        actual = str(total_digest(saved, lambda rows: None))
    except InputError as error:
        return str(error)
    return "" if actual == digest else f"{path}: its rows have the digest {actual}, not {digest}"
