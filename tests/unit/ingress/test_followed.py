"""Sources without an end: what they say again when they start again, from any offset."""

from __future__ import annotations

import errno
import json
import os
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from pathlib import Path
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from weir.errors import InputError, PlanError
from weir.files.chunks import Chunk, SourcePartition
from weir.files.object_store import ObjectStore
from weir.ingress.connectors.connector import Connector, Endless
from weir.ingress.connectors.folder import FolderReading
from weir.ingress.connectors.registry import (
    has_end,
    has_log,
    open_any,
    open_reading,
    rooted,
    source_start,
)
from weir.ingress.connectors.tail import TailedFile
from weir.ingress.connectors.tcp import RECONNECT, connect, open_socket
from weir.ingress.ingress_log import begin_log, first_record
from weir.ingress.source_driver import driven_chunks
from weir.ingress.source_integrity import FileMark, check_not_shorter, marked_chunks
from weir.ingress.source_machine import SourceMachine, log_record
from weir.ingress.source_signals import Accept, Finished, IngressRecord, Offer, Quiet, Rows
from weir.plan.operators import Source
from weir.reliable.object_names import ingress_key, number_of
from weir.reliable.store import Store
from weir.script.program import parse_program

LONG = 30.0


def after_long() -> Callable[[], bool]:
    """Stops a source that should have ended, so that its test fails."""
    until = time.monotonic() + LONG
    return lambda: time.monotonic() > until


def source(path: str, options: str = "") -> Source:
    text = f"STREAM A (t BIGINT, v BIGINT) FROM '{path}' WITH (vs = t{options});"
    return parse_program(text).sources[0]


def follow(
    of: Source, folder: Path, start: int = 0, size: int = 100, resume: bytes | None = None
) -> Iterator[Chunk]:
    (partition,) = open_any(of, folder)
    return followed(of, partition, ObjectStore(str(folder / "store")), start, size, resume)


def followed(
    of: Source,
    partition: SourcePartition,
    store: Store,
    start: int = 0,
    size: int = 100,
    resume: bytes | None = None,
    waits: Callable[[str], None] = lambda _: None,
) -> Iterator[Chunk]:
    first = first_record("0.0", "job")
    if resume is None:
        begin_log(store, "0.0", "job")
    at = source_start(
        partition, "0.0", first=first, offset=start, resume=resume, writer=uuid4().hex
    )
    machine = SourceMachine(of, partition.name, at, size)
    return driven_chunks(machine, partition, store, after_long(), waits)


def record_number(chunk: Chunk) -> int:
    """The number of the record that a chunk stands in."""
    record = log_record(chunk.resume)
    assert record is not None
    return number_of(record.key)


def again_from(of: Source, folder: Path, chunk: Chunk) -> Iterator[Chunk]:
    """What a source says that starts again behind this chunk, when no earlier record is left."""
    store = ObjectStore(str(folder / "store"))
    store.delete(ingress_key("0.0", number) for number in range(record_number(chunk)))
    return follow(of, folder, chunk.stop, resume=chunk.resume)


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


def test_a_socket_needs_no_record_before_the_one_it_stands_in(tmp_path: Path) -> None:
    more = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            connection, _ = server.accept()
            with connection:
                for first in range(0, 12, 3):
                    connection.sendall(lines(first, first + 3))
                    more.wait()
                    more.clear()

        thread = threading.Thread(target=serve)
        thread.start()
        of = source(f"tcp://127.0.0.1:{server.getsockname()[1]}?until=eof")
        came = []
        for chunk in follow(of, tmp_path, size=2):
            came.append(chunk)
            if chunk.stop % 3 == 0:
                more.set()
        thread.join()
    assert [int(o) for c in came for o in c.offsets] == list(range(12))
    assert [record_number(c) for c in came] == [1, 1, 2, 2, 3, 3, 4, 4]
    for chunk in came:
        assert offsets(again_from(of, tmp_path, chunk)) == list(range(chunk.stop, 12))
    line = came[-1].lines
    assert line is not None and line.tolist() == [12]


def test_a_sender_that_is_told_what_is_durable_loses_nothing(tmp_path: Path) -> None:
    told: list[int] = []
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            for whole in (False, True):
                connection, _ = server.accept()
                with connection, connection.makefile("rb") as acks:
                    told.append(int(acks.readline()))
                    text = lines(told[-1], 6)
                    connection.sendall(text if whole else text[:-3])
                    told.append(int(acks.readline()))

        thread = threading.Thread(target=serve)
        thread.start()
        of = source(f"tcp://127.0.0.1:{server.getsockname()[1]}?acks=yes")
        chunks = follow(of, tmp_path)
        assert offsets(islice(chunks, 2)) == [0, 1, 2, 3, 4, 5]
        next_one = threading.Thread(target=lambda: next(chunks, None), daemon=True)
        next_one.start()
        thread.join()
    assert told == [0, 5, 5, 6]


