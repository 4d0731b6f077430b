"""Makes a process's own folders for work in progress, and removes those of killed processes.

Rules
1. Each has a file, `owner`, on which the process that made it holds a lock (`flock`). The
   system releases it when the process ends, however it ends.
2. A folder that was made under this very kernel is left over once its lock is free: locks are
   the kernel's, so containers see those of each other.
3. Elsewhere locks may not reach (another machine on a shared folder), or say nothing (this one
   before it was restarted). Such a folder, and one where locks do not work or whose owner was
   not written yet, is left over when in addition nothing in it has changed for `LONG` seconds, by
   the clock of its own file system.
4. Whoever makes such a folder next removes those beside it that are left over.

A process that loses its folder by rule 3 (it slept for a day on another machine) finds its files
gone and fails; no output is ever half-written under its path.
"""

from __future__ import annotations

import atexit
import os
import shutil
import socket
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import msgspec

if sys.platform != "win32":
    import fcntl

OWNER = "owner"
LONG = 24 * 3600.0
ENDING, GONE = ".weir", ".weir.gone"
"""How the names of such folders end, and of those that are being removed."""


class Owner(msgspec.Struct, frozen=True):
    """Who made a folder, and for what. `kernel` is empty where the system does not report it."""

    kernel: str = ""
    machine: str = ""
    pid: int = 0
    purpose: str = ""


_decoder = msgspec.json.Decoder(Owner)


class OwnFolder:
    """Makes a new folder in `parent` that only its owner can read, by the module's rules."""

    def __init__(self, parent: str, prefix: str = "", purpose: str = "") -> None:
        self.path, self._lock, self._maker = "", -1, os.getpid()
        atexit.register(self._leave)  # a signal may end the process before anybody can remove it
        self.path = tempfile.mkdtemp(ENDING, prefix, parent)
        # The file has its name when it is locked: without one, nobody takes the lock for free.
        unnamed = os.path.join(self.path, f"{OWNER}.new")
        self._lock = os.open(unnamed, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        owner = Owner(_kernel(), socket.gethostname(), os.getpid(), purpose)
        os.write(self._lock, msgspec.json.encode(owner))
        _take(self._lock)
        os.rename(unnamed, os.path.join(self.path, OWNER))

    def remove(self) -> None:
        """Remove the folder with all that is in it, if it is still there. What cannot be removed
        now, the next process removes by rule 4."""
        atexit.unregister(self._leave)
        if self._lock < 0:
            return
        os.close(self._lock)
        self._lock = -1
        # Under another name first: a task that is being stopped can then add nothing.
        gone = f"{self.path.removesuffix(ENDING)}{GONE}"
        with suppress(OSError):
            os.rename(self.path, gone)
            shutil.rmtree(gone)

    def _leave(self) -> None:
        """Remove the folder when its process, and no child of it, ends."""
        if os.getpid() == self._maker:
            self.remove()


def remove_left_over(
    parent: str, now: float, save: Callable[[str, Owner], None] = lambda path, owner: None
) -> None:
    """Remove the folders whose owners are gone; `save` may take something out of each first.
    `now` is the time by the clock of the file system."""
    with suppress(OSError):  # an obstacle to tidying up must not fail the run
        for entry in os.scandir(parent):
            if entry.name.endswith((ENDING, GONE)) and entry.is_dir(follow_symlinks=False):
                owner = _owner_if_gone(entry.path, now)
                if owner is not None:
                    save(entry.path, owner)
                    shutil.rmtree(entry.path, ignore_errors=True)


def file_time(path: str) -> float:
    """Return when a file or a folder was changed, by the clock of its file system."""
    return os.stat(path).st_mtime


def _owner_if_gone(folder: str, now: float) -> Owner | None:
    """Return who made a folder, if it is left over."""
    if folder.endswith(GONE):
        return Owner()
    path = os.path.join(folder, OWNER)
    try:
        handle = os.open(path, os.O_RDWR | getattr(os, "O_NOFOLLOW", 0))
    except FileNotFoundError:
        return Owner() if _is_ours(folder) and _untouched(folder, now) else None
    except OSError:
        return None  # somebody else's
    try:
        owner = _decoder.decode(os.read(handle, 1 << 16))
        free = _take(handle)
        here = owner.kernel != "" and owner.kernel == _kernel()
        if free is False or (not (free and here) and not _untouched(folder, now)):
            return None
        return owner
    except (OSError, msgspec.DecodeError, UnicodeDecodeError):
        return None  # not one of these folders
    finally:
        os.close(handle)


def _is_ours(folder: str) -> bool:
    """Say whether a folder without an owner is one that was just being made."""
    return set(os.listdir(folder)) <= {f"{OWNER}.new"}


def _untouched(folder: str, now: float) -> bool:
    inside = (entry.stat(follow_symlinks=False).st_mtime for entry in os.scandir(folder))
    return max(file_time(folder), *inside, 0.0) < now - LONG


def _take(handle: int) -> bool | None:
    """Try to take the lock of a file; return whether it was free, None where there are no locks."""
    if sys.platform == "win32":
        return None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return None
    return True


def _kernel() -> str:
    """Return an id that is another one each time that a machine starts."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return ""
