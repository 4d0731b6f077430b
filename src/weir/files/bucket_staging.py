"""Builds an output for a bucket, and puts it under its key when it is whole.

A bucket cannot rename, but an object appears whole or not at all. So each output is written
elsewhere and put under its key at the end, when all outputs of the run are whole. A local file is
uploaded. An object that another machine wrote beside the output (Spark's tasks do, below `beside`)
is copied by the store itself. If a run is killed, its objects beside the output stay; the next run
that writes the same output in this way deletes them once they are `LONG` old.

The digest is an object of its own. The old digest is deleted before the output is replaced, and the
new one is written after it, so no old digest stands beside a new output.
"""

from __future__ import annotations

import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager

from weir.errors import RunError
from weir.files.buckets import (
    address,
    check_bucket,
    copy_object,
    delete_objects,
    left_over_objects,
    list_objects,
    put_object,
    upload_file,
)
from weir.files.own_folder import ENDING, LONG, OwnFolder, file_time, remove_left_over
from weir.files.sidecar import Sidecar, encoded_sidecar, sidecar_path
from weir.plan.urls import is_object_url


class BucketStaging:
    """Collects the parts of an output for a bucket: files of this process in `folder`, objects of
    other processes below `beside`."""

    def __init__(self, url: str) -> None:
        self.shown = url
        at = address(url)
        self._output, self._sidecar = "", b""
        check_bucket(url)
        folder, slash, name = at.key.rpartition("/")
        self._left = f"{at.bucket}/{folder}{slash}.{name}."
        self.beside = f"{self._left}{uuid.uuid4().hex}{ENDING}/"
        self._is_used_beside = False
        with self.naming():
            parent = tempfile.gettempdir()
            self._own = OwnFolder(parent, "weir-output.")
            self.folder = self._own.path
            remove_left_over(parent, file_time(self.folder))

    def use_beside(self) -> str:
        """Return the URL below which other processes write objects; `remove` deletes them all."""
        delete_objects(left_over_objects(self._left, LONG))
        self._is_used_beside = True
        return self.beside

    def check_what_is_there(self) -> None:
        """Do nothing: an object under the key is replaced."""

    @contextmanager
    def naming(self) -> Iterator[None]:
        """Turn errors of the system into RunErrors that name the output's URL."""
        try:
            yield
        except OSError as error:
            raise RunError(f"cannot write '{self.shown}': {error.strerror or error}") from error

    def finish(self, output: str, sidecar: Sidecar) -> None:
        """Note that this file, or this object beside the output, is whole, and note its digest."""
        self._output, self._sidecar = output, encoded_sidecar(sidecar)

    def put_in_place(self) -> None:
        """Put the finished output under its key, and its digest beside it."""
        digest = sidecar_path(self.shown)
        delete_objects([digest])
        if is_object_url(self._output):
            copy_object(self._output, self.shown)
        else:
            upload_file(self._output, self.shown)
        put_object(digest, self._sidecar)
        self.remove()

    def remove(self) -> None:
        """Remove whatever is left of the staging."""
        self._own.remove()
        if self._is_used_beside:
            self._is_used_beside = False
            delete_objects([url for url, _ in list_objects(self.beside)])
