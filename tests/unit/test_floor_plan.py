"""Design note 0013 says what is: its files, and the way of an event locally."""

import re
import sys
from pathlib import Path

from called_files import SRC, called_files
from floor_plan import NOTE, not_called, way, write_program

SHARED = ("From a program to a topology", "The way of an event, file by file")


def test_every_file_and_folder_that_the_note_names_is_there() -> None:
    text = NOTE.read_text(encoding="utf-8")
    names = [
        name
        for name in re.findall(r"`([\w/*]+(?:\.py|/))`", text)
        if "/" in name.rstrip("/") and not name.startswith("tests/")
    ]
    assert len(names) > 80
    assert [name for name in names if not any((SRC / "weir").glob(name.rstrip("/")))] == []


def test_a_local_run_takes_the_way_of_the_note(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "weir.cli", "run", write_program(tmp_path)]
    called = called_files(command, tmp_path)
    for title in (*SHARED, "Local"):
        names = way(title)
        assert len(names) > 5
        assert not_called(names, called) == []
    assert not_called(["spark/session.py", "local/run.py"], called) == [
        "spark/session.py",
        "local/run.py",
    ]
