"""Finds, reads, puts, copies and deletes objects in buckets, by obstore.

Schemes are `s3://`, `gs://`, `az://` and `abfss://`.

Contract
1. An object is named by its URL: the bucket, then the key, unescaped.
2. Each process opens a bucket by its own environment (`aws_profile.py`); only URLs travel.
3. An object appears whole or not at all; a large one is uploaded in parts that the store joins.
4. Reads use the version that was found first: every request names it, and every answer is compared
   with its size and tag. Another version is an InputError, and so is a truncated answer.
5. Temporary failures (no connection, 5xx, 429) are retried for about `PATIENCE`; a request times
   out after `ANSWER_WITHIN`. Other failures are raised at once. Errors name the bucket and the key
   (`bucket_errors.py`).
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import obstore
from obstore.exceptions import (
    BaseError,
    NotFoundError,
    PermissionDeniedError,
    PreconditionError,
)
from obstore.store import from_url

from weir.errors import InputError, PlanError, RunError
from weir.files.aws_profile import CommandKeys, profile_keys, profile_settings
from weir.files.bucket_errors import code_of, reason_of
from weir.files.obstore_use import note_use
from weir.plan.urls import BUCKET_SCHEMES, refuse_secrets

if TYPE_CHECKING:
    from obstore import ObjectMeta
    from obstore.store import ClientConfig, ObjectStore, RetryConfig

PATIENCE = timedelta(seconds=60)
ANSWER_WITHIN = timedelta(seconds=30)
COPY_WITHIN = timedelta(minutes=10)
"""Time limit of a copy: a store may copy for long before it answers."""
RETRIES = 100
PART_BYTES = 8 << 20
_MOST_PARTS = 9_000  # S3 takes at most 10 000 parts
COPIED_AT_ONCE = 5 << 30
"""The largest object that S3 copies by one request."""
_ENDPOINTS = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT")
_NO_KEY = re.compile(r"(^|/)\.{0,2}(/|$)|[\x00-\x1f\x7f-\x9f\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class ObjectVersion:
    """The version of an object: its size, and the store's tag."""

    size: int
    tag: str


@dataclass(frozen=True, slots=True)
class Address:
    """The bucket's URL and the key of an object."""

    bucket: str
    key: str


def address(url: str) -> Address:
    """Split a URL into bucket and key; raise PlanError if it names no object."""
    refuse_secrets(url)
    scheme, _, rest = url.partition("://")
    bucket, _, key = rest.partition("/")
    if scheme not in BUCKET_SCHEMES or not bucket:
        raise PlanError(f"'{url}' names no bucket", hint="write s3://BUCKET/KEY")
    if _NO_KEY.search(key):
        raise PlanError(
            f"'{url}' names no object",
            hint="a key has no empty parts, no `.` or `..` between slashes, no control characters",
        )
    return Address(f"{scheme}://{bucket}", key)


# --- requests ------------------------------------------------------------------------------


def find_object(url: str) -> ObjectVersion | None:
    """Return the current version of an object, or None. A missing bucket is an InputError."""
    at = address(url)
    with _reading(url):
        return _look(at)


def _look(at: Address) -> ObjectVersion | None:
    """Return the current version of an object, or None. A missing bucket raises obstore's own
    error."""
    store = _store(at.bucket)
    with suppress(NotFoundError, FileNotFoundError):
        return _version_of(obstore.head(store, at.key))
    try:  # a HEAD has no body that says whether the bucket or the key is missing
        return _version_of(obstore.get(store, at.key).meta)
    except (NotFoundError, FileNotFoundError) as error:
        if code_of(error) == "NoSuchBucket":
            raise
        return None


def list_objects(url: str) -> Iterator[tuple[str, ObjectVersion]]:
    """Yield all objects below a URL that ends in `/`, in any order."""
    at = address(f"{url}x")
    prefix = at.key[:-1]
    with _reading(url):
        for page in obstore.list(_store(at.bucket), prefix=prefix or None):
            for meta in page:
                yield f"{at.bucket}/{meta['path']}", _version_of(meta)


def read_object(url: str) -> bytes | None:
    """Return the bytes of a small object, or None if it does not exist."""
    at = address(url)
    with _reading(url):
        try:
            return bytes(obstore.get(_store(at.bucket), at.key).bytes())
        except (NotFoundError, FileNotFoundError) as error:
            if code_of(error) == "NoSuchBucket":
                raise
            return None


def download_object(url: str, path: str) -> None:
    """Download an object to a file; if it does not exist, create no file."""
    version = find_object(url)
    if version is None:
        return
    with open(path, "wb") as file:
        for start in range(0, version.size, PART_BYTES):
            file.write(read_range(url, version, start, min(start + PART_BYTES, version.size)))


def read_range(url: str, version: ObjectVersion, start: int, end: int) -> bytes:
    """Return the bytes [start, end) of exactly this version."""
    at = address(url)
    with _reading(url):
        answer = obstore.get(
            _store(at.bucket), at.key, options={"range": (start, end), "if_match": version.tag}
        )
        data = bytes(answer.bytes())
    if _version_of(answer.meta) != version:
        raise _changed(url)
    if len(data) != end - start:
        message = f"the answer was cut: expected {end - start} bytes, got {len(data)}"
        raise InputError(message, file=url)
    return data


def check_bucket(url: str) -> None:
    """Raise RunError if no object can be written there: the bucket is missing or does not answer.
    Permission is checked only by the write itself."""
    at = address(url)
    with _writing(url), suppress(PermissionDeniedError):  # a writer may lack read access
        _look(at)


