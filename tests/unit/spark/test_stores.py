"""The store in a folder: what it says when it cannot do what it is asked, and who waits for it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from weir.errors import RunError
from weir.files import object_store
from weir.files.object_store import ObjectStore, existing_store
from weir.reliable.object_names import is_known
from weir.reliable.store import ObjectExists


def test_objects_are_made_once(tmp_path: Path) -> None:
    store = ObjectStore(str(tmp_path))
    store.put("a/b", b"1", new=True)
    with pytest.raises(ObjectExists):
        store.put("a/b", b"2", new=True)
    assert store.get("a/b") == b"1" and store.list() == ["a/b"] and store.get("c") is None


@pytest.mark.parametrize("place", ["nonsense://x/y", "s3://"])
def test_a_place_that_is_no_store_is_told(place: str) -> None:
    with pytest.raises(RunError, match=f"cannot use '{place}' as a store"):
        ObjectStore(place)


def test_a_folder_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(RunError, match="as a store"):
        ObjectStore(str(tmp_path / "file" / "store"))
    with pytest.raises(RunError, match="there is no store"):
        existing_store(str(tmp_path / "nowhere"))


def test_a_store_that_is_gone_is_told_by_name(tmp_path: Path) -> None:
    place = tmp_path / "store"
    store = ObjectStore(str(place))
    store.put("a", b"1")
    place.rename(tmp_path / "away")
    place.touch()  # a file where the folder was
    with pytest.raises(RunError, match=f"cannot write b to '{place}'"):
        store.put("b", b"2", new=True)
    with pytest.raises(RunError, match=f"cannot read a from '{place}'"):
        store.get("a")


FULL = """
import resource, signal, sys
from weir.errors import RunError
from weir.files.object_store import ObjectStore
store = ObjectStore(sys.argv[1])
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
store.put("small", b"1")
try:
    store.put("large", bytes(10000), new=True)
except RunError as error:
    print(error)
assert store.get("large") is None and store.get("small") == b"1"
assert store.list() == ["small"]
"""


def test_what_does_not_fit_on_the_disk_is_not_there_and_is_told(tmp_path: Path) -> None:
    """A limit on the size of files: the write fails half-way, as on a disk that is full."""
    done = subprocess.run(
        [sys.executable, "-c", FULL, str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert f"cannot write large to '{tmp_path}'" in done.stdout


# --- what is left behind, and for whom ------------------------------------------------------------

KILLED = """
import os, signal, sys
from weir.files import object_store
store = object_store.ObjectStore(sys.argv[1])
store.put("a", b"1")
os.fsync = lambda _: os.kill(os.getpid(), signal.SIGKILL)
store.put("b", b"2")
"""


def files(folder: Path) -> set[str]:
    return {str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file()}


def test_what_failed_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(handle: int) -> None:
        raise OSError(28, "No space left on device")

    store = ObjectStore(str(tmp_path))
    store.put("a", b"1", new=True)
    with pytest.raises(ObjectExists):
        store.put("a", b"2", new=True)
    monkeypatch.setattr("os.fsync", full)
    for number in range(20):
        with pytest.raises(RunError, match=r"cannot write .* No space left on device$"):
            store.put(f"b/{number}", b"2", new=True)
    assert {name.rsplit("/", 1)[-1] for name in files(tmp_path)} == {"a", "owner"}
    store.close()
    assert files(tmp_path) == {"a"} and not list((tmp_path / ".writing").iterdir())


def test_what_a_killed_process_was_writing_goes_when_another_writes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer, killed = ObjectStore(str(tmp_path)), [sys.executable, "-c", KILLED, str(tmp_path)]
    writer.put("c", b"3")
    subprocess.run(killed, check=False)
    assert len(files(tmp_path)) == 5, "two owners, two objects, and half of one"
    writer.put("c", b"3")
    assert len(files(tmp_path)) == 5, "it does not look each time"
    monkeypatch.setattr(object_store, "SWEEP_EVERY", 0.0)
    writer.put("c", b"3")
    assert len(files(tmp_path)) == 3
    subprocess.run(killed, check=False)
    writer.close()
    assert files(tmp_path) == {"a", "c"}


def test_a_store_is_for_its_owner_alone(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir(0o755)
    for name in ("mine", "new/store"):
        store = ObjectStore(str(tmp_path / name))
        store.put("a/b/c", b"1")
        made = list((tmp_path / name).rglob("*"))
        assert {oct(p.stat().st_mode & 0o777) for p in made if p.is_file()} == {"0o600"}
        assert {oct(p.stat().st_mode & 0o777) for p in made if p.is_dir()} == {"0o700"}
    modes = [oct((tmp_path / p).stat().st_mode & 0o777) for p in ("mine", "new/store")]
    assert modes == ["0o755", "0o700"], "what was there keeps its mode"


@pytest.mark.parametrize(
    "key", ["..", "../x", "a/../../x", "/x", "a//b", "", ".", "a/", "a\0", "a\x1b[31m", "\ud800"]
)
def test_names_that_lead_elsewhere_are_none(tmp_path: Path, key: str) -> None:
    store = ObjectStore(str(tmp_path / "store"))
    (tmp_path / "x").write_bytes(b"secret")
    for ask in (store.get, lambda k: store.put(k, b""), lambda k: store.delete([k])):
        with pytest.raises(RunError, match="invalid object name"):
            ask(key)
    assert (tmp_path / "x").read_bytes() == b"secret"


@pytest.mark.parametrize("form", ["{}", "file://{}", "FILE://{}"])
def test_who_only_reads_makes_no_folder(tmp_path: Path, form: str) -> None:
    with pytest.raises(RunError, match="there is no store"):
        existing_store(form.format(tmp_path / "new"))
    assert not list(tmp_path.iterdir())
    ObjectStore(form.format(tmp_path / "new")).put("a", b"1")
    assert existing_store(str(tmp_path / "new")).get("a") == b"1"


def test_a_store_that_was_removed_is_not_made_anew(tmp_path: Path) -> None:
    store = ObjectStore(str(tmp_path / "store"))
    store.put("a", b"1")
    (tmp_path / "store").rename(tmp_path / "away")
    with pytest.raises(RunError, match="cannot write"):
        store.put("b/c", b"2")
    assert not (tmp_path / "store").exists()


def test_a_file_of_any_name_does_not_hide_the_others(tmp_path: Path) -> None:
    store = ObjectStore(str(tmp_path / "s"))
    store.put("records/000000000000", b"x")
    folder = os.fsencode(tmp_path / "s" / "records")
    for name in (b"non\xffutf", b"new\nline", b"..x", b" ", b"a%2fb"):
        with open(os.path.join(folder, name), "wb"):
            pass
    os.symlink("/nowhere", tmp_path / "s" / "records" / "dangling")
    assert "records/000000000000" in store.list("records/")
    assert [key for key in store.list() if is_known(key)] == ["records/000000000000"]
