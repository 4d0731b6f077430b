"""Which Python a session that Weir makes lets its workers run."""

import sys

import pytest

from weir.spark.session import _workers_python

PACKED = "./environment/bin/python"


def test_workers_on_this_machine_run_the_same_python(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYSPARK_PYTHON", "python2")
    assert _workers_python("local[2]", {"spark.pyspark.python": PACKED}) == sys.executable


def test_a_clusters_python_can_be_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)
    assert _workers_python("spark://head:7077", {}) == sys.executable
    monkeypatch.setenv("PYSPARK_PYTHON", "/opt/python")
    assert _workers_python("yarn", {}) == "/opt/python"
    assert _workers_python("yarn", {"spark.pyspark.python": PACKED}) == PACKED