def put_object(url: str, body: bytes) -> None:
    """Write a small object."""
    at = address(url)
    with _writing(url):
        obstore.put(_store(at.bucket), at.key, body)


def upload_file(path: str, url: str) -> None:
    """Upload a file to an object, which appears when it is whole."""
    at, size = address(url), os.path.getsize(path)
    with _writing(url):
        obstore.put(_store(at.bucket), at.key, Path(path), chunk_size=_part_bytes(size))


def copy_object(source: str, url: str) -> None:
    """Copy an object within its bucket; the copy appears when it is whole."""
    at, to = address(source), address(url)
    version = find_object(source)
    with _writing(url):
        store = _store(at.bucket)
        if version is not None and version.size > COPIED_AT_ONCE:
            parts = _part_bytes(version.size)
            stream = obstore.get(store, at.key, options={"if_match": version.tag}).stream(parts)
            with obstore.open_writer(store, to.key, buffer_size=parts) as writer:
                for part in stream:
                    writer.write(part)
        else:
            obstore.copy(_store(at.bucket, COPY_WITHIN), at.key, to.key)


def delete_objects(urls: Iterable[str]) -> None:
    """Delete those of the objects that exist."""
    for url in urls:
        at = address(url)
        with _writing(url, "delete"):
            try:
                obstore.delete(_store(at.bucket), at.key)
            except (NotFoundError, FileNotFoundError):
                continue


def left_over_objects(begin: str, age: float) -> Iterator[str]:
    """Yield the objects whose URLs begin with this text and are older than `age` seconds."""
    at = address(f"{begin}x")
    folder = at.key.rpartition("/")[0]
    before = datetime.now(UTC) - timedelta(seconds=age)
    with _reading(begin):
        for page in obstore.list(_store(at.bucket), prefix=folder or None):
            for meta in page:
                url = f"{at.bucket}/{meta['path']}"
                if url.startswith(begin) and meta["last_modified"] < before:
                    yield url


def _part_bytes(size: int) -> int:
    return max(PART_BYTES, -(-size // _MOST_PARTS))


def _version_of(meta: ObjectMeta) -> ObjectVersion:
    # Every store of these schemes gives a tag; if one does not, the object's time replaces it.
    return ObjectVersion(int(meta["size"]), meta["e_tag"] or str(meta["last_modified"]))


# --- buckets -------------------------------------------------------------------------------


def _store(bucket: str, answer_within: timedelta | None = None) -> ObjectStore:
    within = min(ANSWER_WITHIN, PATIENCE) if answer_within is None else answer_within
    return open_bucket(bucket, within, PATIENCE)


def open_bucket(url: str, answer_within: timedelta, patience: timedelta) -> ObjectStore:
    """Open a bucket (or the part of it below a key) for this process, with its current environment.
    Each request, and each piece of its answer, times out after `answer_within`; temporary failures
    are retried for `patience`."""
    note_use()
    names = ("AWS_", "AZURE_", "GOOGLE_", "HOME")
    environment = tuple(sorted((n, v) for n, v in os.environ.items() if n.startswith(names)))
    return _opened(url, os.getpid(), environment, RETRIES, answer_within, patience)


@lru_cache(maxsize=16)
def _opened(
    url: str,
    process: int,
    environment: tuple[tuple[str, str], ...],
    retries: int,
    answer_within: timedelta,
    patience: timedelta,
) -> ObjectStore:
    """Open a bucket. A forked process opens its own: connections are not shared."""
    variables = dict(environment)
    client: ClientConfig = {
        "connect_timeout": "5s",
        "read_timeout": answer_within,
        "timeout": max(COPY_WITHIN, answer_within),
    }
    retry: RetryConfig = {
        "max_retries": retries,
        "retry_timeout": patience,
        "backoff": {"max_backoff": timedelta(seconds=5)},
    }
    config: Any = None
    keys: CommandKeys | None = None
    if url.startswith("s3:"):
        _check_endpoint(variables)
        config, keys = profile_settings(variables), profile_keys(variables)
        # obstore ignores the variable when it gets options.
        client["allow_http"] = variables.get("AWS_ALLOW_HTTP", "").lower() in (
            "1",
            "true",
            "yes",
            "on",
        )
    return from_url(
        url, config=config, client_options=client, retry_config=retry, credential_provider=keys
    )


def _check_endpoint(variables: dict[str, str]) -> None:
    for name in _ENDPOINTS:
        endpoint = variables.get(name, "")
        if endpoint and not re.match(r"https?://[^/]", endpoint):
            raise RunError(
                f"invalid URL in {name}; expected one that begins with https:// or http://"
            )


# --- errors --------------------------------------------------------------------------------


@contextmanager
def _reading(url: str) -> Iterator[None]:
    """Turn errors of obstore into InputErrors that name the object."""
    try:
        yield
    except PreconditionError:
        raise _changed(url) from None
    except (BaseError, OSError, ValueError) as error:
        raise InputError(f"cannot be read: {_why(error, url)}", file=url) from None


@contextmanager
def _writing(url: str, action: str = "write") -> Iterator[None]:
    """Turn errors of obstore into RunErrors that name the object."""
    try:
        yield
    except (BaseError, OSError, ValueError) as error:
        raise RunError(f"cannot {action} '{url}': {_why(error, url)}") from None


def _changed(url: str) -> InputError:
    return InputError("it was replaced while it was read; run again", file=url)


def _why(error: Exception, url: str) -> str:
    return reason_of(error, address(f"{url}x" if url.endswith("/") else url).bucket).text
