"""Where the archive of Spark's classes is looked for, and when it is used."""

import sys
from pathlib import Path

import pytest

from weir.errors import RunError
from weir.spark import class_archive
from weir.spark.class_archive import archive_option, archive_path, make_archive


@pytest.fixture
def java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The home of a Java that says what it is."""
    home = tmp_path / "java"
    (home / "bin").mkdir(parents=True)
    (home / "bin" / "java").touch()
    (home / "release").write_text('JAVA_VERSION="17.0.1"')
    monkeypatch.setenv("JAVA_HOME", str(home))
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "environment"))
    return home


def made() -> Path:
    path = archive_path()
    assert path is not None
    path.parent.mkdir(parents=True)
    path.touch()
    return path


def test_it_is_used_once_it_is_there(java: Path) -> None:
    assert archive_option() == ""
    path = made()
    assert f"-XX:SharedArchiveFile={path}" in archive_option().split()


def test_another_java_or_spark_has_another(java: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made()
    monkeypatch.setattr(class_archive.pyspark, "__version__", "9.9")
    assert archive_option() == ""


def test_a_java_that_was_replaced(java: Path) -> None:
    made()
    (java / "release").write_text('JAVA_VERSION="21.0.1"')
    assert archive_option() == ""


def test_a_path_that_spark_would_cut(
    java: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "my environment"))
    made()
    assert archive_option() == ""


def test_without_an_environment_it_is_in_the_cache(
    java: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "prefix", sys.base_prefix)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert made().parent == tmp_path / "cache" / "weir"


def test_a_java_that_does_not_say_what_it_is(java: Path) -> None:
    (java / "release").unlink()
    assert archive_path() is None
    with pytest.raises(RunError, match="JAVA_HOME"):
        make_archive()
    assert archive_option() == ""
