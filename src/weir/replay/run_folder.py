"""Records the progress of a replay in `DIR/.replay`, so that a finished batch never runs again.

    lock           held (`flock`) by the process that replays
    run.json       what is replayed: the app's code, logs, parameters, options, each by its name
    cuts.json      where the logs are cut (`batch_cuts.py`)
    00000/ …       a finished batch: what was emitted, the state after it, `batch.json`
    00001.part/    an unfinished batch; ignored
    report.json    the replay is finished, and the outputs are in place; the batches are deleted

Rules
1. `run.json` is the first thing that is written. A replay that finds another one's finished
   batches is refused, with the names of what has changed: they would not fit the rest.
2. Every file and folder gets its name when all of it has reached the disk (`durable_files.py`), so
   finished batches are complete, whenever the process is killed.
3. What an earlier process left is used if its rows have the recorded digests. Each JSON file has
   the hash of its contents, so damage and edits are detected.
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
"""The part that tells what no other part does, as where a constant comes from the environment."""


class MadeFile(msgspec.Struct, frozen=True):
    """Says of a file of a finished batch what it holds: its path in the batch, rows, digest."""

    path: str
    rows: int
    digest: str


class FinishedBatch(msgspec.Struct, frozen=True):
    """What a finished batch wrote: by variant and name what was emitted, by variant and
    state the state after it (variants may share files), and how many events it took."""

    events: int
    emitted: dict[str, MadeFile]
    states: dict[str, MadeFile]


class ReplayRecord(msgspec.Struct, frozen=True):
    """Says in `run.json` what is replayed, part by part."""

    parts: dict[str, str]
    format: int = 4


class SealedRecord(msgspec.Struct, frozen=True):
    """Is one of the JSON files: what it says, and the hash of that."""

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
    """Is the `.replay` folder of a replay; see the module's rules."""

    path: Path

    def begin(self, parts: Mapping[str, str]) -> None:
        """Note what is replayed; PlanError if something of another replay is finished here."""
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
        if len(differences) > 1 and compiled in differences:  # the others say why
            differences.remove(compiled)
        if before.format != now.format:
            differences.append("it was begun by another version of Weir")
        return differences

    @property
    def _has_finished(self) -> bool:
        """Whether a batch is finished here, or all is."""
        return (self.path / _REPORT).exists() or self.finished(0) is not None

    def forget(self) -> None:
        """Remove all that is here but the lock."""
        self._remove_batches()
        for inside in self.path.iterdir():
            if inside.name != _LOCK:
                remove_folder(inside)

    def forget_end(self) -> None:
        """Remove what says that all is done, after whatever is left of the batches."""
        self._remove_batches()
        (self.path / _REPORT).unlink()

    def _remove_batches(self) -> None:
        """Remove the batches, the last one first: those before a kill's are whole."""
        batches = [(m, p) for p in self.path.iterdir() if (m := _BATCH_NAME.fullmatch(p.name))]
        for _, folder in sorted(batches, key=lambda one: int(one[0][1]), reverse=True):
            remove_folder(folder)

    @property
    def cuts(self) -> LogCuts | None:
        """Where the logs are cut, if an earlier process has cut them."""
        file = self.path / _CUTS
        return self._read(file, _cuts_decoder) if file.exists() else None

    def keep_cuts(self, cuts: LogCuts) -> None:
        write_durably(self.path / _CUTS, _sealed(cuts))

    @property
    def report(self) -> FinishedReplay | None:
        """The report of a finished replay."""
        file = self.path / _REPORT
        return self._read(file, _report_decoder) if file.exists() else None

    def finished(self, number: int) -> FinishedBatch | None:
        """Return what a batch wrote, if it is finished."""
        file = self.batch(number) / _BATCH
        if file.exists():
            return self._read(file, _batch_decoder)
        if os.path.lexists(self.batch(number)):
            raise RunError(
                f"'{file}', which lists what the batch wrote, is missing; {self._way_out}"
            )
        return None

    def check(self, number: int, finished: FinishedBatch) -> None:
        """Raise RunError if the files of a finished batch of an earlier process have changed."""
        files = [file for file in finished.emitted.values() if file.rows]
        if self.finished(number + 1) is None:  # else nobody needs the states
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
        """Note that a batch is finished; the state before it is not needed any more."""
        part = self.path / f"{number:05}.part"
        (part / _BATCH).write_bytes(_sealed(finished))
        rename_durably(part, self.batch(number))
        if number:
            remove_folder(self.batch(number - 1) / STATE)

    def finish(self, done: FinishedReplay) -> None:
        """Note that all is done, and remove the batches."""
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
        except ValueError as error:  # no JSON, other fields, no UTF-8
            raise RunError(f"'{file}' cannot be read: {error}; {self._way_out}") from None


def _sealed(record: msgspec.Struct) -> bytes:
    says = msgspec.json.encode(record)
    sealed = SealedRecord(hashlib.sha256(says).hexdigest(), msgspec.Raw(says))
    return msgspec.json.encode(sealed) + b"\n"


@contextmanager
def opened_folder(out: Path, *, fresh: bool = False) -> Iterator[RunFolder]:
    """Open the `.replay` folder of an output folder, for one process at a time; `fresh` discards
    what is in it."""
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
