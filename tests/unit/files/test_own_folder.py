"""What a process that was killed leaves behind is removed, and what others use is not."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from weir.files import own_folder
from weir.files.own_folder import LONG, OwnFolder, file_time, remove_left_over
from weir.files.writers import Staging

KILLED = """
import os, signal, sys
from weir.files.own_folder import OwnFolder
folder = OwnFolder(sys.argv[1], sys.argv[2], "out")
open(os.path.join(folder.path, "data"), "w").close()
os.mkdir(os.path.join(folder.path, "old"))
open(os.path.join(folder.path, "old", "part"), "w").close()
print(folder.path, flush=True)
if sys.argv[3] == "wait":
    sys.stdin.read()
os.kill(os.getpid(), signal.SIGKILL)
"""


def other_process(folder: Path, how: str = "die") -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", KILLED, str(folder), ".out.", how],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def sweep(folder: Path, later: float = 0.0) -> set[str]:
    remove_left_over(str(folder), file_time(str(folder)) + later)
    return set(os.listdir(folder))


def test_a_folder_goes_with_its_owner_and_not_before(tmp_path: Path) -> None:
    mine = OwnFolder(str(tmp_path))
    with other_process(tmp_path, "wait") as alive:
        assert alive.stdout is not None
        theirs = os.path.basename(alive.stdout.readline().strip())
        assert sweep(tmp_path) == {os.path.basename(mine.path), theirs}
        assert len(sweep(tmp_path, 10 * LONG)) == 2, "however old they are"
        alive.communicate("")
    assert sweep(tmp_path) == {os.path.basename(mine.path)}
    mine.remove()
    mine.remove()
    assert not os.listdir(tmp_path)


def test_a_folder_goes_with_a_process_that_leaves_and_not_with_its_children(
    tmp_path: Path,
) -> None:
    code = """if True:
        import os, sys
        from weir.files.own_folder import OwnFolder
        folder = OwnFolder(sys.argv[1])
        if os.fork() == 0:
            sys.exit()
        os.wait()
        print(len(os.listdir(sys.argv[1])))
        sys.exit("a signal")
    """
    command = [sys.executable, "-c", code, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (1, "1\n"), done.stderr
    assert not os.listdir(tmp_path)


def test_of_other_machines_only_what_is_old_goes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other_process(tmp_path).communicate()
    monkeypatch.setattr(own_folder, "_kernel", lambda: "another")
    assert len(sweep(tmp_path)) == 1
    assert len(sweep(tmp_path, LONG - 60)) == 1
    assert not sweep(tmp_path, LONG + 60)


def test_without_locks_only_what_is_old_goes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(own_folder, "_take", lambda handle: None)
    OwnFolder(str(tmp_path))
    assert len(sweep(tmp_path)) == 1 and not sweep(tmp_path, LONG + 60)


def test_folders_of_others_are_left_alone(tmp_path: Path) -> None:
    """Whatever they are called, and whatever lies in them."""
    (tmp_path / "empty.weir").mkdir()
    (tmp_path / "full.weir").mkdir()
    (tmp_path / "full.weir" / "file").touch()
    (tmp_path / "odd.weir").mkdir()
    (tmp_path / "odd.weir" / "owner").write_text("me", encoding="utf-8")
    (tmp_path / "plain").mkdir()
    (tmp_path / "link.weir").symlink_to(tmp_path / "plain")
    (tmp_path / "program.weir").touch()
    before = set(os.listdir(tmp_path))
    assert sweep(tmp_path) == before
    assert sweep(tmp_path, LONG + 60) == before - {"empty.weir"}


def test_the_next_output_beside_it_sweeps_and_brings_back_what_stepped_aside(
    tmp_path: Path,
) -> None:
    """A run that replaced the folder `out` was killed between its two renames."""
    other_process(tmp_path).communicate()
    staging = Staging(str(tmp_path / "a.csv"))
    assert set(os.listdir(tmp_path)) == {os.path.basename(staging.folder), "out"}
    assert os.listdir(tmp_path / "out") == ["part"]
    staging.remove()
    other_process(tmp_path).communicate()
    Staging(str(tmp_path / "b.csv")).remove()
    assert os.listdir(tmp_path) == ["out"], "what is in its place stays"
