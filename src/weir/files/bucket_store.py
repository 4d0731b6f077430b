"""Keeps the objects of a live job's store in a bucket, by the contract of `reliable/store.py`.

Rules
1. A request is retried for `PATIENCE`, and times out after `ANSWER_WITHIN` without data
   (`LARGE_WITHIN` for a large object). Temporary failures are retried until the store's `patience`
   ends; every `TELL_EVERY` the reason is reported to whoever opened the store. The machines of a
   job retry by themselves, so their stores have no patience.
2. A permanent failure is `StoreRefuses`. A missing bucket is a permanent failure, not a missing
   object.
3. A new object is made by a conditional request (`If-None-Match: *`). `check_conditions` detects a
   server that ignores the condition, before a job relies on it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Literal, TypeVar

import obstore
from obstore.exceptions import AlreadyExistsError, BaseError, NotFoundError

from weir.errors import RunError
from weir.files.bucket_errors import CONFLICTS, code_of, reason_of
from weir.files.buckets import open_bucket
from weir.plan.urls import refuse_secrets
from weir.reliable.object_names import is_ephemeral
from weir.reliable.store import Body, ObjectExists, StoreRefuses

if TYPE_CHECKING:
    from obstore.store import ObjectStore as AnyStore

PATIENCE = timedelta(seconds=1)
RETRY, TELL_EVERY = 0.5, 5.0
ANSWER_WITHIN = timedelta(seconds=10)
LARGE_WITHIN = timedelta(seconds=30)
LARGE = 1 << 20
_PART_BYTES = 8 << 20
_T = TypeVar("_T")
_PARTS_AT_ONCE = 4


class BucketStore:
    """Reads and writes the objects below a bucket's URL, by the module's rules."""

    def __init__(self, url: str, patience: float, tell: Callable[[str], None]) -> None:
        refuse_secrets(url)
        self._url, self._patience, self._tell = url, patience, tell
        scheme, _, rest = url.partition("://")
        self._bucket = f"{scheme}://{rest.partition('/')[0]}"
        try:
            self._open(ANSWER_WITHIN)
        except (BaseError, OSError, ValueError) as error:
            why = reason_of(error, self._bucket).text
            raise RunError(f"cannot use '{url}' as a store: {why}") from None

    def put(self, key: str, body: Body, *, new: bool) -> None:
        self._patiently(lambda: self._put(key, body, new))

    def _put(self, key: str, body: Body, new: bool) -> None:
        mode: Literal["create", "overwrite"] = "create" if new else "overwrite"
        store = self._open(LARGE_WITHIN if len(body) > LARGE else ANSWER_WITHIN)
        with self._naming(f"cannot write {key} to '{self._url}'"):
            try:
                obstore.put(
                    store,
                    key,
                    body,
                    mode=mode,
                    use_multipart=False if new else None,
                    chunk_size=_PART_BYTES,
                    max_concurrency=_PARTS_AT_ONCE,
                )
            except AlreadyExistsError as error:
                if not new or code_of(error) in CONFLICTS:
                    raise
                raise ObjectExists(key) from None

    def get(self, key: str) -> bytes | None:
        return self._patiently(lambda: self._get(key))

    def _get(self, key: str) -> bytes | None:
        with self._naming(f"cannot read {key} from '{self._url}'"):
            try:
                return bytes(obstore.get(self._open(ANSWER_WITHIN), key).bytes())
            except (NotFoundError, FileNotFoundError) as error:
                if code_of(error) == "NoSuchBucket":
                    raise
                return None

    def delete(self, keys: Iterable[str]) -> None:
        """Delete these objects: all checkpoints and segments together, in any order, then the
        others one after the other."""
        all_keys = list(keys)
        loose = [key for key in all_keys if is_ephemeral(key)]
        if loose:
            self._patiently(lambda: self._delete(loose))
        for key in all_keys:
            if not is_ephemeral(key):
                self._patiently(partial(self._delete, key))

    def _delete(self, what: str | Sequence[str]) -> None:
        named = what if isinstance(what, str) else "objects"
        with self._naming(f"cannot delete {named} in '{self._url}'"):
            try:
                obstore.delete(self._open(ANSWER_WITHIN), what)
            except (NotFoundError, FileNotFoundError) as error:
                if code_of(error) == "NoSuchBucket":
                    raise

    def sizes(self, within: str) -> Sequence[tuple[str, int]]:
        """List the objects below a key, with their sizes."""
        return self._patiently(lambda: self._sizes(within))

    def _sizes(self, within: str) -> Sequence[tuple[str, int]]:
        with self._naming(f"cannot list '{self._url}'"):
            return [
                (str(meta["path"]), int(meta["size"]))
                for page in obstore.list(self._open(ANSWER_WITHIN), prefix=within or None)
                for meta in page
            ]

    def check_conditions(self, key: str, body: Body) -> None:
        """Raise RunError if the server lets this key be created although it exists."""
        try:
            self.put(key, body, new=True)
        except ObjectExists:
            return
        raise StoreRefuses(
            f"'{self._url}' cannot be a store: its server does not honour conditional requests "
            "(If-None-Match), so two drivers could run one job; use a bucket that does, or a folder"
        )

    def _patiently(self, work: Callable[[], _T]) -> _T:
        """Retry until it succeeds, fails permanently, or patience ends."""
        began = told_at = time.monotonic()
        while True:
            try:
                return work()
            except (ObjectExists, StoreRefuses):
                raise
            except RunError as error:
                now = time.monotonic()
                if now - began >= self._patience:
                    raise
                if now - told_at >= TELL_EVERY:
                    told_at = now
                    self._tell(f"{error} (for {now - began:.0f} s)")
            time.sleep(RETRY)

    def _open(self, answer_within: timedelta) -> AnyStore:
        return open_bucket(self._url, answer_within, PATIENCE)

    @contextmanager
    def _naming(self, what: str) -> Iterator[None]:
        """Turn errors of obstore into errors that name the object and the store: StoreRefuses for
        permanent failures, RunError for temporary ones."""
        try:
            yield
        except (BaseError, OSError, ValueError) as error:
            reason = reason_of(error, self._bucket)
            error_class = StoreRefuses if reason.lasts else RunError
            raise error_class(f"{what}: {reason.text}") from None
