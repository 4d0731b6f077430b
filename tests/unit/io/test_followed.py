"""Sources without an end: what they say again when they start again, from any offset."""

import json
import os
import socket
import threading
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path

import pytest

from weir.errors import PlanError
from weir.io.chunks import Chunk
from weir.io.followed import Followed, open_followed
from weir.io.ingress_log import IngressLog
from weir.io.object_store import ObjectStore
from weir.io.sources import open_any, rooted
from weir.plan.nodes import Source
from weir.script.program import parse_program

NEVER: Callable[[], bool] = lambda: False  # noqa: E731


def source(path: str, options: str = "") -> Source:
    text = f"STREAM A (t BIGINT, v BIGINT) FROM '{path}' WITH (vs = t{options});"
    return parse_program(text).sources[0]


def follow(of: Source, folder: Path, start: int = 0, size: int = 100) -> Iterator[Chunk]:
    partition = open_followed(of, str(folder))
    assert partition is not None
    log = IngressLog(ObjectStore(str(folder / "store")), "0.0")
    return partition.follow(size, start, log, NEVER)


def lines(first: int, stop: int) -> bytes:
    return b"".join(json.dumps({"t": i, "v": i * i}).encode() + b"\n" for i in range(first, stop))


def values(chunks: Iterator[Chunk]) -> list[int]:
    return [v for chunk in chunks for v in chunk.rows.column("v").to_pylist()]


def offsets(chunks: Iterator[Chunk]) -> list[int]:
    return [int(o) for chunk in chunks for o in chunk.offsets]


def test_a_growing_file_ends_when_it_is_said_to(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(lines(0, 5) + b'{"t": 5')  # a line that is not whole yet
    chunks = follow(source("tail://a.jsonl"), tmp_path)
    assert values(islice(chunks, 1)) == [0, 1, 4, 9, 16]
    with path.open("ab") as file:
        file.write(b', "v": 25}\n')
    Path(f"{path}.end").touch()
    assert values(chunks) == [25]
    assert offsets(follow(source("tail://a.jsonl"), tmp_path, start=3)) == [3, 4, 5]


def test_an_idle_file_claims_the_same_again(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(lines(0, 3))
    of = source("tail://a.jsonl", ", idle = 20ms")
    chunks = follow(of, tmp_path)
    rows, claim = islice(chunks, 2)
    assert (rows.stop, claim.stop, len(claim.cti_times)) == (3, 3, 1)
    with path.open("ab") as file:
        file.write(lines(3, 6))
    Path(f"{path}.end").touch()
    again = list(follow(of, tmp_path))
    places = [(int(c.stop), c.cti_times.tolist()) for c in again]
    assert (3, claim.cti_times.tolist()) in places
    assert places[-1] == (6, [])


def test_files_of_a_folder_come_in_the_order_they_were_found(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "b.jsonl").write_bytes(lines(0, 3))
    of = source("in/")
    chunks = follow(of, tmp_path)
    assert values(islice(chunks, 1)) == [0, 1, 4]
    (tmp_path / "a.jsonl").write_bytes(lines(3, 5))
    os.rename(tmp_path / "a.jsonl", folder / "a.jsonl")
    assert values(islice(chunks, 1)) == [9, 16]
    assert values(islice(follow(of, tmp_path), 2)) == [0, 1, 4, 9, 16]
    assert offsets(islice(follow(of, tmp_path, start=4), 1)) == [4]


def test_rows_of_a_socket_are_logged_and_said_again(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            connection, _ = server.accept()
            with connection:
                connection.sendall(lines(0, 4))

        thread = threading.Thread(target=serve)
        thread.start()
        of = source(f"tcp://127.0.0.1:{server.getsockname()[1]}?until=eof")
        assert values(follow(of, tmp_path)) == [0, 1, 4, 9]
        thread.join()
    assert values(follow(of, tmp_path)) == [0, 1, 4, 9]  # nobody listens: it is all in the log
    assert offsets(follow(of, tmp_path, start=2)) == [2, 3]


def test_what_has_no_end_is_for_live_runs(tmp_path: Path) -> None:
    (partition,) = open_any(source("tail://a.jsonl"), tmp_path)
    with pytest.raises(PlanError, match="has no end"):
        next(partition.chunks())


def test_generated_rows_are_a_function_of_their_number(tmp_path: Path) -> None:
    text = "STREAM A (t BIGINT, value BIGINT, k BIGINT) FROM 'rate://1000?rows=50' WITH (vs = t);"
    (partition,) = open_any(parse_program(text).sources[0], tmp_path)
    whole = [row for chunk in partition.chunks(7) for row in chunk.rows.to_pylist()]
    assert [row["t"] for row in whole[:3]] == [0, 1000, 2000]
    late = [row for chunk in partition.chunks(100, 20) for row in chunk.rows.to_pylist()]
    assert late == whole[20:]


@pytest.mark.parametrize("path", ["rate://x", "rate://-1", "rate://5?row=1", "rate://5?rows=x"])
def test_a_wrong_rate_is_refused(path: str) -> None:
    with pytest.raises(PlanError, match="is no rate"):
        open_any(source(path))


@pytest.mark.parametrize("path", ["tail://new/a.jsonl", "new/"])
def test_a_process_in_another_folder_finds_what_it_follows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    (tmp_path / "new").mkdir()
    (tmp_path / "new" / "a.jsonl").write_bytes(lines(0, 3))
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    (partition,) = open_any(source(path), ".")
    partition = rooted(partition, str(tmp_path))
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert isinstance(partition, Followed)
    log = IngressLog(ObjectStore(str(tmp_path / "store")), "0.0")
    assert values(islice(partition.follow(100, 0, log, NEVER), 1)) == [0, 1, 4]
