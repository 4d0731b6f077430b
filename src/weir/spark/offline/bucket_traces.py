"""Traces of streams in a bucket, for machines that share no folder.

A task writes its traces to a folder of its own and puts them in the bucket when it ends; a task of
the second run fetches those that it compares with.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence

from weir.files.buckets import download_object, upload_file
from weir.plan.urls import is_object_url
from weir.reliable.differences import RowDifference
from weir.reliable.traces import Trace, Traces


class BucketTraces(Traces):
    """Traces that are objects below a URL."""

    def __init__(self, url: str, *, compare: bool = False) -> None:
        self._own = tempfile.TemporaryDirectory(prefix="weir-traces.")
        super().__init__(self._own.name, compare=compare)
        self._url = url
        self._to_put: list[str] = []

    def of(self, stream: str, columns: Sequence[str]) -> Trace:
        if not self._compare:
            self._to_put.append(stream)
        else:
            path = os.path.join(self.folder, stream)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            download_object(f"{self._url}/{stream}", path)
        return super().of(stream, columns)

    def close(self) -> list[RowDifference]:
        with self._own:
            differences = super().close()
            for stream in self._to_put:
                upload_file(os.path.join(self.folder, stream), f"{self._url}/{stream}")
        return differences


def make_traces(place: str, *, compare: bool) -> Traces:
    """Make the traces of a task, in a folder that all machines see or below a URL."""
    kind = BucketTraces if is_object_url(place) else Traces
    return kind(place, compare=compare)
