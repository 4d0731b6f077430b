"""Writes the outputs of finite runs: sorted files, byte-identical when their rows are equal.

Contract
1. Rows have the columns `vs`, `ve`, then the payload, and are sorted by (vs, ve, payload left to
   right). An open end is NULL and comes last among equal starts. Every row group (Parquet) or batch
   (Arrow) except the last has `GROUP_ROWS` rows.
2. A path that ends in `/` is a folder with one sorted Parquet part for each vertex.
3. Nothing appears at the path before `close`: everything is written beside it and then renamed.
   Without `close`, or after `abort`, the path keeps what it had. Several outputs are all finished
   first, and then renamed one right after the other (`put_all_in_place`). If a run is killed, the
   next run that writes beside its files removes them (`own_folder.py`). A bucket has no rename: a
   whole object is put under its key (`bucket_staging.py`).
4. Each output has a digest file; see `sidecar.py`.
5. Memory is bounded by `memory` bytes and some blocks; beyond that rows wait in files.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol
from urllib.parse import quote, unquote_to_bytes

import pyarrow as pa

from weir.errors import RunError
from weir.events.batch import Batch, concat_batches, times
from weir.files.bucket_staging import BucketStaging
from weir.files.own_folder import Owner, OwnFolder, file_time, remove_left_over
from weir.files.sidecar import DIGEST_NAME, Sidecar, make_sidecar, sidecar_path, write_sidecar
from weir.files.sinks import SINKS, sink_format
from weir.files.sorted_runs import SortedRuns, merge_runs
from weir.plan.schema import Schema
from weir.plan.urls import is_object_url
from weir.reliable.digest import Digest

GROUP_ROWS = 65_536
DEFAULT_MEMORY = 256 << 20
_ASIDE = "old"
"""The folder that is being replaced, while its replacement is renamed."""


@dataclass(frozen=True, slots=True)
class OutputForm:
    """The columns and the format (by its ending) of an output's files.

    `lifetime=False` leaves vs and ve out (the BAD stream's rows have none).
    """

    ending: str
    schema: Schema
    lifetime: bool = True

    def write(self, path: str, batches: Iterator[Batch]) -> None:
        """Write a file of these rows, which must be sorted already."""
        sink = SINKS[self.ending](path, pa.schema(self.columns))
        try:
            for group in _groups(batches):
                sink.write(self.record(group))
        finally:
            sink.close()

    @property
    def columns(self) -> Sequence[tuple[str, pa.DataType]]:
        """Return all columns of the file."""
        time = self.schema.time
        lifetime = [("vs", time), ("ve", time)] if self.lifetime else []
        return [*lifetime, *self.schema.columns]

    def record(self, rows: Batch) -> pa.RecordBatch:
        """Return rows as a record batch with the file's columns."""
        time = self.schema.time
        lifetime = [times(rows.vs, time), times(rows.ve, time)] if self.lifetime else []
        return pa.RecordBatch.from_arrays(
            [*lifetime, *rows.columns], schema=pa.schema(self.columns)
        )

    def sidecar(self, digest: Digest) -> Sidecar:
        """Return the contents of the digest file of an output with this digest."""
        return make_sidecar(digest, self.schema, self.lifetime)


class OutputStaging(Protocol):
    """Collects the files of an output, and puts the finished output in its place."""

    @property
    def folder(self) -> str:
        """The folder on this machine in which files are written."""
        ...

    @property
    def shown(self) -> str:
        """The path as the user wrote it."""
        ...

    def check_what_is_there(self) -> None:
        """Raise RunError if the path has something that an output does not replace."""
        ...

    def naming(self) -> AbstractContextManager[None]:
        """Turn errors of the system into RunErrors that name the output's path."""
        ...

    def finish(self, output: str, sidecar: Sidecar) -> None:
        """Note the finished output, and the digest file that goes with it."""
        ...

    def put_in_place(self) -> None:
        """Move the finished output to its path."""
        ...

    def remove(self) -> None:
        """Remove whatever is left of the staging."""
        ...


def make_staging(path: str | Path) -> Staging | BucketStaging:
    """Begin to write an output: in a folder beside its path, or for a bucket."""
    return BucketStaging(str(path)) if is_object_url(str(path)) else Staging(path)


class Staging:
    """A folder beside an output's path in which the output is written before it is renamed to its
    path."""

    def __init__(self, path: str | Path) -> None:
        self._shown_path = str(path)
        self._path = os.path.abspath(path)
        self._output = ""
        self.check_what_is_there()
        parent, name = os.path.split(self._path)
        with self.naming():
            os.makedirs(parent, exist_ok=True)
            self._own = OwnFolder(parent, f".{name}.", quote(os.fsencode(name)))
            self.folder = self._own.path
            remove_left_over(parent, file_time(self.folder), _bring_back)

    def check_what_is_there(self) -> None:
        """Raise RunError if the path is a folder with anything but output files: only a folder of
        output files is replaced."""
        if not os.path.isdir(self._path):
            return
        if not self._shown_path.endswith("/"):
            raise RunError(f"cannot write '{self._shown_path}': it is a folder")
        strange = [n for n in sorted(os.listdir(self._path)) if not _is_of_output(n)]
        if strange:
            raise RunError(
                f"cannot write '{self._shown_path}': the folder has other files, such as "
                f"{strange[0]}; "
                "an output replaces the whole folder, so give it one of its own"
            )

    @contextmanager
    def naming(self) -> Iterator[None]:
        """Turn errors of the system into RunErrors that name the output's path, the only one the
        user knows."""
        try:
            yield
        except OSError as error:
            under_a_file = isinstance(error, FileExistsError | NotADirectoryError)
            why = "a part of its path is a file, not a folder" if under_a_file else error.strerror
            raise RunError(f"cannot write '{self._shown_path}': {why or error}") from error
        except RecursionError:  # os.makedirs recurses, once for each part
            raise RunError(
                f"cannot write '{self._shown_path}': its path has too many parts"
            ) from None

    @property
    def shown(self) -> str:
        """Return the path as the user wrote it."""
        return self._shown_path

    def finish(self, output: str, sidecar: Sidecar) -> None:
        """Note that this file or folder is whole, and write the digest file that goes with it."""
        with self.naming():
            write_sidecar(output, sidecar)
        self._output = output

    def put_in_place(self) -> None:
        """Rename the finished output to its path, and remove the staging folder."""
        output = self._output
        with self.naming():
            if os.path.isdir(output):
                self._replace_folder(output)
            else:
                # In this order, an interruption never leaves an old digest beside a new file.
                Path(sidecar_path(self._path)).unlink(missing_ok=True)
                os.replace(output, self._path)
                os.replace(sidecar_path(output), sidecar_path(self._path))
            self.remove()

    def _replace_folder(self, output: str) -> None:
        """Replace a folder in two steps: rename the old one away, then rename the new one to the
        path. If the second step fails, rename the old one back."""
        aside = os.path.join(self.folder, _ASIDE)
        if not os.path.isdir(self._path):
            os.replace(output, self._path)
            return
        os.rename(self._path, aside)
        try:
            os.replace(output, self._path)
        except BaseException:
            os.rename(aside, self._path)
            raise

    def remove(self) -> None:
        """Remove whatever is left of the staging."""
        self._own.remove()


def _bring_back(folder: str, owner: Owner) -> None:
    """Rename back an old output that its run had renamed away when it was killed."""
    path = os.path.join(os.fsencode(os.path.dirname(folder)), unquote_to_bytes(owner.purpose))
    aside = os.path.join(folder, _ASIDE)
    if os.path.isdir(aside) and owner.purpose and not os.path.lexists(path):
        os.rename(aside, path)


def put_all_in_place(outputs: Sequence[OutputStaging]) -> None:
    """Rename finished outputs to their paths, after checking all paths once more. No file system
    renames several at once: if one fails, those before it stay in place, and the error lists
    them."""
    for output in outputs:
        output.check_what_is_there()
    placed: list[str] = []
    for output in outputs:
        try:
            output.put_in_place()
        except RunError as error:
            if not placed:
                raise
            names = ", ".join(f"'{path}'" for path in placed)
            raise RunError(f"{error}; of this run's outputs {names} are in place") from error
        placed.append(output.shown)


class OutputWriter:
    """Writes one OUTPUT from the rows of all vertices of its stage, in any order."""

    def __init__(
        self,
        path: str | Path,
        schema: Schema,
        vertices: int = 1,
        *,
        lifetime: bool = True,
        memory: int = DEFAULT_MEMORY,
    ) -> None:
        self._is_folder = str(path).endswith("/")
        self._form = OutputForm(sink_format(str(path)), schema, lifetime)
        self._memory = memory
        self._staging: OutputStaging = make_staging(path)
        folder = self._staging.folder
        self._runs = [SortedRuns(folder, f"run-{v}", schema.types) for v in range(vertices)]

    def write(self, vertex: int, batch: Batch) -> None:
        """Add rows of a vertex."""
        self._runs[vertex].add(batch)
        if sum(runs.held_bytes for runs in self._runs) > self._memory:
            with self._staging.naming():
                max(self._runs, key=lambda runs: runs.held_bytes).spill()

    def close(self, digest: Digest) -> None:
        """Finish the output and put it in place."""
        put_all_in_place([self.finish(digest)])

    def finish(self, digest: Digest) -> OutputStaging:
        """Sort and write the rows; `digest` is that of all rows. The caller puts the returned
        staging in place."""
        output = os.path.join(self._staging.folder, "output")
        with self._staging.naming():
            if self._is_folder:
                os.mkdir(output)
                for vertex, runs in enumerate(self._runs):
                    self._write_file(os.path.join(output, part_name(vertex)), [runs])
            else:
                self._write_file(output, self._runs)
        self._staging.finish(output, self._form.sidecar(digest))
        return self._staging

    def abort(self) -> None:
        """Discard everything; leave the existing file."""
        self._staging.remove()

    def _write_file(self, path: str, parts: Sequence[SortedRuns]) -> None:
        runs = [run for part in parts for run in part.run_iterators()]
        self._form.write(path, merge_runs(runs, self._staging.folder))


def _is_of_output(name: str) -> bool:
    return name == DIGEST_NAME or re.fullmatch(r"part-\d+\.parquet", name) is not None


def part_name(number: int) -> str:
    """Return the name of a part's file in its folder."""
    return f"part-{number:05}.parquet"


def _groups(batches: Iterator[Batch]) -> Iterator[Batch]:
    """Yield the same rows in batches of `GROUP_ROWS`; the last may be smaller."""
    held: list[Batch] = []
    count = 0
    for batch in batches:
        held.append(batch)
        count += len(batch)
        if count < GROUP_ROWS:
            continue
        rows = concat_batches(held)
        whole = count - count % GROUP_ROWS
        for start in range(0, whole, GROUP_ROWS):
            yield rows.slice(start, start + GROUP_ROWS)
        held, count = [rows.slice(whole, count)], count - whole
    if count:
        yield concat_batches(held)
