"""The store of a live job in a bucket: what it keeps, and what it says when the server fails."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from http.server import BaseHTTPRequestHandler

import pytest

from buckets import SECRET, Answer, Bucket, new_bucket, refusing, scripted_server
from weir.errors import PlanError, RunError
from weir.files import bucket_store
from weir.files.object_store import ObjectStore
from weir.reliable.object_names import checkpoint_key
from weir.reliable.store import ObjectExists, StoreRefuses


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Iterator[Bucket]:
    with new_bucket(monkeypatch) as made:
        yield made


Serve = Callable[[Answer], list[str]]


@pytest.fixture
def serve(monkeypatch: pytest.MonkeyPatch) -> Iterator[Serve]:
    monkeypatch.setattr(bucket_store, "PATIENCE", timedelta(seconds=0.3))
    monkeypatch.setattr(bucket_store, "ANSWER_WITHIN", timedelta(seconds=0.5))
    with scripted_server(monkeypatch) as made:
        yield made


def impatient() -> ObjectStore:
    return ObjectStore("s3://data/job").impatient()


def refusal(work: Callable[[], object]) -> RunError:
    with pytest.raises(RunError) as caught:
        work()
    said = str(caught.value)
    assert SECRET not in said and "AKIA" not in said and "Debug" not in said
    return caught.value


def test_objects_are_kept(bucket: Bucket) -> None:
    store = ObjectStore(f"{bucket.url}/job")
    large = bytes(range(256)) * (80 << 10)
    store.put("a/b", large)
    store.put("a/c", b"1", new=True)
    with pytest.raises(ObjectExists):
        store.put("a/c", b"2", new=True)
    assert store.get("a/b") == large and store.get("a/c") == b"1" and store.get("a") is None
    assert store.sizes("a/") == [("a/b", len(large)), ("a/c", 1)]
    assert bucket.names() == ["job/a/b", "job/a/c"]


def test_one_of_two_makes_a_new_object_and_the_server_is_known_to_see_to_it(
    bucket: Bucket,
) -> None:
    ObjectStore(f"{bucket.url}/job").put("job", b"mine", new=True)
    with pytest.raises(ObjectExists):
        ObjectStore(f"{bucket.url}/job").put("job", b"yours", new=True)
    ObjectStore(f"{bucket.url}/job").check_conditions("job", b"mine")
    assert bucket.get("job/job") == b"mine"


def test_a_server_that_ignores_conditions_is_found_out(serve: Serve) -> None:
    def accepts(request: BaseHTTPRequestHandler) -> None:
        request.rfile.read(int(request.headers["Content-Length"]))
        request.send_response(200)
        request.send_header("ETag", '"1"')
        request.send_header("Content-Length", "0")
        request.end_headers()

    serve(accepts)
    error = refusal(lambda: impatient().check_conditions("job", b""))
    assert isinstance(error, StoreRefuses) and "does not honour conditional requests" in str(error)


def test_many_checkpoints_are_deleted_by_one_request(bucket: Bucket) -> None:
    store = ObjectStore(f"{bucket.url}/job")
    made = [checkpoint_key("1.0", 1, number) for number in range(3)]
    for key in (*made, "records/000000000001"):
        store.put(key, b"x")
    store.delete([*made, "records/000000000001", "records/000000000002"])
    assert store.list() == []


@pytest.mark.parametrize(
    ("status", "code"), [(503, "SlowDown"), (429, "TooManyRequests"), (500, "InternalError")]
)
def test_what_may_pass_is_tried_for_a_moment_and_then_told(
    status: int, code: str, serve: Serve
) -> None:
    requests = serve(refusing(status, code))
    store = impatient()
    began = time.monotonic()
    error = refusal(lambda: store.put("records/000000000001", b"x", new=True))
    assert time.monotonic() - began < 3 and len(requests) > 1
    assert not isinstance(error, StoreRefuses)
    assert str(error) == (
        f"cannot write records/000000000001 to 's3://data/job': the store answers {status} {code}"
    )


def test_who_has_patience_waits_and_is_told_why(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bucket_store, "TELL_EVERY", 0.5)
    began, refuses, finds = time.monotonic(), refusing(503, "SlowDown"), refusing(404, "NoSuchKey")
    serve(lambda request: (refuses if time.monotonic() < began + 2 else finds)(request))
    store, told = ObjectStore("s3://data/job"), list[str]()
    store.on_wait = told.append
    assert store.get("job") is None
    assert 1 <= len(told) <= 4
    why = r"cannot read job from 's3://data/job': the store answers 503 SlowDown \(for [12] s\)"
    assert re.fullmatch(why, told[0])  # half a second, and what a busy machine adds


def test_a_conflict_decides_nothing(serve: Serve) -> None:
    serve(refusing(409, "ConditionalRequestConflict"))
    error = refusal(lambda: impatient().put("job", b"x", new=True))
    assert not isinstance(error, ObjectExists | StoreRefuses)


@pytest.mark.parametrize(
    ("status", "code", "said"),
    [
        (403, "AccessDenied", "access is denied (403 AccessDenied); the credentials of this"),
        (404, "NoSuchBucket", "there is no bucket s3://data"),
        (400, "ExpiredToken", "the credentials have expired (400 ExpiredToken)"),
    ],
)
def test_what_will_not_pass_is_said_to_last(
    status: int, code: str, said: str, serve: Serve
) -> None:
    serve(refusing(status, code))
    store = impatient()
    for work in (
        lambda: store.put("job", b"x", new=True),
        lambda: store.put("job", b"x"),
        lambda: store.get("job"),
        lambda: store.list("records/"),
        lambda: store.delete(["job"]),
    ):
        error = refusal(work)
        assert isinstance(error, StoreRefuses) and "s3://data/job" in str(error)
        assert said in str(error)


def test_a_server_that_says_nothing_may_come_back(serve: Serve) -> None:
    serve(lambda request: time.sleep(1.0))
    error = refusal(lambda: impatient().get("job"))
    assert not isinstance(error, StoreRefuses)
    assert "the store does not answer" in str(error)


def test_a_store_with_a_secret_is_refused() -> None:
    with pytest.raises(PlanError) as caught:
        ObjectStore(f"s3://user:{SECRET}@data/job")
    assert SECRET not in str(caught.value)
