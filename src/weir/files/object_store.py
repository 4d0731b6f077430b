"""Keeps the store of a live job in a folder or in a bucket.

Buckets (`s3://`, `gs://`, `az://`) are in `bucket_store.py`.

In a folder an object is written under another name, synced to disk, and then renamed to its own
name, so it is whole or not there, whatever happens (contract of `reliable/store.py`). Until then it
is in this process's own folder below `.writing`. If the write fails, it is removed. If the process
is killed, another process removes it: each checks for leftovers at its first write and once a
minute (`own_folder.py`). Buckets do all this by themselves. Failures of a folder count as
temporary: a full disk, a share that is not mounted.

Only the owner can read a store: folders have mode 0700, files 0600.
"""

from __future__ import annotations

import os
import re
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from uuid import uuid4

import obstore
from obstore.exceptions import AlreadyExistsError, BaseError, NotFoundError
from obstore.store import LocalStore

from weir.errors import RunError
from weir.files.bucket_store import BucketStore
from weir.files.obstore_use import note_use
from weir.files.own_folder import OwnFolder, file_time, remove_left_over
from weir.files.paths import DEEPEST
from weir.reliable.store import Body, ObjectExists, ObjectUnreadable

WRITING = ".writing"
"""The folder of objects that do not have their final names yet."""
SWEEP_EVERY = 60.0
PATIENCE = 60.0
"""How long a failing bucket is retried, in seconds."""
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_NO_KEY = re.compile(r"(^|/)(\.{0,2})(/|$)|[\x00-\x1f\x7f-\x9f\ud800-\udfff]")


