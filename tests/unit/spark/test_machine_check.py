"""What a machine must have to run a host, and what is said when it has not."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from weir.files.buckets import Found
from weir.files.chunks import DataFile
from weir.files.object_store import ObjectStore
from weir.ingress.connectors.registry import needed_path, open_connector
from weir.job.job_record import Decisions, JobRecord, encode_job
from weir.plan.operators import SourceOptions
from weir.plan.plan_fingerprint import PlanFingerprint
from weir.plan.sources import declare_source
from weir.reliable.keys import JOB
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
        python=machine_check.needed_python(), libraries=machine_check.needed_libraries(),
        weir=machine_check.own_version(), manager=manager, paths=[str(tmp_path / "a.jsonl")],
        store=str(tmp_path / "store"), token="a token",
    )  # fmt: skip


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
    assert needed_path(DataFile("s3://b/a.csv", (), found=Found(3, "tag"))) is None
