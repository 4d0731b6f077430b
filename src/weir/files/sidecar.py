"""Writes and reads digest files: small JSON files with the digest of an output.

Contract
1. A digest file is beside an output file (`counts.parquet.digest`), or inside an output folder
   (`_digest`).
2. It has the digest, the number of rows, and the columns with the types with which text files are
   read back. The same output gives the same bytes.
3. It is renamed to its path together with the output. If that is interrupted, an output may lack
   its digest; an older output's digest never stays beside a newer output.
"""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

from weir.errors import InputError, PlanError
from weir.events.types import parse_stored_type, stored_type_name
from weir.files.buckets import read_object
from weir.plan.schema import Schema
from weir.plan.urls import is_object_url
from weir.reliable.digest import Digest

DIGEST_NAME = "_digest"
"""The digest file of a folder."""


class Sidecar(msgspec.Struct, frozen=True):
    """The contents of a digest file. `lifetime`: whether the rows have the columns vs and ve."""

    digest: str
    rows: int
    time: str
    lifetime: bool
    columns: tuple[tuple[str, str], ...]


def make_sidecar(digest: Digest, schema: Schema, lifetime: bool) -> Sidecar:
    columns = tuple((name, stored_type_name(dtype)) for name, dtype in schema.columns)
    return Sidecar(str(digest), digest.count, stored_type_name(schema.time), lifetime, columns)


def sidecar_path(output: str) -> str:
    """Return the path of an output's digest file; an output that is a folder must exist."""
    return os.path.join(output, DIGEST_NAME) if os.path.isdir(output) else f"{output}.digest"


def encoded_sidecar(sidecar: Sidecar) -> bytes:
    return msgspec.json.encode(sidecar) + b"\n"


def write_sidecar(output: str, sidecar: Sidecar) -> None:
    Path(sidecar_path(output)).write_bytes(encoded_sidecar(sidecar))


_decoder = msgspec.json.Decoder(Sidecar)


def read_small_file(path: str) -> bytes | None:
    """Return the bytes of a file or of an object in a bucket, or None if it does not exist."""
    if is_object_url(path):
        return read_object(path)
    try:
        return Path(path).read_bytes()
    except FileNotFoundError:
        return None


def read_sidecar(output: str) -> Sidecar | None:
    """Read the digest file of an output, or return None if it has none. Raise InputError if it
    cannot be understood."""
    path = sidecar_path(output)
    try:
        text = read_small_file(path)
        return None if text is None else _decoder.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InputError(f"not a digest file: {error}", file=path) from None


def sidecar_schema(output: str, sidecar: Sidecar) -> Schema:
    """Return the columns as Arrow types."""
    try:
        columns = tuple((name, parse_stored_type(written)) for name, written in sidecar.columns)
        return Schema(columns, parse_stored_type(sidecar.time))
    except PlanError as error:
        raise InputError(str(error), file=sidecar_path(output)) from None