@pytest.mark.parametrize(
    ("options", "rows"),
    [("until=eof", 4), ("until=eof&acks=yes", 4), ("until=eof&acks=no", 4), ("acks=yes", 3)],
)
def test_a_last_line_of_a_socket_without_a_line_end_is_a_row_unless_it_is_sent_again(
    options: str, rows: int
) -> None:
    class Closing(Told):
        def recv(self, _most: int) -> bytes:
            data, self._data = self._data, b""
            return data

    of = source(f"tcp://a:1?{options}")
    connections = iter([Closing(lines(0, 4)[:-1]), Closing(b"")])
    reading = open_reading(open_socket(of, lambda *_: next(connections)), None, 0)
    logged = []
    while isinstance(found := reading.poll(100, None, 0.0), Offer | Rows):
        if isinstance(found, Offer):
            logged.append(found.record)
            reading.accept(Accept(found.record, own=True))
            if found.record.ends:
                break
    assert b"".join(record.lines for record in logged) == lines(0, rows)
    assert logged[-1].ends == (rows == 4)


def test_a_folder_ends_and_forgets_no_file_it_has_read(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    of = source("in/")
    chunks = follow(of, tmp_path)
    came = []
    for first, name in ((0, "c"), (3, "b"), (6, "a")):
        (folder / f"{name}.jsonl").write_bytes(lines(first, first + 3))
        came += list(islice(chunks, 1))
    (folder / ".end").touch()
    assert list(chunks) == []
    for chunk in came:
        assert offsets(again_from(of, tmp_path, chunk)) == list(range(chunk.stop, 9))


def test_a_file_that_a_listing_missed_is_read_before_the_folder_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A large folder is listed in pieces: a listing may have `.end`, and not what came before."""
    folder, listed, missed = tmp_path / "in", os.listdir, ["a.jsonl"]
    folder.mkdir()
    (folder / "a.jsonl").write_bytes(lines(0, 3))
    (folder / ".end").touch()

    def without_missed(path: str) -> list[str]:
        found = listed(path)
        if ".end" in found and missed:
            found.remove(missed.pop())
        return found

    monkeypatch.setattr(os, "listdir", without_missed)
    assert values(follow(source("in/"), tmp_path)) == [0, 1, 4]
    assert not missed


def _offered(folder: FolderReading, now: float = 0.0) -> str:
    """The file that is offered, and accepted and read to its end; empty: none is."""
    offer = folder.poll(100, None, now)
    if not isinstance(offer, Offer):
        return ""
    folder.accept(Accept(offer.record, own=True, stop=None))
    assert isinstance(folder.poll(100, None, now), Rows)
    return offer.record.file


def test_a_large_folder_is_not_listed_for_each_of_its_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, list_names, listings = tmp_path / "in", os.listdir, 0
    folder.mkdir()
    names = [f"{i:03}.jsonl" for i in range(300)]
    for i, name in enumerate(names):
        (folder / name).write_bytes(lines(i, i + 1))

    def counted(path: str) -> list[str]:
        nonlocal listings
        listings += 1
        return list_names(path)

    monkeypatch.setattr(os, "listdir", counted)
    (partition,) = open_any(source("in/"), tmp_path)
    reading = open_reading(partition, None, 0)
    assert isinstance(reading, FolderReading)
    assert [_offered(reading) for _ in names] == names
    assert (_offered(reading), listings) == ("", 2)


def test_a_listing_serves_for_a_while_and_for_what_is_there(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    for i, name in enumerate("bcde"):
        (folder / f"{name}.jsonl").write_bytes(lines(i, i + 1))
    (partition,) = open_any(source("in/"), tmp_path)
    reading = open_reading(partition, None, 0)
    assert isinstance(reading, FolderReading)
    assert _offered(reading) == "b.jsonl"
    (folder / "a.jsonl").write_bytes(lines(9, 10))
    (folder / "c.jsonl").unlink()
    assert _offered(reading, 0.5) == "d.jsonl"
    assert [_offered(reading, 1.1) for _ in range(3)] == ["a.jsonl", "e.jsonl", ""]


def test_an_idle_file_needs_no_claim_before_the_last(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(lines(0, 3))
    of = source("tail://a.jsonl", ", idle = 20ms")
    *_, last = islice(follow(of, tmp_path), 4)
    assert record_number(last) == 5  # whose it is, how it begins, three claims
    Path(f"{path}.end").touch()
    again = list(again_from(of, tmp_path, last))
    assert [c.cti_times.tolist() for c in again] == [last.cti_times.tolist()]


def test_what_has_no_end_is_for_live_runs(tmp_path: Path) -> None:
    (partition,) = open_any(source("tail://a.jsonl"), tmp_path)
    with pytest.raises(PlanError, match=r"'tail://a\.jsonl' has no end"):
        next(partition.chunks())
    assert not has_end(partition) and has_log(partition)


@pytest.mark.parametrize(
    ("path", "ends", "logs"),
    [("rate://5", False, False), ("rate://5?rows=3", True, False), ("tcp://h:1", False, True)],
)
def test_a_connector_says_whether_it_ends_and_keeps_a_log(
    path: str, ends: bool, logs: bool
) -> None:
    (partition,) = open_any(source(path))
    assert (has_end(partition), has_log(partition)) == (ends, logs)


@pytest.mark.parametrize("forgotten", ["has_log", "has_free_rows", "local_files", "rooted", "open"])
def test_a_connector_that_does_not_state_all_cannot_be_made(forgotten: str) -> None:
    facts = ("has_log", "has_free_rows", "local_files", "rooted", "open")
    stated = dict.fromkeys(facts)
    assert type("Complete", (Endless,), stated)()
    del stated[forgotten]
    with pytest.raises(TypeError, match=forgotten):
        type("Forgetful", (Endless,), stated)()


def test_generated_rows_are_a_function_of_their_number(tmp_path: Path) -> None:
    text = "STREAM A (t BIGINT, value BIGINT, k BIGINT) FROM 'rate://1000?rows=50' WITH (vs = t);"
    (partition,) = open_any(parse_program(text).sources[0], tmp_path)
    whole = [row for chunk in partition.chunks(7) for row in chunk.rows.to_pylist()]
    assert [row["t"] for row in whole[:3]] == [0, 1000, 2000]
    late = [row for chunk in partition.chunks(100, 20) for row in chunk.rows.to_pylist()]
    assert late == whole[20:]


@pytest.mark.parametrize(
    "path",
    [
        "rate://",
        "rate://x",
        "rate://-1",
        "rate://0",
        "rate://nan",
        "rate://inf",
        "rate://1_0",
        "rate://1e-300",
        "rate://1e300",
        "rate://\uff15",
        "rate://5/x",
        "rate://5#x",
        "rate://[5",
    ],
)
def test_a_wrong_rate_is_refused(path: str) -> None:
    with pytest.raises(PlanError, match="invalid rate") as caught:
        open_any(source(path))
    assert "rate://1000?rows=50000" in (caught.value.hint or "")


@pytest.mark.parametrize(
    "option",
    [
        "row=1",
        "rows=x",
        "rows=",
        "rows",
        "rows=1_0",
        "rows=\uff15",
        "rows=-1",
        "rows=1.5",
        "keys=0",
        "keys=2147483649",
        "rows=9007199254740993",
        "start=99999999999999999999",
    ],
)
def test_an_option_that_a_rate_does_not_know_is_refused(option: str) -> None:
    with pytest.raises(PlanError, match=f": invalid option {option.ljust(5, '=')}") as caught:
        open_any(source(f"rate://5?{option}"))
    assert "rows from 0" in (caught.value.hint or "")


def test_an_option_of_a_rate_is_there_once() -> None:
    with pytest.raises(PlanError, match="invalid option rows=6"):
        open_any(source("rate://5?rows=5&rows=6"))


@pytest.mark.parametrize(
    "path", ["rate://1e-6?rows=9007199254740992", f"rate://5?rows=9&start={2**62}"]
)
def test_rows_beyond_the_largest_time_are_refused(path: str) -> None:
    with pytest.raises(PlanError, match="goes on beyond the largest time"):
        open_any(source(path))


@pytest.mark.parametrize(
    ("column", "options", "why"),
    [
        ("value DATE", "?rows=3", "rate:// makes no DATE for `value`"),
        ("value LIST<BIGINT>", "?rows=3", "makes no LIST"),
        ("value DECIMAL(10, 2)", "?rows=3", "makes no DECIMAL"),
        ("k TIMESTAMP", "?rows=3", "rate:// makes no TIMESTAMP for `k`"),
        ("k BINARY", "", "makes no BINARY"),
        ("value INT", "", "beyond what an INT holds"),
        ("value INT", "?rows=2147483649", "beyond what an INT holds"),
    ],
)
def test_columns_that_a_rate_cannot_make_are_refused(column: str, options: str, why: str) -> None:
    text = f"STREAM A (t BIGINT, {column}) FROM 'rate://5{options}' WITH (vs = t);"
    with pytest.raises(PlanError, match=why):
        open_any(parse_program(text).sources[0])


def test_the_largest_rates_make_rows() -> None:
    columns = ", ".join(f"c{i} {t}" for i, t in enumerate(("INT", "DOUBLE", "BOOLEAN", "STRING")))
    for kind in ("BIGINT", "DOUBLE", "BOOLEAN", "STRING", "TIMESTAMP"):
        path = f"rate://1e12?rows={2**53}&keys={2**31}&start={2**61}"
        text = f"STREAM A (t TIMESTAMP, value {kind}, {columns}) FROM '{path}' WITH (vs = t);"
        (partition,) = open_any(parse_program(text).sources[0])
        (chunk,) = partition.chunks(9, 2**53 - 3)
        assert chunk.rows.num_rows == 3 and chunk.rows.column("c0").null_count == 0


@pytest.mark.parametrize(
    "path",
    [
        "tcp://",
        "tcp://h",
        "tcp://:1",
        "tcp://h:",
        "tcp://h:0",
        "tcp://h:99999",
        "tcp://h:x",
        "tcp://h:-1",
        "tcp://[::1",
        "tcp://u@h:1",
        "tcp://h:1/x",
        "tcp://h:1#x",
        "tcp://a..b:1",
    ],
)
def test_a_wrong_address_of_a_socket_is_refused(path: str) -> None:
    with pytest.raises(PlanError, match="invalid address of a socket") as caught:
        open_any(source(path))
    assert "tcp://localhost:9000" in (caught.value.hint or "")


@pytest.mark.parametrize(
    ("options", "wrong"),
    [
        ("ack=yes", "ack=yes"),
        ("acks", "acks="),
        ("acks=", "acks="),
        ("acks=true", "acks=true"),
        ("acks=yes&acks=no", "acks=no"),
        ("until=EOF", "until=EOF"),
        ("until=eof&x=1", "x=1"),
    ],
)
def test_an_option_that_a_socket_does_not_know_is_refused(options: str, wrong: str) -> None:
    with pytest.raises(PlanError, match=f": invalid option {wrong}") as caught:
        open_any(source(f"tcp://h:1?{options}"))
    assert "acks=yes" in (caught.value.hint or "")


@pytest.mark.parametrize(
    ("path", "host", "port", "ends", "acks"),
    [
        ("tcp://h:1", "h", 1, False, False),
        ("tcp://h:65535/?until=eof", "h", 65535, True, False),
        ("tcp://[::1]:9?acks=yes&until=eof", "::1", 9, True, True),
        ("tcp://h:1?acks=no", "h", 1, False, False),
    ],
)
def test_a_url_says_where_a_socket_is_and_what_is_wanted_of_it(
    path: str, host: str, port: int, ends: bool, acks: bool
) -> None:
    opened = open_socket(source(path))
    assert (opened.host, opened.port, opened.ends, opened.acks) == (host, port, ends, acks)


# --- what is gone ------------------------------------------------------------------------------


def drained(chunks: Iterator[Chunk]) -> None:
    for _ in chunks:
        pass


@pytest.mark.parametrize(
    ("what", "change"),
    [
        ("was truncated", lambda path: path.write_bytes(b"")),
        ("is gone", Path.unlink),
        (
            "was replaced by another file",
            lambda path: (path.rename(f"{path}.1"), path.write_bytes(lines(0, 9))),
        ),
    ],
)
def test_a_growing_file_that_is_rotated_is_an_error_and_not_silence(
    tmp_path: Path, what: str, change: Callable[[Path], object]
) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(lines(0, 5))
    chunks = follow(source("tail://a.jsonl"), tmp_path)
    assert values(islice(chunks, 1)) == [0, 1, 4, 9, 16]
    change(path)
    with pytest.raises(InputError, match=f"it {what}, and 5 rows of it were read; put .*--resume"):
        drained(chunks)


def test_a_growing_file_that_lost_rows_while_nobody_read_is_an_error(tmp_path: Path) -> None:
    of, path = source("tail://a.jsonl"), tmp_path / "a.jsonl"
    with pytest.raises(InputError, match="is gone, and 4 rows"):
        drained(follow(of, tmp_path, start=4))
    path.write_bytes(lines(0, 3))
    with pytest.raises(InputError, match="was truncated, and 4 rows"):
        drained(follow(of, tmp_path, start=4))


def test_a_file_of_a_folder_that_is_needed_and_gone_is_an_error(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    for first, name in ((0, "a"), (3, "b"), (6, "c")):
        (folder / f"{name}.jsonl").write_bytes(lines(first, first + 3))
    (folder / ".end").touch()
    of = source("in/")
    assert len(values(follow(of, tmp_path))) == 9
    (folder / "a.jsonl").rename(tmp_path / "a.jsonl")
    assert offsets(follow(of, tmp_path, start=3)) == [3, 4, 5, 6, 7, 8], "it is not needed"
    with pytest.raises(InputError, match=r"a\.jsonl: it is gone"):
        drained(follow(of, tmp_path, start=2))
    (tmp_path / "a.jsonl").rename(folder / "a.jsonl")
    (folder / "b.jsonl").write_bytes(lines(3, 5))
    with pytest.raises(InputError, match=r"b\.jsonl: it has other rows now"):
        drained(follow(of, tmp_path, start=4))
    with pytest.raises(InputError, match=r"b\.jsonl: it has fewer rows now"):
        drained(follow(of, tmp_path, start=6))


@pytest.mark.parametrize("size", [1, 3, 100])
def test_a_file_of_a_folder_that_grew_is_not_read_on(tmp_path: Path, size: int) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    for first, name in ((0, "a"), (3, "b")):
        (folder / f"{name}.jsonl").write_bytes(lines(first, first + 3))
    (folder / ".end").touch()
    assert len(values(follow(source("in/"), tmp_path))) == 6
    (folder / "a.jsonl").write_bytes(lines(0, 5))
    with pytest.raises(InputError, match=r"a\.jsonl: it has other rows now, and 3 rows"):
        drained(follow(source("in/"), tmp_path, size=size))


@pytest.mark.parametrize("rows", [0, 3])
def test_a_finite_file_that_became_shorter_is_not_at_its_end(tmp_path: Path, rows: int) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(lines(0, 5))
    (partition,) = open_any(source("a.jsonl"), tmp_path)
    check_not_shorter(partition, 5)
    path.write_bytes(lines(0, rows))
    with pytest.raises(InputError, match=r"a\.jsonl: it has fewer rows now, and 5 rows"):
        check_not_shorter(partition, 5)


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
    assert isinstance(partition, Connector)
    store = ObjectStore(str(tmp_path / "store"))
    assert values(islice(followed(source(path), partition, store), 1)) == [0, 1, 4]


# --- the last line -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("last", "rows", "bad"),
    [
        (b'{"t": 5, "v": 25}', [0, 1, 4, 9, 16, 25], []),
        (b'{"t": 5, "v"', [0, 1, 4, 9, 16], [5]),
        (b'{"t": 5, "v": 25}\r', [0, 1, 4, 9, 16, 25], []),
        (b" ", [0, 1, 4, 9, 16], []),
        (b"", [0, 1, 4, 9, 16], []),
    ],
)
def test_a_last_line_without_a_line_end_is_a_row_or_a_bad_one(
    tmp_path: Path, last: bytes, rows: list[int], bad: list[int]
) -> None:
    """As the same file is to a reader that reads it at once."""
    path = tmp_path / "a.jsonl"
    path.write_bytes(lines(0, 5) + last)
    Path(f"{path}.end").touch()
    for of in (source("tail://a.jsonl"), source("a.jsonl")):
        (partition,) = open_any(of, tmp_path)
        followed = of.path.startswith("tail")
        chunks = list(follow(of, tmp_path) if followed else partition.chunks())
        assert values(iter(chunks)) == rows
        assert [row.offset for chunk in chunks for row in chunk.bad] == bad


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_a_byte_order_mark_is_no_part_of_a_growing_file(tmp_path: Path, mark: bytes) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(mark[:2])
    chunks = follow(source("tail://a.jsonl"), tmp_path)
    with path.open("ab") as file:
        file.write(mark[2:] + lines(0, 2))
    (chunk,) = islice(chunks, 1)
    with path.open("ab") as file:
        file.write(lines(2, 4))
    Path(f"{path}.end").touch()
    again = again_from(source("tail://a.jsonl"), tmp_path, chunk)
    assert [*values(iter([chunk])), *values(again)] == [0, 1, 4, 9]


# --- files that are not what was read ----------------------------------------------------------


@pytest.mark.parametrize("longer", [0, 1, 40])
def test_a_growing_file_that_is_rewritten_between_two_looks_is_not_read_on(
    tmp_path: Path, longer: int
) -> None:
    """copytruncate: the same file, at least as long as what was read, with other lines."""
    path = tmp_path / "a.jsonl"
    path.write_bytes(lines(0, 5))
    chunks = follow(source("tail://a.jsonl"), tmp_path)
    assert len(values(islice(chunks, 1))) == 5
    path.write_bytes(lines(1000, 1000 + longer) if longer > 5 else lines(0, 5)[:-2] + b"9\n")
    if longer == 1:
        with path.open("ab") as file:
            file.write(lines(5, 6))
    if longer == 0:  # it does not even look as if it had changed
        Path(f"{path}.end").touch()
    with pytest.raises(InputError, match=r"a\.jsonl: it .* truncated, and 5 rows"):
        drained(chunks)


def test_a_file_that_became_another_while_nobody_read_is_not_read_on(tmp_path: Path) -> None:
    of, path = source("tail://a.jsonl"), tmp_path / "a.jsonl"
    path.write_bytes(lines(0, 5))
    (chunk,) = islice(follow(of, tmp_path, size=5), 1)
    path.write_bytes(lines(0, 9))
    assert offsets(islice(again_from(of, tmp_path, chunk), 1)) == [5, 6, 7, 8]
    path.write_bytes(lines(0, 9).replace(b'"v": 4', b'"v": 5'))
    with pytest.raises(InputError, match=r"a\.jsonl: it no longer begins with what was"):
        drained(again_from(of, tmp_path, chunk))
    path.write_bytes(lines(0, 4))
    with pytest.raises(InputError, match=r"a\.jsonl: it was truncated, and 5 rows"):
        drained(again_from(of, tmp_path, chunk))


def test_a_file_is_known_by_its_beginning_before_there_is_a_checkpoint(tmp_path: Path) -> None:
    of, path = source("tail://a.jsonl"), tmp_path / "a.jsonl"
    path.write_bytes(lines(0, 5))
    assert len(values(islice(follow(of, tmp_path), 1))) == 5
    path.write_bytes(lines(0, 6))
    assert offsets(islice(follow(of, tmp_path), 1)) == [0, 1, 2, 3, 4, 5]
    path.write_bytes(lines(1, 9))
    with pytest.raises(InputError, match=r"a\.jsonl: it no longer begins with what was"):
        drained(follow(of, tmp_path))


def test_what_stands_behind_the_rows_that_were_taken_may_be_mended(tmp_path: Path) -> None:
    of, path = source("tail://a.jsonl"), tmp_path / "a.jsonl"
    path.write_bytes(lines(0, 5) + b'{"t": 5, "v": "x"}\n')
    (chunk,) = islice(follow(of, tmp_path, size=5), 1)
    path.write_bytes(lines(0, 7))
    Path(f"{path}.end").touch()
    assert offsets(again_from(of, tmp_path, chunk)) == [5, 6]


def test_a_growing_file_is_verified_from_every_place(tmp_path: Path) -> None:
    """With claims, blank lines and lines that are too long between the rows."""
    path = tmp_path / "a.jsonl"
    of = source("tail://a.jsonl", ", idle = 20ms, max_record = 40, bad = 'skip'")
    path.write_bytes(lines(0, 3) + b"\n\n" + b"x" * 300 + b"\n" + lines(3, 5))
    chunks = follow(of, tmp_path, size=2)
    came = []
    while len(came) < 7 or not len(came[-1].cti_times):
        came.append(next(chunks))
    with path.open("ab") as file:
        file.write(lines(5, 8))
    Path(f"{path}.end").touch()
    came += list(chunks)
    assert offsets(iter(came)) == [0, 1, 2, 4, 5, 6, 7, 8]
    assert [(row.offset, row.line) for chunk in came for row in chunk.bad] == [(3, 6)]
    for chunk in came:
        again = follow(of, tmp_path, chunk.stop, size=2, resume=chunk.resume)
        said = list(again)
        assert offsets(iter(said)) == [o for o in offsets(iter(came)) if o >= chunk.stop]
        lines_said = [int(n) for c in said for n in c.lines if c.lines is not None]
        assert lines_said == [o + 1 + 2 * (o > 2) for o in offsets(iter(said))]


def test_a_claim_behind_the_end_of_the_file_is_an_error_and_no_wait(tmp_path: Path) -> None:
    of, path = source("tail://a.jsonl", ", idle = 20ms"), tmp_path / "a.jsonl"
    path.write_bytes(lines(0, 5))
    assert len(list(islice(follow(of, tmp_path), 2))) == 2
    path.write_bytes(lines(0, 3))
    Path(f"{path}.end").touch()
    with pytest.raises(InputError, match="was truncated, and 5 rows"):
        drained(follow(of, tmp_path))


@pytest.mark.parametrize("ending", ["jsonl", "csv", "parquet", "arrow"])
def test_a_finite_file_that_became_another_is_not_read_on(tmp_path: Path, ending: str) -> None:
    def put(v: int, rows: int = 6) -> None:
        table = pa.table({"t": list(range(rows)), "v": [v] * rows})
        path = tmp_path / f"a.{ending}"
        match ending:
            case "jsonl":
                path.write_text("".join(json.dumps(row) + "\n" for row in table.to_pylist()))
            case "csv":
                path.write_text("t,v\n" + "".join(f"{t},{v}\n" for t in range(rows)))
            case "parquet":
                pq.write_table(table, path)
            case _:
                with pa.ipc.new_file(path, table.schema) as writer:
                    writer.write_table(table, max_chunksize=3)

    put(7)
    (partition,) = open_any(source(f"a.{ending}"), tmp_path)
    (first, mark), second = marked_chunks(partition, 3, 0, FileMark())
    assert mark is not None
    for chunk, read in ((first, mark), second):
        assert read is not None
        again = marked_chunks(partition, 3, chunk.stop, read)
        assert offsets(c for c, _ in again) == list(range(chunk.stop, 6))
    put(8)
    with pytest.raises(InputError, match=rf"a\.{ending}: it .*, and 3 rows of it were read"):
        drained(c for c, _ in marked_chunks(partition, 3, 3, mark))


def test_a_file_of_a_folder_that_became_another_is_not_read_on(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "a.jsonl").write_bytes(lines(0, 3))
    (folder / "b.jsonl").write_bytes(lines(3, 9))
    (folder / ".end").touch()
    of = source("in/")
    came = list(follow(of, tmp_path, size=3))
    for chunk in came:
        again = follow(of, tmp_path, chunk.stop, resume=chunk.resume)
        assert offsets(again) == list(range(chunk.stop, 9))
    (folder / "b.jsonl").write_bytes(lines(13, 19))
    drained(follow(of, tmp_path, 3, resume=came[0].resume))  # of which nothing was read yet
    with pytest.raises(InputError, match=r"b\.jsonl: it no longer begins"):
        drained(follow(of, tmp_path, 6, resume=came[1].resume))


# --- lines without an end ----------------------------------------------------------------------


class Pieces:
    """A connection that gives these bytes, so many at a time, and then closes."""

    def __init__(self, data: bytes, size: int) -> None:
        self._data, self._size = data, size

    def recv(self, _most: int) -> bytes:
        piece, self._data = self._data[: self._size], self._data[self._size :]
        return piece

    def sendall(self, _data: bytes) -> None:
        raise AssertionError("nobody asked to be told")

    def close(self) -> None:
        pass


@pytest.mark.parametrize("size", [1, 7, 100, 10_000])
def test_a_line_beyond_the_limit_is_one_bad_row_however_it_comes(tmp_path: Path, size: int) -> None:
    of = source("tcp://127.0.0.1:1?until=eof", ", max_record = 30, bad = 'skip'")
    data = lines(0, 2) + b"x" * 5_000 + b"\n" + lines(2, 4) + b'{"t": 5' + b" " * 3_000
    partition = open_socket(of, lambda _host, _port: Pieces(data, size))
    reading = open_reading(partition, None, 0)
    received, chunks = [], []
    while not (received and received[-1].ends):
        match reading.poll(100, None, 0.0):
            case Offer(record):
                received.append(record)
                reading.accept(Accept(record, own=True))
            case Rows(chunk):
                chunks.append(chunk)
            case found:
                assert found != Finished()
    # What is logged is bounded by the limit and what came at once.
    logged = sum(len(record.lines) for record in received)
    assert logged <= len(lines(0, 4)) + 2 * (33 + min(size, 5_000))
    assert values(iter(chunks)) == [0, 1, 4, 9]
    bad = [row for chunk in chunks for row in chunk.bad]
    assert [(row.offset, row.line, row.reason, len(row.text)) for row in bad] == [
        (2, 3, "longer than 30 bytes, which is `max_record`", 31),
        (5, 6, "longer than 30 bytes, which is `max_record`", 31),
    ]


@pytest.mark.parametrize("size", [1, 2, 100])
@pytest.mark.parametrize("text", [lines(0, 2), b"\xef\xbb", b"\xef\n", b""])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_a_byte_order_mark_is_no_part_of_what_a_connection_brings(
    mark: bytes, text: bytes, size: int
) -> None:
    connections = iter([Pieces(mark + text, size), Pieces(mark + lines(2, 4), size)])
    partition = open_socket(source("tcp://a:7", ", bad = 'skip'"), lambda *_: next(connections))
    reading = open_reading(partition, None, 0)
    logged, whole = b"", text.removesuffix(b"\n") + b"\n" * bool(text) + lines(2, 4)
    while len(logged) < len(whole):
        if isinstance(found := reading.poll(100, None, 0.0), Offer):
            logged += found.record.lines
            reading.accept(Accept(found.record, own=True))
    assert logged == whole


@pytest.mark.parametrize("acks", [False, True])
def test_rows_that_another_instance_logged_first_are_not_logged_twice(acks: bool) -> None:
    """Who is told what is durable sends them again; else they are what only this one has."""
    of = source(f"tcp://127.0.0.1:1{'?acks=yes' if acks else ''}")
    made: list[Told] = []

    def connect(_host: str, _port: int) -> Told:
        made.append(Told(lines(0, 3)))
        return made[-1]

    reading = open_reading(open_socket(of, connect), None, 0)
    assert reading.poll(100, None, 0.0) == Offer(IngressRecord(0, lines(0, 3)))
    reading.accept(Accept(IngressRecord(0, lines(0, 2))))
    rows = reading.poll(100, None, 0.0)
    assert isinstance(rows, Rows) and rows.chunk.stop == 2
    assert reading.poll(100, None, 0.0) == Offer(IngressRecord(2, lines(0, 3)))
    assert [c.told for c in made] == ([[b"0\n"], [b"2\n"]] if acks else [[]])


class Told:
    """A connection that gives these bytes at once, and hears how many rows are durable."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.told: list[bytes] = []

    def recv(self, _most: int) -> bytes:
        return self._data

    def sendall(self, data: bytes) -> None:
        self.told.append(data)

    def close(self) -> None:
        pass


def test_a_socket_says_why_there_is_no_connection_until_there_is_one() -> None:
    broken: list[OSError] = [
        socket.gaierror(-2, "Name or service not known"),
        TimeoutError("timed out"),
    ]

    class Silent(Told):
        def recv(self, _most: int) -> bytes:
            raise TimeoutError

    def connect(_host: str, _port: int) -> Told:
        if broken:
            raise broken.pop(0)
        return Silent(b"")

    reading = open_reading(open_socket(source("tcp://nowhere:7"), connect), None, 0)
    why = "no connection to nowhere:7: "
    assert reading.poll(9, None, 0.0) == Quiet(0, RECONNECT, why=f"{why}Name or service not known")
    assert reading.poll(9, None, 0.0) == Quiet(0, RECONNECT, why=f"{why}timed out")
    assert reading.poll(9, None, 0.0) == Quiet(0, 0.0)


def test_a_row_that_comes_piece_by_piece_breaks_the_silence() -> None:
    of = source("tcp://a:7")
    reading = open_reading(open_socket(of, lambda *_: Told(b'{"k":')), None, 0)
    assert reading.poll(9, None, 0.0) == Quiet(0, 0.0, heard=True)


def test_a_long_way_to_the_other_side_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """A round trip of half a second, and looks at a silent connection that are shorter."""
    make = socket.create_connection

    def far(address: tuple[str, int], timeout: float) -> socket.socket:
        if timeout < 0.5:
            raise TimeoutError("timed out")
        return make(address, timeout)

    monkeypatch.setattr(socket, "create_connection", far)
    with socket.create_server(("127.0.0.1", 0)) as server:
        conn = connect("127.0.0.1", server.getsockname()[1])
        assert isinstance(conn, socket.socket)
        with conn:
            assert conn.gettimeout() == RECONNECT


def test_a_socket_that_is_connected_to_itself_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """The system may choose the very port that is called, if nobody listens there."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = server.getsockname()
    from_there = partial(socket.create_connection, source_address=address)
    monkeypatch.setattr(socket, "create_connection", from_there)
    of = source(f"tcp://127.0.0.1:{address[1]}?acks=yes")
    reading = open_reading(open_socket(of), None, 0)
    why = f"no connection to 127.0.0.1:{address[1]}: Connection refused"
    assert reading.poll(9, None, 0.0) == Quiet(0, RECONNECT, why=why)
    with socket.socket() as server:
        server.bind(address)  # which a socket that was closed as usual would keep for a minute


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have some of the options")
def test_a_side_that_is_gone_without_a_word_is_given_up_after_25_seconds() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        conn = connect("127.0.0.1", server.getsockname()[1])
        assert isinstance(conn, socket.socket)
        with conn:
            of = conn.getsockopt
            assert of(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
            first = of(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE)
            every = of(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL)
            assert first + every * of(socket.IPPROTO_TCP, socket.TCP_KEEPCNT) == 25
            assert of(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) == 25_000


def test_a_side_that_is_gone_without_a_word_has_not_closed() -> None:
    class Gone(Told):
        def recv(self, _most: int) -> bytes:
            if self._data:
                self._data = b""
                raise TimeoutError(errno.ETIMEDOUT, "Connection timed out")
            return b""

    connections = iter([Gone(b"?"), Told(lines(0, 3))])
    of = source("tcp://a:7?until=eof")
    reading = open_reading(open_socket(of, lambda *_: next(connections)), None, 0)
    why = "no connection to a:7: Connection timed out"
    assert reading.poll(9, None, 0.0) == Quiet(0, RECONNECT, why=why)
    assert reading.poll(9, None, 0.0) == Offer(IngressRecord(0, lines(0, 3)))


def test_a_side_that_closes_at_once_is_not_called_without_a_pause() -> None:
    reading = open_reading(open_socket(source("tcp://a:7"), lambda *_: Told(b"")), None, 0)
    assert reading.poll(9, None, 0.0) == Quiet(0, RECONNECT)
    assert reading.poll(9, None, 0.0) == Quiet(0, RECONNECT)


def test_who_drives_a_source_hears_what_it_waits_for(tmp_path: Path) -> None:
    of = source("tail://a.jsonl")
    (partition,) = open_any(of, tmp_path)
    path, told = Path(partition.name), []

    def hear(why: str | None) -> None:
        told.append(why)
        if not path.exists():
            path.write_bytes(lines(0, 3))
            Path(f"{path}.end").touch()

    store = ObjectStore(str(tmp_path / "store"))
    chunks = followed(of, partition, store, waits=hear)
    assert values(islice(chunks, 1)) == [0, 1, 4]
    assert (told[0], told[-1]) == (f"'{path}' is not there yet", None)
    assert values(chunks) == []


def test_a_file_that_is_not_there_yet_claims_too(tmp_path: Path) -> None:
    of = source("tail://a.jsonl", ", idle = 20ms")
    chunks = follow(of, tmp_path)
    claims = list(islice(chunks, 2))
    assert [(c.stop, len(c.cti_times)) for c in claims] == [(0, 1), (0, 1)]
    (tmp_path / "a.jsonl").write_bytes(lines(0, 3))
    Path(tmp_path / "a.jsonl.end").touch()
    assert offsets(chunks) == [0, 1, 2]


@pytest.mark.parametrize("name", ["a.csv", "a.PARQUET", "in/a.arrow"])
def test_a_growing_file_of_another_format_is_refused(name: str) -> None:
    with pytest.raises(PlanError, match=f"'tail://{name}' is not a file of JSON lines"):
        open_any(source(f"tail://{name}"))
    assert open_any(source("tail://a.csv.log"))


def test_a_file_that_never_came_has_no_rows_once_its_end_is_declared(tmp_path: Path) -> None:
    (partition,) = open_any(source("tail://a.jsonl"), tmp_path)
    reading = open_reading(partition, None, 0)
    assert isinstance(reading.poll(9, None, 0.0), Quiet)
    Path(tmp_path / "a.jsonl.end").touch()
    assert reading.poll(9, None, 0.0) == Finished()


def test_a_file_that_came_just_before_its_end_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    is_ended = TailedFile.is_ended

    def written_by_now(of: TailedFile) -> bool:
        Path(of.path).write_bytes(lines(0, 3))
        Path(f"{of.path}.end").touch()
        return is_ended(of)

    monkeypatch.setattr(TailedFile, "is_ended", written_by_now)
    assert values(follow(source("tail://a.jsonl"), tmp_path)) == [0, 1, 4]


def test_a_file_that_was_replaced_just_before_its_end_was_declared_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(lines(0, 3))
    chunks = follow(source("tail://a.jsonl"), tmp_path)
    assert values(islice(chunks, 1)) == [0, 1, 4]
    is_ended = TailedFile.is_ended

    def rotated_by_now(of: TailedFile) -> bool:
        if not is_ended(of):
            path.rename(tmp_path / "a.jsonl.1")
            path.write_bytes(lines(3, 6))
            Path(f"{path}.end").touch()
        return is_ended(of)

    monkeypatch.setattr(TailedFile, "is_ended", rotated_by_now)
    with pytest.raises(InputError, match="was replaced by another file, and 3 rows"):
        drained(chunks)


@pytest.mark.parametrize("kind", ["pipe", "folder", "name"])
def test_what_is_no_file_in_a_folder_is_named(tmp_path: Path, kind: str) -> None:
    """A pipe would be waited for without end."""
    folder = tmp_path / "in"
    folder.mkdir()
    if kind == "pipe":
        os.mkfifo(folder / "f.jsonl")
    elif kind == "folder":
        (folder / "f.jsonl").mkdir()
    else:
        Path(os.fsdecode(os.fsencode(folder) + b"/f\xff.jsonl")).touch()
    with pytest.raises(InputError, match=r"not a file|its name is not UTF-8"):
        next(follow(source("in/"), tmp_path))


@pytest.mark.parametrize("kind", ["pipe", "folder", "device", "socket"])
def test_what_is_no_file_is_not_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """A pipe would be waited for without end, and so would a device."""
    path = tmp_path / "a.jsonl"
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    elif kind == "device":
        path.symlink_to("/dev/zero")
    else:
        monkeypatch.chdir(tmp_path)  # the name of a socket must be short
        with socket.socket(socket.AF_UNIX) as bound:
            bound.bind(path.name)
    (partition,) = open_any(source("tail://a.jsonl"), tmp_path)
    with pytest.raises(InputError, match=r"a\.jsonl: not a file"):
        open_reading(partition, None, 0).poll(9, None, 0.0)
