"""What can be wrong with a machine in a box besides its link: its disk, its clock, its processor.

disk       a machine has a small disk of its own (a tmpfs), which is filled and freed
clock      its processes load `clock.c` first, which shows them a clock of the machine's own
processor  its processes may use a share of one core (a CPU quota of a cgroup, version 1)
"""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
from contextlib import suppress
from pathlib import Path

from cluster.machines import Machine

CGROUPS = Path("/sys/fs/cgroup/cpu")
PERIOD = 100_000
"""Microseconds in which a quota is given."""
_FILL = "full"


# --- the disk ------------------------------------------------------------------------------------


def give_disk(machine: Machine, folder: Path, size: str) -> None:
    """Let a folder be the disk of a machine: all that Spark and Python keep there for themselves
    lies in it."""
    folder.mkdir(parents=True)
    machine.own[folder] = size
    machine.env |= {"SPARK_LOCAL_DIRS": str(folder), "TMPDIR": str(folder)}


def fill_disk(machine: Machine) -> None:
    """Leave no free byte on the disk of a machine, as its first process sees it."""
    for path in _disks(machine):
        with (path / _FILL).open("wb", buffering=0) as file:
            try:
                while True:
                    file.write(bytes(1 << 16))
            except OSError as error:
                if error.errno != errno.ENOSPC:
                    raise


def free_disk(machine: Machine) -> None:
    for path in _disks(machine):
        (path / _FILL).unlink()


def _disks(machine: Machine) -> list[Path]:
    root = Path(f"/proc/{machine.processes[0].pid}/root")
    return [root / path.relative_to("/") for path in machine.own]


# --- the clock -----------------------------------------------------------------------------------


def why_no_clock() -> str:
    """Say why a machine cannot have a clock of its own here; empty if it can."""
    return "" if shutil.which("cc") else "clock.c needs a C compiler (cc)"


def give_clock(machine: Machine, folder: Path) -> None:
    """Give the processes of a machine a clock of their own, which is right at first."""
    library, state = folder / "clock.so", _clock(machine, folder)
    source = Path(__file__).with_name("clock.c")
    subprocess.run(("cc", "-O1", "-shared", "-fPIC", "-o", library, source, "-ldl"), check=True)
    state.write_bytes(bytes(8))
    machine.env |= {"LD_PRELOAD": str(library), "WEIR_CLOCK": str(state)}


def set_clock(machine: Machine, folder: Path, ahead: float) -> None:
    """Set the clock of a machine so many seconds ahead of the real one, at once."""
    with _clock(machine, folder).open("r+b") as file:
        file.write(int(ahead * 1e9).to_bytes(8, "little", signed=True))


def _clock(machine: Machine, folder: Path) -> Path:
    return folder / f"{machine.name}.clock"


# --- the processor -------------------------------------------------------------------------------


def why_no_quota() -> str:
    """Say why a machine cannot be slowed down here; empty if it can."""
    is_there = os.access(CGROUPS / "cpu.cfs_quota_us", os.W_OK)
    return "" if is_there else f"no CPU quotas: {CGROUPS}/cpu.cfs_quota_us cannot be written"


def slow_down(machine: Machine, share: float) -> None:
    """Let all that runs on a machine now, and what it starts, have so much of one core together."""
    group = CGROUPS / machine.namespace
    group.mkdir()
    (group / "cpu.cfs_period_us").write_text(str(PERIOD))
    (group / "cpu.cfs_quota_us").write_text(str(int(share * PERIOD)))
    while new := set(machine.pids()) - set(map(int, (group / "cgroup.procs").read_text().split())):
        for pid in new:
            with suppress(ProcessLookupError):  # it has ended meanwhile
                (group / "cgroup.procs").write_text(str(pid))


def forget_speed(machine: Machine) -> None:
    """Remove the quota of a machine on which nothing runs any more."""
    (CGROUPS / machine.namespace).rmdir()
