"""Records the progress of a replay in `DIR/.replay`, so that no finished batch runs again.

    lock           held (`flock`) by the process that replays
    run.json       what is replayed: the app's code, logs, parameters, options, each by its name
    cuts.json      where the logs are cut (`batch_cuts.py`)
    00000/ …       a finished batch: what was emitted, the state after it, `batch.json`
    00001.part/    an unfinished batch; ignored
    report.json    the replay is finished, and the outputs are in place; the batches are deleted

Rules
1. `run.json` is written first. A replay that finds finished batches of a different replay is
   refused, because these would not fit its own. The error names the parts that changed.
2. Every file and folder gets its name after all of it has been written to disk
   (`durable_files.py`). So finished batches are complete even if the process is killed.
3. Files of an earlier process are used if their rows have the recorded digests. Each JSON file has
   a hash of its contents, so damage and edits are detected.
4. Only the states of the last finished batch are needed; older ones are removed.
"""

from __future__ import annotations

import hashlib
import os
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import msgspec

from weir.errors import PlanError, RunError
from weir.plan.usercode.code_fingerprint import changes
from weir.replay.batch_cuts import LogCuts
from weir.replay.durable_files import remove_folder, rename_durably, rows_differ, write_durably
from weir.replay.finished_replay import FinishedReplay

if sys.platform != "win32":
    import fcntl

NAME = ".replay"
STATE, EMITTED = "state", "emitted"
_RUN, _CUTS, _BATCH, _REPORT = "run.json", "cuts.json", "batch.json", "report.json"
_LOCK = "lock"
COMPILED = "what the handlers compile to (code, and values that it reads)"
"""The part with changes that no other part shows, as of a constant from the environment."""


class MadeFile(msgspec.Struct, frozen=True):
    """A file of a finished batch: its path in the batch, its rows and its digest."""

    path: str
    rows: int
    digest: str


class FinishedBatch(msgspec.Struct, frozen=True):
    """The files of a finished batch, and the number of its events.

    `emitted` has the emitted rows by variant and name, `states` the states after the batch by
    variant and state. Variants may share files.
    """

    events: int
    emitted: dict[str, MadeFile]
    states: dict[str, MadeFile]


class ReplayRecord(msgspec.Struct, frozen=True):
    """The contents of `run.json`: what is replayed, part by part."""

    parts: dict[str, str]
    format: int = 4


class SealedRecord(msgspec.Struct, frozen=True):
    """One of the JSON files: its contents, and their hash."""

    sha256: str
    says: msgspec.Raw


KeptRecord = TypeVar("KeptRecord")

_BATCH_NAME = re.compile(r"(\d{5,})(\.part)?")
_sealed_decoder = msgspec.json.Decoder(SealedRecord)
_run_decoder = msgspec.json.Decoder(ReplayRecord)
_cuts_decoder = msgspec.json.Decoder(LogCuts)
_batch_decoder = msgspec.json.Decoder(FinishedBatch)
_report_decoder = msgspec.json.Decoder(FinishedReplay)


