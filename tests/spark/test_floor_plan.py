"""Offline and live, an event passes the files that design note 0013 names for it."""

import sys
from pathlib import Path

import pytest

from called_files import called_files
from floor_plan import not_called, way, write_program

SHARED = ("From a program to a topology", "The way of an event, file by file")


@pytest.mark.parametrize(
    ("title", "options"),
    [
        ("Offline", ["--runner", "offline", "--parallelism", "2"]),
        ("Live", ["--runner", "live", "--parallelism", "2", "--store", "job"]),
    ],
)
def test_a_run_on_spark_takes_the_way_of_the_note(
    title: str, options: list[str], tmp_path: Path
) -> None:
    command = [sys.executable, "-m", "weir.cli", "run", write_program(tmp_path), *options]
    called = called_files(command, tmp_path)
    for names in (*map(way, SHARED), way(title)):
        assert len(names) > 5
        assert not_called(names, called) == []
