"""Code on disk: which folder has it, whose is trusted, and how it reaches another machine."""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from weir.loops import code_cache as loop_cache
from weir.loops.code_cache import (
    PACKAGE,
    Code,
    find,
    keep,
    kind,
    kind_of,
    unpack,
)

NAME = "events.some_loops.loop-1"
BODY = loop_cache._sealed(NAME, b"code")

USE = """
import numpy as np
from weir.loops import loop
from weir.events.hashing_loops import sum_halves
sum_halves(np.arange(4, dtype=np.uint64))
print(loop.count_compiled())
"""


def use_a_loop(code: str = USE, **environment: str) -> tuple[int, str]:
    """How many loops a new process had to compile, and what it said on stderr."""
    with tempfile.TemporaryDirectory() as nothing:  # code may lie in the one of all processes
        paths = {
            "PYTHONPATH": str(PACKAGE.parent),
            "PATH": os.environ["PATH"],
            "TMPDIR": nothing,
        }
        done = subprocess.run(
            [sys.executable, "-c", code],
            env=paths | environment,
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.returncode == 0, done.stderr
    return int(done.stdout), done.stderr


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder for code, and one for temporary files."""
    monkeypatch.setenv("WEIR_CACHE", str(tmp_path / "code"))
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "tmp"))
    loop_cache._note.cache_clear()
    return tmp_path / "code"


def test_what_was_kept_is_found(folder: Path) -> None:
    assert find(NAME) is None
    assert keep(NAME, BODY) == folder
    assert find(NAME) == BODY
    assert [p.name for p in (folder / kind()).iterdir()] == [NAME]


@pytest.mark.parametrize("harm", [b"", BODY[:-1], BODY + b"x", b"\0" * 40, b"short"])
def test_a_torn_or_changed_file_counts_as_none(folder: Path, harm: bytes) -> None:
    keep(NAME, BODY)
    (folder / kind() / NAME).write_bytes(harm)
    assert find(NAME) is None
    keep(NAME, BODY)
    assert find(NAME) == BODY


def test_a_file_under_the_name_of_another_counts_as_none(folder: Path) -> None:
    keep(NAME, BODY)
    (folder / kind() / NAME).rename(folder / kind() / f"{NAME}0")
    assert find(f"{NAME}0") is None


@pytest.mark.parametrize("mode", [0o666, 0o664, 0o646])
def test_a_file_that_others_may_write_to_is_not_trusted(folder: Path, mode: int) -> None:
    keep(NAME, BODY)
    (folder / kind() / NAME).chmod(mode)
    assert find(NAME) is None


@pytest.mark.skipif(os.getuid() != 0, reason="only root gives files away")
def test_a_file_of_another_user_is_not_trusted(folder: Path) -> None:
    keep(NAME, BODY)
    os.chown(folder / kind() / NAME, 12345, -1)
    assert find(NAME) is None


@pytest.mark.parametrize("which", [".", "kind"])
@pytest.mark.parametrize("mode", [0o777, 0o1777])
def test_a_folder_that_everybody_may_write_to_is_not_used(
    folder: Path, which: str, mode: int, capsys: pytest.CaptureFixture[str]
) -> None:
    keep(NAME, BODY)
    (folder / which.replace("kind", kind())).chmod(mode)
    assert find(NAME) is None
    kept = keep(NAME, BODY)
    assert kept is not None
    assert kept.parent == folder.parent / "tmp"
    assert kept.stat().st_mode & 0o777 == 0o700
    assert find(NAME) == BODY
    keep(f"{NAME}0", BODY)
    said = capsys.readouterr().err
    assert said.count("weir: note: compiled loops are kept in") == 1
    assert "others may write to it" in said


@pytest.mark.parametrize("mode", [0o770, 0o705, 0o777])
def test_a_temporary_folder_for_others_too_is_not_used(
    folder: Path, mode: int, capsys: pytest.CaptureFixture[str]
) -> None:
    folder.write_bytes(b"")  # nothing can be made there
    kept = keep(NAME, BODY)
    assert kept is not None
    kept.chmod(mode)
    assert find(NAME) is None
    assert keep(NAME, BODY) is None
    assert "compiled loops are not kept" in capsys.readouterr().err


def test_a_link_as_the_temporary_folder_is_not_used(folder: Path, tmp_path: Path) -> None:
    folder.write_bytes(b"")
    kept = keep(NAME, BODY)
    assert kept is not None
    kept.rename(tmp_path / "elsewhere")
    kept.symlink_to(tmp_path / "elsewhere")
    assert find(NAME) is None


def test_everything_that_code_depends_on_makes_another_kind() -> None:
    versions, processor = ("cpython-311", "", "1", "2", "3"), ("x86_64-linux", "znver3", "+avx")
    kinds = {
        kind_of("text", versions, processor),
        kind_of("other text", versions, processor),
        *(kind_of("text", (*versions[:i], "9", *versions[i + 1 :]), processor) for i in range(5)),
        *(kind_of("text", versions, (*processor[:i], "x", *processor[i + 1 :])) for i in range(3)),
    }
    assert len(kinds) == 10


def test_the_next_process_does_not_compile(tmp_path: Path) -> None:
    cache = str(tmp_path / "code")
    assert use_a_loop(WEIR_CACHE=cache) == (1, "")
    assert use_a_loop(WEIR_CACHE=cache) == (0, "")
    for file in Path(cache).glob("*/*"):
        file.write_bytes(file.read_bytes()[:-5])
    assert use_a_loop(WEIR_CACHE=cache) == (1, "")


def test_a_machine_of_another_kind_compiles_for_itself(tmp_path: Path) -> None:
    cache = str(tmp_path / "code")
    assert use_a_loop(WEIR_CACHE=cache) == (1, "")
    assert use_a_loop(WEIR_CACHE=cache, NUMBA_CPU_NAME="generic") == (1, "")
    assert len(list(Path(cache).iterdir())) == 2


def test_where_no_folder_can_be_written_a_temporary_one_is_used(tmp_path: Path) -> None:
    """A file where a folder would be made: not even root can write there."""
    package = shutil.copytree(
        PACKAGE, tmp_path / "src" / "weir", ignore=shutil.ignore_patterns("__pycache__", "*.nb?")
    )
    (package / "__pycache__").write_bytes(b"")
    (tmp_path / "tmp").mkdir()
    environment = {
        "PYTHONPATH": str(package.parent),
        "HOME": os.devnull,
        "TMPDIR": str(tmp_path / "tmp"),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    compiled_then, said = use_a_loop(**environment)
    assert compiled_then == 1
    assert said.count("\n") == 1
    assert f"weir: note: compiled loops are kept in '{tmp_path / 'tmp'}" in said
    assert use_a_loop(**environment) == (0, "")


def test_without_any_folder_it_works_too() -> None:
    nowhere = f"import tempfile; tempfile.tempdir = '{os.devnull}'\n"
    compiled_then, said = use_a_loop(nowhere + USE, WEIR_CACHE=os.devnull)
    assert compiled_then == 1
    assert "compiled loops are not kept" in said


SEND = """
import pickle, sys
with open({path!r}, "wb") as file:
    pickle.dump(loop.packed(loop.ready_loops()), file)
"""
RECEIVE = """
import pickle
from weir.events import hashing_loops
from weir.loops import loop
from weir.loops.code_cache import unpack
code = pickle.load(open({path!r}, "rb"))
unpack(code)
told = []
loop.make_ready(code.loops, lambda *at: told.append(at))
assert told == [(0, 1), (1, 1)], told
assert [each.name for each in loop.ready_loops()] == ["events.hashing_loops.sum_halves"]
print(loop.count_compiled())
"""


def test_code_travels_to_machines_of_the_same_kind(tmp_path: Path) -> None:
    path = str(tmp_path / "code.pickle")
    use_a_loop(USE + SEND.format(path=path), WEIR_CACHE=str(tmp_path / "here"))
    receive = RECEIVE.format(path=path)
    assert use_a_loop(receive, WEIR_CACHE=str(tmp_path / "there")) == (0, "")
    other = {"WEIR_CACHE": str(tmp_path / "elsewhere"), "NUMBA_CPU_NAME": "generic"}
    assert use_a_loop(receive, **other) == (1, "")


def test_code_of_another_kind_is_left_alone(folder: Path) -> None:
    unpack(Code("another kind", (), {NAME: BODY}))
    assert not folder.exists()
    unpack(Code(kind(), (), {NAME: BODY}))
    assert find(NAME) == BODY


@pytest.mark.parametrize(
    ("name", "body"),
    [
        (NAME, BODY[:-1]),
        (NAME, BODY[:20]),
        ("events.other_loops.loop-1", BODY),
        ("../loop-1", loop_cache._sealed("../loop-1", b"code")),
    ],
)
def test_code_that_is_not_whole_is_not_kept(folder: Path, name: str, body: bytes) -> None:
    unpack(Code(kind(), (), {name: body}))
    assert not folder.exists()


def test_code_that_is_here_stays(folder: Path) -> None:
    keep(NAME, BODY)
    before = (folder / kind() / NAME).stat().st_mtime_ns
    unpack(Code(kind(), (), {NAME: BODY}))
    assert (folder / kind() / NAME).stat().st_mtime_ns == before
