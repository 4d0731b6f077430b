"""What a machine must have to run a host, and what is said when it has not."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark import cloudpickle

from weir.files.buckets import ObjectVersion
from weir.files.chunks import DataFile
from weir.files.object_store import ObjectStore
from weir.ingress.connectors.registry import needed_path, open_connector
from weir.job.job_identity import Decisions, JobRecord, encode_job
from weir.plan.fluent.sources import declare_source
from weir.plan.operators import SourceOptions
from weir.plan.plan_fingerprint import PlanFingerprint
from weir.plan.usercode import imported_files
from weir.plan.usercode.code_fingerprint import user_functions
from weir.reliable.object_names import JOB
from weir.script import parse_program
from weir.spark.live import machine_check
from weir.spark.live.machine_check import Needs, missing_here, probe


@pytest.fixture
def manager() -> Iterator[str]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"grpc://127.0.0.1:{server.getsockname()[1]}"


@pytest.fixture
def needs(tmp_path: Path, manager: str) -> Needs:
    job = JobRecord(PlanFingerprint(()), Decisions(), token="a token")
    ObjectStore(str(tmp_path / "store")).put(JOB, encode_job(job))
    (tmp_path / "a.jsonl").touch()
    return Needs(
        python=machine_check.needed_python(),
        libraries=machine_check.needed_libraries(),
        weir=machine_check.own_version(),
        manager=manager,
        paths=[str(tmp_path / "a.jsonl")],
        store=str(tmp_path / "store"),
        token="a token",
        modules={},
        code=b"",
    )


def test_a_machine_that_has_all_lacks_nothing(needs: Needs) -> None:
    assert probe(needs)[1] == [] == missing_here(needs)


def test_what_is_missing_is_named(needs: Needs, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        nobody = server.getsockname()[1]
    (tmp_path / "a.jsonl").unlink()
    lacks = missing_here({**needs, "token": "another", "manager": f"grpc://127.0.0.1:{nobody}"})
    assert lacks == [
        f"'{tmp_path}/a.jsonl' is not there, or cannot be read",
        f"the store '{tmp_path}/store' is not the folder that the driver writes to: it must be "
        "shared by all machines, or a bucket",
        f"the job's manager cannot be reached at 127.0.0.1:{nobody}: Connection refused",
    ]


def test_a_store_that_is_not_there_is_not_made(needs: Needs, tmp_path: Path) -> None:
    (lack,) = missing_here({**needs, "store": str(tmp_path / "elsewhere")})
    assert "cannot be used: there is no store" in lack
    assert not (tmp_path / "elsewhere").exists()


def test_other_versions_are_named(needs: Needs) -> None:
    libraries = {**needs["libraries"], "numpy": "0.1", "no-such-library": "1.0"}
    _, lacks = probe({**needs, "python": "2.7", "libraries": libraries})
    assert lacks[0].startswith("Python 3.") and lacks[0].endswith("instead of 2.7")
    assert lacks[1].startswith("numpy ") and lacks[1].endswith("instead of 0.1")
    assert lacks[2] == "no-such-library is not installed"
    (other,) = missing_here({**needs, "weir": "0.0.1 (12345678)"})
    assert "instead of 0.0.1 (12345678), at " in other


@pytest.mark.parametrize(
    ("path", "needed"),
    [
        ("tail:///logs/a.jsonl", "/logs"),
        ("/in/", "/in"),
        ("tcp://h:7", None),
        ("rate://5", None),
    ],
)
def test_a_followed_file_may_come_later_but_not_its_folder(path: str, needed: str | None) -> None:
    source = declare_source("A", {"vs": "BIGINT"}, path, SourceOptions(vs="vs"), 0)
    connector = open_connector(source, "/")
    assert connector is not None
    assert needed_path(connector) == needed


def test_files_must_be_there_and_objects_of_buckets_need_not() -> None:
    assert needed_path(DataFile("a.csv", (), root="/in")) == os.path.join("/in", "a.csv")
    assert needed_path(DataFile("s3://b/a.csv", (), version=ObjectVersion(3, "tag"))) is None


RULES = """import weir, helper
TABLE = open({table!r}).read()
@weir.udf
def f(v: int) -> int:
    return v + helper.one
"""
TEXT = """IMPORT 'rules.py'; STREAM A (vs BIGINT, v BIGINT) FROM 'a.jsonl';
    B = SELECT f(v) AS w FROM A; OUTPUT B TO 'b.csv';"""


def test_modules_that_do_not_travel_are_named(needs: Needs) -> None:
    modules = {"numpy": "rules.py", "is_nowhere": "helper"}
    assert missing_here({**needs, "modules": modules}) == [
        "the module 'is_nowhere' is not installed, which helper imports"
    ]


def test_the_users_files_are_run(needs: Needs, tmp_path: Path) -> None:
    table = tmp_path / "table.txt"
    table.touch()
    (tmp_path / "rules.py").write_text(RULES.format(table=str(table)), encoding="utf-8")
    (tmp_path / "helper.py").write_text("one = 1", encoding="utf-8")
    program = parse_program(TEXT, directory=tmp_path)
    (files,) = {f.imported.files for f in user_functions(program.outputs) if f.imported}
    code = cloudpickle.dumps(list(user_functions(program.outputs)))
    assert missing_here({**needs, "code": code}) == []
    imported_files._arrived_here.clear()  # as in another process
    table.unlink()
    (said,) = missing_here({**needs, "code": code})
    assert said.startswith("IMPORT 'rules.py' cannot be run in a worker: FileNotFoundError: ")
    assert files.functions().scalars["f"](1) == 2
