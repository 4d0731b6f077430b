"""Live jobs whose store is a bucket, before Spark is there."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import pytest

from buckets import Bucket, new_bucket
from weir.errors import PlanError, RunError
from weir.files.bucket_store import BucketStore
from weir.files.object_store import ObjectStore
from weir.job.job_identity import read_job
from weir.reliable.store import Body
from weir.runtime.programs import as_program
from weir.spark.live.job_setup import prepare_live

PROGRAM = """
    STREAM A (vs BIGINT, v BIGINT) FROM '{bucket}/in/*.jsonl';
    OUTPUT A TO '{bucket}/out.csv';
"""


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Iterator[Bucket]:
    with new_bucket(monkeypatch) as made:
        for name in "ab":
            made.put(f"in/{name}.jsonl", '{"vs": 1, "v": 2}\n')
        yield made


def prepare(bucket: Bucket, *, resume: bool = False) -> list[str]:
    """Prepare the job, and name the partitions that it reads."""
    program = as_program(PROGRAM.format(bucket=bucket.url))
    live = prepare_live(program, f"{bucket.url}/job", resume=resume)
    return [partition.name for partition in live.partitions["A"]]


def test_one_of_two_drivers_takes_a_store(bucket: Bucket) -> None:
    prepare(bucket)
    with pytest.raises(PlanError, match="holds a job already"):
        prepare(bucket)


def test_a_driver_knows_its_own_job_when_the_answer_was_lost(
    bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    put, lost = BucketStore._put, list[str]()

    def losing(self: BucketStore, key: str, body: Body, new: bool) -> None:
        put(self, key, body, new)
        if not lost:
            lost.append(key)
            raise RunError("the answer was lost")

    monkeypatch.setattr(BucketStore, "_put", losing)
    prepare(bucket)
    assert lost == ["job"] and read_job(ObjectStore(f"{bucket.url}/job")) is not None


def test_a_server_that_ignores_conditions_runs_no_job(
    bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    put = BucketStore._put
    monkeypatch.setattr(
        BucketStore, "_put", lambda self, key, body, new: put(self, key, body, False)
    )
    with pytest.raises(RunError, match="does not honour conditional requests"):
        prepare(bucket)


def test_objects_that_a_job_began_with_are_found_though_a_listing_lacks_them(
    bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun = prepare(bucket)
    assert begun == [f"{bucket.url}/in/{name}.jsonl" for name in "ab"]
    monkeypatch.setattr("weir.files.readers.list_objects", lambda _: ())
    monkeypatch.setattr(BucketStore, "_sizes", lambda *_: ())
    assert prepare(bucket, resume=True) == begun


FORKING = """
import sys
from weir.files.object_store import ObjectStore
from weir.files.obstore_use import is_used_here
from weir.spark.live.host_process import said_by_child
from weir.spark.live.machine_check import missing_here, needed_libraries, needed_python, own_version
needs = {"python": needed_python(), "libraries": needed_libraries(), "weir": own_version(),
         "manager": "unix:x", "paths": [], "store": sys.argv[1], "token": "another",
         "modules": {}, "code": b""}
print(missing_here(needs), is_used_here())
print(said_by_child(lambda: [ObjectStore(sys.argv[1]).get("k").decode()]))
"""


def test_a_machine_is_asked_without_requests_of_the_process_that_forks_the_host(
    bucket: Bucket,
) -> None:
    """Requests of a process that was forked after its parent's first would never end."""
    bucket.put("job/k", "v")
    done = subprocess.run(
        [sys.executable, "-c", FORKING, f"{bucket.url}/job"],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    lacks, read = done.stdout.splitlines()
    assert "is not the folder that the driver writes to" in lacks and lacks.endswith("False")
    assert read == "['v']"
