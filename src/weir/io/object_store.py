"""The store of a live job in a folder, or in a bucket (`s3://`, `gs://`, `az://`), by obstore.

In a folder an object is written under another name, brought to the disk, and only then given its
own: so it is whole or not there, whatever happens (contract of `reliable/store.py`). Buckets do
that by themselves.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from uuid import uuid4

import obstore
from obstore.exceptions import AlreadyExistsError, BaseError, NotFoundError
from obstore.store import LocalStore, from_url

from weir.errors import RunError
from weir.reliable.store import Body, ObjectExists

_WRITING = ".writing"
"""A folder for what has no name yet; what is left there belongs to nobody."""


class ObjectStore:
    """See the module's docstring. `place` is a folder or a URL."""

    def __init__(self, place: str) -> None:
        self.place = place
        self._folder: Path | None = None
        if re.match(r"\w+://", place) and not place.startswith("file://"):
            try:
                self._store = from_url(place)
            except (BaseError, ValueError) as error:
                raise RunError(f"cannot use '{place}' as a store: {error}") from error
            return
        self._folder = Path(place.removeprefix("file://")).absolute()
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise RunError(f"cannot use '{place}' as a store: {error.strerror}") from error
        self._store = LocalStore(self._folder)

    def put(self, key: str, body: Body, *, new: bool = False) -> None:
        mode = "create" if new else "overwrite"
        try:
            if self._folder is None:
                obstore.put(self._store, key, body, mode=mode)  # type: ignore[arg-type]
            else:
                self._put_durably(self._folder, key, body, new=new)
        except AlreadyExistsError as error:
            raise ObjectExists(key) from error
        except (BaseError, OSError) as error:
            raise RunError(f"{key} cannot be written to '{self.place}': {error}") from error

    def _put_durably(self, folder: Path, key: str, body: Body, *, new: bool) -> None:
        written = f"{_WRITING}/{uuid4().hex}"
        (folder / _WRITING).mkdir(exist_ok=True)
        with open(folder / written, "xb") as file:
            file.write(body)
            file.flush()
            os.fsync(file.fileno())
        try:
            obstore.rename(self._store, written, key, overwrite=not new)
        except AlreadyExistsError:
            obstore.delete(self._store, written)
            raise
        _to_disk((folder / key).parent)

    def get(self, key: str) -> bytes | None:
        try:
            return bytes(obstore.get(self._store, key).bytes())
        except (NotFoundError, FileNotFoundError):
            return None
        except (BaseError, OSError) as error:
            raise RunError(f"{key} cannot be read from '{self.place}': {error}") from error

    def delete(self, keys: Iterable[str]) -> None:
        for key in keys:
            try:
                obstore.delete(self._store, key)
            except (NotFoundError, FileNotFoundError):
                continue
            except (BaseError, OSError) as error:
                raise RunError(f"{key} cannot be deleted in '{self.place}': {error}") from error

    def list(self, prefix: str = "") -> list[str]:
        return [key for key, _ in self.sizes(prefix)]

    def sizes(self, prefix: str = "") -> Sequence[tuple[str, int]]:
        """The objects whose names begin so, with their sizes."""
        folder = prefix.rsplit("/", 1)[0] if "/" in prefix else None
        try:
            found = [
                (str(meta["path"]), int(meta["size"]))
                for page in obstore.list(self._store, prefix=folder)
                for meta in page
            ]
        except (BaseError, OSError) as error:
            raise RunError(f"'{self.place}' cannot be listed: {error}") from error
        return sorted(
            (k, s) for k, s in found if k.startswith(prefix) and not k.startswith(_WRITING)
        )


def existing_store(place: str) -> ObjectStore:
    """A store that is there already: who only reads makes no folder."""
    if "://" not in place and not Path(place).is_dir():
        raise RunError(f"there is no store '{place}'")
    return ObjectStore(place)


def _to_disk(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