@dataclass(frozen=True, slots=True)
class RunFolder:
    """The `.replay` folder of a replay; see the module's rules."""

    path: Path

    def begin(self, parts: Mapping[str, str]) -> None:
        """Record what is replayed; PlanError if the folder has finished work of another replay."""
        now = ReplayRecord(dict(parts))
        file = self.path / _RUN
        if not file.exists() and self._has_finished:
            raise RunError(
                f"'{file}', which lists what is finished here, is missing; {self._way_out}"
            )
        differences = self._changes(now) if file.exists() else ["it is new"]
        if differences and not self._has_finished:
            self.forget()
            write_durably(file, _sealed(now))
        elif differences:
            raise PlanError(
                f"'{self.path}' holds another replay: {', '.join(differences)}",
                hint="choose another --out, or delete that folder with --fresh",
            )

    def _changes(self, now: ReplayRecord) -> list[str]:
        before = self._read(self.path / _RUN, _run_decoder)
        differences = changes(before.parts, now.parts)
        compiled = f"{COMPILED} changed"
        if len(differences) > 1 and compiled in differences:  # the other differences say why
            differences.remove(compiled)
        if before.format != now.format:
            differences.append("it was begun by another version of Weir")
        return differences

    @property
    def _has_finished(self) -> bool:
        """Whether a batch or the whole replay is finished here."""
        return (self.path / _REPORT).exists() or self.finished(0) is not None

    def forget(self) -> None:
        """Remove everything in the folder except the lock."""
        self._remove_batches()
        for inside in self.path.iterdir():
            if inside.name != _LOCK:
                remove_folder(inside)

    def forget_end(self) -> None:
        """Remove the record of the finished replay, after any batches that are left."""
        self._remove_batches()
        (self.path / _REPORT).unlink()

    def _remove_batches(self) -> None:
        """Remove the batches, the last one first, so that those left by a kill are complete."""
        batches = [(m, p) for p in self.path.iterdir() if (m := _BATCH_NAME.fullmatch(p.name))]
        for _, folder in sorted(batches, key=lambda one: int(one[0][1]), reverse=True):
            remove_folder(folder)

    @property
    def cuts(self) -> LogCuts | None:
        """Where the logs are cut, if an earlier process cut them."""
        file = self.path / _CUTS
        return self._read(file, _cuts_decoder) if file.exists() else None

    def keep_cuts(self, cuts: LogCuts) -> None:
        write_durably(self.path / _CUTS, _sealed(cuts))

    @property
    def report(self) -> FinishedReplay | None:
        """The record of the finished replay, if there is one."""
        file = self.path / _REPORT
        return self._read(file, _report_decoder) if file.exists() else None

    def finished(self, number: int) -> FinishedBatch | None:
        """Return the files of a batch, if it is finished."""
        file = self.batch(number) / _BATCH
        if file.exists():
            return self._read(file, _batch_decoder)
        if os.path.lexists(self.batch(number)):
            raise RunError(
                f"'{file}', which lists what the batch wrote, is missing; {self._way_out}"
            )
        return None

    def check(self, number: int, finished: FinishedBatch) -> None:
        """Raise RunError if the files of a finished batch from an earlier process have changed."""
        files = [file for file in finished.emitted.values() if file.rows]
        if self.finished(number + 1) is None:  # otherwise, the states are not needed
            files += finished.states.values()
        for path, digest in dict.fromkeys((file.path, file.digest) for file in files):
            if problem := rows_differ(str(self.batch(number) / path), digest):
                raise RunError(f"a finished batch was changed: {problem}; {self._way_out}")

    def batch(self, number: int) -> Path:
        """Return the folder of a finished batch."""
        return self.path / f"{number:05}"

    def new_batch(self, number: int) -> Path:
        """Create the folder that a batch is written to."""
        part = self.path / f"{number:05}.part"
        remove_folder(part)
        for folder in (EMITTED, STATE):
            (part / folder).mkdir(parents=True)
        return part

    def finish_batch(self, number: int, finished: FinishedBatch) -> None:
        """Record that a batch is finished; the states before it are then removed."""
        part = self.path / f"{number:05}.part"
        (part / _BATCH).write_bytes(_sealed(finished))
        rename_durably(part, self.batch(number))
        if number:
            remove_folder(self.batch(number - 1) / STATE)

    def finish(self, done: FinishedReplay) -> None:
        """Record that the replay is finished, and remove the batches."""
        write_durably(self.path / _REPORT, _sealed(done))
        self._remove_batches()

    @property
    def _way_out(self) -> str:
        return f"delete '{self.path}' with --fresh to run everything again"

    def _read(self, file: Path, decoder: msgspec.json.Decoder[KeptRecord]) -> KeptRecord:
        try:
            sealed = _sealed_decoder.decode(file.read_bytes())
            if hashlib.sha256(sealed.says).hexdigest() != sealed.sha256:
                raise RunError(f"'{file}' was changed; {self._way_out}")
            return decoder.decode(sealed.says)
        except OSError as error:
            raise RunError(f"'{file}' cannot be read: {error.strerror}; {self._way_out}") from None
        except ValueError as error:  # not JSON, other fields, not UTF-8
            raise RunError(f"'{file}' cannot be read: {error}; {self._way_out}") from None


def _sealed(record: msgspec.Struct) -> bytes:
    says = msgspec.json.encode(record)
    sealed = SealedRecord(hashlib.sha256(says).hexdigest(), msgspec.Raw(says))
    return msgspec.json.encode(sealed) + b"\n"


@contextmanager
def opened_folder(out: Path, *, fresh: bool = False) -> Iterator[RunFolder]:
    """Open the `.replay` folder of an output folder, for one process at a time.

    `fresh` discards its contents.
    """
    folder = out / NAME
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        raise RunError(f"cannot write to '{out}': a part of its path is a file") from None
    if (folder / _LOCK).is_dir():
        raise RunError(f"'{folder / _LOCK}' is a folder; delete '{folder}'")
    with open(folder / _LOCK, "ab") as lock:
        if sys.platform != "win32":
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise RunError(f"another process is replaying into '{out}'") from None
        opened = RunFolder(folder)
        if fresh:
            opened.forget()
        yield opened
