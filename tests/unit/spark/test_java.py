"""Which Java Spark gets."""

from __future__ import annotations

import importlib.util
import subprocess
from pathlib import Path

import pytest

from weir.errors import RunError
from weir.spark.java import java_home


def fake_java(folder: Path, version: str) -> Path:
    """A home whose java says this version."""
    program = folder / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n", "utf-8")
    program.chmod(0o755)
    return folder


@pytest.fixture
def nowhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> pytest.MonkeyPatch:
    """No Java at all."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    return monkeypatch


def test_java_home_is_taken(nowhere: pytest.MonkeyPatch, tmp_path: Path) -> None:
    nowhere.setenv("JAVA_HOME", str(fake_java(tmp_path / "jdk", "17.0.1")))
    assert java_home() is None


def test_java_on_the_path_is_taken(nowhere: pytest.MonkeyPatch, tmp_path: Path) -> None:
    nowhere.setenv("PATH", str(fake_java(tmp_path / "jdk", "21") / "bin"))
    assert java_home() is None


def test_an_old_java_home_gives_way(nowhere: pytest.MonkeyPatch, tmp_path: Path) -> None:
    nowhere.setenv("JAVA_HOME", str(fake_java(tmp_path / "old", "11.0.2")))
    nowhere.setenv("PATH", str(fake_java(tmp_path / "new", "17") / "bin"))
    assert java_home() == str(tmp_path / "new")


def test_without_any_the_packaged_one(nowhere: pytest.MonkeyPatch, tmp_path: Path) -> None:
    nowhere.setenv("JAVA_HOME", str(fake_java(tmp_path / "old", "1.8.0")))
    home = java_home()
    assert home is not None
    nowhere.setenv("PATH", "/usr/bin:/bin")  # the script needs a shell
    command = [f"{home}/bin/java", "--add-modules=jdk.incubator.vector", "-Da=b c", "-version"]
    told = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "version" in told.stderr


def test_none_at_all_is_one_sentence(nowhere: pytest.MonkeyPatch) -> None:
    nowhere.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(RunError, match="Spark needs Java 17 or later: set JAVA_HOME"):
        java_home()