class ObjectStore:
    """A store of objects in a folder or a bucket, by the contract of `reliable/store.py`.

    `location` is a folder or a URL. A missing folder is created, unless `make` is False (for
    readers). A failing bucket is retried for `patience` seconds, and `on_wait` is called with the
    reason.
    """

    def __init__(self, location: str, *, make: bool = True, patience: float = PATIENCE) -> None:
        self.location = location
        self.on_wait: Callable[[str], None] = _warn
        self._folder = folder_of(location)
        self._own: OwnFolder | None = None
        self._lock = threading.Lock()
        self._swept_at = 0.0
        self._bucket: BucketStore | None = None
        if self._folder is None:
            self._bucket = BucketStore(location, patience, lambda why: self.on_wait(why))
            return
        try:
            if make:
                self._folder.parent.mkdir(parents=True, exist_ok=True)
                self._folder.mkdir(0o700, exist_ok=True)
            elif not self._folder.is_dir():
                raise RunError(f"there is no store '{location}'")
            note_use()
            self._store = LocalStore(self._folder)
        except (BaseError, OSError, ValueError) as error:
            raise RunError(f"cannot use '{location}' as a store: {_why(error)}") from error

    def impatient(self) -> ObjectStore:
        """Return this store without retries, for a machine that retries by itself."""
        return self if self._bucket is None else ObjectStore(self.location, patience=0.0)

    def put(self, key: str, body: Body, *, new: bool = False) -> None:
        """Write an object; with `new`, raise ObjectExists if the key exists."""
        _check(key)
        if self._bucket is not None:
            self._bucket.put(key, body, new=new)
            return
        assert self._folder is not None
        try:
            self._put_durably(self._folder, key, body, new=new)
        except AlreadyExistsError as error:
            raise ObjectExists(key) from error
        except (BaseError, OSError) as error:
            raise RunError(f"cannot write {key} to '{self.location}': {_why(error)}") from error

    def check_conditions(self, key: str, body: Body) -> None:
        """Raise RunError if the store lets this key be created although it exists: some bucket
        servers ignore the condition. Folders never do."""
        if self._bucket is not None:
            self._bucket.check_conditions(key, body)

    def _put_durably(self, folder: Path, key: str, body: Body, *, new: bool) -> None:
        written = os.path.join(self._own_folder(folder), uuid4().hex)
        try:
            with open(os.open(written, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
                file.write(body)
                file.flush()
                os.fsync(file.fileno())
            _make_folders(folder, key)
            source = os.path.relpath(written, folder)
            obstore.rename(self._store, source, key, overwrite=not new)
        except BaseException:
            with suppress(OSError):  # the first error counts
                os.unlink(written)
            raise
        _to_disk((folder / key).parent)

    def _own_folder(self, folder: Path) -> str:
        """Return the folder in which this process writes; from time to time, remove leftovers of
        others."""
        with self._lock:  # several threads write
            if self._own is None or not os.path.isdir(self._own.path):
                self._leave()
                (folder / WRITING).mkdir(0o700, exist_ok=True)
                self._own = OwnFolder(str(folder / WRITING))
                self._swept_at = -SWEEP_EVERY
            if time.monotonic() - self._swept_at >= SWEEP_EVERY:
                self._swept_at = time.monotonic()
                remove_left_over(str(folder / WRITING), file_time(self._own.path))
            return self._own.path

    def close(self) -> None:
        """Remove this process's unfinished objects, and leftovers of others."""
        with self._lock, suppress(OSError):  # the next process removes what cannot be removed now
            if self._own is not None:
                remove_left_over(os.path.dirname(self._own.path), file_time(self._own.path))
            self._leave()

    def _leave(self) -> None:
        if self._own is not None:
            self._own.remove()
        self._own = None

    def get(self, key: str) -> bytes | None:
        """Return the bytes of an object, or None if it does not exist."""
        _check(key)
        if self._bucket is not None:
            return self._bucket.get(key)
        try:
            return bytes(obstore.get(self._store, key).bytes())
        except (NotFoundError, FileNotFoundError):
            return None
        except (BaseError, OSError) as error:
            message = f"cannot read {key} from '{self.location}': {_why(error)}"
            assert self._folder is not None
            raise (ObjectUnreadable if self._folder.is_dir() else RunError)(message) from error

    def delete(self, keys: Iterable[str]) -> None:
        """Delete those of the objects that exist."""
        all_keys = list(keys)
        for key in all_keys:
            _check(key)
        if self._bucket is not None:
            self._bucket.delete(all_keys)
            return
        for key in all_keys:
            try:
                obstore.delete(self._store, key)
            except (NotFoundError, FileNotFoundError):
                continue
            except (BaseError, OSError) as error:
                why = _why(error)
                raise RunError(f"cannot delete {key} in '{self.location}': {why}") from error

    def list(self, prefix: str = "") -> list[str]:
        """List the keys that begin with the prefix."""
        return [key for key, _ in self.sizes(prefix)]

    def sizes(self, prefix: str = "") -> Sequence[tuple[str, int]]:
        """List the objects whose keys begin with the prefix, with their sizes."""
        within = prefix.rsplit("/", 1)[0] if "/" in prefix else ""
        if self._bucket is not None:
            sizes = self._bucket.sizes(within)
        else:
            assert self._folder is not None
            try:
                sizes = list(_files(self._folder, within))
            except OSError as error:
                raise RunError(f"cannot list '{self.location}': {_why(error)}") from error
        return sorted((k, s) for k, s in sizes if k.startswith(prefix))


def _warn(why: str) -> None:
    warnings.warn(f"waiting for the store: {why}", RuntimeWarning, stacklevel=2)


def existing_store(location: str) -> ObjectStore:
    """Open a store that must exist; create nothing."""
    return ObjectStore(location, make=False)


def folder_of(location: str) -> Path | None:
    """Return the absolute path of a store in a folder; None for a bucket.

    >>> folder_of("s3://bucket/job"), folder_of("file:///var/job")
    (None, PosixPath('/var/job'))
    """
    url = _URL.match(location)
    if url is not None and url[0].lower() != "file://":
        return None
    if "\0" in location or not location:
        raise RunError(f"cannot use '{location}' as a store: not a path")
    folder = Path(location[len(url[0]) if url else 0 :]).absolute()
    if len(folder.parts) > DEEPEST:
        raise RunError(f"cannot use '{location}' as a store: its path has too many parts")
    return folder


def _check(key: str) -> None:
    """Reject a key that leads out of the store; keys may also come from the store's own objects."""
    if _NO_KEY.search(key):
        raise RunError(f"invalid object name '{key}' in a store")


def _why(error: Exception) -> str:
    """Return the error's message without obstore's debug part."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return str(error).split("\n\nDebug source", 1)[0].strip()


def _make_folders(folder: Path, key: str) -> None:
    """Create the folders of an object below the store's. A store that is gone is not created
    again."""
    for part in key.split("/")[:-1]:
        folder /= part
        folder.mkdir(0o700, exist_ok=True)


def _files(folder: Path, within: str) -> Iterator[tuple[str, int]]:
    """Yield the files below a folder of the store, with their sizes. obstore would refuse to list a
    folder with a file whose name is not valid text; here such names are escaped."""
    for path, folders, files in os.walk(folder / within, onerror=_unless_gone):
        if WRITING in folders and Path(path) == folder:
            folders.remove(WRITING)
        for name in files:
            file = os.path.join(path, name)
            with suppress(OSError):  # deleted meanwhile, or a link to nothing or to itself
                key = os.path.relpath(file, folder).encode("utf-8", "surrogateescape")
                yield key.decode("utf-8", "backslashreplace"), os.stat(file).st_size


def _unless_gone(error: OSError) -> None:
    """Raise the error, unless the folder is gone (so it holds nothing) or may not be read (so it is
    somebody else's)."""
    if not isinstance(error, FileNotFoundError | PermissionError):
        raise error


def _to_disk(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
