"""Makes a process's own folders for work in progress, and removes those of killed processes.

Rules
1. Each folder has a file, `owner`, that the process which made it keeps locked (`flock`). The
   system releases the lock when the process ends, however it ends.
2. A folder that was made under the running kernel is garbage once its lock is free. The kernel
   keeps the locks, so containers see each other's.
3. Otherwise a free lock proves nothing: the folder may be another machine's, on a shared file
   system, or this machine may have restarted. Such a folder is garbage when its lock is free and
   nothing in it has changed for `LONG` seconds, by the clock of its file system. The same delay
   applies where locks do not work or the owner was not written yet.
4. Whoever makes the next folder there removes the garbage beside it.

A process that loses its folder by rule 3 (another machine slept for a day) finds its files gone and
fails; it never leaves a half-written output under its path.
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
"""The endings of such folders' names: in use, and being removed."""


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
        atexit.register(self._leave)  # before there is anything to remove
        self.path = tempfile.mkdtemp(ENDING, prefix, parent)
        # Lock the file before it gets its name, so that nobody finds it unlocked.
        unnamed = os.path.join(self.path, f"{OWNER}.new")
        self._lock = os.open(unnamed, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        owner = Owner(_kernel(), socket.gethostname(), os.getpid(), purpose)
        os.write(self._lock, msgspec.json.encode(owner))
        _take(self._lock)
        os.rename(unnamed, os.path.join(self.path, OWNER))

    def remove(self) -> None:
        """Remove the folder and all its contents, if it still exists. If something cannot be
        removed now, the next process does it by rule 4."""
        atexit.unregister(self._leave)
        if self._lock < 0:
            return
        os.close(self._lock)
        self._lock = -1
        # Rename first: a task that is being stopped can then add nothing.
        gone = f"{self.path.removesuffix(ENDING)}{GONE}"
        with suppress(OSError):
            os.rename(self.path, gone)
            shutil.rmtree(gone)

    def _leave(self) -> None:
        """Remove the folder when the process that made it ends, but not when a child of it ends."""
        if os.getpid() == self._maker:
            self.remove()


def remove_left_over(
    parent: str, now: float, save: Callable[[str, Owner], None] = lambda path, owner: None
) -> None:
    """Remove the folders whose owners are gone; `save` may rescue something from each first. `now`
    is the time by the clock of the file system."""
    with suppress(OSError):  # a failure to clean up must not fail the run
        for entry in os.scandir(parent):
            if entry.name.endswith((ENDING, GONE)) and entry.is_dir(follow_symlinks=False):
                owner = _owner_if_gone(entry.path, now)
                if owner is not None:
                    save(entry.path, owner)
                    shutil.rmtree(entry.path, ignore_errors=True)


def file_time(path: str) -> float:
    """Return when a file or a folder was last changed, by the clock of its file system."""
    return os.stat(path).st_mtime


def _owner_if_gone(folder: str, now: float) -> Owner | None:
    """Return the owner of a folder if it is garbage, else None."""
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
    """Tell whether a folder without an owner was just being made by Weir."""
    return set(os.listdir(folder)) <= {f"{OWNER}.new"}


def _untouched(folder: str, now: float) -> bool:
    inside = (entry.stat(follow_symlinks=False).st_mtime for entry in os.scandir(folder))
    return max(file_time(folder), *inside, 0.0) < now - LONG


def _take(handle: int) -> bool | None:
    """Try to lock a file; return whether that succeeded, or None if locks do not work."""
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
    """Return an id that changes each time the machine starts."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return ""
