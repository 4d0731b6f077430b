"""Puts an output in its place in a bucket.

There is no rename in a bucket, but an object is there whole or not at all. So an output is made
elsewhere and put under its key at the end, when all outputs of the run are whole: a file of this
machine is uploaded, and an object that another machine has made beside the output (Spark's tasks
do, below `beside`) is copied by the store itself. What a killed run has left beside the output is
deleted by the next run that makes the same output in that way, once it is `LONG` old.

The digest stands in an object of its own. The old one is deleted before the output is replaced, and
the new one put after it: no old digest stands beside a new output.
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
    """Holds what is being made of an output in a bucket: files of this process in `folder`, objects
    of other processes below `beside`."""

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
        """Return the URL below which other processes make objects; all are deleted in the end."""
        delete_objects(left_over_objects(self._left, LONG))
        self._is_used_beside = True
        return self.beside

    def check_what_is_there(self) -> None:
        """Find nothing wrong: an object under the key is replaced."""

    @contextmanager
    def naming(self) -> Iterator[None]:
        """Turn what the system refuses into an error with the output's URL."""
        try:
            yield
        except OSError as error:
            raise RunError(f"cannot write '{self.shown}': {error.strerror or error}") from error

    def finish(self, output: str, sidecar: Sidecar) -> None:
        """Note that this file, or object beside the output, is whole, and the digest of it."""
        self._output, self._sidecar = output, encoded_sidecar(sidecar)

    def put_in_place(self) -> None:
        """Put what was finished under the output's key, and its digest beside it."""
        digest = sidecar_path(self.shown)
        delete_objects([digest])
        if is_object_url(self._output):
            copy_object(self._output, self.shown)
        else:
            upload_file(self._output, self.shown)
        put_object(digest, self._sidecar)
        self.remove()

    def remove(self) -> None:
        """Remove what is still here, if anything is."""
        self._own.remove()
        if self._is_used_beside:
            self._is_used_beside = False
            delete_objects([url for url, _ in list_objects(self.beside)])
